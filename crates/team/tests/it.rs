//! Team memory, from the outside.

mod it {
    mod databases;
    mod store;
}
