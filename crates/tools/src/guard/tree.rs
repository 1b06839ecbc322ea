//! A command and everything below it, seen from the guard that adopts all of them in the end.

use std::collections::HashMap;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use rustix::process::{WaitOptions, wait};

/// Longest description of a process in `/proc`, in bytes.
const STAT: u64 = 8 * 1024;

/// A command and everything it started.
pub(super) struct Tree {
    command: i32,
    status: Option<i32>,
    gone: bool,
}

impl Tree {
    pub(super) fn below(command: u32) -> Self {
        Self { command: command.cast_signed(), status: None, gone: false }
    }

    /// Returns whether the command itself is still running.
    pub(super) fn command_runs(&self) -> bool {
        self.status.is_none()
    }

    /// Returns whether no process is left.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Exit status of the command, as the system encodes it; killed, if it has not ended.
    pub(super) fn status(&self) -> i32 {
        self.status.unwrap_or(Signal::SIGKILL as i32)
    }

    /// Reaps ended processes. Orphans come to us, so without a child there is no process left.
    pub(super) fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((process, status))) => {
                    if process.as_raw_nonzero().get() == self.command {
                        self.status = Some(status.as_raw());
                    }
                }
                Ok(None) => return,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    self.gone = true;
                    return;
                }
            }
        }
    }

    /// Sends a signal to all processes.
    pub(super) fn signal(&self, signal: Signal) {
        if Pid::this().as_raw() == 1 {
            // The first of a namespace: everybody else in it is below.
            let _ = signal::kill(Pid::from_raw(-1), signal);
            return;
        }
        match descendants(Pid::this().as_raw()) {
            Some(all) => {
                for process in all {
                    let _ = signal::kill(Pid::from_raw(process), signal);
                }
            }
            // Without a look at the processes, those who stayed together are reached.
            None => drop(signal::killpg(Pid::from_raw(self.command), signal)),
        }
    }
}

/// All descendants of a process, parents before their children.
fn descendants(of: i32) -> Option<Vec<i32>> {
    let entries = files::list("/proc").ok()?;
    let numbers = entries.iter().filter_map(|entry| entry.name.to_str()?.parse::<i32>().ok());
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let mut seen = false;
    for number in numbers {
        if let Some(parent) = parent(number) {
            children.entry(parent).or_default().push(number);
            seen |= number == of;
        }
    }
    let mut found = Vec::new();
    let mut next = Some(of);
    let mut looked_at = 0;
    while let Some(parent) = next {
        found.extend(children.remove(&parent).unwrap_or_default());
        next = found.get(looked_at).copied();
        looked_at += 1;
    }
    seen.then_some(found)
}

/// The parent of a process. One that has ended may still have threads, so it counts.
fn parent(process: i32) -> Option<i32> {
    let stat = files::read(format!("/proc/{process}/stat"), STAT).ok()?.bytes;
    // `number (name) state parent …`, where the name may hold anything.
    String::from_utf8_lossy(&stat).rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}
