//! The skills and commands of a session, by name.
//!
//! Of two with one name the stronger source counts: the organisation's, the user's, then the project's; in one source a skill
//! counts before a command, and a nearer folder before one above it. What a project's file asks for beyond being read counts
//! once the user has trusted the file as it is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use files::EntryKind;
use settings::trust::{Claim, Kind, Trust, TrustSite};

use crate::plugin::Plugin;
use crate::skill::{Skill, SkillKind, SkillSource, UserUse};
use crate::trouble::ExtensionTrouble;

/// Size limit of one file.
const MOST_BYTES: u64 = 200_000;
/// Limit on the files of one folder.
const MOST_FILES: usize = 2_000;
/// The deepest level of folders below `commands`.
const DEPTH: usize = 6;

/// A folder with `skills` and `commands` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// The owner of the folder.
    pub source: SkillSource,
    /// A config home, or a project's `.claude`.
    pub folder: PathBuf,
    /// The directory that links must not leave; the user's own links may lead anywhere.
    pub bounds: Option<PathBuf>,
}

/// A skill with the text of its file.
struct SkillFile {
    skill: Skill,
    text: String,
}

/// The skills and commands of a session.
#[derive(Debug, Clone, Default)]
pub struct SkillRegistry {
    /// Sorted by name.
    skills: Vec<Skill>,
    /// Problems with their files.
    pub troubles: Vec<ExtensionTrouble>,
}

impl SkillRegistry {
    /// Reads these folders, the strongest first.
    pub fn load(folders: &[SkillFolder], trust: &Trust) -> Self {
        let (found, troubles) = read(folders);
        let mut registry = Self { skills: Vec::new(), troubles };
        found.into_iter().for_each(|file| registry.add(judged(file, trust)));
        registry
    }

    /// Adds the skills of a folder below the session's directory. Where a name is taken, the path of the folder comes before
    /// it. Returns problems with their files.
    pub fn add_nested(&mut self, folder: &SkillFolder, path: &str, trust: &Trust) -> Vec<ExtensionTrouble> {
        let (found, troubles) = read(std::slice::from_ref(folder));
        for mut skill in found.into_iter().map(|file| judged(file, trust)) {
            match self.get(&skill.name) {
                Some(known) if known.file == skill.file => continue,
                Some(_) => skill.name = format!("{path}:{}", skill.name),
                None => {}
            }
            self.add(skill);
        }
        troubles
    }

    /// Adds the skills of plugins, whose names are apart from all others.
    pub fn add_plugins(&mut self, plugins: &[Plugin]) {
        plugins.iter().flat_map(|plugin| plugin.skills.iter().cloned()).for_each(|skill| self.add(skill));
        self.troubles.extend(plugins.iter().flat_map(|plugin| plugin.troubles.iter().cloned()));
    }

    /// Adds a skill, unless there is one of its name.
    pub fn add(&mut self, skill: Skill) {
        if let Err(at) = self.skills.binary_search_by(|other| other.name.cmp(&skill.name)) {
            self.skills.insert(at, skill);
        }
    }

    /// All of them, sorted by name.
    pub fn all(&self) -> &[Skill] {
        &self.skills
    }

    /// The skill of a name.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        let at = self.skills.binary_search_by(|skill| skill.name.as_str().cmp(name)).ok()?;
        self.skills.get(at)
    }

    /// The skill that people call by a name.
    pub fn callable(&self, name: &str) -> Option<&Skill> {
        self.get(name).filter(|skill| skill.user_use == UserUse::Callable)
    }
}

/// A skill with what the user trusts it with.
fn judged(SkillFile { skill, text }: SkillFile, trust: &Trust) -> Skill {
    match claim(&skill, &text, trust.site()) {
        Some(claim) if !trust.covers(&claim) => skill.withheld(),
        Some(_) | None => skill,
    }
}

