//! Jobs: commands that run in the background.
//!
//! A job is a shell below a guard of its own and one task that stays with it: the task reads what is printed, sees the
//! end, and ends then itself. It holds nothing of the scope, so the jobs of a session are gone when its last
//! [`Scope`](crate::Scope) is: dropping them ends the tasks, and a task that is dropped kills all that its shell started.
//!
//! What is printed waits in bounded memory until someone looks, and is then handed out once. How many jobs run at the
//! same time, and how many that have ended are remembered, is limited. A job is not restarted, moved to the
//! foreground or given input, and nobody is woken by its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::confinement::MadePath;
use crate::environment::{Environment, Variables};
use crate::process::{self, EndedShell, ShellContext, ShellEnd, ShellTrouble, exit_code};

mod unread;

use unread::UnreadOutput;
pub(crate) use unread::{IncompleteRest, NewOutput};

/// How many jobs may run at the same time: more than a project has servers and watchers.
const RUNNING: usize = 16;

/// How many jobs that have ended are remembered.
const REMEMBERED: usize = 32;

/// The commands that run in the background of a scope, and those that lately did.
#[derive(Debug, Default)]
pub struct Jobs {
    known: Mutex<JobList>,
    /// Guarded paths that they made in a sandbox.
    made: Arc<Mutex<Vec<MadePath>>>,
}

/// A job, as a status line shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// What the model calls it.
    pub id: String,
    /// The command.
    pub command: String,
    /// Whether it runs.
    pub state: JobState,
    /// What it is.
    pub kind: JobKind,
}

/// What a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// A command.
    Command,
    /// A program of ours that works beside the session.
    Teammate,
}

/// Whether a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It does.
    Running,
    /// It has ended by itself.
    Exited {
        /// The exit code, 128 and the signal where there was one, `None` where the system does not tell.
        code: Option<i32>,
    },
    /// It took longer than it was given, and was stopped.
    TimedOut,
    /// It was stopped.
    Stopped,
}

/// An id that no job has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("There is no command {id} in the background. {}", existing(known))]
pub struct NoSuchJob {
    /// What was asked for.
    pub id: String,
    /// The ids there are.
    pub known: Vec<String>,
}

/// Why a job was not started.
#[derive(Debug)]
pub(crate) enum NotStarted {
    /// So many run already.
    TooMany { running: Vec<String> },
    /// There was no shell.
    Trouble(ShellTrouble),
}

#[derive(Debug, Default)]
struct JobList {
    started: u64,
    entries: Vec<JobEntry>,
}

#[derive(Debug)]
struct JobEntry {
    handle: JobHandle,
    _task: AbortOnDropHandle<()>,
}

/// What is needed to look at a job and to stop it.
#[derive(Debug, Clone)]
pub(crate) struct JobHandle {
    /// As it was when it started.
    started: Job,
    unread: Arc<Mutex<UnreadOutput>>,
    status: watch::Receiver<JobStatus>,
    stop: CancellationToken,
}

/// How it is with a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobStatus {
    /// Whether it runs.
    pub(crate) state: JobState,
    /// Whether its shell had left processes behind, which were stopped.
    pub(crate) stopped_others: bool,
}

impl Job {
    fn new(id: String, command: &str, kind: JobKind) -> Self {
        Self { id, command: command.to_owned(), state: JobState::Running, kind }
    }
}

impl Jobs {
    /// All that are known, oldest first.
    pub fn list(&self) -> Vec<Job> {
        self.handles().iter().map(JobHandle::job).collect()
    }

    /// The last of what a job printed. The model is still to see it.
    pub fn recent(&self, id: &str) -> Result<String, NoSuchJob> {
        self.find(id).map(|handle| handle.unread.lock().recent())
    }

    /// The lines that a job has printed after so many bytes, and how many it has printed with them. What the model is
    /// still to see it will.
    pub fn printed_after(&self, id: &str, shown: u64) -> Result<(String, u64), NoSuchJob> {
        let job = self.find(id)?;
        let leave =
            if job.status().state == JobState::Running { IncompleteRest::Line } else { IncompleteRest::Nothing };
        let unread = job.unread.lock();
        Ok(unread.lines_after(shown, leave))
    }

    /// Stops a job and waits until nothing of it is left. What it was before is returned.
    pub async fn stop(&self, id: &str) -> Result<Job, NoSuchJob> {
        let handle = self.find(id)?;
        let before = handle.job();
        handle.stop().await;
        Ok(before)
    }

    /// Stops all jobs and waits until nothing of them is left.
    pub async fn stop_all(&self) {
        let handles = self.handles();
        join_all(handles.iter().map(JobHandle::stop)).await;
    }

    /// The guarded paths that jobs which have ended made in a sandbox, each once.
    pub fn take_made(&self) -> Vec<MadePath> {
        std::mem::take(&mut *self.made.lock())
    }

    /// Jobs of one who knows of these but does not share them. No id means one job here and another there.
    pub(crate) fn fork(&self) -> Self {
        let known = JobList { started: self.known.lock().started, entries: Vec::new() };
        Self { known: Mutex::new(known), made: Arc::default() }
    }

