//! Metadata of lines: a resumed session knows what the one before knew.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use transcript::line::{Body, Line};
use transcript::view::View;
use transcript::{Id, Purpose};

use super::Session;

/// Metadata of a line of ours, so that a resumed session knows what this one knew.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LineMeta {
    /// A file that was read or written, as it was then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenFile>,
    /// The working directory of commands from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Instruction files that were attached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<PathBuf>,
    /// A memory that was attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<SurfacedMemory>,
    /// The list of agents that was attached, by its hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<String>,
    /// The skills that were listed, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// The skill whose text this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The tools of MCP servers that were listed, by server; none if a server is gone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, Vec<String>>,
    /// The tools of MCP servers whose definitions this line has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loaded: Vec<String>,
    /// The id of a message from somebody else: it was delivered with this line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The agent that goes on from here outside the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<String>,
    /// The purpose of a text that this program put in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injected: Option<Purpose>,
    /// A tool's result for other programs, under a key of theirs.
    #[serde(skip)]
    pub result: Option<Value>,
}

impl LineMeta {
    /// The purpose of a line's text, if this program put it in.
    pub fn purpose_of(line: &Line) -> Option<Purpose> {
        meta_of(line)?.injected
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self {
            seen,
            directory,
            instructions,
            memory,
            agents,
            skills,
            skill,
            servers,
            loaded,
            message,
            fork,
            injected,
            result: _,
        } = self;
        let nothing_listed =
            agents.is_none() && skills.is_empty() && skill.is_none() && servers.is_empty() && loaded.is_empty();
        let nothing_attached = instructions.is_empty() && memory.is_none() && nothing_listed && message.is_none();
        seen.is_none() && directory.is_none() && nothing_attached && fork.is_none() && injected.is_none()
    }
}

/// Metadata of a line.
pub(super) fn meta_of(line: &Line) -> Option<LineMeta> {
    serde_json::from_str(line.extra.as_ref()?.get()).ok()
}

/// A memory that was attached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SurfacedMemory {
    /// Its path, relative to the memory directory.
    pub path: String,
    /// Bytes that count against the session.
    pub bytes: u64,
}

/// A file as it was when a tool last saw it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SeenFile {
    /// Its absolute path.
    pub path: PathBuf,
    /// Its length.
    pub len: u64,
    /// The hash of its content.
    pub hash: String,
}

impl Session {
    /// Metadata of this program's lines, in order; rewound lines are left out.
    pub fn line_metas(&self) -> impl Iterator<Item = LineMeta> {
        self.line_metas_where(|view, line| view.item_of(line).is_some())
    }

    /// Metadata of the lines in view.
    pub fn line_metas_in_view(&self) -> impl Iterator<Item = LineMeta> {
        self.line_metas_where(|view, line| view.shows(line))
    }

    /// The newest line in view that carries something beside what is said.
    pub fn shown_with(&self, carries: impl Fn(&LineMeta) -> bool) -> Option<Id> {
        let mut lines = self.log.lines().iter().skip(self.elsewhere).rev().filter(|line| line.extra.is_some());
        let line = lines.find(|line| {
            line.id.as_ref().is_some_and(|id| self.log.view().shows(id))
                && meta_of(line).is_some_and(|one| carries(&one))
        });
        line.and_then(|line| line.id.clone())
    }

    /// The lines in view that list skills, each with their names.
    pub fn skill_listings(&self) -> Vec<(Id, Vec<String>)> {
        let lines = self.log.lines().iter().skip(self.elsewhere).filter(|line| line.extra.is_some());
        let listing = |line: &Line| {
            let id = line.id.clone().filter(|id| self.log.view().shows(id))?;
            Some((id, meta_of(line)?.skills)).filter(|(_, names)| !names.is_empty())
        };
        lines.filter_map(listing).collect()
    }

    /// The skills that were called, each with its text, in order; rewound lines are left out.
    pub fn called_skills(&self) -> Vec<(String, String)> {
        let lines = self.log.lines().iter().skip(self.elsewhere).filter(|line| line.extra.is_some());
        let standing = lines.filter(|line| line.id.as_ref().is_some_and(|id| self.log.view().item_of(id).is_some()));
        let called = |line: &Line| {
            let Body::Attachment { blocks } = &line.body else { return None };
            let text: String = blocks.iter().filter_map(|block| block.as_text()).collect();
            Some((meta_of(line)?.skill?, text))
        };
        standing.filter_map(called).collect()
    }

    /// The lines in view that list tools of MCP servers, each with its listing.
    pub fn server_listings(&self) -> Vec<(Id, BTreeMap<String, Vec<String>>)> {
        let lines = self.log.lines().iter().skip(self.elsewhere).filter(|line| line.extra.is_some());
        let listing = |line: &Line| {
            let id = line.id.clone().filter(|id| self.log.view().shows(id))?;
            Some((id, meta_of(line)?.servers)).filter(|(_, servers)| !servers.is_empty())
        };
        lines.filter_map(listing).collect()
    }

    /// The messages from others that it has heard, by their ids: also those that were taken back since.
    pub fn heard(&self) -> HashSet<String> {
        let lines = self.log.lines().iter().skip(self.elsewhere);
        lines.filter_map(|line| meta_of(line)?.message).collect()
    }

    fn line_metas_where(&self, stands: impl Fn(&View, &Id) -> bool) -> impl Iterator<Item = LineMeta> {
        let lines = self.log.lines().iter().skip(self.elsewhere).filter(|line| line.extra.is_some());
        let standing = lines.filter(move |line| line.id.as_ref().is_some_and(|id| stands(self.log.view(), id)));
        standing.filter_map(meta_of)
    }
}
