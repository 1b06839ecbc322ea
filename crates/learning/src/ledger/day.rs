//! One day of the ledger: its file, read as far as it is written, and its sums.

use std::collections::BTreeMap;
use std::path::Path;

use files::{LineEnding, Lines, Text};
use serde::{Deserialize, Serialize};

/// Length of the longest line; a longer one is not ours.
const LONGEST_LINE: usize = 16 * 1024;
/// Limit on reading a file: some 200,000 requests.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A request, as its line has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LedgerEntry {
    /// Time, for people who read the file.
    #[serde(default)]
    pub(super) at: String,
    /// Kind of work.
    pub(super) kind: String,
    /// True for background work.
    #[serde(default)]
    pub(super) background: bool,
    #[serde(default)]
    pub(super) project: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) session: String,
    #[serde(default)]
    pub(super) model: String,
    /// Tokens read and written, together.
    #[serde(default)]
    pub(super) tokens: u64,
    /// Dollars; none if the model has no known price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) usd: Option<f64>,
    /// Id of a request whose reply has begun, and of which no more is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begins: Option<String>,
    /// Id of a begun request of which more is known now: this line counts in place of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ends: Option<String>,
    /// True if the end of the reply was not read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) broken_off: bool,
}

/// Spending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spending {
    /// Number of requests.
    pub requests: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// Tokens without a known price.
    #[serde(skip_serializing_if = "is_none")]
    pub unpriced_tokens: u64,
    /// Dollars, as far as prices are known.
    pub usd: f64,
}

fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}

impl Spending {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(other.unpriced_tokens);
        self.usd += other.usd;
    }
}

/// Spending on a day.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Day {
    /// By the kind of work.
    pub kinds: BTreeMap<String, Spending>,
    /// Spending of background work.
    pub background: Spending,
    /// The part of it that is this project's.
    pub project_background: Spending,
    /// Requests whose end was not read: they are under way, were stopped, or their process was killed. Only their usage
    /// known by then counts.
    pub unfinished: u64,
    /// Unreadable lines.
    pub broken: u64,
    /// The reason not all of it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

impl Day {
    /// The sum.
    pub fn total(&self) -> Spending {
        let mut total = Spending::default();
        self.kinds.values().for_each(|sum| total.add(*sum));
        total
    }

    fn add(&mut self, entry: &LedgerEntry, project: &Path) {
        // A sum that somebody else's line made meaningless would bound nothing.
        let usd = entry.usd.filter(|usd| usd.is_finite() && *usd >= 0.0).unwrap_or_default();
        let unpriced_tokens = if entry.usd.is_none() { entry.tokens } else { 0 };
        let sum = Spending { requests: 1, tokens: entry.tokens, unpriced_tokens, usd };
        self.kinds.entry(entry.kind.clone()).or_default().add(sum);
        if entry.background {
            self.background.add(sum);
            if Path::new(&entry.project) == project {
                self.project_background.add(sum);
            }
        }
    }

    pub(super) fn add_day(&mut self, other: &Self) {
        for (kind, sum) in &other.kinds {
            self.kinds.entry(kind.clone()).or_default().add(*sum);
        }
        self.background.add(other.background);
        self.project_background.add(other.project_background);
        self.unfinished += other.unfinished;
        self.broken += other.broken;
        self.unread = self.unread.take().or_else(|| other.unread.clone());
    }
}

/// The requests of a day.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Requests of which everything is known.
    settled: Day,
    /// Requests whose reply has begun, by id.
    begun: BTreeMap<String, LedgerEntry>,
}

impl Requests {
    pub(super) fn add(&mut self, entry: LedgerEntry, project: &Path) {
        if let Some(id) = entry.begins.clone() {
            self.begun.insert(id, entry);
            return;
        }
        if let Some(id) = &entry.ends {
            self.begun.remove(id);
        }
        self.settled.unfinished += u64::from(entry.broken_off);
        self.settled.add(&entry, project);
    }

    /// Spending of these requests, as far as known.
    pub(super) fn day(&self, project: &Path) -> Day {
        let mut day = self.settled.clone();
        day.unfinished += self.begun.len() as u64;
        self.begun.values().for_each(|entry| day.add(entry, project));
        day
    }
}

/// A day's file, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct DayReading {
    requests: Requests,
    offset: u64,
}

impl DayReading {
    /// Spending read so far.
    pub(super) fn day(&self, project: &Path) -> Day {
        self.requests.day(project)
    }

    /// Reads lines that were added since.
    pub(super) fn refresh(&mut self, path: &Path, project: &Path) {
        self.requests.settled.unread = None;
        match self.read(path, project) {
            Ok(()) | Err(files::Error::NotFound { .. }) => {}
            Err(error) => self.requests.settled.unread = Some(format!("the ledger cannot be read: {error}")),
        }
    }

    fn read(&mut self, path: &Path, project: &Path) -> Result<(), files::Error> {
        let mut lines = Lines::open_at(path, self.offset)?.with_cap(LONGEST_LINE);
        if lines.file_len()? < self.offset {
            *self = Self::default(); // another file stands in its place
            lines = Lines::open(path)?.with_cap(LONGEST_LINE);
        }
        while let Some(line) = lines.next()? {
            if line.offset >= MOST_BYTES {
                let (size, limit) = (lines.file_len()?, MOST_BYTES);
                return Err(files::Error::TooLarge { path: path.to_owned(), size, limit });
            }
            let (length, entry) = match line.text {
                Text::Whole(bytes) => (bytes.len() as u64, serde_json::from_slice::<LedgerEntry>(bytes).ok()),
                Text::Oversized { len, .. } => (len, None),
            };
            if line.ending == LineEnding::EndOfFile {
                break; // torn, or still being written
            }
            self.offset = line.offset + length + 1;
            match entry {
                Some(entry) => self.requests.add(entry, project),
                None => self.requests.settled.broken += u64::from(length > 0),
            }
        }
        Ok(())
    }
}
