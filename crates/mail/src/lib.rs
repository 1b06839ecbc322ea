//! Messages between agents: mailboxes on disk, queues in memory, sockets of other sessions, and the task list a team
//! shares.
//!
//! [`Mail`] holds the messages for a session and enters each into its log once, [`Messenger`] sends to others, and [`Team`]
//! is the list of those who belong together. Nothing here starts a process or decides whether somebody may write.

mod ask_lead;
mod incoming;
pub mod mailbox;
mod message_text;
mod messenger;
pub mod socket;
pub mod task_file;
pub mod tasks;
mod team;

pub use ask_lead::{AskLead, LOOK, NOBODY, PATIENCE, interrupted, mode_below};
pub use incoming::{Mail, SessionLife};
pub use message_text::{MessageOrigin, WaitingMessage, in_words, name_of, sender, shown};
pub use messenger::{Messenger, Neighbours, SOCKET};
pub use team::{Team, TeamInvitation, TeamMember};
