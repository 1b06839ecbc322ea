//! Notes for the model when a sandbox may be the reason why a command failed.

use std::path::Path;

use crate::confinement::{Base, Confinement, Network, Sockets, Strength};

/// Messages of programs that may not change a file.
const WRITES: [&str; 6] =
    ["read-only file system", "erofs", "permission denied", "eacces", "device or resource busy", "cross-device link"];

/// Messages of programs without network.
const NETWORK: [&str; 9] = [
    "network is unreachable",
    "enetunreach",
    "could not resolve",
    "couldn't resolve",
    "name resolution",
    "eai_again",
    "enotfound",
    "no address associated",
    "failed to lookup address",
];

/// Messages of programs about refused system calls.
const CALLS: [&str; 2] = ["operation not permitted", "eperm"];

/// Messages of programs about missing files.
const MISSING: [&str; 2] = ["no such file or directory", "enoent"];

/// Note for a read-only command.
const LOOKING: &str = "this ran unasked, so it could only look: it saw the working directories, the system and programs, could write \
    to nothing but /tmp, and had no network and no credentials. If it needs more, it can run with dangerouslyDisableSandbox, and \
    the user is asked";

/// Note on the sandbox, if the output of a failed command suggests that it ran into it.
pub(crate) fn note(confinement: &Confinement, printed: &str) -> Option<String> {
    let printed = printed.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| printed.contains(word));
    let mut limits = Vec::new();
    if confinement.base == Base::System {
        let ran_into = [&WRITES[..], &NETWORK, &CALLS, &MISSING].iter().any(|words| says(words));
        return ran_into.then(|| LOOKING.to_owned());
    }
    if says(&WRITES) {
        let places: Vec<_> = confinement.writable.iter().map(|path| path.display().to_string()).collect();
        limits.push(format!(
            "it could write only below {} and /tmp, and not to .git, .claude and other guarded paths there (so git cannot commit in it)",
            places.join(", ")
        ));
    }
    if says(&NETWORK) && confinement.network == Network::Loopback {
        limits.push("it had no network but a loopback of its own".to_owned());
    }
    if says(&CALLS) && confinement.sockets == Sockets::None {
        limits.push("it could open no socket with a path, reach no process outside and change no owner".to_owned());
    }
    let hidden = |home: &Path| printed.contains(&home.display().to_string().to_lowercase());
    if says(&MISSING)
        && confinement.strength == Strength::Namespaces
        && confinement.hidden.iter().any(|home| hidden(home))
    {
        limits.push("of the home directory it saw only working directories and folders with tools".to_owned());
    }
    if limits.is_empty() {
        return None;
    }
    Some(format!(
        "this ran in a sandbox: {}. If it has to, it can run outside with dangerouslyDisableSandbox, and the user is asked",
        limits.join("; ")
    ))
}
