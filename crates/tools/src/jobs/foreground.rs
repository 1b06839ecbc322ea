//! Commands that a call waits for, and calls that other programs answer: what they print meanwhile, and moving one to the
//! background.
//!
//! A command in front is no job yet. Whoever looks sees the end of its output; whoever moves it ends the waiting, and it goes
//! on as a job with everything it printed still unread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::unread::UnreadOutput;
use super::{JobKind, JobState, JobStatus, Jobs};
use crate::process::{EndedShell, Process, ShellEnd, ShellTrouble};

/// Distinguishes commands in front.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A command that a call waits for, as a screen shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForegroundCommand {
    /// The id of its call, if it has one.
    pub call: Option<String>,
    /// The command.
    pub command: String,
    /// Time since its start.
    pub running: Duration,
    /// The end of what it has printed.
    pub recent: String,
}

/// The commands in front.
#[derive(Debug, Default)]
pub(super) struct Foreground {
    entries: Arc<Mutex<Vec<ForegroundEntry>>>,
}

#[derive(Debug)]
struct ForegroundEntry {
    serial: u64,
    call: Option<String>,
    command: String,
    started: Instant,
    printed: Arc<Mutex<UnreadOutput>>,
    moved: CancellationToken,
}

/// The place of a command in front, for as long as it is there.
#[derive(Debug)]
struct ForegroundPlace {
    serial: u64,
    entries: Arc<Mutex<Vec<ForegroundEntry>>>,
    printed: Arc<Mutex<UnreadOutput>>,
    moved: CancellationToken,
}

impl Foreground {
    /// The commands there are, the oldest first.
    pub(super) fn list(&self) -> Vec<ForegroundCommand> {
        let command = |entry: &ForegroundEntry| ForegroundCommand {
            call: entry.call.clone(),
            command: entry.command.clone(),
            running: entry.started.elapsed(),
            recent: entry.printed.lock().recent(),
        };
        self.entries.lock().iter().map(command).collect()
    }

    /// Moves them all. Returns their number.
    pub(super) fn move_all(&self) -> usize {
        let entries = self.entries.lock();
        entries.iter().for_each(|entry| entry.moved.cancel());
        entries.len()
    }

    /// Puts one there.
    fn place(&self, call: Option<&str>, command: &str) -> ForegroundPlace {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let (printed, moved) = (Arc::new(Mutex::new(UnreadOutput::default())), CancellationToken::new());
        self.entries.lock().push(ForegroundEntry {
            serial,
            call: call.map(str::to_owned),
            command: command.to_owned(),
            started: Instant::now(),
            printed: printed.clone(),
            moved: moved.clone(),
        });
        ForegroundPlace { serial, entries: self.entries.clone(), printed, moved }
    }
}

/// The end of waiting for a command in front.
pub(crate) enum ForegroundEnd {
    /// It has ended.
    Ended(Result<EndedShell, ShellTrouble>),
    /// It runs on as the job with this id.
    Moved(String),
}

/// A call that another program answers, while it is waited for.
#[derive(Debug)]
pub struct CallInFront {
    label: String,
    place: ForegroundPlace,
}

/// Progress of a call in front, as a screen and TaskOutput show it.
#[derive(Debug, Clone)]
pub struct ProgressLines(Arc<Mutex<UnreadOutput>>);

/// The end of a call that was moved to the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCall {
    /// Its answer, as TaskOutput shows it.
    pub text: String,
    /// True if it failed.
    pub failed: bool,
}

/// The end of waiting for a call.
#[derive(Debug)]
pub enum CallWait<T> {
    /// It was answered.
    Answered(T),
    /// It goes on as the job with this id.
    Moved(String),
}

impl ProgressLines {
    /// Adds a line.
    pub fn push(&self, line: &str) {
        self.0.lock().push(format!("{line}\n").as_bytes());
    }
}

impl CallInFront {
    /// Where its progress goes.
    pub fn progress(&self) -> ProgressLines {
        ProgressLines(self.place.printed.clone())
    }
}

