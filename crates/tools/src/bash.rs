//! Bash: a command in a shell.
//!
//! Each call is a fresh `bash -c` in a session of its own, without input and without a terminal; only the working
//! directory is carried over from call to call. Standard output and standard error arrive through one pipe, in the order
//! they were written. A command that prints without end is drained and costs a fixed amount of memory: its beginning
//! and its end are kept.
//!
//! No process outlives the call: when the shell has ended, timed out or was cancelled, everything it started is stopped
//! by its [guard](crate::guard), also what left its group or its session. A command that is meant to run on is started
//! in the background, where it is one of the session's [`Jobs`](crate::Jobs); it does not move the working directory.
//!
//! API keys of model providers are taken out of the environment. Whether a command may run is not decided here.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::jobs::NotStarted;
use crate::process::{self, End, Ended, exit_code};
use crate::run::CANCELLED;
use crate::scope::Scope;
use crate::tool::{Access, Limit, Output, Subject, Typed};

mod capture;

use capture::Capture;

/// How long a command may run where the call does not say.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How long a command may run at most in the foreground.
const LONGEST: Duration = Duration::from_secs(600);

/// The longest path a shell may report as its directory.
const PATH_LENGTH: u64 = 64 * 1024;

/// What is said of a command that left processes behind.
pub(crate) const OTHERS_STOPPED: &str = "processes that were still running in the background were stopped";

/// Makes the names of the files in which shells leave their directory differ.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Runs a command in bash and returns what it prints, standard output and standard error in order.
///
/// The working directory is kept between calls; variables and functions are not. There is no input and no terminal:
/// commands that ask a question fail. Processes left in the background are stopped when the command ends: start servers
/// and the like with `run_in_background`. Quote paths with spaces. Prefer Read, Edit, Write, Grep and Glob to `cat`, `sed`, `echo >`, `grep` and `find`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The command.
    pub command: String,
    /// How long it may run, in milliseconds: 120000 if left out, at most 600000; in the background as long as it takes
    /// if left out.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// What it does, in five to ten words, for the user to read.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether to return an id at once and let it run on, for TaskOutput to look at and TaskStop to stop.
    #[serde(default)]
    pub run_in_background: Option<bool>,
}

/// Runs commands.
#[derive(Debug, Clone, Copy)]
pub struct Bash;

impl Typed for Bash {
    type Input = BashInput;
    const NAME: &'static str = "Bash";
    const LIMIT: Limit = Limit::Characters(30_000);

    fn access(&self, _: &BashInput) -> Access {
        Access::Changes
    }

    fn subject(&self, input: &BashInput, _: &Scope) -> Subject {
        Subject::Command(input.command.clone())
    }

    fn run(&self, input: BashInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(async move {
            if input.run_in_background == Some(true) {
                in_the_background(&input, &scope)
            } else {
                in_the_foreground(&input, &scope).await
            }
        })
    }
}

async fn in_the_foreground(input: &BashInput, scope: &Scope) -> Output {
    let mut notes = Vec::new();
    let directory = existing_directory(scope, &mut notes);
    let report = match report_file(scope) {
        Ok(report) => report,
        Err(error) => return Output::failed(format!("The command could not be started: {error}.")),
    };
    let timeout = limit(input).unwrap_or(TIMEOUT).min(LONGEST);
    let script = format!("{}\n{}", reporting(&report), input.command);
    let process = match process::start(&script, &directory, scope.guard()) {
        Ok(process) => process,
        Err(trouble) => return Output::failed(trouble.to_string()),
    };
    let mut printed = Capture::default();
    let ended = process.watch(timeout, scope.cancel(), |bytes| printed.push(bytes)).await;
    if let Some(directory) = reported(&report) {
        scope.set_directory(directory);
    }
    match ended {
        Ok(ended) => output(ended, &printed.text(), timeout, notes),
        Err(trouble) => Output::failed(trouble.to_string()),
    }
}

