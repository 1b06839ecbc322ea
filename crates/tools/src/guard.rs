//! The guard: a program between us and a command, which makes sure that nothing of the command stays behind.
//!
//! It is our own binary, started again with [`ARGUMENT`], or any other that calls [`main`]. It adopts the orphans of
//! everything it starts (a child subreaper), so a process that leaves its group, session or parent still ends up below
//! it. When the command has ended, everything else below is ended too. The same happens when we ask for it, and at once
//! when we are gone: its standard input is a socket to us, which the system closes however we end.
//!
//! It copies no byte: output goes straight through the descriptors it was given. It reads no file but `/proc`, no
//! setting and no variable, and decides nothing about the command. It cannot prevent being killed by a command that
//! runs outside a sandbox; then whoever started it kills the rest of the command's session.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod caller;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod give_up_privileges;
#[cfg(target_os = "linux")]
mod guarded_watch;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod list_tree;
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
#[cfg(target_os = "linux")]
mod view_layers;

/// First argument that makes our binary a guard.
pub const ARGUMENT: &str = "__guard";

/// Runs as a guard until the command and everything it started are gone.
#[cfg(target_os = "linux")]
pub fn main() -> ExitCode {
    program::main()
}

/// Fails: only Linux lets a process adopt orphans.
#[cfg(not(target_os = "linux"))]
pub fn main() -> ExitCode {
    ExitCode::from(2)
}
