//! Definitions of agents that a session can send out: what each is for, what it may use, and the words it begins with.
//!
//! A definition is a Markdown file with a few keys on top, or an object in settings or on the command line. Of several
//! with one name the strongest source wins. A definition of a project is text of a stranger until its directory is trusted:
//! it can take away, not add, and replaces nobody.

pub mod built_in;
mod definition;
mod doubts;
mod find;
mod hooks;
mod narrow;
mod registry;

pub use definition::{
    AgentMemoryScope, Definition, DefinitionStatus, FORK, Isolation, KEYS, MOST_ROUNDS, OfferedTools, Runs,
};
pub use doubts::OF_PLANS;
pub use find::{DefinitionSources, claims};
pub use hooks::hooks_in;
pub use narrow::{ToolRestriction, narrow, offers};
pub use registry::{DefinitionSource, DefinitionTrouble, ListedAgent, Registry};
