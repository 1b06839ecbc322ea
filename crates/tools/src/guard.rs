//! The guard: a program between us and a command, which sees to it that nothing of the command stays behind.
//!
//! It is our own binary, started again with [`ARGUMENT`], or any other that calls [`main`]. It takes in the orphans of all
//! it starts (a child subreaper), so whoever leaves the process group, the session or its parent still ends up below it.
//! When the command has ended, whatever else lives below is ended too. The same happens when we ask for it, and at once
//! when we are gone: its standard input is a socket to us, and the system closes that however we end.
//!
//! It copies no byte: output goes straight through the descriptors it was given. It reads no file but `/proc`, no setting
//! and no variable, and decides nothing about the command. What it cannot stop is being killed itself by a command that
//! runs outside of a sandbox; then whoever started it kills those who are left of the command's session.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod caller;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod guarded_watch;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod layers;
#[cfg(target_os = "linux")]
mod listing;
#[cfg(target_os = "linux")]
mod lock;
#[cfg(target_os = "linux")]
mod mount_view;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod outside;
#[cfg(target_os = "linux")]
mod pinned;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod tree;

/// The first argument that makes our binary a guard.
pub const ARGUMENT: &str = "__guard";

/// Is a guard until the command and all it started are gone.
#[cfg(target_os = "linux")]
pub fn main() -> ExitCode {
    program::main()
}

/// Only Linux hands orphans to whoever wants them.
#[cfg(not(target_os = "linux"))]
pub fn main() -> ExitCode {
    ExitCode::from(2)
}
