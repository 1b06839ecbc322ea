//! The guard's work, from its order to its report.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use process_wrap::std::{CommandWrap, ResetSigmask};
use rustix::fs::{Mode, OFlags};

use super::caller::{Caller, CallerOrder};
use super::tree::Tree;
use super::{give_up_privileges, inside, namespaces, outside};
use crate::confinement::Base;
use crate::guard_protocol::{AFTER_EXIT, GRACE, GuardReport, GuardSide, LOOK, ProcessInput};

/// Time that killed processes have to disappear. One that hangs in the kernel cannot be waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Runs as a guard until the command and everything it started are gone.
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
    let report = match (&order.confinement, &order.side) {
        (None, _) => give_up_privileges::forget_tracing()
            .and_then(|()| run(command(&order.command)?, order.input.clone(), &mut caller)),
        // Nothing is writable, so there is nothing to look after: one guard is enough.
        (Some(confinement), GuardSide::Outside) if confinement.base == Base::System => namespaces::enter(confinement)
            .and_then(|()| inside::confine(confinement, &[]))
            .and_then(|()| run(command(&order.command)?, order.input.clone(), &mut caller)),
        (Some(confinement), GuardSide::Outside) => outside::run(&order, confinement, &mut caller),
        (Some(confinement), GuardSide::Inside { guarded }) => inside::confine(confinement, guarded)
            .and_then(|()| run(command(&order.command)?, order.input.clone(), &mut caller)),
    };
    let failed = |error: io::Error| GuardReport::NotStarted { error: error.to_string(), code: error.raw_os_error() };
    caller.report(&report.unwrap_or_else(failed));
    Ok(())
}

/// Closes descriptors inherited by accident. A command gets three, and no more.
fn close_others() -> io::Result<()> {
    let open = files::list("/proc/self/fd").map_err(io::Error::other)?;
    for number in open.iter().filter_map(|entry| entry.name.to_str()?.parse::<i32>().ok()).filter(|&number| number > 2)
    {
        // The one through which the list was read is gone already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// The socket that the command talks through; it came as our standard output.
#[expect(clippy::disallowed_methods, reason = "a descriptor to pass on, and nothing is written to it")]
fn socket() -> io::Result<OwnedFd> {
    io::stdout().as_fd().try_clone_to_owned()
}

/// Gives up the socket that the command talks through: only the command may hold it, or its end would go unnoticed.
fn leave_the_socket() -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    Ok(nix::unistd::dup2_stdout(&null)?)
}

fn command(words: &[String]) -> io::Result<Command> {
    let [program, arguments @ ..] = words else {
        return Err(io::Error::other("there is no command"));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Runs a command, and stays until nothing is left of it.
fn run(mut command: Command, input: ProcessInput, caller: &mut Caller) -> io::Result<GuardReport> {
    let stdin = match &input {
        ProcessInput::Nothing => Stdio::null(),
        ProcessInput::Text(_) => Stdio::piped(),
        ProcessInput::Socket => Stdio::from(socket()?),
    };
    command.stdin(stdin).process_group(0);
    // Signals are blocked here, to be read one by one, and a child would inherit that.
    let mut child = CommandWrap::from(command).wrap(ResetSigmask).spawn()?;
    if input == ProcessInput::Socket {
        leave_the_socket()?;
    }
    if let (ProcessInput::Text(input), Some(mut pipe)) = (input, child.stdin().take()) {
        // Beside the rest: one that does not read its input holds up nobody, and one that ends without is no failure.
        std::thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
    }
    let mut tree = Tree::below(child.id());
    while tree.command_runs() && caller.word() == CallerOrder::None {
        caller.wait(None)?;
        tree.reap();
    }
    let mut others = false;
    if !tree.command_runs() {
        others = !gone_within(AFTER_EXIT, &mut tree, caller, CallerOrder::None)?;
    }
    if !tree.is_gone() && caller.word() != CallerOrder::Gone {
        tree.signal(Signal::SIGTERM);
        gone_within(GRACE, &mut tree, caller, CallerOrder::End)?;
    }
    kill(&mut tree, caller)?;
    Ok(GuardReport::Ended { status: tree.status(), others, made: Vec::new() })
}

/// Kills all processes, until none is left.
pub(super) fn kill(tree: &mut Tree, caller: &mut Caller) -> io::Result<()> {
    for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
        if tree.is_gone() {
            break;
        }
        // Those who are born meanwhile are found the next time.
        tree.signal(Signal::SIGKILL);
        gone_within(LOOK, tree, caller, CallerOrder::Gone)?;
    }
    Ok(())
}

/// Waits for all processes to end by themselves, unless the caller gives a stronger order.
#[expect(clippy::disallowed_methods, reason = "the guard is a program of its own, and nobody passes it the time")]
pub(super) fn gone_within(
    limit: Duration,
    tree: &mut Tree,
    caller: &mut Caller,
    order: CallerOrder,
) -> io::Result<bool> {
    let until = Instant::now() + limit;
    loop {
        tree.reap();
        let left = until.saturating_duration_since(Instant::now());
        if tree.is_gone() || left.is_zero() || caller.word() > order {
            return Ok(tree.is_gone());
        }
        caller.wait(Some(left))?;
    }
}
