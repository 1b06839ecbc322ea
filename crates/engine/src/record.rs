//! Reading a session file, whoever wrote it.

use std::path::Path;

use transcript::Log;
use transcript::line::{Line, Translator};

use crate::error::Error;

/// A session file, read.
#[derive(Debug)]
pub struct Record {
    /// Its lines and what they project to.
    pub log: Log,
    /// Lines that could not be read, with where and why. They stay in the file.
    pub skipped: Vec<Skipped>,
}

/// A line that was passed over.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// Which line, from 1.
    pub number: usize,
    /// Why.
    pub why: String,
}

/// How many skipped lines are described; of the rest only the number counts.
const DESCRIBED: usize = 20;

/// Reads and projects a file.
pub fn read(path: &Path) -> Result<Record, Error> {
    let (lines, skipped) = lines(path)?;
    Ok(Record { log: Log::load(lines), skipped })
}

/// Reads a file's lines without projecting them.
pub fn lines(path: &Path) -> Result<(Vec<Line>, Vec<Skipped>), Error> {
    let mut reader = files::Lines::open(path)?;
    let mut translator = Translator::default();
    let (mut lines, mut skipped, mut number) = (Vec::new(), Vec::new(), 0);
    while let Some(line) = reader.next()? {
        number += 1;
        let why = match (line.text, line.ending) {
            (files::Text::Whole(text), _) if text.trim_ascii().is_empty() => continue,
            (files::Text::Whole(text), ending) => match translator.parse(text) {
                Ok(read) => {
                    lines.extend(read);
                    continue;
                }
                Err(_) if ending == files::Ending::EndOfFile => "torn: the file ends in the middle of it".to_owned(),
                Err(error) => error.to_string(),
            },
            (files::Text::Oversized { len, .. }, _) => format!("{len} bytes long, which is more than a line may be"),
        };
        if skipped.len() < DESCRIBED {
            skipped.push(Skipped { number, why });
        }
    }
    // A session has lines that say who said something; a file without one is something else.
    let is_session = lines.iter().any(|line| line.id.is_some() || line.in_chain());
    if number > 0 && !is_session {
        return Err(Error::NotASession { path: path.to_owned(), lines: number });
    }
    Ok((lines, skipped))
}
