//! Looking at memories: lists, searches, one whole with where it comes from.

use std::path::Path;
use std::sync::Arc;

use memory::quoted_sentences::QuotedSentence;
use memory::rank::{RankQuestion, WorkAtHand};
use memory::shelf::{Shelf, ShelfScope};
use memory::{Kind, Memory};
use serde_json::json;
use transcript::line::Line;

use crate::event_text::local_time;
use crate::memory_shelves::{CommandShelves, NamedMemory};
use crate::out::{data, talk};
use crate::styled_text::{Span, cyan, dim, first_line};

/// The most matches.
const FOUND: usize = 20;

/// The most characters of a line that are shown.
const LINE: usize = 120;

/// The most that is shown of a memory.
const LIMIT: u64 = 1_000_000;

/// All memories, newest first: type, date, file, who wrote it, what it is about.
pub(super) fn list(shelves: &CommandShelves, as_json: bool) -> anyhow::Result<()> {
    let all = shelves.all()?;
    if as_json {
        let rows = all.iter().map(|NamedMemory { directory, memory }| {
            json!({
                "path": memory.path, "directory": directory, "name": memory.name, "type": memory.kind.map(Kind::name),
                "description": memory.description, "modified": memory.dated.map(|time| format!("{time:.0}")),
                "agent": memory.origin.agent,
            })
        });
        data!("{}", rows.collect::<serde_json::Value>())?;
        return Ok(());
    }
    if all.is_empty() {
        talk!("There are no memories in {} yet.", shelves.main().display());
    }
    for NamedMemory { directory, memory } in &all {
        let kind = memory.kind.map_or("", Kind::name);
        let date = memory.dated.map(local_time).unwrap_or_default();
        let from = from(memory, shelves, directory);
        let about = first_line(memory.description.as_deref().unwrap_or_default(), LINE);
        data!([
            format!("{kind:<10} {date:<16}  "),
            cyan(&memory.path),
            Span::plain("  "),
            dim(&format!("{about}{from}"))
        ])?;
    }
    Ok(())
}

/// Its author, and its shelf if there are two.
fn from(memory: &Memory, shelves: &CommandShelves, directory: &Path) -> String {
    let by = memory.origin.agent.as_deref().map(|agent| format!("by {agent}"));
    let everywhere = shelves.is_the_users(directory).then(|| "in every project".to_owned());
    let parts: Vec<String> = by.into_iter().chain(everywhere).collect();
    if parts.is_empty() { String::new() } else { format!("  ({})", parts.join(", ")) }
}

/// Memories that have to do with words, the likeliest first: title, file, and a line.
pub(super) fn search(shelves: &CommandShelves, words: &str, as_json: bool) -> anyhow::Result<()> {
    let (doing, now) = (WorkAtHand::default(), shelves.now());
    let mut found = Vec::new();
    for directory in shelves.there() {
        let scope = if shelves.is_the_users(directory) { ShelfScope::User } else { ShelfScope::Project };
        let shelf = Arc::new(Shelf::read(directory, scope)?);
        let hits = shelf.ranker().map(|ranker| ranker.rank(&RankQuestion { text: words, doing: &doing, now }));
        found.extend(hits.into_iter().flatten().map(|hit| (shelf.clone(), hit)));
    }
    found.sort_by(|one, other| other.1.confidence.total_cmp(&one.1.confidence));
    if as_json {
        let rows = found
            .iter()
            .map(|(shelf, hit)| json!({"path": hit.path, "directory": shelf.root().path(), "score": hit.confidence}));
        data!("{}", rows.collect::<serde_json::Value>())?;
        return Ok(());
    }
    if found.is_empty() {
        talk!("No memory matches these words.");
    }
    for (shelf, hit) in found.iter().take(FOUND) {
        let Ok(memory) = Memory::read(shelf.root(), &hit.path) else { continue };
        let line = line_with(&memory, &hit.matched);
        let from = from(&memory, shelves, shelf.root().path());
        data!([
            format!("{:.2}  ", hit.confidence),
            cyan(&memory.path),
            Span::plain("  "),
            Span::plain(&memory.name),
            dim(&from)
        ])?;
        if !line.is_empty() {
            data!([dim(&format!("      {line}"))])?;
        }
    }
    Ok(())
}

