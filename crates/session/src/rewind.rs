//! Going back: the conversation by a commit, files by what was kept of them.
//!
//! Before a tool changes a file, what it contains is kept in the session's folder, named by its hash, and the log says
//! which file it was. Going back writes every file that was changed since as it was before the first change, and keeps
//! what it overwrites in the same way: so going back is a change like any other, and can itself be undone.
//!
//! What this process kept itself is put back wherever it was. What a file says was kept, and anybody can write a file, is
//! put back below the session's directory only, never onto a guarded path, and never through a link.
//!
//! The log also says where each going back began. Undoing it returns to that place: the files as they were there, the
//! conversation as it was there. What was said or changed in between is hidden, and nothing of it is lost.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transcript::commit::{Act, Commit, Reason};
use transcript::line::{Body, TextSource};
use transcript::window::Window;
use transcript::{Block, Id};

use crate::error::Error;
use crate::session::Session;

/// Larger files are not kept; the log says so.
const KEPT_LIMIT: u64 = 10_000_000;

/// The reason why a file that only a recorded line names is not put back.
const REFUSED: &str = "it was changed before the session was resumed, and is outside the project or decides what may \
                       run there: put it back by hand";

/// The state of a file before it was changed, from the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "kept", rename_all = "camelCase")]
pub struct KeptFile {
    /// The file.
    pub path: PathBuf,
    /// Its former state.
    pub was: FormerFile,
}

/// The former state of a file.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum FormerFile {
    /// It did not exist.
    Absent,
    /// It had this content, by hash.
    Content(String),
    /// It was too large to keep, or could not be read.
    NotKept,
}

/// Going back begins here, as the log has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "rewinding")]
struct RewindStart {
    to: Id,
    scope: RewindExtent,
}

/// A going back was undone, as the log has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "rewind-undone")]
#[serde(rename_all = "camelCase")]
struct RewindUndo {
    /// The line where it began.
    began_at: Id,
}

/// The extent of a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RewindExtent {
    /// The conversation.
    Conversation,
    /// The files on disk.
    Files,
    /// Both.
    Both,
}

/// A place to go back to: before something the user said.
#[derive(Debug, Clone)]
pub struct Point {
    /// The line.
    pub line: Id,
    /// The user's message there.
    pub text: String,
    /// The number of files changed since.
    pub files: usize,
}

/// The result of a rewind.
#[derive(Debug, Clone, Default)]
pub struct RewindResult {
    /// Files written or removed.
    pub files: Vec<PathBuf>,
    /// Files that could not be brought back, with the reason.
    pub failed: Vec<(PathBuf, String)>,
    /// The commit that changed the conversation, if it was changed.
    pub commit: Option<Id>,
}

impl Session {
    /// Keeps what a file contains, before it is changed.
    pub fn keep(&mut self, path: &Path) -> Result<(), Error> {
        let was = match files::exact::read(path, KEPT_LIMIT) {
            Ok(snapshot) => {
                let hash = snapshot.stamp.hash.to_hex().to_string();
                match self.history_folder().and_then(|folder| folder.create_new(&hash, &snapshot.bytes, 0o600)) {
                    Ok(()) | Err(files::Error::Exists { .. }) => FormerFile::Content(hash),
                    Err(_) => FormerFile::NotKept, // a full disk keeps nobody from working
                }
            }
            Err(files::Error::NotFound { .. }) => FormerFile::Absent,
            Err(_) => FormerFile::NotKept,
        };
        let kept = KeptFile { path: path.to_owned(), was };
        self.note(&serde_json::to_value(kept).unwrap_or_default())
    }

    /// The points to which one can rewind, newest first: all messages of the user, behind a summary too, that were not
    /// rewound.
    pub fn points(&self) -> Vec<Point> {
        let said: HashSet<&Id> = self.log().view().user_messages().map(|entry| entry.line()).collect();
        let lines = self.log().lines();
        let mut points: Vec<Point> = Vec::new();
        let mut changed: Vec<PathBuf> = Vec::new();
        for line in lines.iter().rev() {
            match &line.body {
                Body::Meta(_) => changed.extend(kept(&line.body).map(|kept| kept.path)),
                Body::User { blocks, source: TextSource::Direct } => {
                    let Some(id) = line.id.as_ref().filter(|id| said.contains(id)) else { continue };
                    let text = blocks.iter().find_map(Block::as_text).unwrap_or_default();
                    changed.sort();
                    changed.dedup();
                    points.push(Point { line: id.clone(), text, files: changed.len() });
                }
                _ => {}
            }
        }
        points
    }

