//! Dreaming: now and then an agent goes over what is remembered and brings it into order.
//!
//! [`gate`] says whether it is time, [`lock`] and [`disk`] that only one process does it, [`sessions`] what happened since.

pub mod disk;
pub mod gate;
pub mod lock;
pub mod sessions;
