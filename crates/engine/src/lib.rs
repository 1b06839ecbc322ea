//! The engine: one agent session, from the user's words to the end of the turn.
//!
//! [`Session`] is the log on disk. [`run::Run`] is the step machine: looking at the log, what comes next? [`Agent`]
//! drives it: it calls the model, asks for permission, runs tools, and appends what happened. What is to be seen of it
//! leaves as [`Event`]s; they are also the points where hooks attach.
//!
//! A session inside a program of your own is a model, a session, and what it may do ([`agent::Parts`]):
//!
//! ```no_run
//! use std::sync::Arc;
//! use engine::provider::anthropic::{Anthropic, Auth, BASE_URL, Config};
//! use engine::{Agent, Event, Home, Session, World, agent::Parts};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Anthropic::new(Config::new(BASE_URL, Auth::ApiKey("key".into())))?;
//! let session = Session::create(&Home::at("/var/lib/me"), "/srv/project".as_ref(), None, World::real())?;
//! let mut parts = Parts::new(Arc::new(model), "claude-sonnet-5");
//! parts.out.listener = Arc::new(|event| {
//!     if let Event::Text(text) = event {
//!         print!("{text}");
//!     }
//! });
//! let mut agent = Agent::new(session, parts)?;
//! let turn = agent.say("What does this project do?").await;
//! # drop(turn);
//! # Ok(())
//! # }
//! ```
//!
//! `examples/embed.rs` is a whole program. A session is continued with [`Session::resume`]; one who can be asked for
//! permission is a [`settings::permission::Approver`].
//!
//! The engine never touches a terminal, reads no environment and listens on no port: the binary does.

pub mod activity;
pub mod agent;
pub mod agents;
pub mod configuration;
pub mod driver;
pub mod event;
pub mod gate;
pub mod hooks;
pub mod journal;
mod live;
pub mod parts;
pub mod plan;
pub mod prompt;
mod queued_messages;
pub mod run;
pub mod send_message;
pub mod servers;
pub mod skills;
pub mod subagent;
pub mod teammates;
pub mod web;
pub mod web_search;

// Those below, so that a program need name only this crate.
pub use {context, learning, mail, provider, session, settings, tools, transcript};

pub use agent::{Agent, Turn};
pub use event::Event;
pub use learning::Ledger;
pub use queued_messages::QueuedMessages;
pub use session::{Error, Home, Session, World};
