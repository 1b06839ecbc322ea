//! Sinks for the matches in one file: counting, or collecting lines.

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use tokio_util::sync::CancellationToken;

use super::OutputMode;
use crate::show;

/// Characters shown of a line.
const LINE_CHARACTERS: usize = 500;

/// Limit on collected bytes, whatever the call asks for.
const COLLECTED: usize = 1_000_000;

/// Lines to show: a number of lines is skipped, then up to a limit is kept.
pub(super) struct CollectedLines {
    skip: usize,
    take: usize,
    seen: usize,
    bytes: usize,
    lines: Vec<String>,
    full: bool,
}

impl CollectedLines {
    pub(super) fn new(skip: usize, take: usize) -> Self {
        Self { skip, take, seen: 0, bytes: 0, lines: Vec::new(), full: false }
    }

    /// Number of lines so far.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// Returns whether a line no longer fitted.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Adds a line; returns whether more may follow.
    pub(super) fn add(&mut self, line: String) -> bool {
        self.seen += 1;
        if self.seen <= self.skip {
            return true;
        }
        if self.lines.len() >= self.take || self.bytes > COLLECTED {
            self.full = true;
            return false;
        }
        self.bytes += line.len();
        self.lines.push(line);
        true
    }

    /// The final text.
    pub(super) fn finish(self, summary: &str, unreadable: usize, mode: OutputMode) -> String {
        let noun = if mode == OutputMode::Content { "line" } else { "file" };
        let shown = self.lines.len();
        let mut text = match (mode, self.seen) {
            (_, 0) => "No matches found.".to_owned(),
            (_, seen) if shown == 0 => {
                format!("Offset {} is past the end: there are {}.", self.skip, show::count(seen, noun))
            }
            (OutputMode::Content, _) => self.lines.join("\n"),
            _ => format!("{}\n\n[{summary}]", self.lines.join("\n")),
        };
        if self.full {
            let next = self.skip + shown;
            text.push_str(&format!(
                "\n\n[cut after {}; more follow: go on with offset {next}, or narrow the search]",
                show::count(shown, noun)
            ));
        }
        if unreadable > 0 {
            text.push_str(&format!("\n\n[{} could not be searched]", show::count(unreadable, "file")));
        }
        text
    }
}

/// Counts matching lines, up to the number that matters.
pub(super) struct MatchCounter<'a> {
    pub(super) matches: u64,
    enough: u64,
    cancel: &'a CancellationToken,
}

impl<'a> MatchCounter<'a> {
    pub(super) fn up_to(enough: u64, cancel: &'a CancellationToken) -> Self {
        Self { matches: 0, enough, cancel }
    }
}

impl Sink for MatchCounter<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.matches += found.lines().count() as u64;
        Ok(self.matches < self.enough && !self.cancel.is_cancelled())
    }
}

/// Collects matches and the lines around them, as `path:number:text` and `path-number-text`.
pub(super) struct MatchPrinter<'a> {
    path: String,
    numbers: bool,
    collected: &'a mut CollectedLines,
    cancel: &'a CancellationToken,
    /// State before the file, restored if the file turns out to be binary.
    before: (usize, usize),
}

impl<'a> MatchPrinter<'a> {
    pub(super) fn new(
        path: String,
        numbers: bool,
        collected: &'a mut CollectedLines,
        cancel: &'a CancellationToken,
    ) -> Self {
        let before = (collected.seen, collected.lines.len());
        Self { path, numbers, collected, cancel, before }
    }

    fn add(&mut self, number: Option<u64>, text: &[u8], mark: char) -> bool {
        let text = String::from_utf8_lossy(text);
        let text = show::cut(text.trim_end_matches(['\n', '\r']), LINE_CHARACTERS);
        let line = match number {
            Some(number) if self.numbers => format!("{}{mark}{number}{mark}{text}", self.path),
            _ => format!("{}{mark}{text}", self.path),
        };
        self.collected.add(line) && !self.cancel.is_cancelled()
    }
}

impl Sink for MatchPrinter<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        // A multiline match has several lines.
        for (number, line) in (0..).zip(found.lines()) {
            if !self.add(found.line_number().map(|first| first + number), line, ':') {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Self::Error> {
        Ok(self.add(context.line_number(), context.bytes(), '-'))
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        Ok(self.collected.add("--".to_owned()))
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), Self::Error> {
        if finish.binary_byte_offset().is_some() && !self.collected.full {
            let (seen, lines) = self.before;
            self.collected.seen = seen;
            self.collected.lines.truncate(lines);
        }
        Ok(())
    }
}
