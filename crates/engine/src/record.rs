//! Reading a session file, whoever wrote it.

use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use transcript::Log;
use transcript::line::{Line, Malformed, Translator};

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
/// How much is parsed at a time.
const BATCH_BYTES: usize = 1 << 20;
/// On how many threads at most.
const MOST_THREADS: usize = 4;

/// Reads and projects a file.
pub fn read(path: &Path) -> Result<Record, Error> {
    let (lines, skipped) = lines(path)?;
    Ok(Record { log: Log::load(lines), skipped })
}

/// Reads a file's lines without projecting them. A long file is parsed in batches, on several threads.
pub fn lines(path: &Path) -> Result<(Vec<Line>, Vec<Skipped>), Error> {
    let mut reader = files::Lines::open(path)?;
    let mut translator = Translator::default();
    let first = Batch::read(&mut reader, 0)?;
    let mut number = first.end();
    let mut all = first.parse(|text| translator.parse(text));
    if translator.is_translating() {
        // Another agent's lines mean something only in their order.
        loop {
            let batch = Batch::read(&mut reader, number)?;
            if batch.is_empty() {
                break;
            }
            number = batch.end();
            all.extend(batch.parse(|text| translator.parse(text)));
        }
    } else {
        number = parse_rest(&mut reader, number, &mut all)?;
    }
    // A session has lines that say who said something; a file without one is something else.
    let is_session = all.lines.iter().any(|line| line.id.is_some() || line.in_chain());
    if number > 0 && !is_session {
        return Err(Error::NotASession { path: path.to_owned(), lines: number });
    }
    Ok((all.lines, all.skipped))
}

/// Parses what is left of a file on several threads, and says how many lines it has.
fn parse_rest(reader: &mut files::Lines, mut number: usize, all: &mut Parsed) -> Result<usize, Error> {
    let mut next = Batch::read(reader, number)?;
    if next.is_empty() {
        return Ok(number);
    }
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let (send, receive) = mpsc::sync_channel::<Batch>(threads);
    let receive = Mutex::new(receive);
    let work = || {
        let mut done = Vec::new();
        // A batch is taken under the lock and parsed outside of it.
        while let Ok(batch) = receive.lock().unwrap_or_else(PoisonError::into_inner).recv() {
            done.push((batch.first, batch.parse(|text| Line::parse(text).map(|line| vec![line]))));
        }
        done
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let read = loop {
            number = next.end();
            if send.send(next).is_err() {
                break Ok(());
            }
            match Batch::read(reader, number) {
                Ok(batch) if batch.is_empty() => break Ok(()),
                Ok(batch) => next = batch,
                Err(error) => break Err(error),
            }
        };
        drop(send);
        let mut parsed: Vec<(usize, Parsed)> =
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect();
        parsed.sort_by_key(|(first, _)| *first);
        for (_, one) in parsed {
            all.extend(one);
        }
        read.map(|()| number)
    })
}

/// Some lines of a file, copied out of the reader's block.
struct Batch {
    /// How many lines stand before it.
    first: usize,
    bytes: Vec<u8>,
    lines: Vec<Piece>,
}

/// A line of a batch.
enum Piece {
    Text { end: usize, ending: files::Ending },
    Oversized { len: u64 },
}

/// What was read of a batch.
#[derive(Default)]
struct Parsed {
    lines: Vec<Line>,
    skipped: Vec<Skipped>,
}

impl Batch {
    fn read(reader: &mut files::Lines, first: usize) -> Result<Self, Error> {
        let mut batch = Self { first, bytes: Vec::with_capacity(BATCH_BYTES), lines: Vec::new() };
        while batch.bytes.len() < BATCH_BYTES {
            let Some(line) = reader.next()? else { break };
            batch.lines.push(match line.text {
                files::Text::Whole(text) => {
                    batch.bytes.extend_from_slice(text);
                    Piece::Text { end: batch.bytes.len(), ending: line.ending }
                }
                files::Text::Oversized { len, .. } => Piece::Oversized { len },
            });
        }
        Ok(batch)
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// How many lines there are up to its end.
    fn end(&self) -> usize {
        self.first + self.lines.len()
    }

    fn parse(&self, mut parse: impl FnMut(&[u8]) -> Result<Vec<Line>, Malformed>) -> Parsed {
        let (mut parsed, mut start) = (Parsed::default(), 0);
        for (index, piece) in self.lines.iter().enumerate() {
            let why = match piece {
                Piece::Text { end, ending } => {
                    let text = &self.bytes[start..*end];
                    start = *end;
                    if text.trim_ascii().is_empty() {
                        continue;
                    }
                    match parse(text) {
                        Ok(lines) => {
                            parsed.lines.extend(lines);
                            continue;
                        }
                        Err(_) if *ending == files::Ending::EndOfFile => {
                            "torn: the file ends in the middle of it".to_owned()
                        }
                        Err(error) => error.to_string(),
                    }
                }
                Piece::Oversized { len } => format!("{len} bytes long, which is more than a line may be"),
            };
            if parsed.skipped.len() < DESCRIBED {
                parsed.skipped.push(Skipped { number: self.first + index + 1, why });
            }
        }
        parsed
    }
}

impl Parsed {
    fn extend(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.skipped.extend(other.skipped);
        self.skipped.truncate(DESCRIBED);
    }
}
