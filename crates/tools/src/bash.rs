//! Bash: a command in a shell.
//!
//! Each call is a fresh `bash -c` in a session of its own, without input and without a terminal; only the working
//! directory is carried over from call to call. Standard output and standard error arrive through one pipe, in the
//! order they were written. A command that prints without end is drained and costs a fixed amount of memory: its
//! beginning and its end are kept.
//!
//! No process outlives the call: when the shell has ended, timed out or was cancelled, its [guard](crate::guard) stops
//! everything it started, even what left its group or its session. A command that is meant to run on is started in the
//! background, where it is one of the session's [`Jobs`](crate::Jobs); it does not change the working directory.
//!
//! API keys of model providers are removed from the environment. Permission is not decided here; a command that may
//! only read is confined to that.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use transcript::tool_names;

use crate::capture::Capture;
use crate::confinement::{Base, Confinement, SandboxExit, Strength};
use crate::environment::Variables;
use crate::jobs::{CommandInFront, ForegroundEnd, NotStarted};
use crate::permission::{Rights, Wall};
use crate::process::{self, EndedShell, ShellContext, ShellEnd, exit_code};
use crate::run_calls::CANCELLED;
use crate::sandbox;
use crate::scope::Scope;
use crate::subject::{Access, Subject};
use crate::tool::{Limit, Output, TypedTool};

/// Default timeout of a command.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Longest timeout of a command in the foreground.
const LONGEST: Duration = Duration::from_secs(600);

/// Longest path that a shell may report as its directory, in bytes.
const PATH_LENGTH: u64 = 64 * 1024;

/// Folder within the session folder that is `/tmp` in a sandbox.
const TEMPORARY: &str = "tmp";

/// Prefix of the folders that are `/tmp` for read-only commands: each has its own.
const LOOKING: &str = "looking";

/// Note on a command that left processes behind.
pub(crate) const OTHERS_STOPPED: &str = "processes that were still running in the background were stopped";

/// Makes the names of the files unique in which shells report their directory.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Runs a command in bash and returns what it prints, errors included.
///
/// The working directory is kept between calls; variables and functions are not. There is no input and no terminal:
/// commands that ask a question fail. Processes left behind are stopped when the command ends: start servers and the like
/// with `run_in_background`. Quote paths with spaces. Prefer Read, Edit, Write, Grep and Glob to `cat`, `sed`, `echo >`,
/// `grep`, `rg` and `find`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The command.
    pub command: String,
    /// The time it may run, in milliseconds: 120000 if left out (unlimited in the background), at most 600000.
    pub timeout: Option<u64>,
    /// Its purpose in five to ten words, for the user.
    pub description: Option<String>,
    /// Return an id at once, for TaskOutput and TaskStop, and let it run on.
    pub run_in_background: Option<bool>,
    /// Run it outside the sandbox, if it cannot work inside. The user is asked.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    pub dangerously_disable_sandbox: Option<bool>,
}

/// Runs commands.
#[derive(Debug, Clone, Copy)]
pub struct Bash;

