//! Servers of all kinds, seen through the client.

#[path = "it/calls.rs"]
mod calls;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/http.rs"]
mod http;
#[path = "it/lists.rs"]
mod lists;
#[path = "it/logins.rs"]
mod logins;
#[path = "it/questions.rs"]
mod questions;
#[path = "it/scripted.rs"]
mod scripted;
#[path = "it/web.rs"]
mod web;
