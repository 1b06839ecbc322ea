//! Sessions on disk: the log of one, held by one writer, and all that is computed from sessions.
//!
//! [`Session`] is the file; [`record`] reads any session, ours or another program's; [`rewind`] goes back; [`history`] is the
//! tool that shows what left the view; [`replay`] runs a recorded session through the layers, and [`price`] bills it under
//! policies; [`stats`], [`savings`] and [`window_usage`] count. [`Home`] says where files lie, [`World`] is the clock and fresh ids.
//!
//! It asks no model, knows no settings and no terminal.

pub mod child;
mod error;
pub mod history;
pub mod home;
pub mod price;
pub mod record;
pub mod replay;
pub mod rewind;
pub mod savings;
mod session;
pub mod stats;
pub mod subagent_files;
pub mod window_usage;
pub mod world;

pub use child::{SubagentMeta, folder_of};
pub use error::Error;
pub use home::Home;
pub use session::{Fork, LineMeta, STOPPED, SeenFile, Session, SurfacedMemory};
pub use world::World;
