//! Agents that a session can send out: what each is for, what it may use, and the words it begins with.
//!
//! A definition is a Markdown file with a few keys on top, or an object in settings or on the command line. Of several
//! with one name the strongest source wins. A definition of a project is text of a stranger until its directory is trusted:
//! it can take away, not add, and replaces nobody.
//!
//! Each that is out is an [`Errand`](crate::errand::Errand): an agent with a driver and a file of its own, in a task of its own.

mod branch;
mod child;
mod children;
mod in_team;
mod lost;
mod memory;
mod outfit;
mod report;
mod resume;
mod role;
mod tasks;
mod tool;
mod worktree;

pub(crate) use branch::Branch;
pub(crate) use child::Seat;
pub use children::{AtEnd, Children, MOST_OUT};
pub(crate) use in_team::InTeam;
pub(crate) use lost::{HeardAgent, lost};
pub use memory::MemoryPlaces;
pub(crate) use report::notification;
pub use resume::Told;
pub use role::take_role;
pub(crate) use tasks::knowing;
pub use tool::{AgentInput, SendOut};
pub use worktree::{Left, Sender, Worktree, left_behind};
