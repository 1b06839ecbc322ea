//! The directories of the program: config home, working directory, the user's home, and the files found from there.
//!
//! It knows the paths of settings and the user's trust. Which settings are effective is for `trusted_settings` to
//! decide.

use std::path::{Path, PathBuf};

use learning::ledger::{Ledger, Spender};
use session::{Home, World};
use settings::trust::{self, Trust};
use settings::{BasePaths, Flag, SettingSources, Settings};

use crate::env;

/// The directories of the program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramPaths {
    /// The config home.
    pub(crate) home: Home,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// The user's home, `~`.
    pub(crate) user_home: Option<PathBuf>,
    /// The sources whose settings, instruction files and agents count.
    pub(crate) sources: SettingSources,
    /// Folders of plugins that flags name.
    pub(crate) plugin_folders: Vec<PathBuf>,
}

impl ProgramPaths {
    /// From the environment.
    pub(crate) fn from_env() -> anyhow::Result<Self> {
        let directory = env::directory()?;
        let user_home = env::home();
        let home = match (env::CONFIG_DIR.get(), &user_home) {
            (Some(path), _) => directory.join(path),
            (None, Some(home)) => home.join(".claude"),
            (None, None) => anyhow::bail!("no home directory: set {} or {}", env::HOME.name, env::CONFIG_DIR.name),
        };
        // Tools judge real paths: what is compared with them is real too, wherever links lead to it.
        let home = files::real(&home).unwrap_or(home);
        Ok(Self {
            home: Home::at(home),
            directory,
            user_home,
            sources: SettingSources::default(),
            plugin_folders: Vec::new(),
        })
    }

    /// The same, with the sources and plugins that a session's flags name; with all sources if they name none.
    pub(crate) fn of_run(self, sources: Option<SettingSources>, plugins: &[PathBuf]) -> Self {
        Self { sources: sources.unwrap_or_default(), plugin_folders: plugins.to_owned(), ..self }
    }

    pub(crate) fn base_paths(&self) -> BasePaths<'_> {
        BasePaths { directory: &self.directory, home: self.user_home.as_deref() }
    }

    /// Directories of an organisation's files: one that the environment names, and the system's own. The first is
    /// weaker, so that it can add to managed settings but not take away.
    pub(crate) fn managed(&self) -> Vec<PathBuf> {
        let named = env::MANAGED_DIR.get().map(|directory| self.directory.join(directory));
        named.into_iter().chain([settings::managed_directory(std::env::consts::OS).to_owned()]).collect()
    }

    /// The files that settings are read from.
    pub(crate) fn settings_files(&self, flag: Option<&str>) -> anyhow::Result<settings::Files> {
        let mut files = settings::Files::usual(self.home.path(), &self.directory);
        (files.managed, files.sources) = (self.managed(), self.sources);
        files.flag = match flag {
            Some(json) if json.trim_start().starts_with('{') => Some(Flag::Text(json.to_owned())),
            Some(path) => {
                let path = self.directory.join(path);
                files::stamp(&path)?;
                Some(Flag::File(path))
            }
            None => None,
        };
        Ok(files)
    }

    /// Claude Code's own file, which is read and never written.
    pub(crate) fn claude_json(&self) -> PathBuf {
        match (env::CONFIG_DIR.get(), &self.user_home) {
            (None, Some(home)) => home.join(".claude.json"),
            _ => self.home.path().join(".claude.json"),
        }
    }

    /// The user's trust in the project's files.
    pub(crate) fn trust(&self) -> Trust {
        let claude_json = self.claude_json();
        Trust::read(trust::TrustPlace {
            config_home: self.home.path(),
            claude_json: Some(&claude_json),
            directory: &self.directory,
            home: self.user_home.as_deref(),
        })
    }

    /// The ledger: spending, and what may still be spent.
    pub(crate) fn ledger(&self, settings: &Settings, session: &str) -> Ledger {
        let spender = Spender { project: self.directory.clone(), session: session.to_owned() };
        Ledger::at(self.home.path(), spender, settings.prices.clone(), settings.budget, World::real())
    }

    /// A path as people write it: from the project, or from their home.
    pub(crate) fn short(&self, path: &Path) -> String {
        if let Ok(inside) = path.strip_prefix(&self.directory)
            && inside != Path::new("")
        {
            return inside.display().to_string();
        }
        let home = self.user_home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        home.map_or_else(|| path.to_owned(), |inside| PathBuf::from("~").join(inside)).display().to_string()
    }
}
