//! Reading a session file, whoever wrote it.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use transcript::Log;
use transcript::line::{Line, MalformedLine, Translator};

use crate::child::is_subagent;
use crate::error::Error;

/// A session file, read.
#[derive(Debug)]
pub struct Record {
    /// Its lines and what they project to.
    pub log: Log,
    /// Lines that could not be read, with where and why. They stay in the file.
    pub skipped: Vec<SkippedLine>,
}

/// A line that was passed over.
#[derive(Debug, Clone)]
pub struct SkippedLine {
    /// The line number, from 1.
    pub number: usize,
    /// Why.
    pub why: String,
}

/// The most skipped lines that are described; the rest are only counted.
pub(crate) const DESCRIBED: usize = 20;
/// Bytes at the beginning of a file that show who wrote it.
pub(crate) const FIRST_BYTES: u64 = 64 << 10;
/// Bytes of the rest that a thread takes at a time.
const PART_BYTES: u64 = 2 << 20;
/// Threads for each processor: while one waits for the disk, another parses.
const THREADS_EACH: usize = 2;
/// The most threads.
const MOST_THREADS: usize = 4;

/// Reads and projects a file.
pub fn read(path: &Path) -> Result<Record, Error> {
    let (lines, skipped) = lines(path)?;
    Ok(Record { log: Log::load(lines), skipped })
}

/// Reads a file's lines without projecting them. A long file is parsed in parts, on several threads.
pub fn lines(path: &Path) -> Result<(Vec<Line>, Vec<SkippedLine>), Error> {
    let file = files::Lines::open(path)?;
    let mut translator = Translator::default();
    let mut all = ParsedPart::default();
    all.parse(file.part(0..FIRST_BYTES)?, |text| translator.parse(text))?;
    if translator.is_translating() {
        // Another agent's lines mean something only in their order.
        all.parse(file.part(FIRST_BYTES..u64::MAX)?, |text| translator.parse(text))?;
    } else {
        let rest = parse_parts(&file, FIRST_BYTES)?;
        all.lines.reserve(rest.iter().map(|part| part.lines.len()).sum());
        for part in rest {
            all.extend(part);
        }
    }
    // A session has lines that say who said something; a file without one is something else.
    let is_session = all.lines.iter().any(|line| line.id.is_some() || line.in_chain());
    if all.number > 0 && !is_session {
        return Err(Error::NotASession { path: path.to_owned(), lines: all.number });
    }
    // In its own file the conversation of a subagent is no side chain of another.
    if is_subagent(path) {
        all.lines.iter_mut().for_each(|line| line.sidechain = false);
    }
    Ok((all.lines, all.skipped))
}

/// Parses what is left of a file on several threads, part by part.
fn parse_parts(file: &files::Lines, from: u64) -> Result<Vec<ParsedPart>, Error> {
    let count = file.file_len()?.saturating_sub(from).div_ceil(PART_BYTES);
    let next = AtomicU64::new(0);
    let work = || -> Result<Vec<(u64, ParsedPart)>, Error> {
        let mut done = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= count {
                return Ok(done);
            }
            let start = from + part * PART_BYTES;
            // What is written meanwhile belongs to the last part.
            let end = if part + 1 == count { u64::MAX } else { start + PART_BYTES };
            let mut parsed = ParsedPart::default();
            parsed.parse(file.part(start..end)?, |text| Line::parse(text).map(Some))?;
            done.push((part, parsed));
        }
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get() * THREADS_EACH).min(MOST_THREADS);
    let others = count.saturating_sub(1).min(threads as u64 - 1);
    let done: Vec<Result<_, Error>> = thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.chain([own]).collect()
    });
    let mut parts: Vec<(u64, ParsedPart)> =
        done.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    parts.sort_by_key(|(part, _)| *part);
    Ok(parts.into_iter().map(|(_, parsed)| parsed).collect())
}

/// The parsed lines of a part of a file.
#[derive(Default)]
struct ParsedPart {
    lines: Vec<Line>,
    skipped: Vec<SkippedLine>,
    /// The number of lines, read or not.
    number: usize,
}

impl ParsedPart {
    fn parse<L: IntoIterator<Item = Line>>(
        &mut self,
        mut lines: files::Lines,
        mut parse: impl FnMut(&[u8]) -> Result<L, MalformedLine>,
    ) -> Result<(), Error> {
        while let Some(line) = lines.next()? {
            self.number += 1;
            let why = match line.text {
                files::Text::Whole(text) if text.trim_ascii().is_empty() => continue,
                files::Text::Whole(text) => match parse(text) {
                    Ok(lines) => {
                        self.lines.extend(lines);
                        continue;
                    }
                    Err(_) if line.ending == files::LineEnding::EndOfFile => {
                        "torn: the file ends in the middle of it".to_owned()
                    }
                    Err(error) => error.to_string(),
                },
                files::Text::Oversized { len, .. } => format!("{len} bytes long, which is more than a line may be"),
            };
            if self.skipped.len() < DESCRIBED {
                self.skipped.push(SkippedLine { number: self.number, why });
            }
        }
        Ok(())
    }

    /// Takes in what stands behind it.
    fn extend(&mut self, behind: Self) {
        let before = self.number;
        self.number += behind.number;
        self.lines.extend(behind.lines);
        let skipped = behind.skipped.into_iter().map(|one| SkippedLine { number: before + one.number, ..one });
        self.skipped.extend(skipped);
        self.skipped.truncate(DESCRIBED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LOG-2: a file read in parts has its lines in order, and what could not be read is named by where it is.
    #[test]
    fn a_file_of_many_parts_is_read_in_order() {
        let filler = "x".repeat(1000);
        let line = |number: usize| {
            format!(r#"{{"type":"user","uuid":"{number}","message":{{"role":"user","content":"{filler}"}}}}"#)
        };
        let mut texts: Vec<String> = (1..=9000).map(line).collect();
        texts[6999] = "{no JSON".to_owned();
        texts[7999] = String::new();
        let file = tempfile::NamedTempFile::new().unwrap();
        files::replace(file.path(), (texts.join("\n") + "\n{\"type\":").as_bytes()).unwrap();
        let (lines, skipped) = lines(file.path()).unwrap();
        let expected: Vec<String> =
            (1..=9000).filter(|at| ![7000, 8000].contains(at)).map(|at| at.to_string()).collect();
        let ids: Vec<&str> = lines.iter().filter_map(|line| line.id.as_ref()).map(transcript::Id::as_str).collect();
        assert_eq!(ids, expected);
        assert_eq!(skipped.iter().map(|one| one.number).collect::<Vec<_>>(), [7000, 9001]);
        assert!(skipped[1].why.starts_with("torn"), "{}", skipped[1].why);
    }
}
