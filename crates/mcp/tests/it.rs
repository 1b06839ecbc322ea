//! Servers of all kinds, seen through the client.

#[path = "it/calls.rs"]
mod calls;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/lists.rs"]
mod lists;
#[path = "it/questions.rs"]
mod questions;
#[path = "it/scripted.rs"]
mod scripted;
