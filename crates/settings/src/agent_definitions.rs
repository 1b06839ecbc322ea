//! Definitions of subagents: their purpose, tools and prompt.
//!
//! A definition is a Markdown file with frontmatter, or an object in settings or on the command line. If several have
//! one name, the strongest source wins. A project's definition is untrusted until its directory is trusted: until then
//! it can restrict but not add, and replaces nothing.

mod agent_definition;
mod agent_hooks;
mod agent_servers;
pub mod built_in;
mod definition_lint;
mod find;
mod registry;
mod tool_restriction;

pub use agent_definition::{
    AgentMemoryScope, Definition, DefinitionStatus, FORK, Isolation, KEYS, MOST_ROUNDS, OfferedTools, Runs,
};
pub use agent_hooks::hooks_in;
pub use agent_servers::servers_in;
pub use definition_lint::OF_PLANS;
pub use find::{DefinitionSources, PluginAgent, claims};
pub use registry::{DefinitionSource, DefinitionTrouble, ListedAgent, Registry};
pub use tool_restriction::{ToolRestriction, narrow, offers};
