//! Team memory while a session runs: kept in step in the background, and what happened is told as events.
//!
//! It begins where the user joined a server and memory is on, and nowhere else. The session neither waits for it nor fails
//! because of it.

use std::path::PathBuf;
use std::sync::Arc;

use engine::Event;
use engine::event::{Listener, TeamChange};
use session::World;
use team::EntryKey;
use team::protocol::OverwrittenText;
use team::report::{RemoteChange, SyncReport};
use team::watch_folder::{WatchNews, WatchStatus, WatchedFolder};

use crate::event_text::count;
use crate::program_paths::ProgramPaths;
use crate::setup::PreparedSession;
use crate::team_membership;

/// So many names stand in one sentence.
const NAMES: usize = 5;

/// This project's team memory, kept in step.
pub(crate) struct TeamMemory {
    /// With which server.
    pub(crate) server: String,
    /// As which repository.
    pub(crate) repository: String,
    /// The folder of the files.
    pub(crate) folder: PathBuf,
    watching: WatchedFolder,
}

impl TeamMemory {
    /// Keeps it in step from now on, if it is shared.
    pub(crate) fn start(place: &ProgramPaths, ready: &PreparedSession, listener: Listener) -> Option<Self> {
        let listener = ready.agent.journal().hearing(listener);
        let folder = ready.agent.knowledge()?.memory_directory()?.join("team");
        let started = team_membership::here(place).and_then(|membership| {
            let Some(membership) = membership else { return Ok(None) };
            let mirror = membership.mirror(place, &folder)?;
            Ok(Some((membership.server, membership.repository.to_string(), mirror)))
        });
        let (server, repository, mirror) = match started {
            Ok(started) => started?,
            Err(error) => {
                listener(Event::Warning(format!("team memory: {error:#}")));
                return None;
            }
        };
        let clock = Arc::new(|| World::real().now().as_millisecond());
        let watching = WatchedFolder::start(mirror, clock, Arc::new(move |news| listener(event(news))));
        Some(Self { server, repository, folder, watching })
    }

    /// Its status.
    pub(crate) fn status(&self) -> WatchStatus {
        self.watching.status()
    }

    /// Pulls and pushes now.
    pub(crate) fn hurry(&self) {
        self.watching.hurry();
    }

    /// Files that are missing here are deleted for all, now.
    pub(crate) fn delete_missing(&self) {
        self.watching.delete_missing();
    }

    /// Sends what waits, if that takes only a moment.
    pub(crate) async fn close(self) {
        self.watching.close().await;
    }
}

fn event(news: WatchNews) -> Event {
    match news {
        WatchNews::Done(done) => {
            Event::TeamMemory { sentences: report_lines(&done), changed: done.changes.iter().map(change).collect() }
        }
        WatchNews::Left(left) => {
            let told = left.iter().map(|(name, why)| format!("team memory: {name} is not shared: {why}"));
            Event::TeamMemory { sentences: at_most(told.collect()), changed: Vec::new() }
        }
        WatchNews::KeptBack(names) => {
            let told = names.iter().map(|(name, why)| format!("team memory: {name} {why}"));
            Event::TeamMemory { sentences: at_most(told.collect()), changed: Vec::new() }
        }
        WatchNews::Held(keys) => Event::Warning(format!(
            "team memory: {} missing here; nothing is deleted for others. `/team delete` deletes for everyone, \
                `cairn team pull --missing` brings back",
            count(keys.len(), "file is", "files are")
        )),
        WatchNews::Trouble(why) => Event::Warning(format!("team memory: {why}")),
    }
}

/// A report of what was done, a sentence each.
fn report_lines(done: &SyncReport) -> Vec<String> {
    let mut told = Vec::new();
    for (what, keys) in [
        ("came from others", &done.taken),
        ("was deleted by others", &done.removed),
        ("was sent", &done.sent),
        ("was deleted for everyone", &done.deleted),
    ] {
        match keys.len() {
            0 => {}
            few if few <= NAMES => told.extend(keys.iter().map(|key| format!("team memory: {key} {what}"))),
            many => told.push(format!("team memory: {}: each {what}", count(many, "file", "files"))),
        }
    }
    let conflicts = done.conflicts.iter().map(|key| format!("team memory: {}", conflict(done, key)));
    told.extend(at_most(conflicts.collect()));
    let overwritten = done.overwritten.iter().map(|text| format!("team memory: {}", overwritten_text(text)));
    told.extend(at_most(overwritten.collect()));
    told
}

/// The outcome for an entry that both sides had changed, in a sentence.
pub(crate) fn conflict(done: &SyncReport, key: &EntryKey) -> String {
    let whose = if done.taken.contains(key) { "theirs" } else { "yours" };
    format!(
        "{key} was changed on both sides; {whose} is kept, `cairn team log {key}` shows the other, `cairn team restore` brings \
         it back"
    )
}

/// The author of a text that was replaced without having been seen, in a sentence.
pub(crate) fn overwritten_text(text: &OverwrittenText) -> String {
    let OverwrittenText { key, version, by } = text;
    format!("{by} replaced your {key} without having seen it; `cairn team restore {key} {version}` brings yours back")
}

fn at_most(mut told: Vec<String>) -> Vec<String> {
    let rest = told.len().saturating_sub(NAMES);
    if rest > 0 {
        told.truncate(NAMES);
        told.push(format!("team memory: and {rest} more; `cairn team status` names them"));
    }
    told
}

/// A change by somebody else.
pub(crate) fn change(change: &RemoteChange) -> TeamChange {
    let by = change.author.as_ref().map(|author| format!(", by {author}")).unwrap_or_default();
    let what = match (&change.before, &change.after) {
        (None, _) => "new",
        (_, None) => "deleted",
        _ => "changed",
    };
    TeamChange {
        title: format!("{} ({what}{by})", change.key),
        before: change.before.clone().unwrap_or_default(),
        after: change.after.clone().unwrap_or_default(),
    }
}
