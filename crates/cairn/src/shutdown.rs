//! Causes that end the program before its work is done: a signal, or a stdout that nobody reads any more.
//!
//! None of them ends the program directly. Whoever does the work is told, ends what is under way, and returns the code:
//! so the log stays whole, commands do not outlive the session, and the terminal is restored. A signal that was ignored
//! when the program began, as `nohup` does, stays ignored.

use std::io::IsTerminal;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::exit::Code;
use crate::out;

/// The file in which Linux lists the signals that a process ignores.
const STATUS: &str = "/proc/self/status";
/// The most that is read of it.
const STATUS_BYTES: u64 = 64 * 1024;

/// Why the program is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShutdownCause {
    /// Ctrl-C, or SIGINT from elsewhere.
    Interrupted,
    /// The terminal has gone.
    HungUp,
    /// Nobody reads stdout any more.
    Unread,
    /// Somebody asked for it.
    Terminated,
}

impl ShutdownCause {
    /// The code the program ends with: 128 and the number of the signal.
    pub(crate) fn code(self) -> Code {
        match self {
            Self::Interrupted => Code::Interrupted,
            Self::HungUp => Code::HungUp,
            Self::Unread => Code::Unread,
            Self::Terminated => Code::Terminated,
        }
    }

    /// Description for people.
    pub(crate) fn words(self) -> &'static str {
        self.code().about()
    }
}

/// Listens for what ends the program.
#[derive(Debug)]
pub(crate) struct ShutdownSignals {
    terminate: Option<Signal>,
    hang_up: Option<Signal>,
    interrupt: Option<Signal>,
    unread: mpsc::Receiver<()>,
}

impl ShutdownSignals {
    /// Begins to listen. An interrupt is left to others.
    pub(crate) fn watch() -> std::io::Result<Self> {
        Ok(Self {
            terminate: unless_ignored(SignalKind::terminate())?,
            hang_up: unless_ignored(SignalKind::hangup())?,
            interrupt: None,
            unread: stdout_unread(),
        })
    }

    /// Begins to listen, also for an interrupt.
    pub(crate) fn watch_all() -> std::io::Result<Self> {
        Ok(Self { interrupt: unless_ignored(SignalKind::interrupt())?, ..Self::watch()? })
    }

    /// Returns when the program is to end; again, when it is told so again.
    pub(crate) async fn wanted(&mut self) -> ShutdownCause {
        tokio::select! {
            () = came(&mut self.terminate) => ShutdownCause::Terminated,
            () = came(&mut self.hang_up) => ShutdownCause::HungUp,
            () = came(&mut self.interrupt) => ShutdownCause::Interrupted,
            Some(()) = self.unread.recv() => ShutdownCause::Unread,
        }
    }

    /// Waits for work to end. If the program is to end before, the work is cancelled and still waited for; told again,
    /// it is dropped where it is.
    pub(crate) async fn or_done<T>(
        &mut self,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> Result<(T, Option<ShutdownCause>), ShutdownCause> {
        tokio::pin!(work);
        let mut closed = None;
        loop {
            tokio::select! {
                done = &mut work => return Ok((done, closed)),
                why = self.wanted() => match closed.replace(why) {
                    None => cancel.cancel(),
                    Some(_) => return Err(why),
                }
            }
        }
    }
}

/// Waits for a signal; forever, if it is not listened to.
async fn came(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

fn unless_ignored(kind: SignalKind) -> std::io::Result<Option<Signal>> {
    let status = files::read(STATUS, STATUS_BYTES).map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    if status.is_ok_and(|status| ignores(&status, kind.as_raw_value())) { Ok(None) } else { signal(kind).map(Some) }
}

/// True if a process ignores a signal, by its description in `/proc`: a mask in which the lowest bit is signal 1.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (signal - 1) & 1 == 1
}

/// Hears of it when the other end of stdout is closed. A thread of its own waits for that, and nobody for the thread. A
/// terminal that goes away sends a signal instead; a file is never closed.
fn stdout_unread() -> mpsc::Receiver<()> {
    let (gone, unread) = mpsc::channel(1);
    let stdout = out::stdout();
    // Asked here and not by the thread: a terminal that has gone by the time it runs would be none any more.
    if stdout.is_terminal() {
        return unread;
    }
    std::thread::spawn(move || {
        // Nothing is asked for: only what is always told wakes it, an error or the other end's farewell.
        let mut streams = [PollFd::new(&stdout, PollFlags::empty())];
        while poll(&mut streams, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        if streams[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            let _ = gone.blocking_send(());
        }
    });
    unread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_was_ignored_is_found_in_the_mask() {
        let status = "Name:\tcairn\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000004000\n";
        assert_eq!([1, 2, 13, 15].map(|signal| ignores(status, signal)), [true, false, true, false]);
        assert!(!ignores("", 1));
    }
}
