//! Privileges that a process gives up for good: Landlock, capabilities, and a system call filter.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use caps::{CapSet, Capability};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

use crate::confinement::{Base, Confinement, Network, Sockets, Strength};

/// Newest Landlock ABI that is known here. Features that an older kernel lacks are left out.
const NEWEST: ABI = ABI::V8;

/// Directories that are private in a view. Without one, they are shared with everybody.
const TEMPORARY: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/dev/pts"];

/// Devices that every command may write to.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx"];

/// `fchmodat2`, which is too new to be in every list.
const SYS_FCHMODAT2: i64 = 452;

/// `TIOCSTI` and `TIOCLINUX`.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// `FIOSETOWN` and `SIOCSPGRP`: whoever owns a descriptor is sent a signal when something comes.
const OWNING: [u64; 2] = [0x8901, 0x8902];

/// Netlink protocols that are allowed: routes and interfaces, and the queries of `ss`. Others may lead to a process.
const NETLINK: [libc::c_int; 2] = [libc::NETLINK_ROUTE, libc::NETLINK_SOCK_DIAG];

/// `fcntl` command that sets the owner of a descriptor, by a structure in memory.
const F_SETOWN_EX: libc::c_int = 15;

/// Selects all processes of a user, for priorities.
const PRIO_USER: u64 = 2;
const IOPRIO_WHO_USER: u64 = 3;

/// Bit that marks system calls of the x32 ABI, which have their own numbers. No current program uses it.
const X32: u32 = 0x4000_0000;

/// Restricts access by path, and signals. In a private view this is the second lock, which also prevents mounting.
/// Without namespaces it is the first one, and mandatory.
pub(super) fn landlock(confinement: &Confinement) -> io::Result<Signals> {
    let alone = confinement.strength == Strength::Landlock;
    let restricted = restrict(confinement, alone).map_err(|error| io::Error::other(format!("Landlock: {error}")))?;
    // Where all processes are seen, nothing else keeps a command from looking into them.
    let needed = alone || confinement.base == Base::System;
    if needed && restricted.ruleset == RulesetStatus::NotEnforced {
        return Err(io::Error::other("Landlock: this kernel has none"));
    }
    Ok(match restricted.landlock {
        LandlockStatus::Available { effective_abi, .. } if effective_abi >= ABI::V6 => Signals::Scoped,
        _ => Signals::Open,
    })
}

/// Support of the kernel for restricting signals to processes confined together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signals {
    Scoped,
    Open,
}

fn restrict(confinement: &Confinement, alone: bool) -> Result<RestrictionStatus, landlock::RulesetError> {
    let read = AccessFs::from_read(NEWEST);
    let mut handled = AccessFs::from_all(NEWEST);
    if confinement.sockets == Sockets::None {
        handled |= AccessFs::ResolveUnix;
    }
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(handled)?;
    ruleset = match confinement.sockets {
        Sockets::None => ruleset.scope(Scope::from_all(NEWEST))?,
        Sockets::All => ruleset.scope(Scope::Signal)?,
    };
    if confinement.network == Network::None || alone && confinement.network == Network::Loopback {
        // It knows ports and no addresses, so not even a loopback is left.
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let hidden = || confinement.hidden.iter().chain(confinement.private());
    let readable = match alone {
        true => not_hidden(hidden()).into_iter().chain(confinement.readable.iter().cloned()).collect(),
        false => vec![PathBuf::from("/")],
    };
    let temporary: Vec<PathBuf> = if alone {
        confinement.temporary.iter().cloned().collect()
    } else {
        let own = if confinement.base == Base::System { 1 } else { TEMPORARY.len() };
        TEMPORARY[..own].iter().map(PathBuf::from).collect()
    };
    let writable: Vec<PathBuf> = confinement.writable.iter().cloned().chain(temporary).collect();
    let device: BitFlags<AccessFs> = AccessFs::from_file(NEWEST);
    ruleset
        .create()?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(NEWEST)))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .restrict_self()
}

/// Everything that is not hidden, in as few directories as possible. Landlock can only allow.
fn not_hidden<'a>(hidden: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let hidden: Vec<PathBuf> = hidden.filter_map(|path| path.canonicalize().ok()).collect();
    let mut allowed = Vec::new();
    let mut looking = vec![PathBuf::from("/")];
    while let Some(path) = looking.pop() {
        if hidden.iter().any(|hidden| path.starts_with(hidden)) {
            continue;
        }
        if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            // What a link leads to is allowed or not by itself.
            looking.extend(entries.map(|entry| entry.path()).filter(|path| !path.is_symlink()));
        } else {
            allowed.push(path);
        }
    }
    allowed
}

