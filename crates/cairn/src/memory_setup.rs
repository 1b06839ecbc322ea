//! Finds this session's instructions and memory, from settings and environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::agents::MemoryPlaces;
use learning::knowledge::{Authors, DailyLog, Knowledge, RecallSwitch, Selector};
use memory::index;
use memory::instructions::InstructionSources;
use memory::place::{BySource, Inputs, Switch};
use memory::store::IndexUpkeep;
use memory::taxonomy::{SearchPast, SearchTool, TaxonomyContext, Variant, rules};
use session::Session;
use settings::trust::Trust;
use settings::{Settings, SettingsSource};
use team::state::SyncState;
use tools::Tool;
use transcript::tool_names;

use crate::program_paths::ProgramPaths;
use crate::{env, instruction_files, team_membership, trusted_settings};

/// Instructions and memory that a session starts from.
#[derive(Debug)]
pub(crate) struct MemorySetup {
    /// The memory directory, if memory is on.
    pub(crate) directory: Option<PathBuf>,
    /// The part of it that is shared with others, if the user joined a server.
    team: Option<Team>,
    /// Sources of instruction files.
    pub(crate) sources: InstructionSources,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
    /// Automatic recall, on or off.
    pub(crate) recalling: RecallSwitch,
    /// Daily log instead of memories, on or off.
    daily: DailyLog,
    /// Upkeep of the index.
    pub(crate) indexing: IndexUpkeep,
    /// The folder of past sessions, if the model is told how to search them.
    past: Option<PathBuf>,
}

impl MemorySetup {
    /// From settings and environment.
    pub(crate) fn new(place: &ProgramPaths, settings: &Settings) -> Self {
        let mut warnings = Vec::new();
        let inputs = inputs(place, settings);
        let directory = match memory::place::switch(&inputs) {
            Switch::Off(_) => None,
            Switch::On => match memory::place::directory(&inputs) {
                Ok(directory) => Some(real(directory)),
                Err(error) => {
                    warnings.push(format!("memory is off: {error}"));
                    None
                }
            },
        };
        let team = directory.as_deref().and_then(|directory| Team::of(place, directory, &mut warnings));
        let shared = team.iter().map(|team| team.directory.clone());
        let indexing = if settings.skip_index == Some(true) { IndexUpkeep::Skipped } else { IndexUpkeep::Kept };
        let user = directory.is_some().then(|| memory::place::user_directory(place.home.path()));
        let places = directory.iter().cloned().chain(shared).chain(user);
        let indexes = places.map(|directory| directory.join(index::FILE));
        let indexes = indexes.filter(|_| indexing == IndexUpkeep::Kept).collect();
        let sources = InstructionSources { indexes, ..instruction_files::sources(place, settings) };
        let recalling = if settings.recall == Some(false) { RecallSwitch::Off } else { RecallSwitch::On };
        let daily = if settings.daily_log == Some(true) { DailyLog::Log } else { DailyLog::None };
        let past = (settings.search_past == Some(true)).then(|| place.home.project(&place.directory));
        Self { directory, team, sources, warnings, recalling, daily, indexing, past }
    }

    /// The part of memory that is shared with others.
    pub(crate) fn shared(&self) -> Option<&Path> {
        self.team.as_ref().map(|team| team.directory.as_path())
    }

    /// Sections of the system prompt about memory, for a model with these tools.
    pub(crate) fn sections(&self, tools: &[Arc<dyn Tool>]) -> Vec<String> {
        let extra = env::MEMORY_GUIDELINES.get();
        let has = |name: &str| tools.iter().any(|tool| tool.name() == name);
        let with = match (has(tool_names::GREP), has(tool_names::BASH)) {
            (true, _) => Some(SearchTool::Grep),
            (false, true) => Some(SearchTool::Shell),
            (false, false) => None,
        };
        let search_past = self.past.as_deref().zip(with).map(|(transcripts, with)| SearchPast { transcripts, with });
        let section = |directory: &PathBuf| {
            rules(&TaxonomyContext {
                variant: match &self.team {
                    _ if self.daily == DailyLog::Log => Variant::DailyLog,
                    Some(team) => Variant::Team { directory: &team.directory },
                    None => Variant::Private,
                },
                directory,
                skip_index: self.indexing == IndexUpkeep::Skipped,
                extra_guidelines: extra.as_deref(),
                search_past,
            })
        };
        self.directory.iter().map(section).collect()
    }

