//! A session continued in a file of its own: what another one holds, under this one's name.
//!
//! Lines are copied as they are, unknown fields and all; the copy is then read like any session, so what is in memory is
//! what is in the file, also when the original is being written to meanwhile. Whatever can be read is copied. Spilled
//! results come along, and so do the transcripts of subagents: the copy points only to files of its own, and stays whole
//! when the original is removed.

use std::path::Path;

use serde_json::Value;
use transcript::line::{Line, Translator};

use super::Session;
use crate::child::{folder_of, meta_of};
use crate::error::Error;
use crate::record::{self, SkippedLine};

/// So much is written at a time.
const CHUNK: usize = 4 << 20;
/// Larger results stay where they are.
const RESULT_BYTES: u64 = 100_000_000;

/// The folder next to a session's file where its results lie.
pub(super) const RESULTS: &str = "tool-results";

impl Session {
    /// Copies another session's lines into this file. Says which could not be read; they are left out.
    pub(super) fn copy(&mut self, from: &Path) -> Result<Vec<SkippedLine>, Error> {
        if is_of_another_agent(from)? {
            // Its lines mean something only together, and in our words.
            let (lines, skipped) = record::lines(from)?;
            let bytes: Vec<u8> = lines.iter().flat_map(|line| line.render(&self.context).into_bytes()).collect();
            self.file.append(&bytes)?;
            return Ok(skipped);
        }
        let moved = self.take_results(from);
        let (mut bytes, mut skipped, mut number) = (Vec::new(), Vec::new(), 0);
        let mut reader = files::Lines::open(from)?;
        while let Some(line) = reader.next()? {
            number += 1;
            let why = match line.text {
                files::Text::Whole(text) if text.trim_ascii().is_empty() => continue,
                files::Text::Whole(text) => match Line::parse(text) {
                    Ok(_) => {
                        self.renamed(text, moved.as_ref(), &mut bytes);
                        if bytes.len() >= CHUNK {
                            self.file.append(&bytes)?;
                            bytes.clear();
                        }
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
                files::Text::Oversized { len, .. } => format!("{len} bytes long, which is more than a line may be"),
            };
            skipped.push(SkippedLine { number, why });
        }
        self.file.append(&bytes)?;
        skipped.truncate(record::DESCRIBED);
        Ok(skipped)
    }

    /// A line under this session's name. One that a strict reader refuses stays as it is.
    fn renamed(&self, text: &[u8], moved: Option<&MovedResults>, out: &mut Vec<u8>) {
        match serde_json::from_slice(text) {
            Ok(Value::Object(mut object)) => {
                if object.contains_key("sessionId") {
                    object.insert("sessionId".into(), self.id.clone().into());
                }
                if let (Some(moved), Some(Value::Array(replacements))) = (moved, object.get_mut("replacements")) {
                    replacements.iter_mut().for_each(|one| moved.rename(&mut one["replacement"]));
                }
                out.extend_from_slice(Value::Object(object).to_string().as_bytes());
            }
            _ => out.extend_from_slice(text),
        }
        out.push(b'\n');
    }

    /// Takes over the results that another session has in files. None if it has none, or they cannot be had: then the
    /// copy goes on pointing to where they are.
    fn take_results(&self, from: &Path) -> Option<MovedResults> {
        let theirs = files::Root::open(folder_of(from).join(RESULTS)).ok()?;
        let names = theirs.list().ok()?;
        let ours = files::Root::create(self.folder().join(RESULTS)).ok()?;
        for entry in names {
            let snapshot = theirs.read(&entry.name, RESULT_BYTES).ok()?;
            match ours.create_new(&entry.name, &snapshot.bytes, 0o600) {
                Ok(()) | Err(files::Error::Exists { .. }) => {}
                Err(_) => return None,
            }
        }
        let folder = |root: &files::Root| root.path().display().to_string();
        Some(MovedResults { from: folder(&theirs), to: folder(&ours) })
    }

    /// Copies the transcripts of another session's subagents, so that they can be shown and continued here. One that cannot
    /// be copied stays where it is.
    pub(super) fn take_agents(&self, from: &Path) {
        let (theirs, ours) = (folder_of(from), self.folder());
        let sent = crate::subagent_files::past(from);
        let Some(root) = files::Root::open(&theirs).ok().filter(|_| !sent.is_empty()) else { return };
        for agent in sent {
            let Ok(file) = agent.file.strip_prefix(&theirs) else { continue };
            let folder = file.parent().and_then(|parent| files::Root::create(ours.join(parent)).ok());
            let Some(folder) = folder else { continue };
            for file in [file, &meta_of(file)] {
                if let (Ok(snapshot), Some(name)) = (root.read(file, RESULT_BYTES), file.file_name()) {
                    let _ = folder.create_new(name, &snapshot.bytes, 0o600); // it stays where it is
                }
            }
        }
    }
}

/// Results lie in another folder than before.
struct MovedResults {
    from: String,
    to: String,
}

impl MovedResults {
    fn rename(&self, preview: &mut Value) {
        if let Value::String(text) = preview {
            *text = text.replace(&self.from, &self.to);
        }
    }
}

/// True if a file has lines of an agent with a format of its own.
fn is_of_another_agent(path: &Path) -> Result<bool, Error> {
    let mut lines = files::Lines::open(path)?.part(0..record::FIRST_BYTES)?;
    let mut translator = Translator::default();
    while let Some(line) = lines.next()? {
        if let files::Text::Whole(text) = line.text {
            let _ = translator.parse(text);
        }
    }
    Ok(translator.is_translating())
}
