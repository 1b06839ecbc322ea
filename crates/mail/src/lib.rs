//! Messages between agents: mailboxes on disk, queues in memory, sockets of other sessions, and the task list a team shares.
//!
//! [`Mail`] is what others write to a session, entered into its log once; [`Post`] how a session reaches others; [`Team`] who
//! belongs together. Nothing here starts a process or decides whether somebody may write.

mod ask_lead;
mod incoming;
pub mod mailbox;
mod message_text;
mod post;
pub mod socket;
pub mod task_file;
pub mod tasks;
mod team;

pub use ask_lead::{AskLead, LOOK, NOBODY, PATIENCE, interrupted, mode_below};
pub use incoming::{Mail, SessionLife};
pub use message_text::{MessageOrigin, WaitingMessage, in_words, name_of, sender, shown};
pub use post::{Neighbours, Post, SOCKET};
pub use team::{Team, TeamInvitation, TeamMember};
