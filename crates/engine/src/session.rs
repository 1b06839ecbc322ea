//! A session on disk: its file, held by one writer, and the log it projects to.
//!
//! Whatever happens is appended, first to the file and then to the log in memory; what [`Session::append`] returned for
//! is on the disk. A session that another program wrote last is not appended to: it is copied ([`copy`]) and continued
//! under an id of its own.
//!
//! What a file says is not what happened here. Lines that come from a file outside the sessions of this project are text:
//! what they carry beside it (files seen, directories, instructions, a system prompt) counts for nothing.

mod copy;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use context::State;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use transcript::commit::{Act, Commit, Reason};
use transcript::line::{Body, Context, Kept, Line, Source};
use transcript::tokens::Estimator;
use transcript::view::{Change, Entry, View};
use transcript::window::Window;
use transcript::{Block, Id, Log, Outcome, Prologue};

use crate::error::Error;
use crate::home::{Home, git_branch};
use crate::record::{self, Skipped};
use crate::world::World;

/// A session, open for writing.
#[derive(Debug)]
pub struct Session {
    id: String,
    directory: PathBuf,
    file: files::Log,
    log: Log,
    /// What the layers remember of it.
    state: State,
    context: Context,
    world: World,
    /// The name of the summary that has to come next.
    summary: Option<Id>,
    /// How many lines, from the beginning, came from a file elsewhere.
    elsewhere: usize,
    /// How many lines were there when it was opened; those after them were written by this process.
    loaded: usize,
}

/// A session goes on here that began elsewhere, as the log has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "continued")]
struct Continued {
    session: String,
    file: PathBuf,
    #[serde(default)]
    from: From,
}

/// Where a session that is continued lay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum From {
    /// Among the sessions of this project.
    Here,
    /// Anywhere else.
    #[default]
    Elsewhere,
}

/// What a line of ours carries beside what is said, so that a resumed session knows what this one knew.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Beside {
    /// A file that was read or written, as it was then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenFile>,
    /// Where commands run from now on.
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
    /// The id of a message from somebody else: it was delivered with this line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The agent that goes on from here beside the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<String>,
}

impl Beside {
    fn is_empty(&self) -> bool {
        let Self { seen, directory, instructions, memory, agents, message, fork } = self;
        let nothing_attached = instructions.is_empty() && memory.is_none() && agents.is_none() && message.is_none();
        seen.is_none() && directory.is_none() && nothing_attached && fork.is_none()
    }
}

/// What a line carries beside what is said.
fn beside_of(line: &Line) -> Option<Beside> {
    serde_json::from_str(line.extra.as_ref()?.get()).ok()
}

/// A memory that was attached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SurfacedMemory {
    /// Its path, relative to the memory directory.
    pub path: String,
    /// How many bytes count against the session.
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

/// Where the sessions of agents lie that a session sent out, in its folder.
pub const CHILDREN: &str = "subagents";
/// What the name of such a file begins with.
pub const CHILD_PREFIX: &str = "agent-";
/// Why messages are dropped that the user wants dropped.
pub(crate) const DROPPED: &str = "the user dropped it";

/// What a call is answered when a session is resumed that was stopped in the middle of it.
const STOPPED: &str = "[No result: the session ended before the call did. It may have run in part.]";

impl Session {
    /// Begins a session in a directory.
    pub fn create(home: &Home, directory: &Path, id: Option<&str>, world: World) -> Result<Self, Error> {
        let id = id.map_or_else(|| world.fresh_id().to_string(), str::to_owned);
        let path = home.session(directory, &id)?;
        if files::stamp(&path).is_ok() {
            return Err(Error::Exists { id });
        }
        Self::open_file(&path, id, directory, Log::default(), world)
    }

    /// Goes on with a session. Says which of its lines could not be read.
    pub fn resume(
        home: &Home,
        directory: &Path,
        id: &str,
        fork: Fork,
        world: World,
    ) -> Result<(Self, Vec<Skipped>), Error> {
        let found = home.find(directory, id)?;
        Self::resume_file(home, directory, &found.path, fork, world)
    }

