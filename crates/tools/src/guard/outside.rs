//! The guard outside a confinement: it starts another one in new namespaces, and makes sure of its end.
//!
//! The one inside is the first process there, so when it is killed the system kills all others with it. This one keeps
//! the original file system, looks for guarded paths before and after, and passes on its orders.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use process_wrap::std::{CommandWrap, ResetSigmask};

use super::caller::{Caller, CallerOrder};
use super::guarded_watch::GuardedPaths;
use super::list_tree::ListingStopped;
use super::program::{PATIENCE, gone_within, kill};
use super::tree::Tree;
use super::{ARGUMENT, environment, namespaces};
use crate::confinement::{Confinement, Strength};
use crate::guard_protocol::{AFTER_EXIT, END, GRACE, GuardOrder, GuardReport, GuardSide};

/// This program, even after an update has replaced its file.
const AGAIN: &str = "/proc/self/exe";

/// Number of listing parts between two signs of life: a moment's work, even if each comes from disk.
const BETWEEN_SIGNS: u32 = 64;

/// Runs a command in a confinement.
pub(super) fn run(order: &GuardOrder, confinement: &Confinement, caller: &mut Caller) -> io::Result<GuardReport> {
    if confinement.strength == Strength::Namespaces {
        namespaces::enter(confinement)?;
    }
    // In the namespaces, as after the command: what can be listed with the rights there counts both times.
    let before =
        GuardedPaths::find(&confinement.writable, &mut until(caller, CallerOrder::End)).map_err(|ListingStopped| {
            io::Error::other("it was stopped while the working directories were looked through")
        })?;
    let side = GuardSide::Inside { guarded: before.to_protect() };
    let order = GuardOrder { side, ..order.clone() };
    let (mut socket, mut tree) = start(&order, confinement)?;
    while tree.command_runs() && caller.word() == CallerOrder::None {
        caller.wait(None)?;
        tree.reap();
    }
    if caller.word() == CallerOrder::End {
        let _ = socket.write_all(&[END]);
        gone_within(AFTER_EXIT + GRACE + PATIENCE, &mut tree, caller, CallerOrder::End)?;
    }
    kill(&mut tree, caller)?;
    let mut line = Vec::new();
    BufReader::new(socket).read_until(b'\n', &mut line)?;
    let report =
        serde_json::from_slice(&line).map_err(|_| io::Error::other("the guard inside the sandbox was killed"))?;
    Ok(match report {
        GuardReport::Ended { status, others, .. } => {
            // Whoever is asked to end still has to tell this.
            let made = before.made_since(&mut until(caller, CallerOrder::Gone));
            let made = made.map_err(|ListingStopped| io::Error::other("nobody wants to know what it made"))?;
            GuardReport::Ended { status, others, made }
        }
        report @ GuardReport::NotStarted { .. } => report,
    })
}

/// Sends signs of life from time to time, until the caller gives this order.
fn until(caller: &mut Caller, word: CallerOrder) -> impl FnMut() -> Result<(), ListingStopped> {
    let mut pieces = 0_u32;
    move || {
        pieces = pieces.wrapping_add(1);
        if !pieces.is_multiple_of(BETWEEN_SIGNS) {
            return Ok(());
        }
        match caller.sign_of_life() {
            Ok(said) if said < word => Ok(()),
            _ => Err(ListingStopped),
        }
    }
}

fn start(order: &GuardOrder, confinement: &Confinement) -> io::Result<(UnixStream, Tree)> {
    let (mut ours, its) = UnixStream::pair()?;
    let mut command = Command::new(AGAIN);
    command.arg0("cairn-guard").arg(ARGUMENT).stdin(OwnedFd::from(its));
    // Not only the command's: what the one inside knows can be read there.
    environment::clean(&mut command, confinement);
    let child = CommandWrap::from(command).wrap(ResetSigmask).spawn()?;
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    // One that ends before it has read all of this tells why.
    let _ = ours.write_all(&line);
    Ok((ours, Tree::below(child.id())))
}
