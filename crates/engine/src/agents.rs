//! Subagents of a session, made from the definitions in [`settings::agent_definitions`].
//!
//! A [`Subagent`](crate::subagent::Subagent) is an agent with its own driver and transcript, running in its own task.
//! [`Subagents`] tracks all of them and makes sure that each is reported, resumed or declared lost.

mod agent_tool;
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
mod worktree;

pub use agent_tool::{AgentInput, StartAgent};
pub use apply_definition::take_role;
pub(crate) use branch::Branch;
pub(crate) use child::{Caller, ParentSnapshot};
pub(crate) use in_team::TeamAgentTool;
pub(crate) use lost::{HeardAgent, lost};
pub use memory::MemoryPlaces;
pub use resume::Delivery;
pub(crate) use subagent_report::notification;
pub use subagents::{MOST_OUT, Subagents, SubagentsAtEnd};
pub(crate) use task_tools::knowing;
pub use worktree::{Worktree, WorktreeRemains, WorktreeSite, left_behind};