    /// Goes on with the session in a file, wherever it lies.
    pub fn resume_file(
        home: &Home,
        directory: &Path,
        path: &Path,
        fork: Fork,
        world: World,
    ) -> Result<(Self, Vec<Skipped>), Error> {
        let ours = home.project(directory).as_path() == path.parent().unwrap_or(path);
        let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if fork == Fork::No && ours {
            // Held before it is read, so that what is read is what will be appended to.
            let mut session = Self::open_file(path, id.clone(), directory, Log::default(), world.clone())?;
            let record = record::read(path)?;
            if !record.log.is_foreign() {
                session.take(record.log);
                session.close_open_calls()?;
                return Ok((session, record.skipped));
            }
        } else {
            record::lines(path)?; // what is no session makes none
        }
        let mut session = Self::create(home, directory, None, world)?;
        let skipped = session.copy(path)?;
        // Read back, so that what is in memory is what is in the file.
        session.take(record::read(session.path())?.log);
        session.take_kept(path);
        let from = if ours { From::Here } else { From::Elsewhere };
        let origin = Continued { session: id, file: path.to_owned(), from };
        session.note(&serde_json::to_value(origin).unwrap_or_default())?;
        session.elsewhere = elsewhere(&session.log);
        session.close_open_calls()?;
        Ok((session, skipped))
    }

    /// Begins the session of an agent that another session sends out, beside that one's file.
    pub fn child(parent: &Path, agent: &str, directory: &Path, world: World) -> Result<Self, Error> {
        let path = parent.with_extension("").join(CHILDREN).join(format!("{CHILD_PREFIX}{agent}.jsonl"));
        let id = parent.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let mut session = Self::open_file(&path, id, directory, Log::default(), world)?;
        session.context.agent = Some(agent.to_owned());
        Ok(session)
    }

    /// Begins the session of an agent that goes on from where another one stands: it knows all that was said there, and
    /// writes what it says itself beside that one's file.
    pub(crate) fn branch(parent: &Path, agent: &str, directory: &Path, log: Log, world: World) -> Result<Self, Error> {
        let mut session = Self::child(parent, agent, directory, world)?;
        session.take(log);
        Ok(session)
    }

    /// Goes on with the session of an agent that was sent out. What precedes it is what it branched off from.
    pub(crate) fn reopen(file: &Path, before: Log, agent: &str, directory: &Path, world: World) -> Result<Self, Error> {
        let parent = file.parent().and_then(Path::parent).unwrap_or(file);
        let id = parent.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let mut session = Self::open_file(file, id, directory, Log::default(), world)?;
        session.context.agent = Some(agent.to_owned());
        let (mut log, own) = (before, record::read(file)?.log);
        for line in own.lines() {
            log.append(line.clone());
        }
        session.take(log);
        session.close_open_calls()?;
        Ok(session)
    }

    fn open_file(path: &Path, id: String, directory: &Path, log: Log, world: World) -> Result<Self, Error> {
        let holder = format!("process {}, since {:.0}", std::process::id(), world.now());
        let file = files::Log::open(path, &holder)?;
        let cwd = directory.to_string_lossy().into_owned();
        let context = Context { session: id.clone(), cwd, branch: git_branch(directory), agent: None };
        let state = State::of(log.lines());
        Ok(Self {
            id,
            directory: directory.to_owned(),
            file,
            log,
            state,
            context,
            world,
            summary: None,
            elsewhere: 0,
            loaded: 0,
        })
    }

    /// Takes what was read from a file.
    fn take(&mut self, log: Log) {
        (self.elsewhere, self.loaded) = (elsewhere(&log), log.lines().len());
        self.state = State::of(log.lines());
        self.log = log;
    }

