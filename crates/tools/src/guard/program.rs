//! What the guard does, from its order to its report.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use process_wrap::std::{CommandWrap, ResetSigmask};

use crate::order::{END, Order, Report};
use crate::process::{AFTER_EXIT, GRACE, LOOK};

use super::tree::Tree;

/// How long those who were killed may take to be gone. One who hangs in the kernel cannot be waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Is a guard until the command and all it started are gone.
pub(super) fn main() -> ExitCode {
    match guard() {
        Ok(()) => ExitCode::SUCCESS,
        // There is nobody to tell: it was not started by us.
        Err(_) => ExitCode::from(2),
    }
}

fn guard() -> io::Result<()> {
    close_others()?;
    nix::sys::prctl::set_child_subreaper(true)?;
    let mut caller = Caller::on_standard_input()?;
    let order = caller.order()?;
    let report = match start(&order) {
        Ok(tree) => stay(tree, &mut caller)?,
        Err(error) => Report::NotStarted { error: error.to_string(), code: error.raw_os_error() },
    };
    caller.report(&report);
    Ok(())
}

/// Closes what was inherited by accident. A command gets three descriptors and no more.
fn close_others() -> io::Result<()> {
    let open = files::list("/proc/self/fd").map_err(io::Error::other)?;
    for number in open.iter().filter_map(|entry| entry.name.to_str()?.parse::<i32>().ok()).filter(|&number| number > 2)
    {
        // The one through which the list was read is gone already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

fn start(order: &Order) -> io::Result<Tree> {
    let [program, arguments @ ..] = &*order.command else {
        return Err(io::Error::other("there is no command"));
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    // Signals are blocked here, to be read one by one, and a child would inherit that.
    let child = CommandWrap::from(command).wrap(ResetSigmask).spawn()?;
    Ok(Tree::below(child.id()))
}

/// Stays until nothing is left.
fn stay(mut tree: Tree, caller: &mut Caller) -> io::Result<Report> {
    while tree.command_runs() && caller.word == Word::None {
        caller.wait(None)?;
        tree.reap();
    }
    let mut others = false;
    if !tree.command_runs() {
        others = !gone_within(AFTER_EXIT, &mut tree, caller, Word::None)?;
    }
    if !tree.is_gone() && caller.word != Word::Gone {
        tree.signal(Signal::SIGTERM);
        gone_within(GRACE, &mut tree, caller, Word::End)?;
    }
    for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
        if tree.is_gone() {
            break;
        }
        // Those who are born meanwhile are found the next time.
        tree.signal(Signal::SIGKILL);
        gone_within(LOOK, &mut tree, caller, Word::Gone)?;
    }
    Ok(Report::Ended { status: tree.status(), others })
}

/// Waits for all to end by themselves, unless the caller says more than it has said.
#[expect(clippy::disallowed_methods, reason = "the guard is a program of its own, and nobody passes it the time")]
fn gone_within(limit: Duration, tree: &mut Tree, caller: &mut Caller, said: Word) -> io::Result<bool> {
    let until = Instant::now() + limit;
    loop {
        tree.reap();
        let left = until.saturating_duration_since(Instant::now());
        if tree.is_gone() || left.is_zero() || caller.word > said {
            return Ok(tree.is_gone());
        }
        caller.wait(Some(left))?;
    }
}

/// Whoever started us: a socket, and the signals that speak for it.
struct Caller {
    socket: BufReader<UnixStream>,
    signals: SignalFd,
    word: Word,
}

/// What the caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    /// That the command runs.
    None,
    /// That it ends.
    End,
    /// Nothing any more: it is gone, and so shall all be.
    Gone,
}

impl Caller {
    fn on_standard_input() -> io::Result<Self> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let mut mask = SigSet::empty();
        for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
            mask.add(signal);
        }
        mask.thread_block()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { socket: BufReader::new(socket), signals, word: Word::None })
    }

    fn order(&mut self) -> io::Result<Order> {
        let mut line = Vec::new();
        self.socket.read_until(b'\n', &mut line)?;
        if !self.socket.buffer().is_empty() {
            self.word = Word::End;
        }
        serde_json::from_slice(&line).map_err(io::Error::other)
    }

    /// Waits for a word of the caller or a sign of a child, no longer than `limit`.
    fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let limit = limit.map_or(Ok(PollTimeout::NONE), PollTimeout::try_from).unwrap_or(PollTimeout::MAX);
        let socket = self.socket.get_ref();
        let mut both = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            // A caller that is gone is readable for ever.
            PollFd::new(socket.as_fd(), if self.word == Word::Gone { PollFlags::empty() } else { PollFlags::POLLIN }),
        ];
        // Without the last millisecond, which rounding takes away, this would turn in circles.
        let limit = if limit == PollTimeout::ZERO { PollTimeout::from(1_u8) } else { limit };
        match poll(&mut both, limit) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let spoke = self.word != Word::Gone && both[1].any().unwrap_or(false);
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo != Signal::SIGCHLD as u32 {
                self.word = self.word.max(Word::End);
            }
        }
        if spoke {
            let mut byte = [0];
            let word = match self.socket.get_mut().read(&mut byte) {
                Ok(1) if byte[0] == END => Word::End,
                _ => Word::Gone,
            };
            self.word = self.word.max(word);
        }
        Ok(())
    }

    /// Tells how it ended. Nobody may be there to hear it.
    fn report(&mut self, report: &Report) {
        if let Ok(mut line) = serde_json::to_vec(report) {
            line.push(b'\n');
            let _ = self.socket.get_mut().write_all(&line);
        }
    }
}
