//! Jobs: commands that run in the background.
//!
//! A job is a shell below a guard of its own and one task that watches it: the task reads the output, sees the end, and
//! then ends itself. It holds nothing of the scope, so the jobs of a session are gone when its last
//! [`Scope`](crate::Scope) is: dropping them ends the tasks, and a dropped task kills everything that its shell
//! started.
//!
//! Output waits in bounded memory until someone looks, and is then handed out once. The number of running jobs, and of
//! remembered ended ones, is limited. A command in front becomes a job when it is moved; a job is not restarted, moved back
//! or given input, and its end wakes nobody.

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

mod foreground;
mod unread;

use foreground::Foreground;
pub use foreground::{CallInFront, CallWait, EndedCall, ForegroundCommand, ProgressLines};
pub(crate) use foreground::{CommandInFront, ForegroundEnd};
use unread::UnreadOutput;
pub(crate) use unread::{IncompleteRest, NewOutput};

/// Limit on running jobs: more than a project has servers and watchers.
const RUNNING: usize = 16;

/// Number of ended jobs that are remembered.
const REMEMBERED: usize = 32;

/// Background commands of a scope, running or recently ended.
#[derive(Debug, Default)]
pub struct Jobs {
    known: Mutex<JobList>,
    /// Commands that calls wait for.
    foreground: Foreground,
    /// Guarded paths that they made in a sandbox.
    made: Arc<Mutex<Vec<MadePath>>>,
    /// The time after which a call that another program answers is moved to the background.
    call_patience: Mutex<Option<Duration>>,
}

/// A job, as a status line shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The command.
    pub command: String,
    /// Its state.
    pub state: JobState,
    /// Its kind.
    pub kind: JobKind,
}

/// Kind of job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// A command.
    Command,
    /// One of our own programs that works alongside the session.
    Teammate,
    /// A call that another program answers.
    Call,
}

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It is running.
    Running,
    /// It has ended by itself.
    Exited {
        /// The exit code, 128 plus the signal if there was one, `None` if the system does not tell.
        code: Option<i32>,
    },
    /// It timed out, and was stopped.
    TimedOut,
    /// It was stopped.
    Stopped,
}

/// Error for an unknown job id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("There is no command {id} in the background. {}", existing(known))]
pub struct NoSuchJob {
    /// The requested id.
    pub id: String,
    /// The known ids.
    pub known: Vec<String>,
}

/// Reason why a job was not started.
#[derive(Debug)]
pub(crate) enum NotStarted {
    /// Too many are running already.
    TooMany { running: Vec<String> },
    /// The shell could not be started.
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

/// Handle to look at a job and to stop it.
#[derive(Debug, Clone)]
pub(crate) struct JobHandle {
    /// The job as it was when it started.
    started: Job,
    unread: Arc<Mutex<UnreadOutput>>,
    status: watch::Receiver<JobStatus>,
    stop: CancellationToken,
}

/// Status of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobStatus {
    /// Its state.
    pub(crate) state: JobState,
    /// True if its shell had left processes behind, which were stopped.
    pub(crate) stopped_others: bool,
}

impl Job {
    fn new(id: String, command: &str, kind: JobKind) -> Self {
        Self { id, command: command.to_owned(), state: JobState::Running, kind }
    }
}

impl Jobs {
    /// All known jobs, oldest first.
    pub fn list(&self) -> Vec<Job> {
        self.handles().iter().map(JobHandle::job).collect()
    }

    /// The end of a job's output. It stays unread for the model.
    pub fn recent(&self, id: &str) -> Result<String, NoSuchJob> {
        self.find(id).map(|handle| handle.unread.lock().recent())
    }

    /// The lines that a job printed after a number of bytes, and the new number of bytes. They stay unread for the
    /// model.
    pub fn printed_after(&self, id: &str, shown: u64) -> Result<(String, u64), NoSuchJob> {
        let job = self.find(id)?;
        let leave =
            if job.status().state == JobState::Running { IncompleteRest::Line } else { IncompleteRest::Nothing };
        let unread = job.unread.lock();
        Ok(unread.lines_after(shown, leave))
    }

    /// Stops a job and waits until nothing of it is left. Returns its state before.
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

    /// The commands that calls wait for, the oldest first.
    pub fn foreground(&self) -> Vec<ForegroundCommand> {
        self.foreground.list()
    }

    /// Moves the commands that calls wait for to the background. Returns their number: none if there is no room for more.
    pub fn move_to_background(&self) -> usize {
        if self.has_room() { self.foreground.move_all() } else { 0 }
    }

    /// Moves calls that other programs answer to the background after this time.
    pub fn move_calls_after(&self, patience: Duration) {
        *self.call_patience.lock() = Some(patience);
    }

    /// True if another job can run.
    fn has_room(&self) -> bool {
        self.known.lock().entries.iter().filter(|entry| entry.runs()).count() < RUNNING
    }