    /// The lines that this process wrote, and the others.
    pub(crate) fn written_here(&self, line: usize) -> bool {
        line >= self.loaded
    }

    /// What stood before the messages, unless others wrote it.
    pub(crate) fn known_prologue(&self) -> Option<&Prologue> {
        let own = self.log.lines().iter().skip(self.elsewhere);
        let any = own.into_iter().any(|line| matches!(line.body, Body::Prologue(_)));
        self.log.view().prologue().filter(|_| any).map(|known| &**known)
    }

    /// How long nothing was written into it.
    pub(crate) fn idle(&self) -> SignedDuration {
        let last = self.log.lines().iter().rev().find_map(|line| line.time);
        last.map_or(SignedDuration::ZERO, |last| self.world.now().duration_since(last))
    }

    /// Chooses how tokens are estimated.
    pub fn use_estimator(&mut self, estimator: Estimator) {
        self.log.use_estimator(estimator);
    }

    /// What the layers remember of it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Appends what was said or decided. It is on the disk when this returns.
    pub fn append(&mut self, body: Body) -> Result<Change, Error> {
        self.append_with(body, &Beside::default())
    }

    /// Appends with facts beside.
    pub fn append_with(&mut self, body: Body, beside: &Beside) -> Result<Change, Error> {
        let promised = match &body {
            Body::User { source: Source::Summary, .. } => self.summary.take(),
            _ => None,
        };
        let id = promised.unwrap_or_else(|| self.world.fresh_id());
        let mut line = Line::new(id, self.log.tip().cloned(), self.world.now(), body);
        if let Body::Commit(commit) = &mut line.body
            && may_change_what_was_sent(&commit.act)
        {
            commit.reason.changes_from = self.log.first_change(&commit.act);
        }
        if let Body::Commit(Commit { act: Act::Compact { extent, .. }, .. }) = &line.body {
            // The summary that follows is named before it is there, so that others find what is kept after it.
            let anchor = self.world.fresh_id();
            line.kept = Some(Box::new(Kept { anchor: anchor.clone(), lines: self.log.kept_by(extent) }));
            self.summary = Some(anchor);
        }
        if !beside.is_empty() {
            line.extra = serde_json::value::to_raw_value(beside).ok();
        }
        self.file.append(line.render(&self.context).as_bytes())?;
        self.state.fold(&line);
        Ok(self.log.append(line))
    }

