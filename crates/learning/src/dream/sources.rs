//! The sessions that a dream may learn from, and what was said in them.
//!
//! A dream never sees a line of a transcript: only what the user typed and what the model answered, with local times. What
//! tools returned, what was put before the model and what the user took back is not said here. Nothing is read of sessions
//! that are kept apart ([`ExcludedSessions`]), of our own that were not to be learnt from (such as runs without a terminal), or of any
//! session where learning is off.

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
use crate::extract::render::{Speaker, rendered, words_on};

/// A larger session is not read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Whether a dream learns from sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourcePurpose {
    /// It brings memories into order, and saves what sessions show and nobody saved.
    #[default]
    Learn,
    /// It brings memories into order, and is told of no session.
    Consolidate,
}

impl SourcePurpose {
    /// What dreams are for, as the settings say: where learning is off, it is off for them too.
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
    /// Who said it.
    pub(super) speaker: Speaker,
    /// When.
    pub(super) at: Option<Timestamp>,
    /// The line it stands on.
    pub(super) id: Option<String>,
    /// What was said.
    pub(super) words: String,
}

impl SessionMessage {
    /// As it is shown.
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

    /// Whether a dream learns from sessions.
    pub(super) fn purpose(&self) -> SourcePurpose {
        self.purpose
    }

    /// Where times are told.
    pub(super) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The sessions that were touched since a time, the newest first. Whether they may be learnt from, [`Self::said_in`]
    /// finds out.
    pub(super) fn touched(&self, since: Option<Timestamp>) -> Vec<SessionFile> {
        sessions::touched(&self.folders, since, self.except.as_deref())
    }

    /// The session of a name, or of the beginning of one.
    pub(super) fn named(&self, id: &str) -> Option<SessionFile> {
        let all = self.touched(None);
        let exact = all.iter().find(|session| session.id == id);
        exact.or_else(|| all.iter().find(|session| id.len() >= 4 && session.id.starts_with(id))).cloned()
    }

    /// What was said in a session; nothing where nothing is learnt from it.
    pub(super) fn said_in(&self, session: &SessionFile) -> Option<Vec<SessionMessage>> {
        if session.len > LARGEST || self.apart.has(&session.path) {
            return None;
        }
        said_in(&session.path)
    }
}

/// So many messages, in words.
pub(super) fn counted(messages: usize) -> String {
    format!("{messages} {}", if messages == 1 { "message" } else { "messages" })
}

/// What was said in a session, as far as its file says that it may be learnt from. Claude Code's say nothing about that.
fn said_in(path: &Path) -> Option<Vec<SessionMessage>> {
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
