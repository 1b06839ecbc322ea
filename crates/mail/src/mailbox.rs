//! A mailbox: a file of messages for one agent, to which any process may append.
//!
//! The file is an array, laid out as Claude Code does. It holds waiting messages and a bounded number of delivered
//! ones, so an append costs what is waiting, not the history. A message is delivered when its id stands in the
//! recipient's log. The mark in the file follows afterwards and is only for others to see; delivery looks into the log.
//! So a kill at any step loses no message and delivers none twice.
//!
//! What it refuses to do: touch a file that it cannot read back, follow a name out of its folder, grow without bound.

mod control_message;
mod message;
mod seal;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::Root;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

pub use control_message::{ControlMessage, IdleReason, LeadAnswer, TeammateQuestion};
pub use message::{LEAD, Message, MessageOrder};
pub use seal::{Seal, SealKey, SealKeys};

/// The largest mailbox that is read.
const MOST_BYTES: u64 = 8_000_000;
/// The largest mailbox that a sender may write: waiting messages are read at every look, and a file too large to read
/// would be lost.
const MOST_SENT: usize = 4_000_000;
/// Limit on entries read from one file, since each takes memory beyond its bytes.
const MOST_MESSAGES_READ: usize = 20_000;
/// Limit on waiting messages; a recipient with more is not reading.
const MOST_WAITING: usize = 1_000;
/// The longest text of one message, in bytes. Longer text belongs in a file that the message names.
pub(crate) const MOST_TEXT: usize = 100_000;
/// Number of delivered messages that are kept, for people who look.
const KEPT: usize = 50;
/// Limit on sender, summary and time of a message together, in bytes.
const MOST_HEADER_BYTES: usize = 2_000;
/// The longest name.
const MOST_NAME: usize = 64;
/// Time to wait for a lock of a team; the work done under it takes milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Put before a sender's name that is not proven by a seal.
const UNSEALED: &str = "somebody who is not ";
/// Access bits: only the owner reads and writes a mailbox.
const PRIVATE_FILE: u32 = 0o600;

/// The mailbox of one agent of a team.
#[derive(Debug)]
pub struct Mailbox {
    folder: Root,
    name: String,
    /// Public keys of senders who seal their messages.
    known: SealKeys,
}

/// Messages of the lead that make an earlier interrupt void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptVoidedBy {
    /// One that was sent: nothing is under way yet.
    Sent,
    /// One that was delivered: it is what is under way.
    Heard,
}

/// Errors of sending and reading messages.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// A name that cannot be used for a file.
    #[error("{0:?} is not a valid name: use up to {MOST_NAME} letters, digits, `-` and `_`")]
    Name(String),
    /// There is no agent of that name.
    #[error("there is no {name:?} here; {}", known(.others))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        others: Vec<String>,
    },
    /// The text is too long.
    #[error("the message is {0} bytes long, and {MOST_TEXT} is the most: put it into a file and name that")]
    Long(usize),
    /// Sender, summary and time are too long.
    #[error("sender, summary and time of the message are {0} bytes long; the limit is {MOST_HEADER_BYTES}")]
    LongHeader(usize),
    /// Too many messages wait; the recipient does not read.
    #[error("{1} has {0} unread messages and reads none")]
    Full(usize, String),
    /// A control message from another session, which may send only text.
    #[error("other sessions can only send text")]
    NotWords,
    /// The name is taken.
    #[error("there is a {0:?} in the team already: choose another name")]
    Taken(String),
    /// A teammate that has ended could not be started again.
    #[error("{name} has ended and could not continue: {why}")]
    Ended {
        /// The teammate's name.
        name: String,
        /// The reason.
        why: String,
    },
    /// The team is full.
    #[error("a team can have {0} members at most")]
    Crowded(usize),
    /// An address of an unsupported kind.
    #[error("{0:?} cannot be reached from here: write to a name, or to another session by uds:PATH")]
    Unsupported(String),
    /// A path that is not a session's socket.
    #[error("{0} is not a session's socket; `cairn send --list` shows those that exist")]
    NoSession(PathBuf),
    /// Another session could not be reached, or rejected the message.
    #[error("the session at {path} did not accept it: {why}")]
    Socket {
        /// Its socket.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file with unexpected content. It is left as it is.
    #[error("{path} is not a valid {what} ({why}); move it away and try again")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The kind of file that was expected.
        what: &'static str,
        /// The problem with its content.
        why: String,
    },
    /// An error of the disk.
    #[error(transparent)]
    Disk(#[from] files::Error),
}

fn known(others: &[String]) -> String {
    match others {
        [] => "nobody has a mailbox yet".to_owned(),
        others => format!("known are {}", others.join(", ")),
    }
}

/// Folder of a team's mailboxes.
pub fn folder(config: &Path, team: &str) -> Result<PathBuf, MailError> {
    Ok(config.join("teams").join(checked(team)?).join("inboxes"))
}

