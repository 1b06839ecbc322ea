//! Definitions of subagents: their purpose, tools and prompt.
//!
//! A definition is a Markdown file with frontmatter, or an object in settings or on the command line. If several have
//! one name, the strongest source wins. A project's definition is untrusted until its directory is trusted: until then
//! it can restrict but not add, and replaces nothing.

pub mod built_in;
mod definition;
mod definition_lint;
mod find;
mod hooks;
mod registry;
mod servers;
mod tool_restriction;

pub use definition::{
    AgentMemoryScope, Definition, DefinitionStatus, FORK, Isolation, KEYS, MOST_ROUNDS, OfferedTools, Runs,
};
pub use definition_lint::OF_PLANS;
pub use find::{DefinitionSources, PluginAgent, claims};
pub use hooks::hooks_in;
pub use registry::{DefinitionSource, DefinitionTrouble, ListedAgent, Registry};
pub use servers::servers_in;
pub use tool_restriction::{ToolRestriction, narrow, offers};
