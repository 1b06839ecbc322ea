//! What nothing is learnt from, whoever would learn: files and directories that the user excluded, sessions that were
//! private for a while, and sessions that touched or worked in what is excluded.
//!
//! A session is judged by its file alone, ours and Claude Code's alike, line by line. Agents that look through transcripts
//! see nothing of one that is kept apart: neither its file nor what lies beside it. What agents touched that a session sent
//! out, it has touched.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use files::{Glance, Lines, Text};
use parking_lot::Mutex;
use serde_json::Value;
use tools::permission::{Confined, Decision, Mode, Rules, Situation, Verdict, Wall, decide};
use tools::sandbox::Leaves;
use tools::{Access, Scope, Subject};
use transcript::tool_names;

/// Whether a directory, or a file in it, is excluded.
pub(crate) fn is_excluded(excluded: &Rules, scope: &Scope, path: &str) -> bool {
    let (named, real) = scope.place(path);
    matches!(excluded.decide(tool_names::READ, &Subject::Path { named, real }), Verdict::Deny(_))
}

/// Whether a call touched what is excluded: by the path it names, or by one in its command. `directory` is where it ran.
pub(crate) fn touches(excluded: &Rules, scope: &Scope, directory: &Path, input: &Value) -> bool {
    if excluded.deny.is_empty() {
        return false;
    }
    let from = |path: &str| match path.starts_with('~') {
        true => path.to_owned(),
        false => directory.join(path).to_string_lossy().into_owned(),
    };
    let mut paths = ["file_path", "notebook_path", "path"].iter().filter_map(|key| input[*key].as_str());
    if paths.any(|path| is_excluded(excluded, scope, &from(path))) {
        return true;
    }
    let Some(command) = input["command"].as_str() else { return false };
    let situation = Situation {
        mode: Mode::BypassPermissions,
        rules: excluded,
        directories: &scope.directories(),
        directory,
        home: scope.home(),
        confined: Confined::No,
        wall: Wall::None,
        leaves: Leaves::No,
    };
    let judged = decide(&situation, Access::Changes, tool_names::BASH, &Subject::Command(command.to_owned()));
    matches!(judged, Decision::Deny { .. })
}

/// The sessions that are kept apart, found out one by one as they are asked for.
pub(crate) struct Apart {
    /// Where sessions lie, links followed.
    folders: Vec<PathBuf>,
    excluded: Rules,
    scope: Scope,
    known: Mutex<HashMap<PathBuf, (Glance, bool)>>,
}

impl Apart {
    pub(crate) fn new(folders: Vec<PathBuf>, excluded: Rules, scope: Scope) -> Self {
        Self { folders, excluded, scope, known: Mutex::default() }
    }

    /// Whether a file is a session that is kept apart, or lies beside one.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let Some(session) = self.folders.iter().find_map(|folder| session(folder, path)) else { return false };
        let Some(glance) = files::glance(&session) else { return false };
        let mut known = self.known.lock();
        match known.get(&session) {
            Some((seen, apart)) if *seen == glance => *apart,
            _ => {
                // What cannot be read says nothing of itself.
                let apart = self.is_apart(&session).unwrap_or(true) || self.sent_out_to_it(&session);
                known.insert(session, (glance, apart));
                apart
            }
        }
    }

    /// Whether an agent that a session sent out touched what is excluded.
    pub(crate) fn sent_out_to_it(&self, session: &Path) -> bool {
        if self.excluded.deny.is_empty() {
            return false;
        }
        let folder = session::child::children_of(session);
        let mut children = files::list(&folder).unwrap_or_default().into_iter().map(|entry| folder.join(entry.name));
        children.any(|child| child.extension().is_some_and(|it| it == "jsonl") && self.is_apart(&child).unwrap_or(true))
    }

    fn is_apart(&self, session: &Path) -> Result<bool, files::Error> {
        let mut lines = Lines::open(session)?;
        while let Some(line) = lines.next()? {
            let Text::Whole(text) = line.text else { continue };
            let looks = !self.excluded.deny.is_empty() || memchr::memmem::find(text, b"\"private\"").is_some();
            let Some(line) = looks.then(|| serde_json::from_slice::<Value>(text).ok()).flatten() else { continue };
            if line["type"] == "meta" && line["meta"]["kind"] == "private" && line["meta"]["on"] == true {
                return Ok(true);
            }
            if !self.excluded.deny.is_empty() && self.is_line_excluded(&line) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_line_excluded(&self, line: &Value) -> bool {
        let project = self.scope.project().to_owned();
        let worked = line["cwd"].as_str().map(PathBuf::from).filter(|path| path.is_absolute());
        let any = worked.as_ref().map(|worked| worked.join("any").to_string_lossy().into_owned());
        if any.is_some_and(|any| is_excluded(&self.excluded, &self.scope, &any)) {
            return true;
        }
        let directory = worked.unwrap_or(project);
        let blocks = line["message"]["content"].as_array().into_iter().flatten();
        let mut calls = blocks.filter(|block| block["type"] == "tool_use");
        calls.any(|call| touches(&self.excluded, &self.scope, &directory, &call["input"]))
    }
}

/// The session a path in a folder of sessions belongs to. Memories lie there too, and belong to none.
fn session(folder: &Path, path: &Path) -> Option<PathBuf> {
    let first = path.strip_prefix(folder).ok()?.components().next()?.as_os_str().to_str()?;
    let id = first.split_once(".jsonl").map_or(first, |(id, _)| id);
    Some(folder.join(format!("{id}.jsonl")))
}
