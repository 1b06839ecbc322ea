//! One shell and everything it starts: run, watched, and gone at the end.
//!
//! The shell leads a session and a process group of its own. Whatever it starts belongs to that group unless it leaves
//! on purpose, so a signal to the group reaches all of it. The order at the end is always the same: ask (TERM), wait a
//! little, then kill (KILL); the pipe is drained all the while, so that nobody hangs on a full pipe. Whoever drops it kills
//! the group at once. What becomes of the output, and how long the shell may run, is up to the one who watches it.

use std::convert::Infallible;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long output may still come after the shell has ended, from a process it left in the background.
const AFTER_EXIT: Duration = Duration::from_millis(500);

/// How long processes have between being asked to end and being killed.
const GRACE: Duration = Duration::from_secs(1);

/// How often is looked whether those who were asked have ended.
const LOOK: Duration = Duration::from_millis(20);

/// How long the rest of the output is waited for once all are dead; one who left the group may hold the pipe forever.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The longest description of a process in `/proc`.
const STAT: u64 = 8 * 1024;

/// Secrets that no command needs.
const SECRETS: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"];

/// What keeps programs from asking questions, paging and colouring.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// A shell that was started.
pub(crate) struct Process {
    child: Box<dyn ChildWrapper>,
    group: Group,
    receiver: Receiver,
}

/// A shell that has ended, and all it started with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// How.
    pub(crate) end: End,
    /// Whether it had left processes in the background, which were stopped.
    pub(crate) stopped_others: bool,
}

/// How a shell ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
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

/// Starts a script in `directory`.
pub(crate) fn start(script: &str, directory: &Path) -> io::Result<Process> {
    let (reader, writer) = io::pipe()?;
    let mut command = shell(script, directory);
    command.command_mut().stdout(writer.try_clone()?).stderr(writer);
    let child = command.spawn()?;
    // It holds the writing end: as long as we have it too, the pipe has no end.
    drop(command);
    let group = Group::led_by(child.id())?;
    let receiver = Receiver::from_owned_fd(reader.into())?;
    Ok(Process { child, group, receiver })
}

impl Process {
    /// Stays with it until it has ended: by itself, after `limit`, or when `cancel` says so. `print` gets what it prints.
    pub(crate) async fn watch(
        self,
        limit: Duration,
        cancel: &CancellationToken,
        print: impl FnMut(&[u8]),
    ) -> io::Result<Ended> {
        let Self { mut child, group, receiver } = self;
        let mut output = Pipe { receiver: Some(receiver), print };
        // `inner`: the wait of the wrapper would also wait for orphans where we are their new parent (process 1).
        let child = child.inner_mut();
        let end = tokio::select! {
            status = child.wait() => End::Exited(status?),
            () = sleep(limit) => End::TimedOut,
            () = cancel.cancelled() => End::Cancelled,
            never = output.drain_on() => match never {},
        };
        let mut stopped_others = false;
        if let End::Exited(_) = end {
            let _ = timeout(AFTER_EXIT, output.drain()).await;
            // One who has just closed the pipe is about to end.
            stopped_others = timeout(LAST_WORDS, group.gone()).await.is_err();
        }
        if group.is_alive() {
            group.signal(Signal::TERM);
            tokio::select! {
                _ = timeout(GRACE, group.gone()) => {}
                never = output.drain_on() => match never {},
            }
            group.signal(Signal::KILL);
        }
        let _ = timeout(LAST_WORDS, output.drain()).await;
        // Killed if it had not ended by itself, so this is short; it leaves no zombie.
        child.wait().await?;
        group.release();
        Ok(Ended { end, stopped_others })
    }
}

/// A shell of its own, without input, terminal and secrets.
fn shell(script: &str, directory: &Path) -> CommandWrap {
    let mut shell = CommandWrap::with_new("bash", |command| {
        command.arg("-c").arg(script).current_dir(directory).stdin(Stdio::null()).envs(ENVIRONMENT);
        for secret in SECRETS {
            command.env_remove(secret);
        }
    });
    shell.wrap(ProcessSession);
    shell
}

/// The reading end of the pipe, and who gets what comes through it.
struct Pipe<P> {
    receiver: Option<Receiver>,
    print: P,
}

impl<P: FnMut(&[u8])> Pipe<P> {
    /// Reads until all writers have closed it.
    async fn drain(&mut self) {
        let mut block = vec![0; 64 * 1024];
        while let Some(receiver) = &mut self.receiver {
            match receiver.read(&mut block).await {
                Ok(0) | Err(_) => self.receiver = None,
                Ok(read) => (self.print)(&block[..read]),
            }
        }
    }

    /// Reads for as long as it is polled.
    async fn drain_on(&mut self) -> Infallible {
        self.drain().await;
        std::future::pending().await
    }
}

/// A process group that is killed with us.
struct Group {
    leader: Option<Pid>,
}

impl Group {
    fn led_by(leader: Option<u32>) -> io::Result<Self> {
        let leader = leader.and_then(|id| Pid::from_raw(id.cast_signed()));
        let leader = leader.ok_or_else(|| io::Error::other("the shell ended before it began"))?;
        Ok(Self { leader: Some(leader) })
    }

    fn is_alive(&self) -> bool {
        self.leader.is_some_and(|leader| test_kill_process_group(leader).is_ok() && has_living(leader))
    }

    /// Waits until nobody is left.
    async fn gone(&self) {
        while self.is_alive() {
            sleep(LOOK).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            let _ = kill_process_group(leader, signal);
        }
    }

    /// Nothing is left to kill, and the number may soon be someone else's.
    fn release(mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Whether a group has a member that is not a zombie. Orphans stay zombies where process 1 does not clean up after
/// others, as in many containers. Where processes cannot be looked at, they are taken to live.
fn has_living(group: Pid) -> bool {
    let Ok(processes) = files::list("/proc") else { return true };
    let numbers = processes.iter().filter_map(|entry| entry.name.to_str()?.parse::<u32>().ok());
    let mut looked = false;
    for number in numbers {
        let Ok(stat) = files::read(format!("/proc/{number}/stat"), STAT) else { continue };
        looked = true;
        let stat = String::from_utf8_lossy(&stat.bytes);
        // `number (name) state parent group …`, where the name may hold anything.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let (state, member_of) = (fields.next(), fields.nth(1));
        let is_member = member_of.and_then(|id| id.parse().ok()) == Some(group.as_raw_nonzero().get());
        if is_member && !matches!(state, Some("Z" | "X")) {
            return true;
        }
    }
    !looked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_of_the_environment() {
        let shell = shell("true", Path::new("/"));
        let changes: Vec<_> = shell.command().as_std().get_envs().collect();
        for secret in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"] {
            assert!(changes.contains(&(secret.as_ref(), None)), "{secret}");
        }
    }
}
