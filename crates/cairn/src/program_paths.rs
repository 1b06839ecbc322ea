//! Where the program runs: the config home, the working directory, the user's home, and the files found from there.
//!
//! It says where settings lie and what was trusted before. What of the settings counts is for `judgement` to say.

use std::path::{Path, PathBuf};

use learning::ledger::{Ledger, Spender};
use session::{Home, World};
use settings::trust::{self, Trust};
use settings::{BasePaths, Flag, SettingSources, Settings};

use crate::args::RunArgs;
use crate::env;

/// Where this program runs.
#[derive(Debug, Clone)]
pub(crate) struct ProgramPaths {
    /// The config home.
    pub(crate) home: Home,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// What `~` stands for.
    pub(crate) user_home: Option<PathBuf>,
    /// The sources whose settings, instruction files and agents count.
    pub(crate) sources: SettingSources,
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
        Ok(Self { home: Home::at(home), directory, user_home, sources: SettingSources::default() })
    }

    /// The same, with the sources that a session's flags name.
    pub(crate) fn for_session(args: &RunArgs) -> anyhow::Result<Self> {
        Ok(Self { sources: args.setting_sources.unwrap_or_default(), ..Self::from_env()? })
    }

    pub(crate) fn ground(&self) -> BasePaths<'_> {
        BasePaths { directory: &self.directory, home: self.user_home.as_deref() }
    }

    /// Where an organisation's files lie: a directory that the environment names, and the system's own. The first is the
    /// weaker, so that it can add to what is managed and take nothing away.
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

    /// What the user lets the files below the project do.
    pub(crate) fn trust(&self) -> Trust {
        let claude_json = match (env::CONFIG_DIR.get(), &self.user_home) {
            (None, Some(home)) => home.join(".claude.json"),
            _ => self.home.path().join(".claude.json"),
        };
        Trust::read(trust::TrustPlace {
            config_home: self.home.path(),
            claude_json: Some(&claude_json),
            directory: &self.directory,
            home: self.user_home.as_deref(),
        })
    }

    /// What is spent, and what may still be.
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