    /// Makes a job of what was in front, and returns its id.
    fn adopt(
        &self,
        (kind, command): (JobKind, &str),
        printed: Arc<Mutex<UnreadOutput>>,
        stop: CancellationToken,
        ended: impl Future<Output = JobStatus> + Send + 'static,
    ) -> String {
        let mut known = self.known.lock();
        known.forget();
        known.started += 1;
        let prefix = if kind == JobKind::Call { "call" } else { "bash" };
        let id = format!("{prefix}_{}", known.started);
        Self::follow(&mut known, Job::new(id.clone(), command, kind), printed, stop, ended);
        id
    }

    /// Takes the guarded paths that ended jobs made in a sandbox.
    pub fn take_made(&self) -> Vec<MadePath> {
        std::mem::take(&mut *self.made.lock())
    }

    /// Empty jobs for a forked scope. No id means one job here and another there.
    pub(crate) fn fork(&self) -> Self {
        let known = JobList { started: self.known.lock().started, entries: Vec::new() };
        Self { known: Mutex::new(known), ..Self::default() }
    }

    /// Starts a command and returns its id.
    pub(crate) fn start(
        &self,
        command: &str,
        limit: Option<Duration>,
        context: ShellContext<'_>,
    ) -> Result<String, NotStarted> {
        let mut known = self.known.lock();
        known.forget();
        let running: Vec<String> = known.entries.iter().filter(|entry| entry.runs()).map(JobEntry::id).collect();
        if running.len() >= RUNNING {
            return Err(NotStarted::TooMany { running });
        }
        let process = process::start(command, context).map_err(NotStarted::Trouble)?;
        known.started += 1;
        let id = format!("bash_{}", known.started);
        Ok(self.keep(&mut known, Job::new(id, command, JobKind::Command), limit, process))
    }

    /// Starts one of our own programs alongside the session, under its own name and with a description, and returns a way
    /// to wait for it. Its input is for it alone. It is not a command: no sandbox confines it, and it has the model's
    /// keys.
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
            return Err(format!("{name} cannot be started: {RUNNING} jobs are running, or one of that name is"));
        }
        let environment = Environment::default();
        let (confinement, variables) = (None, Variables::Own);
        let context = ShellContext { directory, environment: &environment, guard, confinement, variables };
        let process = process::start_own(words, input, context).map_err(|trouble| trouble.why())?;
        let id = self.keep(&mut known, Job::new(name.to_owned(), about, JobKind::Teammate), None, process);
        drop(known);
        let handle = self.find(&id).map_err(|error| error.to_string())?;
        Ok(async move {
            handle.ended().await;
            handle.status().state
        })
    }

    /// Watches a process.
    fn keep(&self, known: &mut JobList, started: Job, limit: Option<Duration>, process: process::Process) -> String {
        let id = started.id.clone();
        let unread = Arc::new(Mutex::new(UnreadOutput::default()));
        let stop = CancellationToken::new();
        let (printed, stopped) = (unread.clone(), stop.clone());
        let ended = async move {
            let limit = limit.unwrap_or(Duration::MAX);
            process.watch(limit, &stopped, |bytes| printed.lock().push(bytes)).await
        };
        let ended = self.shell_status(unread.clone(), ended);
        Self::follow(known, started, unread, stop, ended);
        id
    }

    /// The status of a shell that has ended, with what is kept of its end.
    fn shell_status(
        &self,
        unread: Arc<Mutex<UnreadOutput>>,
        ended: impl Future<Output = Result<EndedShell, ShellTrouble>> + Send + 'static,
    ) -> impl Future<Output = JobStatus> + Send + 'static {
        let made = self.made.clone();
        async move {
            let ended = ended.await;
            match &ended {
                Ok(ended) => made.lock().extend(ended.made.iter().cloned()),
                Err(trouble) => unread.lock().push(trouble.to_string().as_bytes()),
            }
            JobStatus::of(ended)
        }
    }

    /// Waits for the end of a job, and keeps what is known of it.
    fn follow(
        known: &mut JobList,
        started: Job,
        unread: Arc<Mutex<UnreadOutput>>,
        stop: CancellationToken,
        ended: impl Future<Output = JobStatus> + Send + 'static,
    ) {
        let (told, status) = watch::channel(JobStatus { state: JobState::Running, stopped_others: false });
        let handle = JobHandle { started, unread, status, stop };
        let task = tokio::spawn(async move {
            told.send_replace(ended.await);
        });
        known.entries.push(JobEntry { handle, _task: AbortOnDropHandle::new(task) });
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
    /// Forgets the oldest ended jobs, if there are too many.
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

    /// Takes the output since the last call, without what is left for the next time.
    pub(crate) fn take(&self, leave: IncompleteRest) -> NewOutput {
        self.unread.lock().take(leave)
    }

    async fn stop(&self) {
        self.stop.cancel();
        self.ended().await;
    }

    pub(crate) fn job(&self) -> Job {
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