impl TypedTool for Bash {
    type Input = BashInput;
    const NAME: &'static str = tool_names::BASH;
    const ACCESS: Access = Access::Changes;
    const LIMIT: Limit = Limit::Characters(30_000);

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
    let prepared = confinement(input, scope).and_then(|confinement| {
        let report = DirectoryReport::new(scope, confinement.as_ref()).map_err(|error| not_started(&error))?;
        Ok((confinement, report))
    });
    let (confinement, report) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return Output::failed(why),
    };
    let timeout = limit(input).unwrap_or(TIMEOUT).min(LONGEST);
    let script = format!("{}\n{}", report.trap(), input.command);
    let process = match process::start(&script, context(scope, &directory, confinement.as_ref())) {
        Ok(process) => process,
        Err(trouble) => return Output::failed(trouble.to_string()),
    };
    let printed = Arc::new(Mutex::new(Capture::default()));
    let capture = printed.clone();
    let (file, own) = (report.file.clone(), own_temporary(confinement.as_ref()));
    let after = move || {
        // Where it was in the end counts for nobody any more.
        let _ = files::remove(file);
        own.iter().for_each(|own| drop(files::remove_tree(own)));
    };
    let run = CommandInFront { call: scope.call(), command: &input.command, process, limit: timeout };
    let jobs = scope.jobs();
    let ended = match jobs.run_in_front(run, scope.cancel(), move |bytes| capture.lock().push(bytes), after).await {
        ForegroundEnd::Ended(ended) => ended,
        ForegroundEnd::Moved(id) => {
            let text = format!(
                "The user moved the command to the background, where it runs on as {id}. TaskOutput shows what it has \
                 printed and prints, TaskStop stops it; it does not outlive the session."
            );
            return Output::done(with_notes(text, &notes), format!("Running as {id}"));
        }
    };
    match report.read() {
        Some(directory) if may_move_to(&directory, confinement.as_ref(), scope) => scope.set_directory(directory),
        Some(_) => notes.push(format!("the next command starts in {} again", scope.directory().display())),
        None => {}
    }
    // What stays goes with the session.
    own_temporary(confinement.as_ref()).iter().for_each(|own| drop(files::remove_tree(own)));
    match ended {
        Ok(ended) => output(ended, &printed.lock().text(), timeout, confinement.as_ref(), notes),
        Err(trouble) => Output::failed(trouble.to_string()),
    }
}

/// The temporary folder of a read-only command, which is its own.
fn own_temporary(confinement: Option<&Confinement>) -> Option<PathBuf> {
    confinement.filter(|held| held.base == Base::System).and_then(|held| held.temporary.clone())
}

