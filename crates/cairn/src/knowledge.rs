//! Where this session's instructions and memory are, from settings and environment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use engine::Session;
use engine::knowledge::{Knowledge, Selector};
use engine::settings::{Settings, Source};
use memory::index;
use memory::instructions::{Index, Sources};
use memory::place::{BySource, Inputs, Switch};
use memory::taxonomy::{Rules, Variant, rules};

use crate::env;
use crate::setup::Place;

/// The largest index that is read; what is loaded of it is far less.
const INDEX_LIMIT: u64 = 10_000_000;

/// What a session starts from.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The memory directory, if memory is on.
    pub(crate) directory: Option<PathBuf>,
    /// Where instruction files are looked for.
    pub(crate) sources: Sources,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

impl Plan {
    /// From settings and environment.
    pub(crate) fn new(place: &Place, settings: &Settings) -> Self {
        let mut warnings = Vec::new();
        let inputs = inputs(place, settings);
        let directory = match memory::place::switch(&inputs) {
            Switch::Off(_) => None,
            Switch::On => match memory::place::directory(&inputs) {
                Ok(directory) => Some(directory),
                Err(error) => {
                    warnings.push(format!("memory is off: {error}"));
                    None
                }
            },
        };
        let mut indexes = Vec::new();
        if let Some(directory) = &directory {
            let path = directory.join(index::FILE);
            if let Ok(file) = files::read(&path, INDEX_LIMIT) {
                let loaded = index::load(&String::from_utf8_lossy(&file.bytes));
                indexes.push(Index { path, text: loaded.text });
            }
        }
        let sources = Sources {
            managed: place.managed().iter().map(|directory| directory.join("CLAUDE.md")).collect(),
            config_home: place.home.path().to_owned(),
            home: place.user_home.clone(),
            working_directory: place.directory.clone(),
            excludes: settings.claude_md_excludes.clone(),
            agreed: BTreeSet::new(),
            indexes,
        };
        Self { directory, sources, warnings }
    }

    /// What the system prompt says of memory.
    pub(crate) fn sections(&self) -> Vec<String> {
        let extra = env::MEMORY_GUIDELINES.get();
        let section = |directory: &PathBuf| {
            rules(&Rules {
                variant: Variant::Private,
                directory,
                skip_index: false,
                extra_guidelines: extra.as_deref(),
                search_past: None,
            })
        };
        self.directory.iter().map(section).collect()
    }

    /// Makes the memory directory, so that the model need not, and allows work inside it.
    pub(crate) fn prepare(&mut self) -> Vec<String> {
        let Some(directory) = &self.directory else { return Vec::new() };
        if let Err(error) = files::create_directory(directory) {
            self.warnings.push(format!("memory is off: {error}"));
            self.directory = None;
            return Vec::new();
        }
        let inside = format!("/{}/**", directory.display());
        vec![format!("Edit({inside})"), format!("Read({inside})")]
    }

    /// What was planned, for a session.
    pub(crate) fn knowledge(self, selector: Option<Selector>, session: &Session) -> Knowledge {
        let agents = self.agents();
        Knowledge::new(self.sources, self.directory.as_deref(), selector, session).with_agents(agents)
    }

    /// Where agents keep memories of their own: the user's, the project's, the checkout's. None when memory is off.
    fn agents(&self) -> Vec<(PathBuf, PathBuf)> {
        if self.directory.is_none() {
            return Vec::new();
        }
        let project = memory::place::canonical_root(&self.sources.working_directory);
        let user = (self.sources.config_home.join("agent-memory"), PathBuf::from(""));
        vec![user, (project.clone(), ".claude/agent-memory".into()), (project, ".claude/agent-memory-local".into())]
    }
}

/// What the choice of the memory directory depends on. No file below the project has a say in it.
fn inputs(place: &Place, settings: &Settings) -> Inputs {
    let mut by_source = BySource::default();
    if let Some((directory, source)) = settings.memory_directory.clone() {
        match source {
            Source::Managed => by_source.policy = Some(directory),
            Source::Flag => by_source.flag = Some(directory),
            Source::User => by_source.user = Some(directory),
            Source::Project | Source::Local => {}
        }
    }
    Inputs {
        config_home: place.home.path().to_owned(),
        home: place.user_home.clone(),
        working_directory: place.directory.clone(),
        path_override: env::MEMORY_PATH.get(),
        auto_memory_directory: by_source,
        remote_memory_directory: env::REMOTE_MEMORY.get(),
        disable: env::NO_MEMORY.flag(),
        simple: env::SIMPLE.flag() == Some(true),
        remote: env::REMOTE.flag() == Some(true),
        enabled: settings.auto_memory,
    }
}

/// The memory directory, for commands; an error says what switched it off.
pub(crate) fn directory(place: &Place, given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(place.directory.join(given));
    }
    let settings = place.settings(None)?;
    Ok(memory::place::directory(&inputs(place, &settings))?)
}
