//! Agents that a session sends out, by the definitions in [`settings::agents`].
//!
//! Each that is out is an [`Errand`](crate::errand::Errand): an agent with a driver and a file of its own, in a task of its
//! own. [`Children`] knows all of them, and that each is reported, resumed or told lost.

mod apply_definition;
mod branch;
mod child;
mod children;
mod in_team;
mod lost;
mod memory;
mod report;
mod resume;
mod tasks;
mod tool;
mod worktree;

pub use apply_definition::take_role;
pub(crate) use branch::Branch;
pub(crate) use child::{Caller, ParentSnapshot};
pub use children::{AtEnd, MOST_OUT, Subagents};
pub(crate) use in_team::InTeam;
pub(crate) use lost::{HeardAgent, lost};
pub use memory::MemoryPlaces;
pub(crate) use report::notification;
pub use resume::Delivery;
pub(crate) use tasks::knowing;
pub use tool::{AgentInput, SendOut};
pub use worktree::{Worktree, WorktreeRemains, WorktreeSite, left_behind};
