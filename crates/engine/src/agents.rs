//! Agents that a session can send out: what each is for, what it may use, and the words it begins with.
//!
//! A definition is a Markdown file with a few keys on top, or an object in settings or on the command line. Of several
//! with one name the strongest source wins. A definition of a project is text of a stranger until its directory is trusted:
//! it can take away, not add.

mod child;
mod definition;
mod narrow;
mod registry;
mod tool;

pub(crate) use child::Seat;
pub use child::Sent;
pub use definition::{Definition, Isolation, KEYS, Memory, Offered, Runs};
pub use narrow::Narrowed;
pub use registry::{Listed, Registry, Source, Sources, Trouble};
pub(crate) use tool::Spent;
pub use tool::{AgentInput, Children, SendOut};
