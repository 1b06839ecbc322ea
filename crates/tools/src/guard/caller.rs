//! The process that started the guard, and its orders.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::guard_protocol::{END, GuardOrder, GuardReport, SIGN};

/// The process that started us: a socket, and signals with the same meaning.
pub(super) struct Caller {
    socket: BufReader<UnixStream>,
    signals: SignalFd,
    word: CallerOrder,
}

/// Order of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallerOrder {
    /// The command may run on.
    None,
    /// The command is to end.
    End,
    /// The caller is gone, and everything ends.
    Gone,
}

impl Caller {
    pub(super) fn on_standard_input() -> io::Result<Self> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let mut mask = SigSet::empty();
        for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
            mask.add(signal);
        }
        mask.thread_block()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { socket: BufReader::new(socket), signals, word: CallerOrder::None })
    }

    /// The current order.
    pub(super) fn word(&self) -> CallerOrder {
        self.word
    }

    pub(super) fn order(&mut self) -> io::Result<GuardOrder> {
        let mut line = Vec::new();
        self.socket.read_until(b'\n', &mut line)?;
        if !self.socket.buffer().is_empty() {
            self.word = CallerOrder::End;
        }
        serde_json::from_slice(&line).map_err(io::Error::other)
    }

    /// Waits for an order of the caller or a signal about a child, at most for `limit`.
    pub(super) fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let limit = limit.map_or(Ok(PollTimeout::NONE), PollTimeout::try_from).unwrap_or(PollTimeout::MAX);
        // Without the last millisecond, which rounding takes away, this would turn in circles.
        self.listen(if limit == PollTimeout::ZERO { PollTimeout::from(1_u8) } else { limit })
    }

    /// Sends a sign of life, and returns the caller's current order.
    pub(super) fn sign_of_life(&mut self) -> io::Result<CallerOrder> {
        let _ = self.socket.get_mut().write_all(&[SIGN]);
        self.listen(PollTimeout::ZERO)?;
        Ok(self.word)
    }

    fn listen(&mut self, limit: PollTimeout) -> io::Result<()> {
        let socket = self.socket.get_ref();
        let mut both = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            // A caller that is gone is readable for ever.
            PollFd::new(
                socket.as_fd(),
                if self.word == CallerOrder::Gone { PollFlags::empty() } else { PollFlags::POLLIN },
            ),
        ];
        match poll(&mut both, limit) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let spoke = self.word != CallerOrder::Gone && both[1].any().unwrap_or(false);
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo != Signal::SIGCHLD as u32 {
                self.word = self.word.max(CallerOrder::End);
            }
        }
        if spoke {
            let mut byte = [0];
            let word = match self.socket.get_mut().read(&mut byte) {
                Ok(1) if byte[0] == END => CallerOrder::End,
                _ => CallerOrder::Gone,
            };
            self.word = self.word.max(word);
        }
        Ok(())
    }

    /// Sends the final report. The caller may be gone.
    pub(super) fn report(&mut self, report: &GuardReport) {
        if let Ok(mut line) = serde_json::to_vec(report) {
            line.push(b'\n');
            let _ = self.socket.get_mut().write_all(&line);
        }
    }
}