/// The name, if it can be used for a file.
pub(crate) fn checked(name: &str) -> Result<&str, MailError> {
    let fine = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
    let fits = (1..=MOST_NAME).contains(&name.len()) && name.chars().all(fine);
    if fits { Ok(name) } else { Err(MailError::Name(name.to_owned())) }
}

/// Names of the agents with a mailbox in a folder.
pub fn names(folder: &Path) -> Result<Vec<String>, MailError> {
    let entries = match files::list(folder) {
        Ok(entries) => entries,
        Err(files::Error::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let name = |entry: &files::DirectoryEntry| entry.name.to_str()?.strip_suffix(".json").map(str::to_owned);
    let mut names: Vec<String> = entries.iter().filter_map(name).filter(|name| checked(name).is_ok()).collect();
    names.sort();
    Ok(names)
}

impl Mailbox {
    /// The mailbox of an agent; the error lists the agents that have one.
    pub fn of(folder: &Path, name: &str) -> Result<Self, MailError> {
        let name = checked(name)?.to_owned();
        let others = names(folder)?;
        if !others.contains(&name) {
            return Err(MailError::Unknown { name, others });
        }
        Ok(Self { folder: Root::open_own(folder)?, name, known: SealKeys::default() })
    }

    /// Opens an agent's own mailbox and creates it if it is missing; from then on others can write to it.
    pub fn create(folder: &Path, name: &str) -> Result<Self, MailError> {
        let name = checked(name)?.to_owned();
        files::create_directory(folder)?;
        let mailbox = Self { name, folder: Root::open_own(folder)?, known: SealKeys::default() };
        let _held = mailbox.lock()?;
        match mailbox.folder.create_new(mailbox.file(), b"[]\n", PRIVATE_FILE) {
            Ok(()) | Err(files::Error::Exists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        drop(_held);
        Ok(mailbox)
    }

    /// With the public keys of senders: a message in one of their names counts only if it is sealed with their key.
    #[must_use]
    pub fn knowing(mut self, known: SealKeys) -> Self {
        self.known = known;
        self
    }

    /// Appends a message, sealed by its sender.
    pub fn send_sealed(&self, message: &Message, seal: &Seal) -> Result<(), MailError> {
        self.put(message, Some(seal.of(message, &self.name)))
    }

    /// Appends a message. If its id is already there, its sender was killed and tries again; nothing is added.
    pub fn send(&self, message: &Message) -> Result<(), MailError> {
        self.put(message, None)
    }

    fn put(&self, message: &Message, seal: Option<String>) -> Result<(), MailError> {
        let Message { from, timestamp, summary, .. } = message;
        let beside = from.len() + timestamp.len() + summary.as_ref().map_or(0, String::len);
        if message.text.len() > MOST_TEXT {
            return Err(MailError::Long(message.text.len()));
        }
        if beside > MOST_HEADER_BYTES {
            return Err(MailError::LongHeader(beside));
        }
        self.change(|entries| {
            if entries.iter().any(|entry| Message::of(entry).id == message.id) {
                return Ok(false);
            }
            let waiting = entries.iter().filter(|entry| !is_read(entry)).count();
            if waiting >= MOST_WAITING {
                return Err(MailError::Full(waiting, self.name.clone()));
            }
            let mut entry = message.to_entry();
            entry.extend(seal.map(|seal| ("seal".to_owned(), Value::String(seal))));
            entries.push(entry);
            Ok(true)
        })
    }

    /// Waiting messages for the model, in the order of delivery: shutdown requests first, then the lead's, then by
    /// arrival.
    pub fn waiting(&self) -> Result<Vec<Message>, MailError> {
        let mut waiting = self.unread()?;
        waiting.retain(|message| !message.word().is_between_programs());
        waiting.sort_by_key(Message::order);
        Ok(waiting)
    }

    /// Waiting messages for the program, which the model does not see, such as permission requests and their answers.
    pub fn between_programs(&self) -> Result<Vec<Message>, MailError> {
        let mut waiting = self.unread()?;
        waiting.retain(|message| message.word().is_between_programs());
        Ok(waiting)
    }

    /// Takes the messages for the program that `is` selects; nobody else gets them. The others stay.
    pub fn take_between_programs(&self, is: impl Fn(&ControlMessage) -> bool) -> Result<Vec<Message>, MailError> {
        let mut waiting = self.between_programs()?;
        waiting.retain(|message| is(&message.word()));
        self.delivered(&waiting.iter().map(|message| message.id.clone()).collect())?;
        Ok(waiting)
    }

    /// Takes the lead's interrupts. True if the last one counts, because the lead has not written since.
    pub fn take_interrupt(&self, unless: InterruptVoidedBy) -> Result<bool, MailError> {
        let entries = self.entries()?;
        let of_lead = |entry: &Map<String, Value>| Some(self.read(entry)).filter(|message| message.from == LEAD);
        let is_one = |entry: &Map<String, Value>| {
            !is_read(entry) && of_lead(entry).is_some_and(|message| message.word() == ControlMessage::Interrupt)
        };
        let Some(at) = entries.iter().rposition(is_one) else { return Ok(false) };
        self.take_between_programs(|word| *word == ControlMessage::Interrupt)?;
        let says_more = |entry: &Map<String, Value>| {
            let has_to_be_heard = unless == InterruptVoidedBy::Heard && !is_read(entry);
            !has_to_be_heard && of_lead(entry).is_some_and(|message| !message.word().is_between_programs())
        };
        Ok(!entries[at..].iter().any(says_more))
    }

    fn unread(&self) -> Result<Vec<Message>, MailError> {
        Ok(self.entries()?.iter().filter(|entry| !is_read(entry)).map(|entry| self.read(entry)).collect())
    }

    /// Marks messages whose ids are in the recipient's log.
    pub fn delivered(&self, ids: &HashSet<String>) -> Result<(), MailError> {
        if !self.unread()?.iter().any(|message| ids.contains(&message.id)) {
            return Ok(()); // nothing to mark: the lock is not needed
        }
        self.change(|entries| {
            let mut changed = false;
            for entry in entries.iter_mut().filter(|entry| !is_read(entry)) {
                if ids.contains(&Message::of(entry).id) {
                    entry.insert("read".to_owned(), Value::Bool(true));
                    changed = true;
                }
            }
            Ok(changed)
        })
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(self.file())
    }

    /// Name of the agent it belongs to.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All messages, oldest first, each with true if it was delivered.
    pub fn all(&self) -> Result<Vec<(Message, bool)>, MailError> {
        Ok(self.entries()?.iter().map(|entry| (self.read(entry), is_read(entry))).collect())
    }

    /// A message as it counts: one in the name of a sender with a known key, but without that sender's seal, is
    /// renamed.
    fn read(&self, entry: &Map<String, Value>) -> Message {
        let mut message = Message::of(entry);
        let seal = entry.get("seal").and_then(Value::as_str).unwrap_or_default();
        if !self.known.believes(&message, &self.name, seal) {
            message.from.insert_str(0, UNSEALED);
        }
        message
    }

    /// Changes the entries under the lock. Nothing is written if `by` returns false.
    fn change(
        &self,
        by: impl FnOnce(&mut Vec<Map<String, Value>>) -> Result<bool, MailError>,
    ) -> Result<(), MailError> {
        let _held = self.lock()?;
        let mut entries = self.entries()?;
        let before = entries.iter().filter(|entry| !is_read(entry)).count();
        if !by(&mut entries)? {
            return Ok(());
        }
        let mut old = entries.iter().filter(|entry| is_read(entry)).count().saturating_sub(KEPT);
        entries.retain(|entry| {
            let goes = old > 0 && is_read(entry);
            old -= usize::from(goes);
            !goes
        });
        let mut text = serde_json::to_vec_pretty(&entries).map_err(|error| self.broken(&error))?;
        while text.len() > MOST_SENT
            && let Some(oldest) = entries.iter().position(is_read)
        {
            entries.remove(oldest);
            text = serde_json::to_vec_pretty(&entries).map_err(|error| self.broken(&error))?;
        }
        let waiting = entries.iter().filter(|entry| !is_read(entry)).count();
        if text.len() > MOST_SENT && waiting > before {
            return Err(MailError::Full(waiting, self.name.clone()));
        }
        Ok(self.folder.replace(self.file(), &text, PRIVATE_FILE)?)
    }

    fn entries(&self) -> Result<Vec<Map<String, Value>>, MailError> {
        let file = self.folder.read(self.file(), MOST_BYTES)?;
        // Counted before any of them is kept: many small ones take far more memory than bytes.
        let count: Vec<IgnoredAny> = serde_json::from_slice(&file.bytes).map_err(|error| self.broken(&error))?;
        if count.len() > MOST_MESSAGES_READ {
            return Err(self.broken(&format!("there are more than {MOST_MESSAGES_READ}")));
        }
        serde_json::from_slice(&file.bytes).map_err(|error| self.broken(&error))
    }

    fn lock(&self) -> Result<files::Lock, MailError> {
        Ok(self.folder.lock_within(format!("{}.lock", self.name), PATIENCE)?)
    }

    fn file(&self) -> String {
        format!("{}.json", self.name)
    }

    fn broken(&self, error: &dyn fmt::Display) -> MailError {
        MailError::Broken { path: self.path(), what: "mailbox", why: error.to_string() }
    }
}

fn is_read(entry: &Map<String, Value>) -> bool {
    entry.get("read").and_then(Value::as_bool).unwrap_or_default()
}
