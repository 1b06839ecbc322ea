//! The skills of a session, shared by an agent and those it starts: the registry, the tool that calls one, and the calls
//! whose text is still to be put in.
//!
//! Nothing here puts text into a conversation: an agent does that between two rounds, when a call has passed the gate.

mod skill_tool;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use extensions::ExtensionTrouble;
use extensions::registry::{SkillFolder, SkillRegistry};
use extensions::skill::{ModelUse, Skill, SkillSource};
use parking_lot::{Mutex, RwLock};
use settings::trust::Trust;

pub use skill_tool::{CallSkill, SkillInput};

/// The skills of a session.
pub struct Skills {
    registry: RwLock<SkillRegistry>,
    trust: Trust,
    /// The top of the project, and where the session works in it.
    project: (PathBuf, PathBuf),
    /// Folders below the session's that were looked at.
    looked_at: Mutex<BTreeSet<PathBuf>>,
    /// Calls of the model whose text is still to be put in, by the id of the call.
    called: Mutex<HashMap<String, SkillCall>>,
}

/// A call of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillCall {
    /// The skill's name.
    pub(crate) name: String,
    /// Its arguments, as they were typed.
    pub(crate) arguments: String,
}

impl Skills {
    /// Those of a registry, in a project with this top, for a session that works in this directory of it.
    pub fn new(registry: SkillRegistry, trust: Trust, top: &Path, directory: &Path) -> Self {
        Self {
            registry: RwLock::new(registry),
            trust,
            project: (top.to_owned(), directory.to_owned()),
            looked_at: Mutex::default(),
            called: Mutex::default(),
        }
    }

    /// All of them, sorted by name.
    pub fn all(&self) -> Vec<Skill> {
        self.registry.read().all().to_vec()
    }

    /// Problems with their files.
    pub fn troubles(&self) -> Vec<ExtensionTrouble> {
        self.registry.read().troubles.clone()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.registry.read().all().is_empty()
    }

    /// The skill of a name.
    pub fn find(&self, name: &str) -> Option<Skill> {
        self.registry.read().get(name).cloned()
    }

    /// True if people can call a skill by this name.
    pub fn is_callable(&self, name: &str) -> bool {
        self.registry.read().callable(name).is_some()
    }

    /// The names that the model can call now, and their listing without those that are in view. Skills for certain files
    /// are left out until one of these was touched. `called` names the skills that were called, once for each call.
    pub(crate) fn listing(
        &self,
        in_view: &BTreeSet<String>,
        touched: &[PathBuf],
        budget: usize,
        called: impl FnOnce() -> Vec<String>,
    ) -> (Vec<String>, String) {
        let registry = self.registry.read();
        let is_due = |skill: &&Skill| {
            skill.model_use != ModelUse::Hidden
                && !in_view.contains(&skill.name)
                && (skill.paths.is_empty() || touched.iter().any(|file| skill.is_about(file)))
        };
        let due: Vec<&Skill> = registry.all().iter().filter(is_due).collect();
        if due.is_empty() {
            return (Vec::new(), String::new());
        }
        let called = called();
        let uses = |name: &str| called.iter().filter(|one| *one == name).count() as u64;
        let names = due.iter().map(|skill| skill.name.clone()).collect();
        (names, extensions::skill_listing::listing(due, uses, budget))
    }

    /// A file was touched: reads the skills of the folders between it and the directory of the session. Returns its path
    /// from the top of the project, and problems with what was read.
    pub(crate) fn touched(&self, file: &Path) -> Option<(PathBuf, Vec<ExtensionTrouble>)> {
        let (top, directory) = &self.project;
        let relative = file.strip_prefix(top).ok()?.to_owned();
        let below = file.ancestors().skip(1).take_while(|folder| *folder != directory && folder.starts_with(top));
        let mut troubles = Vec::new();
        for folder in below.filter(|folder| folder.starts_with(directory)) {
            let claude = folder.join(".claude");
            if !self.looked_at.lock().insert(folder.to_owned()) || files::list(claude.join("skills")).is_err() {
                continue;
            }
            let from = SkillFolder { source: SkillSource::Project, folder: claude, bounds: Some(top.clone()) };
            let prefix = folder.strip_prefix(top).unwrap_or(folder).display().to_string();
            troubles.extend(self.registry.write().add_nested(&from, &prefix, &self.trust));
        }
        Some((relative, troubles))
    }

    /// Takes the calls with these ids.
    pub(crate) fn take_called<'i>(&self, ids: impl Iterator<Item = &'i str>) -> Vec<SkillCall> {
        let mut called = self.called.lock();
        ids.filter_map(|id| called.remove(id)).collect()
    }
}