/// A command to be run in front.
pub(crate) struct CommandInFront<'a> {
    /// The id of its call, if it has one.
    pub(crate) call: Option<&'a str>,
    /// The command, as a job is named after it.
    pub(crate) command: &'a str,
    /// Its process.
    pub(crate) process: Process,
    /// The time it has. In the background it has as long as it takes.
    pub(crate) limit: Duration,
}

impl Jobs {
    /// Runs a command and waits for it, until it has ended or was moved. `print` gets its output until then; `after` is
    /// called at the end of one that was moved.
    pub(crate) async fn run_in_front(
        &self,
        run: CommandInFront<'_>,
        cancel: &CancellationToken,
        mut print: impl FnMut(&[u8]) + Send + 'static,
        after: impl FnOnce() + Send + 'static,
    ) -> ForegroundEnd {
        let CommandInFront { call, command, process, limit } = run;
        let place = self.foreground.place(call, command);
        let stop = CancellationToken::new();
        let (printed, stopped) = (place.printed.clone(), stop.clone());
        // A task of its own: it is the same one that watches the command when it runs on as a job.
        let mut task = AbortOnDropHandle::new(tokio::spawn(async move {
            let both = |bytes: &[u8]| {
                print(bytes);
                printed.lock().push(bytes);
            };
            process.watch(Duration::MAX, &stopped, both).await
        }));
        let late = tokio::time::sleep(limit);
        tokio::pin!(late);
        let mut timed_out = false;
        loop {
            tokio::select! {
                ended = &mut task => {
                    let ended = ended.unwrap_or_else(|error| Err(ShellTrouble::Lost(io::Error::other(error))));
                    return ForegroundEnd::Ended(ended.map(|ended| match ended.end {
                        ShellEnd::Cancelled if timed_out => EndedShell { end: ShellEnd::TimedOut, ..ended },
                        _ => ended,
                    }));
                }
                () = cancel.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                () = &mut late, if !stop.is_cancelled() => {
                    timed_out = true;
                    stop.cancel();
                }
                () = place.moved.cancelled(), if !stop.is_cancelled() && self.has_room() => break,
            }
        }
        let ended = async move {
            let ended = task.await.unwrap_or_else(|error| Err(ShellTrouble::Lost(io::Error::other(error))));
            after();
            ended
        };
        let ended = self.shell_status(place.printed.clone(), ended);
        ForegroundEnd::Moved(self.adopt((JobKind::Command, command), place.printed.clone(), stop, ended))
    }

    /// Puts a call in front that another program answers.
    pub fn call_in_front(&self, call: Option<&str>, label: &str) -> CallInFront {
        CallInFront { label: label.to_owned(), place: self.foreground.place(call, label) }
    }

    /// Waits until a call is answered, or was moved: by whoever looks, or because it takes too long. Dropping the future, or
    /// stopping the job, drops the work.
    pub async fn wait_for_call<T: Send + 'static>(
        &self,
        front: CallInFront,
        work: impl Future<Output = T> + Send + 'static,
        end: impl FnOnce(T) -> EndedCall + Send + 'static,
    ) -> CallWait<T> {
        let CallInFront { label, place } = front;
        let mut work = Box::pin(work);
        let late = tokio::time::sleep(self.call_patience.lock().unwrap_or(Duration::MAX));
        tokio::pin!(late);
        loop {
            tokio::select! {
                answer = &mut work => return CallWait::Answered(answer),
                () = &mut late, if !late.is_elapsed() => if self.has_room() { break },
                () = place.moved.cancelled(), if self.has_room() => break,
            }
        }
        let (stop, printed) = (CancellationToken::new(), place.printed.clone());
        let stopped = stop.clone();
        let ended = async move {
            let answer = tokio::select! {
                answer = work => end(answer),
                () = stopped.cancelled() => return JobStatus { state: JobState::Stopped, stopped_others: false },
            };
            printed.lock().push(answer.text.as_bytes());
            JobStatus { state: JobState::Exited { code: Some(i32::from(answer.failed)) }, stopped_others: false }
        };
        CallWait::Moved(self.adopt((JobKind::Call, &label), place.printed.clone(), stop, ended))
    }
}

impl Drop for ForegroundPlace {
    fn drop(&mut self) {
        self.entries.lock().retain(|entry| entry.serial != self.serial);
    }
}
