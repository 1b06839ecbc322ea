//! Memories learnt in this session, to show, edit or undo; and private stretches.

use std::path::Path;

use learning::ledger;
use memory::changes::UndoResult;
use memory::store::{IndexUpkeep, Store};
use session::Home;

use super::conversation::Conversation;
use super::memories::MemoryFile;
use super::picker::PickerEntry;
use super::resume_and_rewind::ListPurpose;
use crate::styled_text::{Colour, TextStyle};

/// Marks that the user knows of learning, below the config home.
const ANNOUNCED: &str = "cairn/learning-announced";
/// So many are named when a session begins.
const TOLD: usize = 5;

/// A memory that was saved or removed in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LearntMemory {
    /// The run under which its change is kept.
    pub(super) run: String,
    /// Its path below the memory directory.
    pub(super) path: String,
}

/// Memories that a session learnt, from its log, the newest first.
pub(super) fn of(session: &session::Session) -> Vec<LearntMemory> {
    learning::extract::saved(session).into_iter().map(|(run, path)| LearntMemory { run, path }).collect()
}

/// Memories that agents saved since the last session was opened here, the newest first.
pub(super) fn since_last(home: &Home, memory: &Path, session: &str) -> Vec<LearntMemory> {
    let user = memory::place::user_directory(home.path());
    let mut found = Vec::new();
    for (directory, is_user) in [(memory, false), (user.as_path(), true)] {
        for run in home.changes(directory).news() {
            let by_itself = matches!(run.head.agent.as_str(), ledger::EXTRACT | ledger::DREAM);
            if !by_itself || run.head.session.as_deref() == Some(session) {
                continue;
            }
            let path = |path: &str| if is_user { user.join(path).display().to_string() } else { path.to_owned() };
            found.extend(run.net().iter().map(|change| LearntMemory { run: run.id.clone(), path: path(&change.path) }));
        }
    }
    found
}

/// The actions on one.
const WHAT: [(&str, &str); 3] = [
    ("look", "show it in full"),
    ("change", "say what to change"),
    ("take back", "as it was before, or gone if it was new"),
];

impl Conversation {
    /// Something was learnt.
    pub(super) fn was_learnt(&mut self, outcome: &learning::extract::Outcome) {
        self.announce_learning(outcome);
        if let Some(run) = &outcome.run {
            let of = outcome.tally.saved.iter().chain(&outcome.tally.removed);
            self.session.learnt.splice(..0, of.map(|path| LearntMemory { run: run.clone(), path: path.clone() }));
        }
        // How far learning came is written down as soon as somebody can.
        if let Some(agent) = &mut self.session.agent
            && let Err(error) = agent.take_in_learnt()
        {
            self.view.page.warning(&format!("{error}"));
        }
    }

    /// Says once, to a user who meets it for the first time, what learning cost and how it is turned off.
    fn announce_learning(&mut self, outcome: &learning::extract::Outcome) {
        let Some(price) = self.session.status.prices.of(&outcome.model) else { return };
        // The file can be made once only.
        if files::create_new(self.place.home.path().join(ANNOUNCED), b"").is_err() {
            return;
        }
        let text = format!(
            "Cairn learns from sessions, as background work: this run cost ${:.4}. /cost has the sum, /private pauses it, and \
             `cairn config set --user extract false` turns it off. (This is said once.)",
            price.cost(&outcome.usage)
        );
        self.view.page.note(&text, TextStyle::DIM);
    }

    /// Says what was learnt since the last session, and puts it among what can be looked at, changed and taken back.
    pub(super) fn tell_news(&mut self) {
        let Some(memory) = &self.session.memory else { return };
        let new = since_last(&self.place.home, memory, &self.session.status.session);
        if new.is_empty() {
            return;
        }
        let names: Vec<&str> = new.iter().take(TOLD).map(|one| one.path.as_str()).collect();
        let more = if new.len() > TOLD { format!(" and {} more", new.len() - TOLD) } else { String::new() };
        let memories = if new.len() == 1 { "memory was" } else { "memories were" };
        let text = format!(
            "{} {memories} learnt since your last session: {}{more}; Ctrl-S or /learnt keeps, changes or drops them",
            new.len(),
            names.join(", ")
        );
        self.view.page.note(&text, TextStyle::PLAIN);
        self.session.learnt.splice(..0, new);
    }

