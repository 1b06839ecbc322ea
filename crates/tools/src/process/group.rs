//! A shell without a guard: its process group is watched and ended.
//!
//! A process that leaves the group on purpose (`setsid`) runs on, and so does the whole group when we are killed.

use std::io;
use std::time::Duration;

use process_wrap::tokio::ChildWrapper;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{EndedShell, LAST_WORDS, Pipe, ShellEnd, Stream};
use crate::guard_protocol::{AFTER_EXIT, GRACE, LOOK};

/// Longest description of a process in `/proc`, in bytes.
const STAT: u64 = 8 * 1024;

/// Watches a shell until it and its whole group have ended.
pub(super) async fn watch<P: FnMut(Stream, &[u8])>(
    mut child: Box<dyn ChildWrapper>,
    group: Group,
    mut output: Pipe<P>,
    limit: Duration,
    cancel: &CancellationToken,
) -> io::Result<EndedShell> {
    // `inner`: the wait of the wrapper would also wait for orphans where we are their new parent (process 1).
    let child = child.inner_mut();
    let end = tokio::select! {
        status = child.wait() => ShellEnd::Exited(status?),
        () = sleep(limit) => ShellEnd::TimedOut,
        () = cancel.cancelled() => ShellEnd::Cancelled,
        never = output.drain_on() => match never {},
    };
    let mut stopped_others = false;
    if let ShellEnd::Exited(_) = end {
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
    Ok(EndedShell { end, stopped_others, made: Vec::new() })
}

/// A process group that is killed with us.
pub(super) struct Group {
    leader: Option<Pid>,
}

impl Group {
    pub(super) fn led_by(leader: Option<u32>) -> io::Result<Self> {
        let leader = leader.and_then(|id| Pid::from_raw(id.cast_signed()));
        let leader = leader.ok_or_else(|| io::Error::other("the shell ended before it began"))?;
        Ok(Self { leader: Some(leader) })
    }

    fn is_alive(&self) -> bool {
        self.leader.is_some_and(|leader| test_kill_process_group(leader).is_ok() && has_living(leader))
    }

    /// Waits until no process is left.
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

    /// Disarms it: nothing is left to kill, and the number may soon be reused.
    fn release(mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Returns whether a group has a member that is not a zombie. Orphans stay zombies if process 1 does not reap them, as
/// in many containers. If processes cannot be listed, they are assumed to be alive.
fn has_living(group: Pid) -> bool {
    let processes = processes();
    processes.is_empty()
        || processes.iter().any(|process| process.lives && process.group == group.as_raw_nonzero().get())
}

/// Kills all processes of a session whose leader has ended: its number cannot be reused while they exist.
pub(super) async fn kill_session(leader: u32) {
    while kill_members(leader.cast_signed()) {
        sleep(LOOK).await;
    }
}

/// Kills the members of a session; returns whether there were any.
fn kill_members(session: i32) -> bool {
    let mut members = processes();
    members.retain(|process| process.lives && process.session == session);
    for pid in members.iter().filter_map(|process| Pid::from_raw(process.number)) {
        let _ = kill_process(pid, Signal::KILL);
    }
    !members.is_empty()
}

/// A process, as the system describes it.
struct Process {
    number: i32,
    lives: bool,
    group: i32,
    session: i32,
}

/// All processes that can be listed.
fn processes() -> Vec<Process> {
    let entries = files::list("/proc").unwrap_or_default();
    let process = |entry: &files::DirectoryEntry| {
        let number = entry.name.to_str()?.parse().ok()?;
        let stat = files::read(format!("/proc/{number}/stat"), STAT).ok()?;
        let stat = String::from_utf8_lossy(&stat.bytes);
        // `number (name) state parent group session …`, where the name may hold anything.
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().take(4).collect();
        let [state, _, group, session] = fields[..] else { return None };
        let lives = !matches!(state, "Z" | "X");
        Some(Process { number, lives, group: group.parse().ok()?, session: session.parse().ok()? })
    };
    entries.iter().filter_map(process).collect()
}
