//! Pure data and projection: what a session is, without touching disk, clock or network.
pub mod block;
pub mod mark;
pub mod message;

pub use block::{Block, Outcome};
pub use message::{Message, Prologue, Reply, Request, Role, StopReason, Thinking, ToolDefinition, Usage};
