//! A program of the user's own, such as a hook: run below the guard, given its input, and gone at the end.
//!
//! It is no tool: nobody is asked, no sandbox holds it and no working directory is carried over. Who runs one says how
//! long it may take. What it prints is drained however much it is; the beginning and the end of it are kept.

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
    /// What comes on its standard input.
    pub input: String,
    /// Where it runs.
    pub directory: &'a Path,
    /// Its variables.
    pub environment: &'a Environment,
    /// The program that is a [guard](crate::guard), if there is one.
    pub guard: Option<&'a Path>,
    /// How it is confined, if it is; then it gets no variable that may hold a key.
    pub confinement: Option<Confinement>,
    /// How long it may run.
    pub limit: Duration,
}

/// A program that has ended, and all it started with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedProgram {
    /// How.
    pub end: ProgramEnd,
    /// What it printed.
    pub out: String,
    /// What it printed to standard error.
    pub err: String,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// By itself, with this code: 128 and the signal where there was one.
    Exited(i32),
    /// It took too long.
    TimedOut,
    /// It was stopped.
    Cancelled,
}

impl<'a> Program<'a> {
    /// The words that run a line of shell.
    pub fn shell(line: &str) -> Vec<String> {
        ["bash", "-c", line].map(str::to_owned).to_vec()
    }

    /// Runs it until it has ended: by itself, after its time, or when `cancel` says so. The error says why it did not run.
    pub async fn run(self, cancel: &CancellationToken) -> Result<EndedProgram, String> {
        let confinement = self.confinement.as_ref();
        let variables = if confinement.is_some() { Variables::Ordinary } else { Variables::Inherited };
        let (directory, environment, guard) = (self.directory, self.environment, self.guard);
        let ground = ShellContext { directory, environment, guard, confinement, variables };
        let process = process::start_with(self.words, self.input, ground).map_err(|trouble| trouble.why())?;
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
