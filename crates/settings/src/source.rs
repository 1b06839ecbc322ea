//! Sources of settings, and their precedence.

use std::fmt;
use std::path::{Path, PathBuf};

/// The source of a settings file, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SettingsSource {
    /// The user's, everywhere.
    User,
    /// The project's: committed, so possibly by a stranger.
    Project,
    /// The checkout's own: below the project, but not tracked by git.
    Local,
    /// Given for one run.
    Flag,
    /// The organisation's. Nobody overrides it.
    Managed,
}

impl SettingsSource {
    /// True if its file is below the project, where others may have put it.
    pub fn is_below_project(self) -> bool {
        matches!(self, Self::Project | Self::Local)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Flag => "flag",
            Self::Managed => "managed",
        }
    }
}

/// The sources of settings that a session reads. What an organisation manages and what flags say is always read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingSources {
    /// The user's files.
    pub user: bool,
    /// The project's files. Reading them is not trusting them.
    pub project: bool,
    /// The files of this checkout alone.
    pub local: bool,
}

impl Default for SettingSources {
    fn default() -> Self {
        Self { user: true, project: true, local: true }
    }
}

impl std::str::FromStr for SettingSources {
    type Err = String;

    /// Reads names with commas between; no name at all is no source.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut sources = Self { user: false, project: false, local: false };
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "user" => sources.user = true,
                "project" => sources.project = true,
                "local" => sources.local = true,
                _ => return Err(format!("there is no source {name}; there are user, project and local")),
            }
        }
        Ok(sources)
    }
}

/// The place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueOrigin {
    /// Its source.
    pub source: SettingsSource,
    /// The file; none for settings given as text.
    pub file: Option<PathBuf>,
    /// The line, from one.
    pub line: usize,
    /// The column, from one.
    pub column: usize,
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", shown(self.file.as_deref()), self.line)
    }
}

pub(super) fn shown(file: Option<&Path>) -> String {
    file.map_or_else(|| "--settings".to_owned(), |file| file.display().to_string())
}

/// The files that settings are read from.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The user's.
    pub user: PathBuf,
    /// The project's.
    pub project: PathBuf,
    /// The checkout's own.
    pub local: PathBuf,
    /// Those of the three that are read.
    pub sources: SettingSources,
    /// For one run.
    pub flag: Option<Flag>,
    /// Directories with managed settings, the weakest first.
    pub managed: Vec<PathBuf>,
}

/// Settings for one run.
#[derive(Debug, Clone)]
pub enum Flag {
    /// In a file.
    File(PathBuf),
    /// As text.
    Text(String),
}

impl Files {
    /// The usual places: the config home, and `.claude` in the working directory.
    pub fn usual(config_home: &Path, directory: &Path) -> Self {
        Self {
            user: config_home.join("settings.json"),
            project: directory.join(".claude/settings.json"),
            local: directory.join(".claude/settings.local.json"),
            sources: SettingSources::default(),
            flag: None,
            managed: vec![managed_directory(std::env::consts::OS).to_owned()],
        }
    }

    /// Every file that is read if it exists.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        let flag = match &self.flag {
            Some(Flag::File(path)) => Some(path.clone()),
            Some(Flag::Text(_)) | None => None,
        };
        let own = [self.user.clone(), self.project.clone(), self.local.clone()].into_iter().chain(flag);
        own.chain(self.managed.iter().flat_map(|directory| Self::managed(directory))).collect()
    }

    /// The managed files of a directory, in their order.
    pub(super) fn managed(directory: &Path) -> Vec<PathBuf> {
        let folder = directory.join("managed-settings.d");
        let entries = files::list(&folder).unwrap_or_default();
        let mut names: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
        names.retain(|name| {
            let name = name.to_string_lossy();
            name.ends_with(".json") && !name.starts_with('.')
        });
        names.sort();
        let more = names.into_iter().map(|name| folder.join(name));
        std::iter::once(directory.join("managed-settings.json")).chain(more).collect()
    }
}

/// The directory for an organisation's settings and CLAUDE.md, by the system's name in Rust.
pub fn managed_directory(system: &str) -> &'static Path {
    Path::new(match system {
        "macos" => "/Library/Application Support/ClaudeCode",
        "windows" => r"C:\Program Files\ClaudeCode",
        _ => "/etc/claude-code",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INSTR-1: every system has its place for what an organisation sets.
    #[test]
    fn managed_files_lie_where_the_system_keeps_such() {
        for (system, expected) in [
            ("linux", "/etc/claude-code"),
            ("freebsd", "/etc/claude-code"),
            ("macos", "/Library/Application Support/ClaudeCode"),
            ("windows", r"C:\Program Files\ClaudeCode"),
        ] {
            assert_eq!(managed_directory(system), Path::new(expected));
        }
        let files = Files::usual(Path::new("/home/.claude"), Path::new("/work"));
        assert_eq!(files.managed, [managed_directory(std::env::consts::OS)]);
    }
}