    /// Of these, those that are in view.
    pub fn points_in_view(&self) -> Vec<Point> {
        self.points().into_iter().filter(|point| self.log().view().shows(&point.line)).collect()
    }

    /// Goes back to before a line.
    pub fn rewind(&mut self, line: &Id, scope: RewindExtent) -> Result<RewindResult, Error> {
        self.note(&serde_json::to_value(RewindStart { to: line.clone(), scope }).unwrap_or_default())?;
        let mut rewound = RewindResult::default();
        if scope != RewindExtent::Conversation {
            self.files_as_before(line, &mut rewound)?;
        }
        if scope != RewindExtent::Files {
            rewound.commit = self.hide_from(line, "the user went back")?;
        }
        Ok(rewound)
    }

    /// Undoes the newest going back that was not undone yet: files and conversation are as they were before it. None
    /// if there is no such; refused, and nothing changed, where the conversation would not fit the window.
    pub fn undo_rewind(&mut self, window: &Window) -> Result<Option<RewindResult>, Error> {
        let Some((place, began_at, scope)) = self.newest_rewind() else { return Ok(None) };
        let mut rewound = RewindResult::default();
        if scope != RewindExtent::Files {
            rewound.commit = self.show_again(place, window)?;
        }
        if scope != RewindExtent::Conversation {
            self.files_as_before(&began_at, &mut rewound)?;
        }
        self.note(&serde_json::to_value(RewindUndo { began_at }).unwrap_or_default())?;
        Ok(Some(rewound))
    }

    /// The newest compaction, snip or collapse that counts, unless a going back is newer.
    pub fn newest_cover(&self) -> Option<Id> {
        let rewound = self.newest_rewind().map_or(0, |(place, _, _)| place);
        let since = self.log().lines()[rewound..].iter().rev();
        let covers = since.filter(|line| match &line.body {
            Body::Commit(commit) => matches!(commit.act, Act::Compact { .. } | Act::Snip { .. } | Act::Collapse { .. }),
            _ => false,
        });
        covers.filter_map(|line| line.id.as_ref()).find(|id| self.log().view().counts(id)).cloned()
    }

    /// Shows the conversation as it was when a going back began, and hides what was said since.
    fn show_again(&mut self, place: usize, window: &Window) -> Result<Option<Id>, Error> {
        let after = &self.log().lines()[place..];
        let hiding = after.iter().find_map(|line| match &line.body {
            Body::Commit(Commit { act: Act::Rewind { .. }, .. }) => line.id.clone(),
            _ => None,
        });
        let said = |body: &Body| matches!(body, Body::User { .. } | Body::Assistant { .. } | Body::Attachment { .. });
        let since = after.iter().find(|line| said(&line.body)).and_then(|line| line.id.clone());
        let Some(hiding) = hiding.filter(|commit| self.log().view().counts(commit)) else { return Ok(None) };
        let hidden = match since {
            Some(since) => self.hide_from(&since, "the user undid going back")?,
            None => None,
        };
        if let Err(error) = self.undo(&hiding, window) {
            if let Some(hidden) = hidden {
                let (act, reason) = (Act::Undo { commit: hidden }, Reason::default());
                self.append(Body::Commit(Commit { act, reason }))?;
            }
            return Err(error);
        }
        Ok(self.newest_line())
    }

    /// The beginning of the newest rewind that was not undone, and its extent.
    fn newest_rewind(&self) -> Option<(usize, Id, RewindExtent)> {
        let mut undone: Vec<Id> = Vec::new();
        for (place, line) in self.log().lines().iter().enumerate().rev() {
            let (Body::Meta(meta), Some(id)) = (&line.body, &line.id) else { continue };
            if let Ok(one) = serde_json::from_str::<RewindUndo>(meta.get()) {
                undone.push(one.began_at);
            } else if let Ok(one) = serde_json::from_str::<RewindStart>(meta.get())
                && !undone.contains(id)
            {
                return Some((place, id.clone(), one.scope));
            }
        }
        None
    }

