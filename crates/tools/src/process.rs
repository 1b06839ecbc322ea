//! One shell and everything it starts: run, watched, and gone at the end.
//!
//! The shell leads a process group of its own, below a [guard](crate::guard) that knows everything it starts, wherever it
//! goes. Where there is no guard, its group is all that is known of it. The order at the end is always the same: ask
//! (TERM), wait a little, then kill (KILL); the pipe is drained all the while, so that nobody hangs on a full pipe. Whoever
//! drops it kills all of it at once. What becomes of the output, and how long the shell may run, is up to the one who
//! watches it.

use std::convert::Infallible;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::confinement::{Base, Confinement, MadePath};
use crate::environment::{Environment, Variables};
use crate::guard;
use crate::guard_protocol::{GuardOrder, GuardSide};

mod group;
mod guarded;

use group::Group;
use guarded::GuardProcess;

/// How long the rest of the output is waited for once all are dead; one who left the group may hold the pipe forever.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What a guard is called in a list of processes.
const GUARD_NAME: &str = "cairn-guard";

/// A shell that was started.
pub(crate) struct Process {
    hold: ShellHold,
    out: Receiver,
    /// Its standard error, where that is not the same.
    err: Option<Receiver>,
}

/// Where something was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// What is to be started.
#[derive(Debug)]
struct ShellStart {
    words: Vec<String>,
    /// What comes on its standard input.
    input: Option<String>,
    /// Whether its two streams are told apart.
    streams: Streams,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streams {
    /// Both in the order in which they were written.
    Joined,
    Apart,
}

/// By what a shell is held.
enum ShellHold {
    Guard(Box<GuardProcess>),
    Group(Box<dyn ChildWrapper>, Group),
}

/// What may go wrong with a shell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShellTrouble {
    /// It never ran.
    #[error("The command could not be started: {0}.")]
    NotStarted(io::Error),
    /// It was started, and nobody knows what became of it.
    #[error("The command was lost: {0}.")]
    Lost(#[from] io::Error),
}

impl ShellTrouble {
    /// What it was, without what it was for.
    pub(crate) fn why(&self) -> String {
        let (Self::NotStarted(error) | Self::Lost(error)) = self;
        error.to_string()
    }
}

/// A shell that has ended, and all it started with it.
#[derive(Debug)]
pub(crate) struct EndedShell {
    /// How.
    pub(crate) end: ShellEnd,
    /// Whether it had left processes in the background, which were stopped.
    pub(crate) stopped_others: bool,
    /// Guarded paths that it made, where it was confined.
    pub(crate) made: Vec<MadePath>,
}

/// How a shell ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ShellEnd {
    /// By itself.
    Exited(ExitStatus),
    /// It took too long.
    TimedOut,
    /// It was stopped.
    Cancelled,
}

/// The exit code as a shell tells it: 128 and the signal where there was one.
pub(crate) fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}

/// Where and how a shell is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShellContext<'a> {
    /// In this directory.
    pub(crate) directory: &'a Path,
    /// With these variables.
    pub(crate) environment: &'a Environment,
    /// Below this program, if there is one.
    pub(crate) guard: Option<&'a Path>,
    /// Confined so, if it is.
    pub(crate) confinement: Option<&'a Confinement>,
    /// With these of our variables.
    pub(crate) variables: Variables,
}

/// Starts a script.
pub(crate) fn start(script: &str, ground: ShellContext<'_>) -> Result<Process, ShellTrouble> {
    let words = vec!["bash".to_owned(), "-c".to_owned(), script.to_owned()];
    begin(ShellStart { words, input: None, streams: Streams::Joined }, ground)
}

/// Starts a program of ours, which needs the keys that commands are not given.
pub(crate) fn start_own(words: Vec<String>, input: String, ground: ShellContext<'_>) -> Result<Process, ShellTrouble> {
    begin(ShellStart { words, input: Some(input), streams: Streams::Joined }, ground)
}

/// Starts a program that reads an input, with its two streams told apart.
pub(crate) fn start_with(words: Vec<String>, input: String, ground: ShellContext<'_>) -> Result<Process, ShellTrouble> {
    begin(ShellStart { words, input: Some(input), streams: Streams::Apart }, ground)
}

fn begin(start: ShellStart, ground: ShellContext<'_>) -> Result<Process, ShellTrouble> {
    if start.words.iter().any(|word| word.contains('\0')) {
        // A guard would find this out too, but a job is started before it could say so.
        return Err(ShellTrouble::NotStarted(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it has a NUL character in it",
        )));
    }
    let started = match ground.guard.filter(|_| cfg!(target_os = "linux")) {
        Some(guard) => start_guarded(start, ground, guard),
        None if ground.confinement.is_some() => Err(io::Error::other("there is no guard to confine it")),
        None => start_alone(start, ground),
    };
    started.map_err(ShellTrouble::NotStarted)
}

