//! The sessions that a dream may learn from, and their content.
//!
//! A dream never sees a line of a transcript: only what the user typed and what the model answered, with local times.
//! Tool results, injected text and what the user took back are left out. Nothing is read of excluded sessions
//! ([`ExcludedSessions`]), of our own that do not learn (such as runs without a terminal), or of any session if
//! learning is off.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use session::home::SessionFile;
use session::record;
use settings::Settings;
use tools::Scope;
use tools::permission::Rules;
use transcript::line::Writer;

use super::sessions;
use super::site::DreamSite;
use crate::excluded_sessions::ExcludedSessions;
use crate::exclusions::Exclusions;
use crate::extract::note::Note;
use crate::extract::turn_text::{Speaker, rendered, words_on};

/// Size limit of a session that is read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Purpose of a dream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourcePurpose {
    /// It puts memories in order, and saves what sessions show and nobody saved.
    #[default]
    Learn,
    /// It puts memories in order, and is shown no session.
    Consolidate,
}

impl SourcePurpose {
    /// Purpose according to the settings: if learning is off, dreams do not learn either.
    pub fn of(settings: &Settings) -> Self {
        if settings.extract.on == Some(false) { Self::Consolidate } else { Self::Learn }
    }
}

/// The sessions that a dream may learn from.
pub(super) struct DreamSources {
    purpose: SourcePurpose,
    folders: Vec<PathBuf>,
    /// The session that asks: it learns for itself.
    except: Option<String>,
    apart: ExcludedSessions,
    zone: TimeZone,
}

/// A message of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionMessage {
    /// The speaker.
    pub(super) speaker: Speaker,
    /// Its time.
    pub(super) at: Option<Timestamp>,
    /// Id of its line.
    pub(super) id: Option<String>,
    /// Its text.
    pub(super) words: String,
}

impl SessionMessage {
    /// The message as it is shown.
    pub(super) fn rendered(&self, zone: &TimeZone) -> String {
        rendered(self.speaker, self.at, &self.words, zone)
    }
}

impl DreamSources {
    pub(super) fn new(site: &DreamSite, purpose: SourcePurpose, excluded: Rules, scope: &Scope) -> Self {
        let real = |path: PathBuf| files::real(&path).unwrap_or(path);
        let folders: Vec<PathBuf> = match purpose {
            SourcePurpose::Learn => site.folders().into_iter().map(real).collect(),
            SourcePurpose::Consolidate => Vec::new(),
        };
        let exclusions = Exclusions::new(excluded, scope.clone());
        let apart = ExcludedSessions::new(folders.clone(), exclusions, scope.project().to_owned());
        Self { purpose, folders, except: site.session.clone(), apart, zone: TimeZone::system() }
    }

    /// Purpose of the dream.
    pub(super) fn purpose(&self) -> SourcePurpose {
        self.purpose
    }

    /// Time zone in which times are shown.
    pub(super) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The sessions touched since a time, the newest first. Whether they may be learnt from is decided by
    /// [`Self::said_in`].
    pub(super) fn touched(&self, since: Option<Timestamp>) -> Vec<SessionFile> {
        sessions::touched(&self.folders, since, self.except.as_deref())
    }

    /// The session with this id, or with an id that begins so.
    pub(super) fn named(&self, id: &str) -> Option<SessionFile> {
        let all = self.touched(None);
        let exact = all.iter().find(|session| session.id == id);
        exact.or_else(|| all.iter().find(|session| id.len() >= 4 && session.id.starts_with(id))).cloned()
    }

    /// Messages of a session; none if nothing may be learnt from it.
    pub(super) fn messages_of(&self, session: &SessionFile) -> Option<Vec<SessionMessage>> {
        if session.len > LARGEST || self.apart.has(&session.path) {
            return None;
        }
        read_messages(&session.path)
    }
}

/// A number of messages, in words.
pub(super) fn counted(messages: usize) -> String {
    format!("{messages} {}", if messages == 1 { "message" } else { "messages" })
}

/// Messages of a session, if its file says that it may be learnt from. Claude Code's files say nothing about that.
fn read_messages(path: &Path) -> Option<Vec<SessionMessage>> {
    let log = record::read(path).ok()?.log;
    let notes = log.lines().iter().map(Note::of);
    let (mut learns, mut from) = (false, 0);
    for (at, note) in notes.enumerate() {
        learns |= note == Some(Note::Learns);
        // What precedes was said in another file, which speaks for itself.
        from = if note == Some(Note::Continued) { at } else { from };
    }
    let is_ours = log.lines().iter().any(|line| line.in_chain() && line.writer == Writer::Cairn);
    if is_ours && !learns {
        return None;
    }
    let messages = log.lines()[from..].iter().filter_map(|line| {
        let (speaker, words) = words_on(&log, line)?;
        Some(SessionMessage { speaker, at: line.time, id: line.id.as_ref().map(ToString::to_string), words })
    });
    let messages: Vec<SessionMessage> = messages.collect();
    (!messages.is_empty()).then_some(messages)
}