    /// Hides a line and all that followed.
    fn hide_from(&mut self, line: &Id, why: &str) -> Result<Option<Id>, Error> {
        let Some(last) = self.log().tip().cloned() else { return Ok(None) };
        let act = Act::Rewind { first: line.clone(), last };
        let reason = Reason { why: Some(why.into()), ..Reason::default() };
        self.append(Body::Commit(Commit { act, reason }))?;
        Ok(self.newest_line())
    }

    fn newest_line(&self) -> Option<Id> {
        self.log().lines().last().and_then(|line| line.id.clone())
    }

    /// Writes every file that was changed after a line as it was there.
    fn files_as_before(&mut self, line: &Id, rewound: &mut RewindResult) -> Result<(), Error> {
        let after = self.log().lines().iter().enumerate().skip_while(|(_, one)| one.id.as_ref() != Some(line));
        let mut first: Vec<(usize, KeptFile)> = Vec::new();
        for (place, kept) in after.filter_map(|(place, line)| Some((place, kept(&line.body)?))) {
            if !first.iter().any(|(_, known)| known.path == kept.path) {
                first.push((place, kept));
            }
        }
        for (place, KeptFile { path, was }) in first {
            if !self.written_here(place) && !self.may_put_back(&path) {
                rewound.failed.push((path, REFUSED.to_owned()));
                continue;
            }
            self.keep(&path)?;
            let done = match &was {
                FormerFile::Absent => match files::exact::remove(&path) {
                    Err(files::Error::NotFound { .. }) => Ok(()),
                    other => other,
                },
                FormerFile::Content(hash) => self
                    .history_folder()
                    .and_then(|folder| folder.read(hash, KEPT_LIMIT))
                    .and_then(|snapshot| files::exact::replace(&path, &snapshot.bytes))
                    .map(|_| ()),
                FormerFile::NotKept => {
                    rewound.failed.push((path, "it was not kept (too large, or unreadable)".into()));
                    continue;
                }
            };
            match done {
                Ok(()) => rewound.files.push(path),
                Err(error) => rewound.failed.push((path, error.to_string())),
            }
        }
        Ok(())
    }

    /// True if a file that a recorded line names may be written: it is in the project, and is no guarded path.
    fn may_put_back(&self, path: &Path) -> bool {
        let directories = [files::real(self.directory()).unwrap_or_else(|_| self.directory().to_owned())];
        let real = files::real(path).unwrap_or_default();
        real == path && real.starts_with(&directories[0]) && !tools::permission::guarded(&real, &directories)
    }

    /// Takes over what another session kept of files, since this one is its copy and names them. What cannot be had is
    /// said when somebody goes back to it.
    pub(crate) fn take_kept(&self, from: &Path) {
        let Ok(theirs) = files::Root::open(history_of(from)) else { return };
        for KeptFile { was, .. } in self.log().lines().iter().filter_map(|line| kept(&line.body)) {
            if let FormerFile::Content(hash) = was
                && let Ok(snapshot) = theirs.read(&hash, KEPT_LIMIT)
                // The name is the content's hash, or it is some other file.
                && snapshot.stamp.hash.to_hex().as_str() == hash
                && let Ok(ours) = self.history_folder()
            {
                let _ = ours.create_new(&hash, &snapshot.bytes, 0o600);
            }
        }
    }

    fn history_folder(&self) -> Result<files::Root, files::Error> {
        files::Root::create(history_of(self.path()))
    }
}

/// The folder in which the session of a file keeps former contents of files.
fn history_of(session: &Path) -> PathBuf {
    crate::child::folder_of(session).join("file-history")
}

fn kept(body: &Body) -> Option<KeptFile> {
    match body {
        Body::Meta(meta) => serde_json::from_str(meta.get()).ok(),
        _ => None,
    }
}