    /// Opens the list of what was learnt.
    pub(super) fn learnt(&mut self) {
        if self.session.learnt.is_empty() {
            let waits = self.session.agent.as_ref().is_some_and(engine::Agent::has_to_learn);
            let when = if waits { "; what was said will be looked at later, in this session or the next" } else { "" };
            self.view.hint = Some(format!("nothing was learnt in this session yet{when}; /memory shows all memories"));
            return;
        }
        let about = |one: &LearntMemory| {
            let removed = !self.session.memory.as_ref().is_some_and(|directory| directory.join(&one.path).exists());
            if removed { "no longer there".to_owned() } else { String::new() }
        };
        let list =
            self.session.learnt.iter().map(|one| PickerEntry { label: one.path.clone(), about: about(one) }).collect();
        self.requests.choose("What was learnt:", list, ListPurpose::Learnt(self.session.learnt.clone()));
    }

    /// Asks what is to become of one.
    pub(super) fn choose_about(&mut self, one: LearntMemory) {
        let entry =
            |(label, about): &(&str, &str)| PickerEntry { label: (*label).to_owned(), about: (*about).to_owned() };
        let title = format!("{}:", one.path);
        self.requests.choose(&title, WHAT.iter().map(entry).collect(), ListPurpose::LearntWhat(one));
    }

    /// Does it.
    pub(super) fn do_with(&mut self, one: &LearntMemory, what: usize) {
        match what {
            0 => self.show_file(&MemoryFile::Memory(one.path.clone())),
            1 => self.requests.prompt = Some(format!("Change the memory {}: ", one.path)),
            _ => self.take_back_learnt(one),
        }
    }

    fn take_back_learnt(&mut self, one: &LearntMemory) {
        let Some(directory) = &self.session.memory else { return };
        // What is about the user is in a place of its own, and is named by its whole path.
        let user = memory::place::user_directory(self.place.home.path());
        let (directory, path) = match std::path::Path::new(&one.path).strip_prefix(&user) {
            Ok(below) => (&user, below.to_string_lossy().into_owned()),
            Err(_) => (directory, one.path.clone()),
        };
        let changes = self.place.home.changes(directory);
        let now = session::World::real().now();
        let undone = Store::open(directory, IndexUpkeep::Kept)
            .and_then(|store| changes.undo(&one.run, Some(&path), &store, now));
        let said = match undone.as_ref().map(Vec::as_slice) {
            Ok([UndoResult::Removed { path }]) => format!("{path} is forgotten"),
            Ok([UndoResult::Restored { path }]) => format!("{path} is as it was before"),
            Ok([UndoResult::ChangedSince { path, now: None, .. }]) => format!("{path} is already gone"),
            Ok([UndoResult::ChangedSince { path, .. }]) => format!("{path} has been changed since and stays as it is"),
            Ok(_) => "there is nothing to take back".to_owned(),
            Err(error) => format!("not taken back: {error}"),
        };
        self.view.page.note(&said, TextStyle::of(Colour::Green));
        self.session.learnt.retain(|other| other != one);
    }

    /// From here on nothing is learnt, or again.
    pub(super) fn private(&mut self, argument: &str) {
        let Some(agent) = &mut self.session.agent else { return };
        let on = match argument {
            "on" => true,
            "off" => false,
            "" => !learning::extract::private(agent.session()),
            _ => {
                self.view.hint = Some("/private, /private on or /private off".into());
                return;
            }
        };
        if on != learning::extract::private(agent.session())
            && let Err(error) = learning::extract::set_private(agent.session_mut(), on)
        {
            self.view.page.note(&error.to_string(), TextStyle::of(Colour::Red));
            return;
        }
        self.session.status.private = on;
        let said = if on {
            "private: nothing is learnt from what follows"
        } else {
            "no longer private: what follows may be learnt from"
        };
        self.view.page.note(said, TextStyle::PLAIN);
    }
}