    /// Starts a command and returns its id.
    pub(crate) fn start(
        &self,
        command: &str,
        limit: Option<Duration>,
        ground: ShellContext<'_>,
    ) -> Result<String, NotStarted> {
        let mut known = self.known.lock();
        known.forget();
        let running: Vec<String> = known.entries.iter().filter(|entry| entry.runs()).map(JobEntry::id).collect();
        if running.len() >= RUNNING {
            return Err(NotStarted::TooMany { running });
        }
        let process = process::start(command, ground).map_err(NotStarted::Trouble)?;
        known.started += 1;
        let id = format!("bash_{}", known.started);
        Ok(self.keep(&mut known, Job::new(id, command, JobKind::Command), limit, process))
    }

    /// Starts a program of ours that works beside the session, under a name of its own and with a word on what it does, and
    /// says how it can be waited for. What it reads is for it alone.
    /// It is no command: no sandbox holds it, and it has the keys to the model.
    pub fn start_teammate(
        &self,
        (name, about): (&str, &str),
        words: Vec<String>,
        input: String,
        directory: &Path,
        guard: Option<&Path>,
    ) -> Result<impl Future<Output = JobState> + Send + 'static, String> {
        let mut known = self.known.lock();
        known.entries.retain(|entry| entry.runs() || entry.id() != name);
        known.forget();
        let running = known.entries.iter().filter(|entry| entry.runs());
        if running.clone().count() >= RUNNING || running.clone().any(|entry| entry.id() == name) {
            return Err(format!("{name} cannot be started: {RUNNING} jobs run already, or one of that name does"));
        }
        let environment = Environment::default();
        let (confinement, variables) = (None, Variables::Own);
        let ground = ShellContext { directory, environment: &environment, guard, confinement, variables };
        let process = process::start_own(words, input, ground).map_err(|trouble| trouble.why())?;
        let id = self.keep(&mut known, Job::new(name.to_owned(), about, JobKind::Teammate), None, process);
        drop(known);
        let handle = self.find(&id).map_err(|error| error.to_string())?;
        Ok(async move {
            handle.ended().await;
            handle.status().state
        })
    }

    /// Stays with a process.
    fn keep(&self, known: &mut JobList, started: Job, limit: Option<Duration>, process: process::Process) -> String {
        let id = started.id.clone();
        let unread = Arc::new(Mutex::new(UnreadOutput::default()));
        let made = self.made.clone();
        let (told, status) = watch::channel(JobStatus { state: JobState::Running, stopped_others: false });
        let stop = CancellationToken::new();
        let handle = JobHandle { started, unread: unread.clone(), status, stop: stop.clone() };
        let task = tokio::spawn(async move {
            let limit = limit.unwrap_or(Duration::MAX);
            let ended = process.watch(limit, &stop, |bytes| unread.lock().push(bytes)).await;
            match &ended {
                Ok(ended) => made.lock().extend(ended.made.iter().cloned()),
                Err(trouble) => unread.lock().push(trouble.to_string().as_bytes()),
            }
            told.send_replace(JobStatus::of(ended));
        });
        known.entries.push(JobEntry { handle, _task: AbortOnDropHandle::new(task) });
        id
    }

    /// The job with this id.
    pub(crate) fn find(&self, id: &str) -> Result<JobHandle, NoSuchJob> {
        let handles = self.handles();
        let found = handles.iter().find(|handle| handle.started.id == id).cloned();
        found.ok_or_else(|| NoSuchJob {
            id: id.to_owned(),
            known: handles.into_iter().map(|handle| handle.started.id).collect(),
        })
    }

    fn handles(&self) -> Vec<JobHandle> {
        self.known.lock().entries.iter().map(|entry| entry.handle.clone()).collect()
    }
}

impl JobList {
    /// Forgets the oldest of those that have ended, where there are too many.
    fn forget(&mut self) {
        let ended = self.entries.iter().filter(|entry| !entry.runs()).count();
        let mut over = ended.saturating_sub(REMEMBERED);
        self.entries.retain(|entry| {
            let forgotten = over > 0 && !entry.runs();
            over -= usize::from(forgotten);
            !forgotten
        });
    }
}

impl JobEntry {
    fn id(&self) -> String {
        self.handle.started.id.clone()
    }

    fn runs(&self) -> bool {
        self.handle.status().state == JobState::Running
    }
}

impl JobHandle {
    pub(crate) fn status(&self) -> JobStatus {
        *self.status.borrow()
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) {
        // An error means that its task is gone, and so is the job.
        let _ = self.status.clone().wait_for(|status| status.state != JobState::Running).await;
    }

    /// What it printed since this was last asked, without what is to be left for the next time.
    pub(crate) fn take(&self, leave: IncompleteRest) -> NewOutput {
        self.unread.lock().take(leave)
    }

    async fn stop(&self) {
        self.stop.cancel();
        self.ended().await;
    }

    fn job(&self) -> Job {
        Job { state: self.status().state, ..self.started.clone() }
    }
}

impl JobStatus {
    fn of(ended: Result<EndedShell, ShellTrouble>) -> Self {
        let state = match &ended {
            Ok(EndedShell { end: ShellEnd::Exited(status), .. }) => JobState::Exited { code: exit_code(*status) },
            Ok(EndedShell { end: ShellEnd::TimedOut, .. }) => JobState::TimedOut,
            Ok(EndedShell { end: ShellEnd::Cancelled, .. }) => JobState::Stopped,
            Err(_) => JobState::Exited { code: None },
        };
        Self { state, stopped_others: ended.is_ok_and(|ended| ended.stopped_others) }
    }
}

fn existing(known: &[String]) -> String {
    if known.is_empty() { "There are none.".to_owned() } else { format!("There are: {}.", known.join(", ")) }
}