fn start_guarded(start: ShellStart, ground: ShellContext<'_>, guard: &Path) -> io::Result<Process> {
    let (its, ours) = guarded::socket()?;
    let mut command = Command::new(guard);
    command.arg0(GUARD_NAME).arg(guard::ARGUMENT).stdin(its);
    let (child, out, err) = spawn(command, &start, ground)?;
    let order = GuardOrder {
        command: start.words,
        input: start.input,
        confinement: ground.confinement.map(Confinement::here),
        side: GuardSide::Outside,
    };
    Ok(Process { hold: ShellHold::Guard(Box::new(GuardProcess::new(child, ours, order))), out, err })
}

fn start_alone(start: ShellStart, ground: ShellContext<'_>) -> io::Result<Process> {
    let [program, arguments @ ..] = start.words.as_slice() else {
        return Err(io::Error::other("there is no command"));
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(if start.input.is_some() { Stdio::piped() } else { Stdio::null() });
    let (mut child, out, err) = spawn(command, &start, ground)?;
    let group = Group::led_by(child.id())?;
    if let (Some(input), Some(mut pipe)) = (start.input, child.stdin().take()) {
        // Beside the rest: one that does not read its input holds up nobody, and one that ends without is no failure.
        tokio::spawn(async move { drop(pipe.write_all(input.as_bytes()).await) });
    }
    Ok(Process { hold: ShellHold::Group(child, group), out, err })
}

/// Starts a program that leads a session of its own, without terminal and secrets, and the pipes it prints to.
fn spawn(
    mut command: Command,
    start: &ShellStart,
    ground: ShellContext<'_>,
) -> io::Result<(Box<dyn ChildWrapper>, Receiver, Option<Receiver>)> {
    let (reader, writer) = io::pipe()?;
    let mut errors = None;
    let other = match start.streams {
        Streams::Joined => writer.try_clone()?,
        Streams::Apart => {
            let (reader, writer) = io::pipe()?;
            errors = Some(Receiver::from_owned_fd(reader.into())?);
            writer
        }
    };
    command.current_dir(ground.directory).stdout(writer).stderr(other);
    command.env_clear().envs(ground.environment.variables(ground.variables, std::env::vars_os()));
    if ground.confinement.is_some_and(|confinement| confinement.base == Base::System) {
        command.env("TMPDIR", "/tmp");
    }
    let mut command = CommandWrap::from(command);
    let child = command.wrap(ProcessSession).spawn()?;
    // It holds the writing ends: as long as we have them too, the pipes have no end.
    drop(command);
    Ok((child, Receiver::from_owned_fd(reader.into())?, errors))
}

impl Process {
    /// Stays with it until it has ended: by itself, after `limit`, or when `cancel` says so. `print` gets what it prints.
    pub(crate) async fn watch(
        self,
        limit: Duration,
        cancel: &CancellationToken,
        mut print: impl FnMut(&[u8]),
    ) -> Result<EndedShell, ShellTrouble> {
        self.watch_both(limit, cancel, |_, bytes| print(bytes)).await
    }

    /// The same; `print` is told where it was printed to.
    pub(crate) async fn watch_both(
        self,
        limit: Duration,
        cancel: &CancellationToken,
        print: impl FnMut(Stream, &[u8]),
    ) -> Result<EndedShell, ShellTrouble> {
        let output = Pipe { out: Some(self.out), err: self.err, print };
        match self.hold {
            ShellHold::Guard(guarded) => guarded.watch(output, limit, cancel).await,
            ShellHold::Group(child, group) => Ok(group::watch(child, group, output, limit, cancel).await?),
        }
    }
}

/// The reading ends of the pipes, and who gets what comes through them.
struct Pipe<P> {
    out: Option<Receiver>,
    err: Option<Receiver>,
    print: P,
}

impl<P: FnMut(Stream, &[u8])> Pipe<P> {
    /// Reads until all writers have closed them.
    async fn drain(&mut self) {
        let (mut out, mut err) = (vec![0; 64 * 1024], vec![0; if self.err.is_some() { 64 * 1024 } else { 0 }]);
        while self.out.is_some() || self.err.is_some() {
            tokio::select! {
                read = next(&mut self.out, &mut out) => match read {
                    0 => self.out = None,
                    read => (self.print)(Stream::Out, &out[..read]),
                },
                read = next(&mut self.err, &mut err) => match read {
                    0 => self.err = None,
                    read => (self.print)(Stream::Err, &err[..read]),
                },
            }
        }
    }

    /// Reads for as long as it is polled.
    async fn drain_on(&mut self) -> Infallible {
        self.drain().await;
        std::future::pending().await
    }
}

/// How much was read; nothing when it has ended. A pipe that is not there never ends.
async fn next(receiver: &mut Option<Receiver>, block: &mut [u8]) -> usize {
    match receiver {
        Some(receiver) => receiver.read(block).await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}
