//! Reading a file line by line, however long it is, in bounded memory.
//!
//! Lines are handed out as slices of one block that is filled from the file: no copy, no allocation per line. A line
//! longer than the cap is not loaded: it is reported with its beginning and its length, and skipped. Nothing is decoded
//! here; what a line means is the reader's business, and so is an empty one.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("log");
//! # files::replace(&path, b"one\ntwo")?;
//! let mut lines = files::Lines::open(&path)?;
//! while let Some(line) = lines.next()? {
//!     println!("{} {:?} {:?}", line.offset, line.text, line.ending);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;

/// The longest line that is loaded, unless the reader sets another cap. The longest lines in real sessions are pictures
/// and documents in base64: 32 MB on the wire.
pub const OVERSIZED: usize = 64 * 1024 * 1024;

/// Size of a block: small enough to be still in the processor's cache when it is scanned.
const BLOCK: usize = 256 * 1024;

/// Bytes of an oversized line that are shown.
const HEAD: usize = 8 * 1024;

/// A file, being read line by line.
#[derive(Debug)]
pub struct Lines {
    file: Arc<File>,
    path: PathBuf,
    cap: usize,
    block: Vec<u8>,
    /// The part of `block` that is filled and not yet handed out.
    start: usize,
    end: usize,
    /// Offset of `start` in the file.
    offset: u64,
    /// Lines that begin here or later are not handed out.
    limit: u64,
    head: Vec<u8>,
    at_end: bool,
}

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLine<'a> {
    /// Its offset in the file.
    pub offset: u64,
    /// Its content.
    pub text: Text<'a>,
    /// Its ending.
    pub ending: LineEnding,
}

/// The content of a line, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It was longer than the cap and skipped.
    Oversized {
        /// Its first bytes.
        head: &'a [u8],
        /// Its length.
        len: u64,
    },
}

/// Ending of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    /// With a newline.
    Newline,
    /// With the file: in a log, a line torn by a crash, or one that is being written.
    EndOfFile,
}

impl Lines {
    /// From the beginning.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_at(path, 0)
    }

    /// From `offset` on, which should be where a line starts.
    pub fn open_at(path: impl AsRef<Path>, offset: u64) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let file = crate::absolute::open(&path)?;
        Ok(Self::new(Arc::new(file), path, offset..u64::MAX, OVERSIZED))
    }

    /// From the beginning of a file whose path was checked: no link is followed ([`exact`](crate::exact)).
    pub fn open_exact(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let file = crate::exact::open(&path)?;
        Ok(Self::new(Arc::new(file), path, 0..u64::MAX, OVERSIZED))
    }

    fn new(file: Arc<File>, path: PathBuf, range: Range<u64>, cap: usize) -> Self {
        Self {
            file,
            path,
            cap,
            block: Vec::new(),
            start: 0,
            end: 0,
            offset: range.start,
            limit: range.end,
            head: Vec::new(),
            at_end: false,
        }
    }

    /// The lines of the same file that begin in a part of it, wherever the parts are cut: each line is in one.
    pub fn part(&self, range: Range<u64>) -> Result<Self, Error> {
        let before = range.start.saturating_sub(1);
        let mut part = Self::new(self.file.clone(), self.path.clone(), before..range.end, self.cap);
        if range.start > 0 {
            part.pass_newline(range.end)?;
        }
        Ok(part)
    }

    /// Current length of the file.
    pub fn file_len(&self) -> Result<u64, Error> {
        Ok(self.file.metadata().map_err(|error| Error::of(&self.path, error))?.len())
    }

    /// Loads lines of at most `cap` bytes.
    #[must_use]
    pub fn with_cap(mut self, cap: usize) -> Self {
        self.cap = cap;
        self
    }

    /// The next line, or `None` at the end. An empty file has no lines; a last newline starts none.
    #[allow(clippy::should_implement_trait, reason = "a line borrows the block, which an iterator cannot express")]
    pub fn next(&mut self) -> Result<Option<FileLine<'_>>, Error> {
        if self.offset >= self.limit {
            return Ok(None);
        }
        let mut searched = 0;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.block[self.start + searched..self.end]) {
                return Ok(Some(self.hand_out(searched + found, LineEnding::Newline)));
            }
            searched = self.end - self.start;
            if self.at_end {
                return Ok((searched > 0).then(|| self.hand_out(searched, LineEnding::EndOfFile)));
            }
            if searched > self.cap {
                return self.skip().map(Some);
            }
            self.fill()?;
        }
    }

    /// The line of `len` bytes at the start of what is filled.
    fn hand_out(&mut self, len: usize, ending: LineEnding) -> FileLine<'_> {
        let (start, offset) = (self.start, self.offset);
        self.consume(len + usize::from(ending == LineEnding::Newline));
        let bytes = &self.block[start..start + len];
        let text = if len > self.cap {
            Text::Oversized { head: &bytes[..len.min(HEAD)], len: len as u64 }
        } else {
            Text::Whole(bytes)
        };
        FileLine { offset, text, ending }
    }

    /// Passes over a line of which more than the cap is filled already.
    fn skip(&mut self) -> Result<FileLine<'_>, Error> {
        let offset = self.offset;
        let shown = (self.end - self.start).min(HEAD);
        self.head.clear();
        self.head.extend_from_slice(&self.block[self.start..self.start + shown]);
        let ending = self.pass_newline(u64::MAX)?;
        let len = self.offset - offset - u64::from(ending == LineEnding::Newline);
        Ok(FileLine { offset, text: Text::Oversized { head: &self.head, len }, ending })
    }

    /// Passes over everything up to the next newline, or at least to `until`.
    fn pass_newline(&mut self, until: u64) -> Result<LineEnding, Error> {
        loop {
            let filled = &self.block[self.start..self.end];
            if let Some(found) = memchr::memchr(b'\n', filled) {
                self.consume(found + 1);
                return Ok(LineEnding::Newline);
            }
            self.consume(filled.len());
            if self.at_end || self.offset >= until {
                return Ok(LineEnding::EndOfFile);
            }
            self.fill()?;
        }
    }

    fn consume(&mut self, len: usize) {
        self.start += len;
        self.offset += len as u64;
    }

    /// Reads more behind what is filled, making room for it.
    fn fill(&mut self) -> Result<(), Error> {
        if self.start > 0 {
            self.block.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.block.len() {
            // Twice as much, but never far above the cap.
            let longer = (self.block.len() * 2).min(self.cap + BLOCK).max(self.block.len() + BLOCK);
            self.block.resize(longer, 0);
        }
        let behind = self.offset + (self.end - self.start) as u64;
        loop {
            match self.file.read_at(&mut self.block[self.end..], behind) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::of(&self.path, error)),
            }
            return Ok(());
        }
    }
}