fn in_the_background(input: &BashInput, scope: &Scope) -> Output {
    let mut notes = Vec::new();
    let directory = existing_directory(scope, &mut notes);
    let confinement = match confinement(input, scope) {
        Ok(confinement) => confinement,
        Err(why) => return Output::failed(why),
    };
    match scope.jobs().start(&input.command, limit(input), context(scope, &directory, confinement.as_ref())) {
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

fn not_started(error: &files::Error) -> String {
    format!("The command could not be started: {error}.")
}

/// Confinement of the command, if any. It can read the session folder, and part of that is its temporary folder.
fn confinement(input: &BashInput, scope: &Scope) -> Result<Option<Confinement>, String> {
    if let Rights::ReadOnly(looking) = scope.rights() {
        if scope.wall() == Wall::None {
            return Ok(None);
        }
        let name = format!("{LOOKING}-{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        let temporary = scope.temporary().join(name);
        files::create_directory(scope.temporary()).map_err(|error| not_started(&error))?;
        // It goes with the command, so nobody waits for it to be on the disk.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&temporary);
        made.map_err(|error| format!("The command could not be started: {}: {error}.", temporary.display()))?;
        return Ok(Some(scope.read_only_confinement(looking, Some(temporary))));
    }
    let leaves = if input.dangerously_disable_sandbox == Some(true) { SandboxExit::Yes } else { SandboxExit::No };
    let Some(sandbox) = scope.sandbox() else { return Ok(None) };
    let Some(confinement) = sandbox.confinement(&input.command, leaves)? else { return Ok(None) };
    let mut confinement = confinement.clone();
    let temporary = scope.temporary().join(TEMPORARY);
    files::create_directory(&temporary).map_err(|error| not_started(&error))?;
    confinement.readable.push(scope.temporary().to_owned());
    confinement.temporary = Some(temporary);
    if let Some(scratchpad) = scope.scratchpad() {
        files::create_directory(scratchpad).map_err(|error| not_started(&error))?;
        confinement.writable.push(scratchpad.to_owned());
    }
    Ok(Some(confinement))
}

fn context<'a>(scope: &'a Scope, directory: &'a Path, confinement: Option<&'a Confinement>) -> ShellContext<'a> {
    let held = confinement.is_some_and(|confinement| confinement.base == Base::System);
    let variables = match scope.rights() {
        Rights::Full if !held => Variables::Inherited,
        Rights::Full | Rights::ReadOnly(_) => Variables::Ordinary,
    };
    ShellContext { directory, environment: scope.environment(), guard: scope.guard(), confinement, variables }
}

/// Timeout given in the call, if any.
fn limit(input: &BashInput) -> Option<Duration> {
    input.timeout.filter(|limit| *limit > 0).map(Duration::from_millis)
}

/// The working directory, or the project's if that is gone.
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

/// The file in which a shell reports its directory.
struct DirectoryReport {
    /// Its path.
    file: PathBuf,
    /// Its path as the shell sees it.
    seen: PathBuf,
}

impl DirectoryReport {
    fn new(scope: &Scope, confinement: Option<&Confinement>) -> Result<Self, files::Error> {
        files::create_directory(scope.temporary())?;
        scope.scratchpad().map_or(Ok(()), files::create_directory)?;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!(".directory-{}-{serial}", std::process::id());
        let temporary = confinement.and_then(|confinement| confinement.temporary.as_deref());
        let file = temporary.unwrap_or(scope.temporary()).join(&name);
        let seen = match confinement {
            Some(confinement) if confinement.strength == Strength::Namespaces => Path::new("/tmp").join(&name),
            _ => file.clone(),
        };
        Ok(Self { file, seen })
    }

    /// Shell line that makes the shell report its directory when it ends.
    fn trap(&self) -> String {
        let report = quoted(&self.seen.to_string_lossy());
        format!("trap {} EXIT", quoted(&format!("pwd -P 2>/dev/null >| {report}")))
    }

    /// Directory of the shell at its end; `None` if it was killed or replaced by another program.
    fn read(&self) -> Option<PathBuf> {
        let bytes = files::read(&self.file, PATH_LENGTH).ok()?.bytes;
        let _ = files::remove(&self.file);
        let path = PathBuf::from(OsStr::from_bytes(bytes.strip_suffix(b"\n")?));
        (path.is_absolute() && path.is_dir()).then_some(path)
    }
}

/// Returns whether a command may change the working directory to this one. A confined command can write anything into
/// its report, and its `/tmp` is private, so it can only choose among the working directories.
fn may_move_to(directory: &Path, confinement: Option<&Confinement>, scope: &Scope) -> bool {
    let is_plain = || files::real(directory).is_ok_and(|real| real == directory);
    confinement.is_none() || is_plain() && scope.directories().iter().any(|working| directory.starts_with(working))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Result of a command that printed nothing.
pub const PRINTED_NOTHING: &str = "The command succeeded and printed nothing.";

fn output(
    ended: EndedShell,
    printed: &str,
    timeout: Duration,
    confinement: Option<&Confinement>,
    mut notes: Vec<String>,
) -> Output {
    let printed = printed.trim_end_matches('\n');
    // A shell that outlives its command for a moment tells of our own signal.
    let printed = match ended.end {
        ShellEnd::TimedOut | ShellEnd::Cancelled => {
            printed.strip_suffix("Terminated").unwrap_or(printed).trim_end_matches('\n')
        }
        ShellEnd::Exited(_) => printed,
    };
    if ended.stopped_others {
        notes.push(OTHERS_STOPPED.to_owned());
    }
    let failure = match ended.end {
        ShellEnd::Exited(status) => failure(status),
        ShellEnd::TimedOut => Some(format!("Timed out after {} ms and was stopped", timeout.as_millis())),
        ShellEnd::Cancelled => Some(CANCELLED.to_owned()),
    };
    if failure.is_some() {
        notes.extend(confinement.and_then(|confinement| sandbox::note(confinement, printed)));
    }
    let text = match &failure {
        Some(failure) if printed.is_empty() => failure.clone(),
        Some(failure) => format!("{failure}\n{printed}"),
        None if printed.trim().is_empty() => PRINTED_NOTHING.to_owned(),
        None => printed.to_owned(),
    };
    let text = with_notes(text, &notes);
    let output = match failure {
        Some(_) => Output::failed(text),
        None => {
            let summary = text.trim_end().lines().next_back().unwrap_or_default().to_owned();
            Output::done(text, summary)
        }
    };
    Output { made: ended.made, ..output }
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
