//! The layers that keep a session inside its window, one file each. Each only decides: what it decides is a commit, and
//! what has to be done for it (writing a file, asking a model) is the engine's.
//!
//! In the order in which they act before a request, each there to keep the next, dearer one from firing:
//!
//! 1. [`spill`]: oversized results go to disk, a frozen preview stays. Costs nothing: the model has not seen them yet.
//! 2. [`micro`]: old results are cleared, when that is worth writing the rest again ([`worth`]).
//! 3. [`notes`]: what matters is written down while the work goes on, so that
//! 4. [`compact`]: notes, or else a summary, take the place of what was said; [`restore`] brings back what the model was
//!    working with.
//!
//! [`breaks`] watches what the provider's cache makes of all that.

pub mod breaks;
pub mod compact;
pub mod micro;
pub mod notes;
pub mod restore;
#[cfg(test)]
mod sample;
pub mod spill;
mod template;
pub mod worth;
