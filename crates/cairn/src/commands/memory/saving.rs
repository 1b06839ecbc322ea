//! Saving, changing, removing and moving memories by command. Each is kept, and `memory undo` takes it back.

use std::io::{IsTerminal, Read};

use memory::import::first_sentence;
use memory::rank::{RankQuestion, WorkAtHand, surfaced};
use memory::remember::MemoryOrigin;
use memory::shelf::is_about_the_user;
use memory::store::{self, MemoryEdit, NewMemory, SaveResult};
use memory::{Kind, Memory, Ranker, lookup};

use crate::memory_shelves::{CommandShelves, NamedMemory};
use crate::out::talk;

/// The most that is read as the text of a memory.
const BODY_LIMIT: u64 = 1_000_000;

/// A memory as it was given.
pub(super) struct MemoryDraft<'a> {
    pub(super) name: &'a str,
    pub(super) description: Option<&'a str>,
    pub(super) asked: Option<&'a str>,
    pub(super) kind: &'a str,
    pub(super) applies_to: &'a [String],
    pub(super) body: Option<&'a str>,
    pub(super) file: Option<&'a str>,
}

/// Saves a new memory: one about the user among theirs, the others in the project.
pub(super) fn add(shelves: &CommandShelves, given: &MemoryDraft<'_>) -> anyhow::Result<()> {
    let body = text(given.body)?.unwrap_or_default();
    let first = first_sentence(&body);
    let first = if first.is_empty() { given.name.to_owned() } else { first };
    let new = NewMemory {
        path: given.file.map(str::to_owned),
        name: given.name.to_owned(),
        description: given.description.map_or(first, str::to_owned),
        asked: given.asked.map(str::to_owned),
        kind: Some(kind_of(given.kind)?),
        applies_to: given.applies_to.to_vec(),
        body,
    };
    let origin = MemoryOrigin { at: Some(shelves.now()), ..MemoryOrigin::default() };
    let everywhere = shelves.has_two() && is_about_the_user(new.kind, &store::render(&new));
    let directory = if everywhere { shelves.user() } else { shelves.main().to_owned() };
    let saved = shelves
        .as_the_user(&directory, |store| Ok(store.remember(&new, &origin, Some(&shelves.place.directory))?))?;
    report(if everywhere { "saved, for every project:" } else { "saved" }, &saved);
    Ok(())
}

/// Changes a memory. A description that was the first sentence of its text follows a new text.
pub(super) fn edit(shelves: &CommandShelves, name: &str, mut change: MemoryEdit) -> anyhow::Result<()> {
    let meant = shelves.find(name)?;
    let first = first_sentence(&meant.memory.body);
    if change.description.is_none() && meant.memory.description.as_ref() == Some(&first) {
        let new = change.body.as_deref().map(first_sentence);
        change.description = new.filter(|new| !new.is_empty() && *new != first);
    }
    let change = &change;
    let saved = shelves.as_the_user(&meant.directory, |store| Ok(store.edit(&meant.memory.path, change)?))?;
    report("changed", &saved);
    Ok(())
}

/// Removes a memory, and leaves a tombstone.
pub(super) fn remove(shelves: &CommandShelves, meant: &NamedMemory) -> anyhow::Result<()> {
    let path = &meant.memory.path;
    let saved = shelves.as_the_user(&meant.directory, |store| {
        let text = store.root().read(path, BODY_LIMIT).map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
        let saved = store.remove(path)?;
        let changes = shelves.place.home.changes(&meant.directory);
        changes.tombstones().plant(path, &text.unwrap_or_default(), Some(shelves.now().to_string()))?;
        Ok(saved)
    })?;
    report("removed", &saved);
    Ok(())
}

/// Removes the memory that a name or words mean.
pub(super) fn forget(shelves: &CommandShelves, words: &str) -> anyhow::Result<()> {
    let all = shelves.all()?;
    let memories: Vec<Memory> = all.iter().map(|meant| meant.memory.clone()).collect();
    let mut found = lookup::find(&memories, words);
    if found.is_empty() {
        let question = RankQuestion { text: words, doing: &WorkAtHand::default(), now: shelves.now() };
        let named: Vec<Memory> = memories
            .iter()
            .enumerate()
            .map(|(at, memory)| Memory { path: format!("{at}"), applies_to: Vec::new(), ..memory.clone() })
            .collect();
        let hits = surfaced(Ranker::of(&named).rank(&question));
        found = hits.iter().filter_map(|hit| hit.path.parse().ok()).collect();
    }
    match found.as_slice() {
        [one] => remove(shelves, &all[*one]),
        [] => {
            anyhow::bail!("{words:?} does not clearly name a memory; cairn memory search {words:?} shows similar ones")
        }
        several => {
            let names: Vec<&str> = several.iter().map(|at| memories[*at].path.as_str()).collect();
            anyhow::bail!("several memories match; name one: {}", names.join(", "))
        }
    }
}

pub(super) fn rename(shelves: &CommandShelves, from: &str, to: &str) -> anyhow::Result<()> {
    let meant = shelves.find(from)?;
    let saved = shelves.as_the_user(&meant.directory, |store| Ok(store.rename(&meant.memory.path, to)?))?;
    report("renamed to", &saved);
    Ok(())
}

/// Moves a memory between the project's and the user's across projects, as old as it was.
pub(super) fn relocate(shelves: &CommandShelves, name: &str, to_project: bool) -> anyhow::Result<()> {
    let both = CommandShelves::of(&shelves.place, None, false)?;
    let meant = both.find(name)?;
    let target = if to_project { both.main().to_owned() } else { both.user() };
    anyhow::ensure!(meant.directory != target, "{} already exists", meant.memory.path);
    let path = &meant.memory.path;
    let source = files::Root::open(&meant.directory)?;
    let text = String::from_utf8(source.read(path, BODY_LIMIT)?.bytes)
        .map_err(|_| anyhow::anyhow!("{path} is not UTF-8 text"))?;
    let modified = source.head(path, 0)?.modified;
    let quotations = both.register(&meant.directory).read();
    let saved = both.as_the_user(&target, |store| {
        if let Some(spoken) = quotations.of(&meant.memory.body) {
            both.register(&target).keep(&meant.memory.body, spoken)?;
        }
        let saved = store.remember_text(path, &text, &MemoryOrigin::default(), None)?;
        if let Some(modified) = modified {
            store.root().date(path, modified)?;
        }
        Ok(saved)
    })?;
    both.as_the_user(&meant.directory, |store| Ok(store.remove(path)?))?;
    report(if to_project { "moved to this project:" } else { "moved to every project:" }, &saved);
    Ok(())
}

pub(super) fn report(what: &str, saved: &SaveResult) {
    talk!("{what} {}", saved.path);
    for warning in &saved.warnings {
        crate::out::warn(&warning.to_string());
    }
}

pub(super) fn kind_of(word: &str) -> anyhow::Result<Kind> {
    Kind::of(word).ok_or_else(|| {
        anyhow::anyhow!(
            "{word} is not a type of memory; there are user, feedback, project \
        and reference"
        )
    })
}

/// A text that was given, or comes from a pipe.
pub(super) fn text(given: Option<&str>) -> anyhow::Result<Option<String>> {
    if let Some(given) = given {
        return Ok(Some(given.to_owned()));
    }
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(BODY_LIMIT).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