    /// Appends facts for other parts of the program.
    pub fn note(&mut self, meta: &serde_json::Value) -> Result<(), Error> {
        if let Ok(raw) = serde_json::value::to_raw_value(meta) {
            self.append(Body::Meta(raw))?;
        }
        Ok(())
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where its work is done.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// What was said, and what the model sees of it.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The time and fresh names.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// What the lines of this program carry beside what is said, in order; what was taken back is left out.
    pub fn beside(&self) -> impl Iterator<Item = Beside> {
        self.beside_where(|view, line| view.item_of(line).is_some())
    }

    /// What the lines that are in view carry beside what is said.
    pub fn beside_in_view(&self) -> impl Iterator<Item = Beside> {
        self.beside_where(|view, line| view.shows(line))
    }

    /// The newest line in view that carries something beside what is said.
    pub(crate) fn shown_with(&self, carries: impl Fn(&Beside) -> bool) -> Option<Id> {
        let mut lines = self.log.lines().iter().skip(self.elsewhere).rev().filter(|line| line.extra.is_some());
        let line = lines.find(|line| {
            line.id.as_ref().is_some_and(|id| self.log.view().shows(id))
                && beside_of(line).is_some_and(|one| carries(&one))
        });
        line.and_then(|line| line.id.clone())
    }

    /// The messages from others that it has heard, by their ids: also those that were taken back since.
    pub(crate) fn heard(&self) -> HashSet<String> {
        let lines = self.log.lines().iter().skip(self.elsewhere);
        lines.filter_map(|line| beside_of(line)?.message).collect()
    }

    /// What it was told to remember for other parts of the program, as far as it is of one kind.
    pub(crate) fn noted<T: serde::de::DeserializeOwned>(&self) -> impl Iterator<Item = T> {
        self.log.lines().iter().skip(self.elsewhere).filter_map(|line| match &line.body {
            Body::Meta(meta) => serde_json::from_str(meta.get()).ok(),
            _ => None,
        })
    }

    fn beside_where(&self, stands: impl Fn(&View, &Id) -> bool) -> impl Iterator<Item = Beside> {
        let lines = self.log.lines().iter().skip(self.elsewhere).filter(|line| line.extra.is_some());
        let standing = lines.filter(move |line| line.id.as_ref().is_some_and(|id| stands(self.log.view(), id)));
        standing.filter_map(beside_of)
    }

    /// Keeps a tool's whole result in a file of its own, and says where. The id comes from a model: it names a file, and
    /// nothing but one.
    pub fn keep_result(&self, id: &str, extension: &str, text: &str) -> Result<PathBuf, Error> {
        let folder = files::Root::create(self.path().with_extension("").join(copy::RESULTS))?;
        let plain: String =
            id.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' }).collect();
        let plain = &plain[..plain.len().min(100)];
        let mut name = format!("{plain}.{extension}");
        // A server may use an id again: what is there stays, and the new one gets a name of its own.
        for other in 2.. {
            match folder.create_new(&name, text.as_bytes(), 0o600) {
                Ok(()) => break,
                Err(files::Error::Exists { .. }) => {
                    let same = |file: files::Snapshot| file.bytes == text.as_bytes();
                    if folder.read(&name, text.len() as u64).is_ok_and(same) {
                        break;
                    }
                }
                Err(error) => return Err(error.into()),
            }
            name = format!("{plain}-{other}.{extension}");
        }
        Ok(folder.path().join(name))
    }

    /// A crash leaves calls without results; the API takes no history with such.
    fn close_open_calls(&mut self) -> Result<(), Error> {
        for call in self.log.view().open_calls() {
            if let transcript::block::Kind::ToolUse { id, .. } = call.kind() {
                let result = Block::tool_result(id, &[Block::text(STOPPED)], Outcome::Failed);
                self.append(Body::User { blocks: vec![result], source: Source::Said })?;
            }
        }
        Ok(())
    }
}

/// Whether a commit can change bytes that were sent. What goes to disk, and what is brought back, was not sent yet.
fn may_change_what_was_sent(act: &Act) -> bool {
    !matches!(act, Act::Spill { .. } | Act::Restore { .. } | Act::CacheEdit { .. } | Act::ServerEdit { .. })
}

/// How many lines, from the beginning, came from a file elsewhere: all before the last place that says so.
fn elsewhere(log: &Log) -> usize {
    let says_so = |line: &Line| match &line.body {
        Body::Meta(meta) => {
            serde_json::from_str::<Continued>(meta.get()).is_ok_and(|continued| continued.from == From::Elsewhere)
        }
        _ => false,
    };
    log.lines().iter().rposition(says_so).map_or(0, |at| at + 1)
}

fn is_restore(line: &Line) -> bool {
    matches!(&line.body, Body::Commit(Commit { act: Act::Restore { .. }, .. }))
}

/// Whether a resumed session goes on in its own file or in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// In its own, if this program wrote it.
    No,
    /// In a copy, always.
    Yes,
}

