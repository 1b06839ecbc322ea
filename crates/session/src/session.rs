//! A session on disk: its file, held by one writer, and the log it projects to.
//!
//! Whatever happens is appended, first to the file and then to the log in memory; what [`Session::append`] returned for
//! is on the disk. A session that another program wrote last is not appended to: it is copied ([`copy`]) and continued
//! under an id of its own.
//!
//! What a file says is not what happened here. Lines that come from a file outside the sessions of this project are text:
//! what they carry besides (files seen, directories, instructions, a system prompt) counts for nothing.

mod back;
mod copy;
mod line_meta;

use std::path::{Path, PathBuf};

use context::State;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use transcript::commit::{Act, Commit};
use transcript::line::{Body, Context, KeptMessages, Line, TextSource};
use transcript::tokens::Estimator;
use transcript::view::ViewChange;
use transcript::{Block, Id, Injected, Log, Outcome, Prologue};

use crate::child::{folder_of, transcript_of};
use crate::error::Error;
use crate::home::{Home, PROJECTS, git_branch};
use crate::record::{self, SkippedLine};
use crate::world::World;
pub(crate) use back::DROPPED;
pub use line_meta::{LineMeta, SeenFile, SurfacedMemory};

/// A session, open for writing.
#[derive(Debug)]
pub struct Session {
    id: String,
    directory: PathBuf,
    file: files::Log,
    log: Log,
    /// The layers' state.
    state: State,
    context: Context,
    world: World,
    /// The name of the summary that has to come next.
    summary: Option<Id>,
    /// The number of lines, from the beginning, that came from a file elsewhere.
    elsewhere: usize,
    /// The number of lines when it was opened; this process wrote those after them.
    loaded: usize,
}

/// A session goes on here that began elsewhere, as the log has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "continued")]
struct ContinuationMark {
    session: String,
    file: PathBuf,
    #[serde(default)]
    from: ContinuedFrom,
}

/// The former place of a continued session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ContinuedFrom {
    /// Among the sessions of this project.
    Here,
    /// Anywhere else.
    #[default]
    Elsewhere,
}