/// Gives up the capability that lets root look into every process: ours hold keys.
pub(super) fn forget_tracing() -> io::Result<()> {
    let failed = |error: caps::errors::CapsError| io::Error::other(format!("capabilities: {error}"));
    if !caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).map_err(failed)? {
        return Ok(()); // and so has no right to trace others
    }
    for set in [CapSet::Ambient, CapSet::Bounding, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::drop(None, set, Capability::CAP_SYS_PTRACE).map_err(failed)?;
    }
    Ok(())
}

/// Gives up every capability, including those that a program could bring.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let failed = |error: caps::errors::CapsError| io::Error::other(format!("capabilities: {error}"));
    // Who has none may not limit them either.
    let bounding = caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).map_err(failed)?;
    let sets = [CapSet::Ambient, CapSet::Bounding, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted];
    for set in sets.into_iter().filter(|set| bounding || !matches!(set, CapSet::Bounding)) {
        caps::clear(None, set).map_err(failed)?;
    }
    Ok(())
}

/// Refuses system calls through which a command could get around everything else.
pub(super) fn filter(confinement: &Confinement, signals: Signals) -> io::Result<()> {
    let failed = |error: &dyn std::fmt::Display| io::Error::other(format!("the filter of system calls: {error}"));
    nix::sys::prctl::set_no_new_privs()?;
    let program = program(confinement, signals).map_err(|error| failed(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(&error))
}

fn program(confinement: &Confinement, signals: Signals) -> Result<BpfProgram, seccompiler::BackendError> {
    let always = || Ok(vec![]);
    let mut calls: Vec<(i64, Result<Vec<SeccompRule>, seccompiler::BackendError>)> = vec![
        // It opens sockets past this filter.
        (libc::SYS_io_uring_setup, always()),
        // Keys of the user that no namespace holds back.
        (libc::SYS_keyctl, always()),
        (libc::SYS_add_key, always()),
        (libc::SYS_request_key, always()),
        // Programs for the kernel.
        (libc::SYS_bpf, always()),
        (libc::SYS_userfaultfd, always()),
    ];
    // Typing into somebody's terminal.
    let mut requests = TYPING.to_vec();
    if confinement.base == Base::System {
        calls.extend(others(signals));
        requests.extend(OWNING);
    }
    calls.push((libc::SYS_ioctl, one_of(1, &requests)));
    // Through this one the kernel tells of interfaces and connections.
    let mut families = vec![libc::AF_NETLINK];
    if confinement.network != Network::None {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if confinement.sockets == Sockets::All {
        families.push(libc::AF_UNIX);
    }
    // The network is addresses. What has none (machines by vsock, devices, paths, names) leads to this computer.
    let mut sockets = none_of(0, &families)?;
    if confinement.network == Network::None {
        sockets.extend(none_of(2, &NETLINK)?);
    }
    calls.push((libc::SYS_socket, Ok(sockets)));
    calls.push((libc::SYS_socketpair, pairs()));
    // A program that runs as its owner or its group, whoever starts it, would do so outside as well.
    let modes = [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2), (libc::SYS_openat, 3)];
    let modes = modes.into_iter().chain([(libc::SYS_mknodat, 2), (libc::SYS_mkdirat, 2)]);
    #[cfg(target_arch = "x86_64")]
    let modes = modes.chain([(libc::SYS_chmod, 1), (libc::SYS_open, 2), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)]);
    calls.extend(modes.map(|(call, argument)| (call, as_another(argument))));
    let rules = calls.into_iter().map(|(call, conditions)| Ok((call, conditions?)));
    let rules = made(rules.collect::<Result<_, seccompiler::BackendError>>()?, libc::EPERM)?;
    Ok(before_all().into_iter().chain(rules).collect())
}

