//! Instructions instead of time: they are the same on a busy machine as on an idle one.
//!
//! A program runs under callgrind, which counts what it executes. To count one function only, this program runs itself
//! again as a child, and collecting is switched on while that function runs. Where valgrind is not installed there is no
//! count, and the caller falls back to time.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The first argument of a child.
pub(crate) const CHILD: &str = "child";

/// What is counted.
pub(crate) enum Scope {
    /// Everything the program does.
    Program,
    /// What it does inside functions whose name matches, callees included.
    Function(&'static str),
}

/// Whether instructions can be counted here.
pub(crate) fn is_possible() -> bool {
    let version = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// How many instructions a program executes.
pub(crate) fn instructions(scope: &Scope, program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    if let Scope::Function(pattern) = scope {
        valgrind.arg(format!("--toggle-collect={pattern}"));
    }
    let output = valgrind.arg(program).args(arguments).output().context("valgrind does not run")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :")).map(|(_, count)| count.trim());
    match collected.map(str::parse) {
        Some(Ok(count)) if output.status.success() && count > 0 => Ok(count),
        _ => bail!("valgrind counted nothing ({}):\n{said}", output.status),
    }
}