/// The claims of a project's skills that ask for more than being read.
pub fn claims(folders: &[SkillFolder], site: &TrustSite) -> Vec<Claim> {
    read(folders).0.iter().filter_map(|file| claim(&file.skill, &file.text, site)).collect()
}

/// The claim of a project's skill: it covers the whole file.
fn claim(skill: &Skill, text: &str, site: &TrustSite) -> Option<Claim> {
    let requests = skill.requests();
    (skill.source == SkillSource::Project && !requests.is_empty()).then(|| {
        let what = format!("/{}: {}", skill.name, requests.join(", "));
        Claim::new(Kind::Skill, what, text, format!("{}:1", site.short(&skill.file)), site)
    })
}

/// All files of these folders. A file that several links lead to is read once.
fn read(folders: &[SkillFolder]) -> (Vec<SkillFile>, Vec<ExtensionTrouble>) {
    let (mut found, mut troubles, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut ordered: Vec<&SkillFolder> = folders.iter().collect();
    ordered.sort_by_key(|folder| folder.source);
    for source in ordered.chunk_by(|one, other| one.source == other.source) {
        for kind in [SkillKind::Skill, SkillKind::Command] {
            for folder in source {
                for (name, path) in candidates(folder, kind) {
                    let Ok(real) = files::real(&path) else { continue };
                    if folder.bounds.as_ref().is_some_and(|bounds| !real.starts_with(bounds)) {
                        let what = "leads out of the project and is not read";
                        troubles.push(ExtensionTrouble::error(&path, 1, what));
                        continue;
                    }
                    if !seen.insert(real) {
                        continue;
                    }
                    match files::read(&path, MOST_BYTES) {
                        Ok(file) => {
                            let text = String::from_utf8_lossy(&file.bytes).into_owned();
                            let (skill, odd) = Skill::parse(&text, name, kind, folder.source, &path);
                            troubles.extend(odd);
                            found.push(SkillFile { skill, text });
                        }
                        Err(files::Error::NotFound { .. }) => {}
                        Err(error) => troubles.push(ExtensionTrouble::error(&path, 1, error.to_string())),
                    }
                }
            }
        }
    }
    (found, troubles)
}

/// The names and files that may be skills or commands, in order.
fn candidates(folder: &SkillFolder, kind: SkillKind) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    match kind {
        SkillKind::Skill => {
            let skills = folder.folder.join("skills");
            for name in entries(&skills).into_iter().filter(|(_, kind)| *kind != EntryKind::File).map(|(name, _)| name)
            {
                let file = skills.join(&name).join("SKILL.md");
                found.push((name, file));
            }
        }
        SkillKind::Command => commands(&folder.folder.join("commands"), "", DEPTH, &mut found),
    }
    found.truncate(MOST_FILES);
    found
}

/// The Markdown files below a folder: `git/commit.md` is called `git:commit`.
fn commands(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<(String, PathBuf)>) {
    for (name, kind) in entries(folder) {
        let path = folder.join(&name);
        match name.strip_suffix(".md") {
            Some(stem) if kind != EntryKind::Directory => found.push((format!("{prefix}{stem}"), path)),
            _ if kind == EntryKind::Directory && depth > 0 && found.len() < MOST_FILES => {
                commands(&path, &format!("{prefix}{name}:"), depth - 1, found);
            }
            _ => {}
        }
    }
}

/// The entries of a folder whose names can be called, sorted.
fn entries(folder: &Path) -> Vec<(String, EntryKind)> {
    let can_be_called = |name: &String| {
        !name.starts_with('.') && !name.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, ':' | '/'))
    };
    let listed = files::list(folder).unwrap_or_default();
    let mut entries: Vec<(String, EntryKind)> = listed
        .into_iter()
        .filter_map(|entry| Some((entry.name.into_string().ok()?, entry.kind)))
        .filter(|(name, _)| can_be_called(name))
        .collect();
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    entries
}

#[cfg(test)]
mod tests;