/// Instructions before all others: calls of another ABI, which rules do not name, are refused, and one that cannot be
/// judged is answered as if it did not exist.
fn before_all() -> Vec<sock_filter> {
    // As the kernel numbers them: load a word, jump if it is the same, return.
    let [load, same, answer] = [0x20, 0x15, 0x06];
    let answers = |error: libc::c_int| {
        let k = libc::SECCOMP_RET_ERRNO | error.cast_unsigned();
        sock_filter { code: answer, jt: 0, jf: 0, k }
    };
    let number = |call: i64| u32::try_from(call).unwrap_or(u32::MAX);
    let mut instructions = vec![
        // The number of the call is the first word of what a filter is shown.
        sock_filter { code: load, jt: 0, jf: 0, k: 0 },
        // What it is to do stands in memory, where a filter does not look. Who is told that there is no such call uses the
        // older one.
        sock_filter { code: same, jt: 0, jf: 1, k: number(libc::SYS_openat2) },
        answers(libc::ENOSYS),
    ];
    if cfg!(target_arch = "x86_64") {
        let as_large = 0x35;
        instructions.extend([sock_filter { code: as_large, jt: 0, jf: 1, k: X32 }, answers(libc::EPERM)]);
    }
    instructions
}

/// Rules for calls that act on other visible processes: on the guard, which is confined like the command; and on all
/// others as far as nothing else forbids it.
fn others(signals: Signals) -> Vec<(i64, Result<Vec<SeccompRule>, seccompiler::BackendError>)> {
    let guard = std::process::id();
    let everybody = [guard, guard.wrapping_neg(), u32::MAX].map(u64::from);
    let not_oneself = |argument| Ok(vec![SeccompRule::new(vec![condition(argument, SeccompCmpOp::Ne, 0)?])?]);
    let signalling = [
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_tgkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_pidfd_open,
    ];
    let to = |_| match signals {
        Signals::Scoped => one_of(0, &everybody),
        Signals::Open => Ok(vec![]),
    };
    let mut calls: Vec<_> = signalling.into_iter().map(|call| (call, to(call))).collect();
    // A directory of `/proc` stands for a process too, and the owner of a descriptor is sent signals: of neither the
    // filter sees whom it means.
    calls.push((libc::SYS_pidfd_send_signal, Ok(vec![])));
    let owners = [libc::F_SETOWN, F_SETOWN_EX].map(|command| u64::from(command.cast_unsigned()));
    calls.push((libc::SYS_fcntl, one_of(1, &owners)));
    calls.push((libc::SYS_setpgid, one_of(1, &[u64::from(guard)])));
    // Nobody in particular is all of the user's processes, if users are meant.
    for (call, user) in [(libc::SYS_setpriority, PRIO_USER), (libc::SYS_ioprio_set, IOPRIO_WHO_USER)] {
        let rules = not_oneself(1).and_then(|mut rules| {
            rules.extend(one_of(0, &[user])?);
            Ok(rules)
        });
        calls.push((call, rules));
    }
    for (call, argument) in [
        (libc::SYS_prlimit64, 0),
        (libc::SYS_sched_setaffinity, 0),
        (libc::SYS_sched_setscheduler, 0),
        (libc::SYS_sched_setparam, 0),
        (libc::SYS_sched_setattr, 0),
    ] {
        calls.push((call, not_oneself(argument)));
    }
    calls
}

/// A filter that answers these calls with an error.
fn made(rules: BTreeMap<i64, Vec<SeccompRule>>, error: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let refused = SeccompAction::Errno(error.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?.try_into()
}

/// Rules for a call with a mode argument that has the setuid or setgid bit.
fn as_another(argument: u8) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let modes = [libc::S_ISUID, libc::S_ISGID].map(u64::from);
    let rule = |mode| SeccompRule::new(vec![condition(argument, SeccompCmpOp::MaskedEq(mode), mode)?]);
    modes.into_iter().map(rule).collect()
}

/// Rules for socket pairs other than private stream ones: a datagram socket can send to any name.
fn pairs() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const KIND: u64 = 0xf;
    let mut rules = none_of(0, &[libc::AF_UNIX])?;
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| i64::from(kind).cast_unsigned()) {
        rules.push(SeccompRule::new(vec![condition(1, SeccompCmpOp::MaskedEq(KIND), kind)?])?);
    }
    Ok(rules)
}

/// Rule for a call whose argument is none of these.
fn none_of(argument: u8, values: &[libc::c_int]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let unlike = values.iter().map(|value| condition(argument, SeccompCmpOp::Ne, i64::from(*value).cast_unsigned()));
    Ok(vec![SeccompRule::new(unlike.collect::<Result<_, _>>()?)?])
}

/// Rules for a call whose argument is one of these.
fn one_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    values.iter().map(|value| SeccompRule::new(vec![condition(argument, SeccompCmpOp::Eq, *value)?])).collect()
}

fn condition(argument: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)
}