fn in_the_background(input: &BashInput, scope: &Scope) -> Output {
    let mut notes = Vec::new();
    let directory = existing_directory(scope, &mut notes);
    match scope.jobs().start(&input.command, &directory, limit(input), scope.guard()) {
        Ok(id) => {
            let text = format!(
                "Running in the background as {id}. TaskOutput shows what it prints, TaskStop stops it; it does not \
                 outlive the session."
            );
            Output::done(with_notes(text, &notes), format!("Running as {id}"))
        }
        Err(NotStarted::TooMany { running }) => Output::failed(format!(
            "{} commands are running in the background already, which is the limit: {}. Stop one with TaskStop.",
            running.len(),
            running.join(", ")
        )),
        Err(NotStarted::Trouble(trouble)) => Output::failed(trouble.to_string()),
    }
}

/// How long the call lets the command run, if it says so.
fn limit(input: &BashInput) -> Option<Duration> {
    input.timeout.filter(|limit| *limit > 0).map(Duration::from_millis)
}

/// The working directory, or the project's if it is gone.
fn existing_directory(scope: &Scope, notes: &mut Vec<String>) -> PathBuf {
    let directory = scope.directory();
    if directory.is_dir() {
        return directory;
    }
    let project = scope.project().to_owned();
    notes.push(format!("{} no longer exists; the command ran in {}", directory.display(), project.display()));
    scope.set_directory(project.clone());
    project
}

/// A name for the file in which the shell leaves its directory.
fn report_file(scope: &Scope) -> Result<PathBuf, files::Error> {
    files::create_directory(scope.temporary())?;
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    Ok(scope.temporary().join(format!("directory-{}-{serial}", std::process::id())))
}

/// The line that makes the shell report its directory when it ends.
fn reporting(report: &Path) -> String {
    let report = quoted(&report.to_string_lossy());
    format!("trap {} EXIT", quoted(&format!("pwd -P 2>/dev/null >| {report}")))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The directory the shell was in at its end. A shell that was killed, or that became another program, reports none.
fn reported(report: &Path) -> Option<PathBuf> {
    let bytes = files::read(report, PATH_LENGTH).ok()?.bytes;
    let _ = files::remove(report);
    let path = PathBuf::from(OsStr::from_bytes(bytes.strip_suffix(b"\n")?));
    (path.is_absolute() && path.is_dir()).then_some(path)
}

fn output(ended: Ended, printed: &str, timeout: Duration, mut notes: Vec<String>) -> Output {
    let printed = printed.trim_end_matches('\n');
    // A shell that outlives its command for a moment tells of our own signal.
    let printed = match ended.end {
        End::TimedOut | End::Cancelled => printed.strip_suffix("Terminated").unwrap_or(printed).trim_end_matches('\n'),
        End::Exited(_) => printed,
    };
    if ended.stopped_others {
        notes.push(OTHERS_STOPPED.to_owned());
    }
    let failure = match ended.end {
        End::Exited(status) => failure(status),
        End::TimedOut => Some(format!("Timed out after {} ms and was stopped", timeout.as_millis())),
        End::Cancelled => Some(CANCELLED.to_owned()),
    };
    let text = match &failure {
        Some(failure) if printed.is_empty() => failure.clone(),
        Some(failure) => format!("{failure}\n{printed}"),
        None if printed.trim().is_empty() => "The command succeeded and printed nothing.".to_owned(),
        None => printed.to_owned(),
    };
    let text = with_notes(text, &notes);
    match failure {
        Some(_) => Output::failed(text),
        None => {
            let summary = text.trim_end().lines().next_back().unwrap_or_default().to_owned();
            Output::done(text, summary)
        }
    }
}

fn with_notes(mut text: String, notes: &[String]) -> String {
    for note in notes {
        text.push_str(&format!("\n[{note}]"));
    }
    text
}

fn failure(status: ExitStatus) -> Option<String> {
    match (exit_code(status), status.signal()) {
        (Some(0), _) => None,
        (Some(code), None) => Some(format!("Exit code {code}")),
        (Some(code), Some(signal)) => Some(format!("Exit code {code} (ended by signal {signal})")),
        (None, _) => Some("Exit code unknown".to_owned()),
    }
}