impl Session {
    /// Takes back a commit: the view is again what it would be without it. Refused where that would not fit the window.
    pub fn undo(&mut self, commit: &Id, window: &Window) -> Result<(), Error> {
        if !self.log.view().counts(commit) {
            return Err(Error::NothingToUndo { commit: commit.to_string() });
        }
        let body = Body::Commit(Commit { act: Act::Undo { commit: commit.clone() }, reason: Reason::default() });
        // Tried on a copy: what does not fit is never written.
        let mut trial = self.log.clone();
        trial.append(Line::new(self.world.fresh_id(), trial.tip().cloned(), self.world.now(), body.clone()));
        let (tokens, before) = (trial.view().tally().count(), self.log.view().tally().count());
        if tokens > window.effective && tokens > before {
            return Err(Error::WouldNotFit { tokens, window: window.effective });
        }
        // First what it brought back: the newest decision is then the one that was asked for, and can be undone again.
        for restored in self.restored_after(commit) {
            let act = Act::Undo { commit: restored };
            self.append(Body::Commit(Commit { act, reason: Reason::default() }))?;
        }
        self.append(body)?;
        Ok(())
    }

    /// What a compaction brought back: without it, it would stand there twice.
    fn restored_after(&self, compaction: &Id) -> Vec<Id> {
        let lines = self.log.lines();
        let Some(at) = lines.iter().position(|line| line.id.as_ref() == Some(compaction)) else { return Vec::new() };
        let is_compaction =
            |line: &Line| matches!(&line.body, Body::Commit(one) if matches!(one.act, Act::Compact { .. }));
        if !is_compaction(&lines[at]) {
            return Vec::new();
        }
        let until_next = lines[at + 1..].iter().take_while(|line| {
            !is_compaction(line)
                && !matches!(line.body, Body::Assistant { .. } | Body::User { source: Source::Said, .. })
        });
        let restored = until_next.filter(|line| is_restore(line)).filter_map(|line| line.id.clone());
        restored.filter(|id| self.log.view().counts(id)).collect()
    }

    /// Drops what was said before a line from the view; a marker stands there. The newest reply and all after it stay,
    /// and so do instructions. Says how many messages were dropped.
    pub fn snip_before(&mut self, line: &Id) -> Result<usize, Error> {
        let view = self.log.view();
        let newest = view.visible().rev().find(|entry| entry.is_reply()).map_or(0, |entry| entry.index());
        let end = view.item_of(line).unwrap_or(0).min(newest);
        let (mut instructions, mut attached) = (HashSet::new(), HashSet::new());
        for line in self.log.lines().iter().filter(|line| matches!(line.body, Body::Attachment { .. })) {
            attached.extend(&line.id);
            if beside_of(line).is_some_and(|beside| !beside.instructions.is_empty() || beside.agents.is_some()) {
                instructions.extend(&line.id);
            }
        }
        let goes =
            |entry: &Entry<'_>| entry.is_original() && entry.index() < end && !instructions.contains(entry.line());
        let dropped: Vec<_> = view.visible().filter(goes).collect();
        let (Some(first), Some(last)) = (dropped.first(), dropped.last()) else { return Ok(0) };
        let count = dropped.iter().filter(|entry| !attached.contains(entry.line())).count();
        if count == 0 {
            return Ok(0);
        }
        let uuids = dropped.iter().map(|entry| entry.line().clone()).collect();
        let freed = view.tally().estimate(dropped.iter().map(|entry| entry.size()).sum());
        let marker = format!(
            "[{count} messages were dropped here as the user wished. The History tool shows them: {} … {}]",
            first.line(),
            last.line()
        );
        let why = Some(DROPPED.to_owned());
        let reason = Reason { freed: Some(freed), changes_from: None, why };
        self.append(Body::Commit(Commit { act: Act::Snip { uuids, marker }, reason }))?;
        Ok(count)
    }

    /// The newest commit that counts and can be taken back. What a compaction brings back is a part of it.
    pub fn newest_commit(&self) -> Option<Id> {
        // What a compaction brought back goes with it.
        let commits = self.log.lines().iter().rev();
        let commits = commits.filter(|line| matches!(&line.body, Body::Commit(_)) && !is_restore(line));
        let counting = commits.filter_map(|line| line.id.as_ref()).find(|id| self.log.view().counts(id));
        counting.cloned()
    }
}
