//! A storm over the real code: one seed, one world, everything that can go wrong in it, and the laws that hold all the same.
