//! The program as its users meet it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "tests"
)]

#[path = "it/stage.rs"]
mod stage;

#[path = "it/clients.rs"]
mod clients;
#[path = "it/docs.rs"]
mod docs;
#[path = "it/edges.rs"]
mod edges;
#[path = "it/headless.rs"]
mod headless;
#[path = "it/kills.rs"]
mod kills;
#[path = "it/sdk.rs"]
mod sdk;
#[path = "it/sessions.rs"]
mod sessions;
#[path = "it/trouble.rs"]
mod trouble;
