//! Memories of an agent type: their location, and the prompt about them.
//!
//! They belong to the agent: nothing is recalled into its work automatically, and nothing is extracted from it. It
//! writes down itself what it wants to remember, and its index is shown at the start.

use std::path::PathBuf;

use session::Error;
use settings::BasePaths;
use settings::agent_definitions::{AgentMemoryScope, Definition, OfferedTools};
use settings::rules;
use tools::permission::Rule;
use transcript::tool_names;

use super::subagents::Subagents;

/// Directories for agents' own memories.
#[derive(Debug, Clone)]
pub struct MemoryPlaces {
    /// For all projects.
    pub user: PathBuf,
    /// In a project, for everybody.
    pub project: PathBuf,
    /// In a project, for this user.
    pub local: PathBuf,
}

/// Memory directory of one agent type.
pub(super) struct AgentMemoryPlace {
    scope: AgentMemoryScope,
    pub(super) directory: PathBuf,
}

/// Locates a type's memories, if it keeps any.
pub(super) fn place(definition: &Definition, subagents: &Subagents) -> Option<AgentMemoryPlace> {
    let (scope, places) = (definition.memory?, subagents.memory()?);
    let folder = match scope {
        AgentMemoryScope::User => &places.user,
        AgentMemoryScope::Project => &places.project,
        AgentMemoryScope::Local => &places.local,
    };
    Some(AgentMemoryPlace { scope, directory: folder.join(definition.name.replace(':', "-")) })
}

/// Adds the tools to read and write them.
pub(super) fn add_tools(definition: &mut Definition) {
    if let OfferedTools::Only(names) = &mut definition.tools {
        for tool in [tool_names::READ, tool_names::EDIT, tool_names::WRITE] {
            if !names.iter().any(|name| name == tool) {
                names.push(tool.to_owned());
            }
        }
    }
    definition.without.retain(|name| ![tool_names::READ, tool_names::EDIT, tool_names::WRITE].contains(&name.as_str()));
}

impl AgentMemoryPlace {
    /// The prompt about its memories.
    pub(super) fn prompt(&self) -> String {
        let index = memory::index::shown(&self.directory.join(memory::index::FILE));
        let scope = match self.scope {
            AgentMemoryScope::User => "They hold in all projects: keep to what is true everywhere.",
            AgentMemoryScope::Project => "They belong to this project and are shared with everybody who works on it.",
            AgentMemoryScope::Local => "They belong to this project and to this user, and are not shared.",
        };
        memory::taxonomy::agent_rules(&self.directory, scope, index.as_deref())
    }

    /// Rules that let it read and write its own memories without asking.
    pub(super) fn rules(&self, base_paths: &BasePaths<'_>) -> Result<Vec<Rule>, Error> {
        let inside = format!("{}/**", self.directory.display());
        Ok(rules(&[format!("Read(/{inside})"), format!("Edit(/{inside})")], base_paths)?)
    }
}
