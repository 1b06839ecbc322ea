//! The guard outside of a confinement: it starts another one in new namespaces, and sees to its end.
//!
//! The one inside is the first process there, so when it is killed the system kills all the others with it. This one keeps
//! to the files as they are, looks for guarded paths before and after, and passes on what it is told.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use process_wrap::std::{CommandWrap, ResetSigmask};

use super::caller::{Caller, Word};
use super::program::{PATIENCE, gone_within, kill};
use super::tree::Tree;
use super::{ARGUMENT, environment, namespaces, watch};
use crate::order::{END, Order, Report, Side};
use crate::process::{AFTER_EXIT, GRACE};
use crate::sandbox::{Confinement, Strength};

/// This program, also after an update has replaced its file.
const AGAIN: &str = "/proc/self/exe";

/// Runs a command in a confinement.
pub(super) fn run(order: &Order, confinement: &Confinement, caller: &mut Caller) -> io::Result<Report> {
    let before = watch::guarded(&confinement.writable);
    if confinement.strength == Strength::Namespaces {
        namespaces::enter(confinement)?;
    }
    let side = Side::Inside { guarded: before.to_protect(&confinement.writable) };
    let order = Order { side, ..order.clone() };
    let (mut socket, mut tree) = start(&order, confinement)?;
    while tree.command_runs() && caller.word() == Word::None {
        caller.wait(None)?;
        tree.reap();
    }
    if caller.word() == Word::End {
        let _ = socket.write_all(&[END]);
        gone_within(AFTER_EXIT + GRACE + PATIENCE, &mut tree, caller, Word::End)?;
    }
    kill(&mut tree, caller)?;
    let mut line = Vec::new();
    BufReader::new(socket).read_until(b'\n', &mut line)?;
    let report =
        serde_json::from_slice(&line).map_err(|_| io::Error::other("the guard inside the sandbox was killed"))?;
    Ok(match report {
        Report::Ended { status, others, .. } => {
            let made = watch::guarded(&confinement.writable).made_since(&before);
            Report::Ended { status, others, made }
        }
        report @ Report::NotStarted { .. } => report,
    })
}

fn start(order: &Order, confinement: &Confinement) -> io::Result<(UnixStream, Tree)> {
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
