//! One shell and everything it starts: run, watched, and gone at the end.
//!
//! The shell leads a process group of its own, below a [guard] that knows everything it starts, wherever
//! that goes. Without a guard, only its group is known. The order at the end is always the same: ask (TERM), wait a
//! little, then kill (KILL); the pipe is drained all the while, so that no process hangs on a full pipe. Dropping it
//! kills everything at once. Handling of output and the timeout are up to the caller.

use std::convert::Infallible;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::confinement::{Base, Confinement, MadePath};
use crate::environment::{Environment, Variables};
use crate::guard;
use crate::guard_protocol::{GuardOrder, GuardSide, ProcessInput};

mod group;
mod guarded;

use group::Group;
use guarded::GuardProcess;

/// Time to wait for the rest of the output once all are dead; a process that left the group may hold the pipe forever.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Name of a guard in a list of processes.
const GUARD_NAME: &str = "cairn-guard";

/// A started shell.
pub(crate) struct Process {
    hold: ShellHold,
    /// Its standard output, unless that is a socket.
    out: Option<Receiver>,
    /// Its standard error, if that is separate.
    err: Option<Receiver>,
}

/// Stream of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// Specification of a process to start.
#[derive(Debug)]
struct ShellStart {
    words: Vec<String>,
    input: ProcessInput,
    /// Handling of its two output streams.
    streams: Streams,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streams {
    /// Both in the order in which they were written.
    Joined,
    Apart,
    /// Its standard output is a socket, and its input too.
    Live,
}

/// Handle that controls a shell.
enum ShellHold {
    Guard(Box<GuardProcess>),
    Group(Box<dyn ChildWrapper>, Group),
}

/// Failure of a shell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShellTrouble {
    /// It never ran.
    #[error("The command could not be started: {0}.")]
    NotStarted(io::Error),
    /// It was started, but its outcome is unknown.
    #[error("The command was lost: {0}.")]
    Lost(#[from] io::Error),
}

impl ShellTrouble {
    /// The underlying error, without context.
    pub(crate) fn why(&self) -> String {
        let (Self::NotStarted(error) | Self::Lost(error)) = self;
        error.to_string()
    }
}

/// Result of a shell, after everything it started has ended too.
#[derive(Debug)]
pub(crate) struct EndedShell {
    /// Its end.
    pub(crate) end: ShellEnd,
    /// True if it had left processes in the background, which were stopped.
    pub(crate) stopped_others: bool,
    /// Guarded paths that it made, if it was confined.
    pub(crate) made: Vec<MadePath>,
}

/// End of a shell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ShellEnd {
    /// It exited by itself.
    Exited(ExitStatus),
    /// It timed out.
    TimedOut,
    /// It was stopped.
    Cancelled,
}

/// The exit code as a shell reports it: 128 plus the signal if there was one.
pub(crate) fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}

/// Environment in which a shell is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShellContext<'a> {
    /// The working directory.
    pub(crate) directory: &'a Path,
    /// Environment variables.
    pub(crate) environment: &'a Environment,
    /// The guard program, if there is one.
    pub(crate) guard: Option<&'a Path>,
    /// Confinement, if any.
    pub(crate) confinement: Option<&'a Confinement>,
    /// Selection of our own variables.
    pub(crate) variables: Variables,
}

/// Starts a script.
pub(crate) fn start(script: &str, context: ShellContext<'_>) -> Result<Process, ShellTrouble> {
    let words = vec!["bash".to_owned(), "-c".to_owned(), script.to_owned()];
    begin(ShellStart { words, input: ProcessInput::Nothing, streams: Streams::Joined }, context)
}

/// Starts one of our own programs, which needs the keys that are withheld from commands.
pub(crate) fn start_own(words: Vec<String>, input: String, context: ShellContext<'_>) -> Result<Process, ShellTrouble> {
    begin(ShellStart { words, input: ProcessInput::Text(input), streams: Streams::Joined }, context)
}

/// Starts a program with an input, and with separate output streams.
pub(crate) fn start_with(
    words: Vec<String>,
    input: String,
    context: ShellContext<'_>,
) -> Result<Process, ShellTrouble> {
    begin(ShellStart { words, input: ProcessInput::Text(input), streams: Streams::Apart }, context)
}

/// Starts a program that we go on talking to: our end of the socket that is its standard input and output.
pub(crate) fn start_live(words: Vec<String>, context: ShellContext<'_>) -> Result<(Process, UnixStream), ShellTrouble> {
    let start = ShellStart { words, input: ProcessInput::Socket, streams: Streams::Live };
    let (process, socket) = begin_any(start, context)?;
    let lost = || ShellTrouble::NotStarted(io::Error::other("it has no socket"));
    Ok((process, socket.ok_or_else(lost)?))
}

fn begin(start: ShellStart, context: ShellContext<'_>) -> Result<Process, ShellTrouble> {
    Ok(begin_any(start, context)?.0)
}

fn begin_any(start: ShellStart, context: ShellContext<'_>) -> Result<(Process, Option<UnixStream>), ShellTrouble> {
    if start.words.iter().any(|word| word.contains('\0')) {
        // A guard would find this out too, but a job is started before it could say so.
        return Err(ShellTrouble::NotStarted(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it has a NUL character in it",
        )));
    }
    let started = match context.guard.filter(|_| cfg!(target_os = "linux")) {
        Some(guard) => start_guarded(start, context, guard),
        None if context.confinement.is_some() => Err(io::Error::other("there is no guard to confine it")),
        None => start_alone(start, context),
    };
    started.map_err(ShellTrouble::NotStarted)
}