/// The result of a call that was interrupted before the session was resumed.
pub const STOPPED: &str = "[No result: the session ended before the call did. It may have run in part.]";

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
    ) -> Result<(Self, Vec<SkippedLine>), Error> {
        let found = home.find(directory, id)?;
        Self::resume_file(home, directory, &found.path, fork, world)
    }

    /// Goes on with the session in a file, wherever it is.
    pub fn resume_file(
        home: &Home,
        directory: &Path,
        path: &Path,
        fork: Fork,
        world: World,
    ) -> Result<(Self, Vec<SkippedLine>), Error> {
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
        session.take_agents(path);
        let from = if ours { ContinuedFrom::Here } else { ContinuedFrom::Elsewhere };
        let origin = ContinuationMark { session: id, file: path.to_owned(), from };
        session.note(&serde_json::to_value(origin).unwrap_or_default())?;
        session.elsewhere = elsewhere(&session.log);
        session.close_open_calls()?;
        Ok((session, skipped))
    }

    /// Begins the session of an agent that another session sends out, next to that one's file.
    pub fn child(parent: &Path, agent: &str, directory: &Path, world: World) -> Result<Self, Error> {
        let path = transcript_of(parent, agent);
        let id = parent.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let mut session = Self::open_file(&path, id, directory, Log::default(), world)?;
        session.context.agent = Some(agent.to_owned());
        Ok(session)
    }

    /// Begins the session of an agent that goes on from where another one stands: it knows all that was said there, and
    /// writes what it says itself next to that one's file.
    pub fn branch(parent: &Path, agent: &str, directory: &Path, log: Log, world: World) -> Result<Self, Error> {
        let mut session = Self::child(parent, agent, directory, world)?;
        session.take(log);
        Ok(session)
    }

    /// Resumes the session of a subagent. The lines before it are those it branched off from.
    pub fn reopen(file: &Path, before: Log, agent: &str, directory: &Path, world: World) -> Result<Self, Error> {
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
        let state = State::of_log(&log);
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
        self.state = State::of_log(&log);
        self.log = log;
    }

    /// The lines that this process wrote, and the others.
    pub(crate) fn written_here(&self, line: usize) -> bool {
        line >= self.loaded
    }

    /// The prologue, unless others wrote it.
    pub fn known_prologue(&self) -> Option<&Prologue> {
        let own = self.log.lines().iter().skip(self.elsewhere);
        let any = own.into_iter().any(|line| matches!(line.body, Body::Prologue(_)));
        self.log.view().prologue().filter(|_| any).map(|known| &**known)
    }

    /// Time since something was written into it.
    pub fn idle(&self) -> SignedDuration {
        let last = self.log.lines().iter().rev().find_map(|line| line.time);
        last.map_or(SignedDuration::ZERO, |last| self.world.now().duration_since(last))
    }

    /// Chooses how tokens are estimated.
    pub fn use_estimator(&mut self, estimator: Estimator) {
        self.log.use_estimator(estimator);
    }

    /// The layers' state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Appends what was said or decided. It is on the disk when this returns.
    pub fn append(&mut self, body: Body) -> Result<ViewChange, Error> {
        self.append_with(body, &LineMeta::default())
    }

    /// Puts in a text that nobody said, with facts beside.
    pub fn inject(&mut self, text: &Injected, beside: LineMeta) -> Result<ViewChange, Error> {
        self.append_with(text.into(), &LineMeta { injected: Some(text.purpose()), ..beside })
    }

    /// Appends with facts beside.
    pub fn append_with(&mut self, body: Body, beside: &LineMeta) -> Result<ViewChange, Error> {
        let promised = match &body {
            Body::User { source: TextSource::Summary, .. } => self.summary.take(),
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
            line.kept = Some(Box::new(KeptMessages { anchor: anchor.clone(), lines: self.log.kept_by(extent) }));
            self.summary = Some(anchor);
        }
        if !beside.is_empty() {
            line.extra = serde_json::value::to_raw_value(beside).ok();
        }
        line.result = beside.result.as_ref().and_then(|result| serde_json::value::to_raw_value(result).ok());
        self.file.append(line.render(&self.context).as_bytes())?;
        line.result = None;
        self.state.fold(&line);
        let goes_back = matches!(&line.body, Body::Commit(commit) if commit.moves_tip());
        let change = self.log.append(line);
        if goes_back {
            self.state.find_standing(&self.log);
        }
        Ok(change)
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

    /// True if it is the session of a subagent.
    pub fn is_subagents(&self) -> bool {
        self.context.agent.is_some()
    }

    /// From now on its work is done elsewhere; its file stays where it is.
    pub fn work_in(&mut self, directory: &Path) {
        directory.clone_into(&mut self.directory);
        self.context.cwd = directory.to_string_lossy().into_owned();
        self.context.branch = git_branch(directory);
    }

    /// True if it existed before.
    pub fn goes_on(&self) -> bool {
        self.loaded > 0
    }

    /// The folder for what belongs to it, next to its file.
    pub fn folder(&self) -> PathBuf {
        folder_of(self.path())
    }

    /// The config home it is in, if it is in one.
    pub fn config_home(&self) -> Option<&Path> {
        self.path().ancestors().find(|place| place.ends_with(PROJECTS))?.parent()
    }

    /// Its working directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The time and fresh names.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Facts of one kind that other parts of the program noted.
    pub fn noted<T: serde::de::DeserializeOwned>(&self) -> impl Iterator<Item = T> {
        self.log.lines().iter().skip(self.elsewhere).filter_map(|line| match &line.body {
            Body::Meta(meta) => serde_json::from_str(meta.get()).ok(),
            _ => None,
        })
    }

    /// Keeps a tool's whole result in a file of its own, and says where. The id comes from a model: it names a file, and
    /// nothing but one.
    pub fn keep_result(&self, id: &str, extension: &str, text: &str) -> Result<PathBuf, Error> {
        let folder = files::Root::create(self.folder().join(copy::RESULTS))?;
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
                self.append(Body::User { blocks: vec![result], source: TextSource::Direct })?;
            }
        }
        Ok(())
    }
}

/// True if a commit can change bytes that were sent. Spilled and restored texts were not sent yet.
fn may_change_what_was_sent(act: &Act) -> bool {
    !matches!(act, Act::Spill { .. } | Act::Restore { .. } | Act::CacheEdit { .. } | Act::ServerEdit { .. })
}

/// The number of lines, from the beginning, that came from a file elsewhere: all before the last place that says so.
fn elsewhere(log: &Log) -> usize {
    let says_so = |line: &Line| match &line.body {
        Body::Meta(meta) => serde_json::from_str::<ContinuationMark>(meta.get())
            .is_ok_and(|continued| continued.from == ContinuedFrom::Elsewhere),
        _ => false,
    };
    log.lines().iter().rposition(says_so).map_or(0, |at| at + 1)
}

/// Continue a session in its own file, or in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// In its own, if this program wrote it.
    No,
    /// In a copy, always.
    Yes,
}
