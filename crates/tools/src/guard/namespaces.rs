//! Namespaces: private users, processes, IPC and network.
//!
//! We keep our user id inside, and no other exists there. Privileges gained by it end at the namespaces.

use std::io;
use std::os::fd::AsRawFd;

use caps::{CapSet, CapsHashSet};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use nix::unistd::{getegid, geteuid, setgroups};
use rustix::fs::{Mode, OFlags, open};

use crate::confinement::{Base, Confinement, Network};

/// Enters new namespaces. Processes started from now on live in them.
pub(super) fn enter(confinement: &Confinement) -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    if user.is_root() {
        // Groups are rights too; others than root cannot give them up.
        let _ = setgroups(&[]);
    }
    let mut flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWIPC;
    if confinement.base == Base::Everything {
        flags |= CloneFlags::CLONE_NEWPID;
    }
    if confinement.network == Network::Loopback {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).map_err(|error| failed("no user namespace", error))?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    if confinement.network == Network::Loopback {
        raise_loopback().map_err(|error| failed("no loopback", error))?;
    }
    match confinement.base {
        Base::Everything => keep_capabilities().map_err(|error| io::Error::other(format!("no capabilities: {error}"))),
        Base::System => Ok(()), // who enters them sets them up
    }
}

/// Keeps the capabilities within the namespaces across exec, for the program that sets them up.
fn keep_capabilities() -> Result<(), caps::errors::CapsError> {
    let all: CapsHashSet = caps::read(None, CapSet::Permitted)?;
    caps::set(None, CapSet::Inheritable, &all)?;
    caps::set(None, CapSet::Ambient, &all)
}

/// Brings the loopback up: the one message of `ip link set lo up`.
fn raise_loopback() -> nix::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ANSWER: u16 = 1 | 4;
    const UP: u32 = 1;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    let mut message = Vec::new();
    // How long it is, what it is, who sends it.
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ANSWER.to_ne_bytes());
    message.extend([0; 8]);
    // Any family and kind, the first interface, up, and nothing else changed.
    message.extend([0; 4]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    send(socket.as_raw_fd(), &message, MsgFlags::empty())?;
    let mut answer = [0; 64];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    // An answer is a head and an error number, negated.
    match answer.get(16..20).filter(|_| length >= 20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(nix::errno::Errno::from_raw(-error)),
        None => Err(nix::errno::Errno::EBADMSG),
    }
}

/// Writes to a kernel file, which wants the text in one piece.
pub(super) fn write(path: &str, text: &str) -> io::Result<()> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|error| failed(path, error))?;
    rustix::io::write(&file, text.as_bytes()).map_err(|error| failed(path, error))?;
    Ok(())
}

/// An error that names what it happened to.
pub(super) fn failed(what: &str, error: impl Into<io::Error>) -> io::Error {
    io::Error::other(format!("{what}: {}", error.into()))
}
