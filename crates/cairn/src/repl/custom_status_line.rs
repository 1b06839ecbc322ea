//! The user's own line above the status line: what a command prints, given what there is to show.
//!
//! It runs alongside the session, below the guard, a moment after something has changed; nobody waits for it, and one that
//! fails is told of once. What it prints is cleaned: of escapes only colours and the like count.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use settings::StatusLine;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tools::Environment;
use tools::program::{Program, ProgramEnd};

use crate::styled_text::{Colour, Span, TextStyle};

/// Delay that combines changes in quick succession.
const A_MOMENT: Duration = Duration::from_millis(300);
/// Timeout of the command.
const LIMIT: Duration = Duration::from_secs(5);
/// The most lines of its output that are shown.
const SHOWN: usize = 3;

/// The user's own line.
#[derive(Default)]
pub(super) struct CustomStatusLine {
    line: Option<StatusLine>,
    rows: Vec<Vec<Span>>,
    running: Option<AbortOnDropHandle<Result<String, String>>>,
    due: Option<Instant>,
    /// Failures that were reported.
    told: HashSet<String>,
}

/// An event of the command.
pub(super) enum StatusLineStep {
    /// It is time to run it.
    Due,
    /// It has run.
    Ran(Result<String, String>),
}

/// The environment that the command runs in.
pub(super) struct StatusLineContext {
    pub(super) directory: PathBuf,
    pub(super) environment: Environment,
    pub(super) guard: Option<PathBuf>,
}

impl CustomStatusLine {
    /// As the settings have it now.
    pub(super) fn set(&mut self, line: Option<StatusLine>) {
        if self.line != line {
            *self = Self { line, told: std::mem::take(&mut self.told), ..Self::default() };
            self.want();
        }
    }

    /// Something has changed that it may show.
    pub(super) fn want(&mut self) {
        if self.line.is_some() {
            self.due.get_or_insert_with(|| Instant::now() + A_MOMENT);
        }
    }

    /// Waits until there is something to do.
    pub(super) async fn next(&mut self) -> StatusLineStep {
        match (&mut self.running, self.due) {
            (Some(running), _) => {
                let ran = running.await.unwrap_or_else(|error| Err(error.to_string()));
                self.running = None;
                StatusLineStep::Ran(ran)
            }
            (None, Some(due)) => {
                tokio::time::sleep_until(due).await;
                self.due = None;
                StatusLineStep::Due
            }
            (None, None) => std::future::pending().await,
        }
    }

    /// Runs it with what there is to show.
    pub(super) fn run(&mut self, input: String, base_paths: StatusLineContext) {
        let Some(line) = &self.line else { return };
        let words = Program::shell(&line.command);
        self.running = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let program = Program {
                words,
                input,
                directory: &base_paths.directory,
                environment: &base_paths.environment,
                guard: base_paths.guard.as_deref(),
                confinement: None,
                limit: LIMIT,
            };
            let ran = program.run(&CancellationToken::new()).await?;
            match ran.end {
                ProgramEnd::Exited(0) => Ok(ran.out),
                ProgramEnd::Exited(code) => {
                    let why = ran.err.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
                    Err(format!("exit code {code}{why}"))
                }
                ProgramEnd::TimedOut | ProgramEnd::Cancelled => {
                    Err(format!("it took longer than {} s", LIMIT.as_secs()))
                }
            }
        })));
    }

    /// Shows what it printed; says what is to be told where it failed.
    pub(super) fn ran(&mut self, ran: Result<String, String>) -> Option<String> {
        let line = self.line.as_ref()?;
        if let Some(seconds) = line.refresh_interval {
            let again = Instant::now() + Duration::from_secs(seconds.max(1));
            self.due = Some(self.due.map_or(again, |due| due.min(again)));
        }
        match ran {
            Ok(text) => {
                let padding = " ".repeat(line.padding);
                let rows = text.lines().filter(|row| !row.trim().is_empty()).take(SHOWN);
                self.rows = rows.map(|row| coloured(&format!("{padding}{row}"))).collect();
                None
            }
            Err(why) => {
                self.rows.clear();
                let text = format!("the command of your status line failed: {why}");
                self.told.insert(text.clone()).then_some(text)
            }
        }
    }

    /// The rows to draw.
    pub(super) fn rows(&self) -> &[Vec<Span>] {
        &self.rows
    }
}

/// A row in its colours; every other escape is left out.
fn coloured(row: &str) -> Vec<Span> {
    let (mut spans, mut look, mut rest) = (Vec::new(), TextStyle::PLAIN, row);
    while let Some(at) = rest.find('\x1b') {
        spans.push(Span::new(&rest[..at], look));
        rest = &rest[at + 1..];
        if let Some(inside) = rest.strip_prefix('[') {
            let end = inside.find(|c: char| ('\x40'..='\x7e').contains(&c)).unwrap_or(inside.len());
            if inside[end..].starts_with('m') {
                look = inside[..end].split(';').fold(look, with_code);
            }
            rest = inside.get(end + 1..).unwrap_or_default();
        } else if let Some(inside) = rest.strip_prefix(']') {
            // A link or a title: it ends with a bell, or with an escape and a backslash.
            let end = inside.find(['\x07', '\x1b']).unwrap_or(inside.len());
            rest = inside.get(end..).unwrap_or_default();
            rest = rest.strip_prefix('\x07').or_else(|| rest.strip_prefix("\x1b\\")).unwrap_or(rest);
        }
    }
    spans.push(Span::new(rest, look));
    spans
}

fn with_code(look: TextStyle, code: &str) -> TextStyle {
    let colour = |colour| TextStyle { colour, ..look };
    match code {
        "" | "0" => TextStyle::PLAIN,
        "1" => TextStyle { bold: true, ..look },
        "2" => TextStyle { dim: true, ..look },
        "3" => TextStyle { italic: true, ..look },
        "9" => TextStyle { struck: true, ..look },
        "22" => TextStyle { bold: false, dim: false, ..look },
        "31" | "91" | "35" | "95" => colour(Some(Colour::Red)),
        "32" | "92" => colour(Some(Colour::Green)),
        "33" | "93" => colour(Some(Colour::Yellow)),
        "34" | "94" | "36" | "96" => colour(Some(Colour::Cyan)),
        "39" => colour(None),
        _ => look,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TOOL-2: of what a command prints only text and colours reach the screen.
    #[test]
    fn a_row_keeps_its_colours_and_nothing_else() {
        let row = "\x1b[1;31mred\x1b[0m \x1b]8;;http://evil\x07link\x1b]8;;\x1b\\ \x1b[2J\x1b[Hend\x1b[38;5;1";
        let spans = coloured(row);
        let text: String = spans.iter().map(Span::text).collect();
        assert_eq!(text, "red link end");
        let red = TextStyle { bold: true, ..TextStyle::of(Colour::Red) };
        assert!(spans.iter().any(|span| span.text() == "red" && span.look() == red), "{spans:?}");
        assert!(spans.iter().all(|span| span.text() == "red" || span.look() == TextStyle::PLAIN), "{spans:?}");
    }
}
