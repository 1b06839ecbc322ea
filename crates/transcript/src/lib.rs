//! Pure data and projection: what a session is, without access to disk, clock or network.
pub mod block;
pub mod commit;
mod effort;
pub mod id;
pub mod injected;
pub mod line;
pub mod log;
pub mod mark;
pub mod message;
pub mod models;
mod prediction;
pub mod price;
mod request;
pub mod size;
mod text;
pub mod tokens;
pub mod tool_names;
pub mod view;
pub mod window;

pub use block::{Block, Outcome};
pub use effort::Effort;
pub use id::Id;
pub use injected::{Injected, Purpose};
pub use log::Log;
pub use message::{Message, Prologue, Remarks, Reply, Role, StopReason, Thinking, ToolDefinition, Usage};
pub use prediction::{Prediction, predictions};
pub use request::Request;
