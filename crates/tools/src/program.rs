//! A program of the user's own, such as a hook: run below the guard, given its input, and gone at the end.
//!
//! It is not a tool: nobody is asked, no sandbox confines it and no working directory is carried over. The caller sets
//! the timeout. Its output is drained whatever its length; the beginning and the end of it are kept.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::capture::Capture;
use crate::confinement::Confinement;
use crate::environment::{Environment, Variables};
use crate::process::{self, ShellContext, ShellEnd, Stream, exit_code};

/// A program to run.
#[derive(Debug, Clone)]
pub struct Program<'a> {
    /// Its name and its arguments.
    pub words: Vec<String>,
    /// Its standard input.
    pub input: String,
    /// Its working directory.
    pub directory: &'a Path,
    /// Its environment variables.
    pub environment: &'a Environment,
    /// The [guard](crate::guard) program, if there is one.
    pub guard: Option<&'a Path>,
    /// Confinement, if any; a confined program gets no variable that may hold a key.
    pub confinement: Option<Confinement>,
    /// Timeout.
    pub limit: Duration,
}

/// Result of a program, after everything it started has ended too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedProgram {
    /// Its end.
    pub end: ProgramEnd,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// End of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// It exited by itself, with this code: 128 plus the signal if there was one.
    Exited(i32),
    /// It timed out.
    TimedOut,
    /// It was stopped.
    Cancelled,
}

impl<'a> Program<'a> {
    /// The arguments that run a line of shell.
    pub fn shell(line: &str) -> Vec<String> {
        ["bash", "-c", line].map(str::to_owned).to_vec()
    }

    /// Runs it until it has ended: by itself, by its timeout, or by `cancel`. The error says why it did not run.
    pub async fn run(self, cancel: &CancellationToken) -> Result<EndedProgram, String> {
        let confinement = self.confinement.as_ref();
        let variables = if confinement.is_some() { Variables::Ordinary } else { Variables::Inherited };
        let (directory, environment, guard) = (self.directory, self.environment, self.guard);
        let context = ShellContext { directory, environment, guard, confinement, variables };
        let process = process::start_with(self.words, self.input, context).map_err(|trouble| trouble.why())?;
        let (mut out, mut err) = (Capture::default(), Capture::default());
        let print = |stream, bytes: &[u8]| match stream {
            Stream::Out => out.push(bytes),
            Stream::Err => err.push(bytes),
        };
        let ended = process.watch_both(self.limit, cancel, print).await.map_err(|trouble| trouble.why())?;
        let end = match ended.end {
            ShellEnd::Exited(status) => ProgramEnd::Exited(exit_code(status).unwrap_or(-1)),
            ShellEnd::TimedOut => ProgramEnd::TimedOut,
            ShellEnd::Cancelled => ProgramEnd::Cancelled,
        };
        Ok(EndedProgram { end, out: out.text(), err: err.text() })
    }
}