fn start_guarded(
    start: ShellStart,
    context: ShellContext<'_>,
    guard: &Path,
) -> io::Result<(Process, Option<UnixStream>)> {
    let (its, ours) = guarded::socket()?;
    let mut command = Command::new(guard);
    command.arg0(GUARD_NAME).arg(guard::ARGUMENT).stdin(its);
    let (child, pipes) = spawn(command, &start, context)?;
    let order = GuardOrder {
        command: start.words,
        input: start.input,
        confinement: context.confinement.map(Confinement::here),
        side: GuardSide::Outside,
    };
    Ok(pipes.of(ShellHold::Guard(Box::new(GuardProcess::new(child, ours, order)))))
}

fn start_alone(start: ShellStart, context: ShellContext<'_>) -> io::Result<(Process, Option<UnixStream>)> {
    let [program, arguments @ ..] = start.words.as_slice() else {
        return Err(io::Error::other("there is no command"));
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(match start.input {
        ProcessInput::Text(_) => Stdio::piped(),
        ProcessInput::Nothing | ProcessInput::Socket => Stdio::null(), // the socket comes with the output
    });
    let (mut child, pipes) = spawn(command, &start, context)?;
    let group = Group::led_by(child.id())?;
    if let (ProcessInput::Text(input), Some(mut pipe)) = (start.input, child.stdin().take()) {
        // Beside the rest: one that does not read its input holds up nobody, and one that ends without is no failure.
        tokio::spawn(async move { drop(pipe.write_all(input.as_bytes()).await) });
    }
    Ok(pipes.of(ShellHold::Group(child, group)))
}

/// Our ends of what a program prints to.
struct ProcessPipes {
    out: Option<Receiver>,
    err: Option<Receiver>,
    socket: Option<UnixStream>,
}

impl ProcessPipes {
    fn of(self, hold: ShellHold) -> (Process, Option<UnixStream>) {
        (Process { hold, out: self.out, err: self.err }, self.socket)
    }
}

/// Starts a program that leads a session of its own, without terminal and secrets, and the pipes it prints to.
fn spawn(
    mut command: Command,
    start: &ShellStart,
    context: ShellContext<'_>,
) -> io::Result<(Box<dyn ChildWrapper>, ProcessPipes)> {
    let mut pipes = ProcessPipes { out: None, err: None, socket: None };
    command.current_dir(context.directory);
    match start.streams {
        Streams::Joined => {
            let (reader, writer) = io::pipe()?;
            command.stdout(writer.try_clone()?).stderr(writer);
            pipes.out = Some(Receiver::from_owned_fd(reader.into())?);
        }
        Streams::Apart => {
            let (reader, writer) = io::pipe()?;
            let (errors, error_writer) = io::pipe()?;
            command.stdout(writer).stderr(error_writer);
            pipes.out = Some(Receiver::from_owned_fd(reader.into())?);
            pipes.err = Some(Receiver::from_owned_fd(errors.into())?);
        }
        Streams::Live => {
            let (its, ours) = guarded::socket()?;
            let (errors, error_writer) = io::pipe()?;
            if context.guard.is_none() || !cfg!(target_os = "linux") {
                command.stdin(its.try_clone()?);
            }
            command.stdout(its).stderr(error_writer);
            pipes.err = Some(Receiver::from_owned_fd(errors.into())?);
            pipes.socket = Some(ours);
        }
    }
    command.env_clear().envs(context.environment.variables(context.variables, std::env::vars_os()));
    if context.confinement.is_some_and(|confinement| confinement.base == Base::System) {
        command.env("TMPDIR", "/tmp");
    }
    let mut command = CommandWrap::from(command);
    let child = command.wrap(ProcessSession).spawn()?;
    // It holds the writing ends: as long as we have them too, the pipes have no end.
    drop(command);
    Ok((child, pipes))
}

impl Process {
    /// Watches it until it has ended: by itself, after `limit`, or by `cancel`. `print` gets its output.
    pub(crate) async fn watch(
        self,
        limit: Duration,
        cancel: &CancellationToken,
        mut print: impl FnMut(&[u8]),
    ) -> Result<EndedShell, ShellTrouble> {
        self.watch_both(limit, cancel, |_, bytes| print(bytes)).await
    }

    /// Like [`watch`](Self::watch), but `print` is also given the stream.
    pub(crate) async fn watch_both(
        self,
        limit: Duration,
        cancel: &CancellationToken,
        print: impl FnMut(Stream, &[u8]),
    ) -> Result<EndedShell, ShellTrouble> {
        let output = Pipe { out: self.out, err: self.err, print };
        match self.hold {
            ShellHold::Guard(guarded) => guarded.watch(output, limit, cancel).await,
            ShellHold::Group(child, group) => Ok(group::watch(child, group, output, limit, cancel).await?),
        }
    }
}

/// The reading ends of the pipes, and the receiver of their data.
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

/// Number of bytes read; 0 at the end. A missing pipe never ends.
async fn next(receiver: &mut Option<Receiver>, block: &mut [u8]) -> usize {
    match receiver {
        Some(receiver) => receiver.read(block).await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}
