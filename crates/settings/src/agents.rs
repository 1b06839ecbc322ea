//! Definitions of agents that a session can send out: what each is for, what it may use, and the words it begins with.
//!
//! A definition is a Markdown file with a few keys on top, or an object in settings or on the command line. Of several
//! with one name the strongest source wins. A definition of a project is text of a stranger until its directory is trusted:
//! it can take away, not add, and replaces nobody.

pub mod built_in;
mod definition;
mod definition_lint;
mod find;
mod hooks;
mod registry;
mod tool_restriction;

pub use definition::{
    AgentMemoryScope, Definition, DefinitionStatus, FORK, Isolation, KEYS, MOST_ROUNDS, OfferedTools, Runs,
};
pub use definition_lint::OF_PLANS;
pub use find::{DefinitionSources, claims};
pub use hooks::hooks_in;
pub use registry::{DefinitionSource, DefinitionTrouble, ListedAgent, Registry};
pub use tool_restriction::{ToolRestriction, narrow, offers};
