//! A stranger's repository, as data.
//!
//! In every text `{{home}}`, `{{project}}`, `{{config}}` (the config home), `{{other}}` (a repository of the user's beside this
//! one), `{{slug}}`, `{{evil}}` (the stranger's server), `{{ran}}` (a file that shows that something ran) and `{{deep}}` (JSON of
//! 40,000 levels) are filled in.

use std::collections::BTreeMap;

use serde::Deserialize;
use simulator::ScriptedCall;

/// The repositories of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    pub repository: Vec<Repository>,
}

impl Collection {
    pub fn parse(text: &str) -> Self {
        toml::from_str(text).unwrap()
    }
}

/// What is in it, what its model does, and what may happen once it is trusted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// A sentence.
    pub name: String,
    /// Files by path below the project, or absolute.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Files that a later pull brings: the user has opened it once without them, and nothing happened.
    #[serde(default)]
    pub pulled: BTreeMap<String, String>,
    /// Files that are executable.
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    /// Symbolic links by path, and where they lead.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// Pipes that nobody writes to.
    #[serde(default)]
    pub pipes: Vec<String>,
    /// Files of so many bytes, with nothing in them.
    #[serde(default)]
    pub large: BTreeMap<String, u64>,
    /// What git knows of it.
    #[serde(default)]
    pub git: Git,
    /// Where it is opened, below the project.
    #[serde(default)]
    pub directory: String,
    /// What the user says.
    #[serde(default = "hello")]
    pub prompt: String,
    /// What the model calls beside its usual attempts.
    #[serde(default)]
    pub calls: Vec<ScriptedCall>,
    /// What it says at the end.
    #[serde(default = "done")]
    pub says: String,
    /// The lines of a transcript. What they leave out is filled in as this program would write it.
    #[serde(default)]
    pub transcript: Vec<String>,
    /// The session that is resumed instead of `session.jsonl` in the project: a file, or the id of one that was planted
    /// among the user's sessions.
    pub resumes: Option<String>,
    /// Whether it cannot be resumed.
    #[serde(default)]
    pub refuses: bool,
    /// What the model has to be told all the same.
    #[serde(default)]
    pub tells: Vec<String>,
    /// What may happen once it is trusted.
    #[serde(default)]
    pub trusted: Trusted,
}

/// What may happen.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trusted {
    /// The command runs.
    pub runs: bool,
    /// The command may run at a terminal: what it prints is for the screen, and nobody waits for it.
    pub screen: bool,
    /// The stranger's server is visited.
    pub visits: bool,
    /// Something from outside the project is sent.
    pub sends: bool,
    /// Files of the project that change.
    pub changes: Vec<String>,
    /// What the user is told of it.
    pub named: Option<String>,
}

/// What git knows of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Git {
    /// It is a repository without commits.
    #[default]
    Empty,
    /// All of it is committed.
    Committed,
    /// Nothing, or what the files say.
    None,
}

fn hello() -> String {
    "hello".to_owned()
}

fn done() -> String {
    "Done.".to_owned()
}
