//! Team memory, from the outside.

mod it {
    mod databases;
    mod hostile;
    mod house;
    mod issuer;
    mod mirrors;
    mod page;
    mod server;
    mod store;
}
