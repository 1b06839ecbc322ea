//! Agents that a session sends out, by the definitions in [`settings::agents`].
//!
//! Each that is out is a [`Subagent`](crate::subagent::Subagent): an agent with a driver and a file of its own, in a task of its
//! own. [`Subagents`] knows all of them, and that each is reported, resumed or told lost.

mod apply_definition;
mod branch;
mod child;
mod in_team;
mod lost;
mod memory;
mod resume;
mod subagent_report;
mod subagents;
mod task_tools;
mod tool;
mod worktree;

pub use apply_definition::take_role;
pub(crate) use branch::Branch;
pub(crate) use child::{Caller, ParentSnapshot};
pub(crate) use in_team::InTeam;
pub(crate) use lost::{HeardAgent, lost};
pub use memory::MemoryPlaces;
pub use resume::Delivery;
pub(crate) use subagent_report::notification;
pub use subagents::{AtEnd, MOST_OUT, Subagents};
pub(crate) use task_tools::knowing;
pub use tool::{AgentInput, SendOut};
pub use worktree::{Worktree, WorktreeRemains, WorktreeSite, left_behind};