/// The line of a memory that has most of the words that were found.
fn line_with(memory: &Memory, matched: &[(String, f32)]) -> String {
    let lines = memory.description.iter().map(String::as_str).chain(memory.body.lines());
    let has = |line: &str| {
        let line = line.to_lowercase();
        matched.iter().filter(|(word, _)| line.contains(word.as_str())).count()
    };
    let best = lines.filter(|line| !line.trim().is_empty()).rev().max_by_key(|line| has(line));
    first_line(best.unwrap_or_default(), LINE)
}

/// One memory, whole. Where it comes from is said beside it.
pub(super) fn show(shelves: &CommandShelves, name: &str, open: bool) -> anyhow::Result<()> {
    let meant = shelves.find(name)?;
    let root = files::Root::open(&meant.directory)?;
    let spoken = shelves.register(&meant.directory).read().of(&meant.memory.body).cloned();
    if open {
        return open_origin(shelves, &meant.memory, spoken.as_ref());
    }
    data!("{}", String::from_utf8_lossy(&root.read(&meant.memory.path, LIMIT)?.bytes).trim_end())?;
    talk!("\n{}", meant.directory.join(&meant.memory.path).display());
    for line in origin(&meant.memory, spoken.as_ref()) {
        talk!("{line}");
    }
    Ok(())
}

/// The origin of a memory: the sentence of the user that it quotes, if it quotes one, and what its frontmatter says.
fn origin(memory: &Memory, spoken: Option<&QuotedSentence>) -> Vec<String> {
    let mut lines = Vec::new();
    match (spoken, memory.body.lines().find_map(|line| line.trim().strip_prefix("> "))) {
        (Some(spoken), _) => {
            let at = spoken.time().map(|at| format!(", {}", local_time(at))).unwrap_or_default();
            lines.push(format!("said      \"{}\"{at}", spoken.sentence));
        }
        (None, Some(quotation)) => lines.push(format!("quotes    {quotation} (not known to be your words)")),
        (None, None) => {}
    }
    lines.extend(memory.dated.map(|dated| format!("changed   {}", local_time(dated))));
    lines.extend(memory.imported_from.as_ref().map(|from| format!("imported  {from}")));
    let origin = &memory.origin;
    let by: Vec<&str> = [&origin.agent, &origin.model].into_iter().flatten().map(String::as_str).collect();
    lines.push(format!("written   by {}", if by.is_empty() { "you".to_owned() } else { by.join(", ") }));
    let (session, _) = place(memory, spoken);
    lines.extend(session.map(|session| format!("session   {session} (--open shows the place)")));
    lines
}

/// The session and the message that a memory comes from: those of the sentence that it quotes, or those in its frontmatter.
fn place<'a>(memory: &'a Memory, spoken: Option<&'a QuotedSentence>) -> (Option<&'a str>, Option<&'a str>) {
    let (session, message) = match spoken {
        Some(spoken) if spoken.session.is_some() => (&spoken.session, &spoken.message),
        _ => (&memory.origin.session, &memory.origin.message),
    };
    (session.as_deref(), message.as_deref())
}

/// Prints the messages that a memory comes from.
fn open_origin(shelves: &CommandShelves, memory: &Memory, spoken: Option<&QuotedSentence>) -> anyhow::Result<()> {
    let (Some(session), message) = place(memory, spoken) else {
        anyhow::bail!("{} does not say which session it comes from", memory.path);
    };
    let file = shelves.place.home.find(&shelves.place.directory, session)?;
    let (lines, _) = session::record::lines(&file.path)?;
    let is_it = |line: &Line| message.is_some_and(|id| line.id.as_ref().is_some_and(|known| known.to_string() == *id));
    // What a reply was learnt from was said before it.
    let until = lines.iter().position(is_it).map_or(&lines[..0], |at| &lines[..=at]);
    let said = until.iter().rev().map(|line| line.typed().join("\n")).find(|text| !text.is_empty());
    data!("{}", file.path.display())?;
    match (said, message) {
        (Some(said), _) => data!("{said}")?,
        (None, Some(message)) => data!("message {message}")?,
        (None, None) => talk!("It does not say which message."),
    }
    talk!("\nhint: cairn --resume {session} opens the session");
    Ok(())
}
