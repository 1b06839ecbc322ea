//! The files of a subagent: its transcript, in the folder of the session that sent it out, and a small file next to it that
//! says who it is. Of a file from elsewhere nothing is believed but its text.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

/// The folder of subagents, in a session's own.
const FOLDER: &str = "subagents";
/// Prefix of each file's name.
const PREFIX: &str = "agent-";
/// Extension of a transcript.
const TRANSCRIPT: &str = ".jsonl";
/// Extension of the metadata file next to it.
const META: &str = "meta.json";
/// The largest of the small files that is read.
const MOST_META: u64 = 100_000;

/// The folder that a session has for what belongs to it, next to its file.
pub fn folder_of(session: &Path) -> PathBuf {
    session.with_extension("")
}

/// The folder of a session's subagents.
pub fn subagents_folder(session: &Path) -> PathBuf {
    folder_of(session).join(FOLDER)
}

/// The transcript of a subagent.
pub fn transcript_of(session: &Path, id: &str) -> PathBuf {
    subagents_folder(session).join(format!("{PREFIX}{id}{TRANSCRIPT}"))
}

/// The subagent whose transcript or small file has this name.
pub fn id_of(name: &OsStr) -> Option<&str> {
    let name = name.to_str()?.strip_prefix(PREFIX)?;
    name.strip_suffix(TRANSCRIPT).or_else(|| name.strip_suffix(META)?.strip_suffix('.'))
}

/// True if a file has the name of a subagent's.
pub fn is_subagent(file: &Path) -> bool {
    file.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(PREFIX))
}

/// The small file next to a transcript.
pub fn meta_of(transcript: &Path) -> PathBuf {
    transcript.with_extension(META)
}

/// Identity of a subagent, as the small file next to its transcript has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentMeta {
    /// Its type.
    pub agent_type: String,
    /// Its task, in a few words.
    pub description: String,
    /// The call that sent it out.
    pub tool_use_id: Option<String>,
    /// Its name for its parent.
    pub name: Option<String>,
    /// The subagent that sent it out, where it was not the session itself.
    pub parent_agent_id: Option<String>,
    /// The point at which it was branched off, if it is a fork.
    pub branched_from: Option<BranchPoint>,
    /// Its worktree, if it has one.
    pub worktree_path: Option<PathBuf>,
}

/// The line of a transcript after which a fork begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BranchPoint {
    /// The transcript.
    pub session: PathBuf,
    /// The line's id.
    pub line: Option<String>,
}

impl SubagentMeta {
    /// The metadata next to a transcript; empty if there is no valid file.
    pub fn read(transcript: &Path) -> Self {
        let file = files::read(meta_of(transcript), MOST_META).ok();
        let value: Value = file.and_then(|file| serde_json::from_slice(&file.bytes).ok()).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            agent_type: text(&value["agentType"]).unwrap_or_default(),
            description: text(&value["description"]).unwrap_or_default(),
            tool_use_id: text(&value["toolUseId"]),
            name: text(&value["name"]),
            parent_agent_id: text(&value["parentAgentId"]),
            branched_from: text(&value["branchedFrom"]["session"])
                .map(|session| BranchPoint { session: session.into(), line: text(&value["branchedFrom"]["line"]) }),
            worktree_path: text(&value["worktreePath"]).map(PathBuf::from),
        }
    }

    /// Writes it next to a transcript.
    pub fn write(&self, transcript: &Path) -> Result<(), files::Error> {
        let text = serde_json::to_string(self).unwrap_or_default();
        files::replace_private(meta_of(transcript), text.as_bytes())
    }
}