    /// Makes the memory directory, so that the model need not.
    pub(crate) fn prepare(&mut self) {
        let Some(directory) = &self.directory else { return };
        let shared = self.team.as_ref().map_or(directory, |team| &team.directory);
        if let Err(error) = files::create_directory(directory).and_then(|()| files::create_directory(shared)) {
            self.warnings.push(format!("memory is off: {error}"));
            (self.directory, self.team) = (None, None);
        }
    }

    /// The rules that allow work inside it.
    pub(crate) fn rules(&self) -> Vec<String> {
        let user = memory::place::user_directory(&self.sources.config_home);
        let both = self.directory.iter().flat_map(|directory| [directory, &user]);
        let inside = both.map(|directory| format!("/{}/**", directory.display()));
        inside.flat_map(|inside| [format!("Edit({inside})"), format!("Read({inside})")]).collect()
    }

    /// The knowledge of a session, as planned.
    pub(crate) fn knowledge(self, selector: Option<Selector>, session: &Session, trust: Trust) -> Knowledge {
        let agents = self.agents();
        let user = memory::place::user_directory(&self.sources.config_home);
        let knowledge = Knowledge::new(self.sources, self.directory.as_deref(), selector, session);
        let knowledge = knowledge.with_user_memories(&user);
        let knowledge =
            knowledge.with_agents(agents).with_recall(self.recalling).with_indexing(self.indexing).with_trust(trust);
        let knowledge = knowledge.with_daily_log(self.daily, session);
        match self.team {
            Some(team) => knowledge.with_authors(team.authors()),
            None => knowledge,
        }
    }

    /// Directories of agents' own memories. None if memory is off.
    pub(crate) fn agent_memory(&self) -> Option<MemoryPlaces> {
        let [(user, _), (project, shared), (root, local)] = <[_; 3]>::try_from(self.agents()).ok()?;
        Some(MemoryPlaces { user, project: project.join(shared), local: root.join(local) })
    }

    /// Directories of agents' own memories: the user's, the project's, the checkout's. Empty if memory is off.
    fn agents(&self) -> Vec<(PathBuf, PathBuf)> {
        if self.directory.is_none() {
            return Vec::new();
        }
        let project = memory::place::canonical_root(&self.sources.working_directory);
        let user = (self.sources.config_home.join("agent-memory"), PathBuf::from(""));
        // What is this user's alone lies with the rest of a remote memory, where there is one.
        let local = match env::REMOTE_MEMORY.get() {
            Some(remote) => (PathBuf::from(remote), "agent-memory-local".into()),
            None => (project.clone(), ".claude/agent-memory-local".into()),
        };
        vec![user, (project, ".claude/agent-memory".into()), local]
    }
}

/// The memory that is shared with others.
#[derive(Debug)]
struct Team {
    directory: PathBuf,
    /// File of the last state that the folder and the server agreed on.
    state: PathBuf,
}

impl Team {
    /// The team memory, only if the user joined a server.
    fn of(place: &ProgramPaths, directory: &Path, warnings: &mut Vec<String>) -> Option<Self> {
        let directory = directory.join("team");
        match team_membership::here(place) {
            Ok(membership) => {
                membership.map(|membership| Self { state: membership.state(place, &directory), directory })
            }
            Err(error) => {
                warnings.push(format!("team memory is not shared: {error:#}"));
                None
            }
        }
    }

    fn authors(self) -> Authors {
        Arc::new(move |path| {
            let key = path.strip_prefix("team/")?.parse().ok()?;
            Some(SyncState::read(&self.state).ok()?.authors.remove(&key)?.name)
        })
    }
}

/// The inputs for choosing the memory directory. No project file has a say in it.
fn inputs(place: &ProgramPaths, settings: &Settings) -> Inputs {
    let mut by_source = BySource::default();
    if let Some((directory, source)) = settings.memory_directory.clone() {
        match source {
            SettingsSource::Managed => by_source.policy = Some(directory),
            SettingsSource::Flag => by_source.flag = Some(directory),
            SettingsSource::User => by_source.user = Some(directory),
            SettingsSource::Project | SettingsSource::Local => {}
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
pub(crate) fn directory(place: &ProgramPaths, given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(place.directory.join(given));
    }
    let settings = trusted_settings::settings(place, None)?;
    Ok(real(memory::place::directory(&inputs(place, &settings))?))
}

/// A directory as tools judge it: links are followed once, here.
fn real(directory: PathBuf) -> PathBuf {
    files::real(&directory).unwrap_or(directory)
}

/// The folder of this project's team memory.
pub(crate) fn team_folder(place: &ProgramPaths) -> anyhow::Result<PathBuf> {
    Ok(directory(place, None)?.join("team"))
}
