//! What an agent is told that writes down what a session leaves behind.
//!
//! What it is told anew is paid in full with every run: of what is known only those memories are shown that are most like what
//! was said. The rules are the same for all runs about what was said alone: they stand in the system prompt, which the provider
//! keeps. A fork has the system prompt of its conversation; where that has the rules for memory, they are not said again.

use std::path::Path;

use minijinja::context;

use crate::scan::{Header, one_line};
use crate::taxonomy::render;

/// How much of a description is shown.
const DESCRIPTION: usize = 90;

/// How many bytes the list of memories may have.
const LIST_BYTES: usize = 5_000;

/// How many bytes of whole memories are shown.
pub const SHOWN_BYTES: usize = 6_000;

/// What the words depend on.
#[derive(Debug, Clone, Copy)]
pub struct Directive<'a> {
    /// What is new.
    pub new: NewTurns<'a>,
    /// Today, as people write it.
    pub today: &'a str,
    /// The memory directory.
    pub directory: &'a Path,
    /// The directory that is shared, if there is one.
    pub team: Option<&'a Path>,
    /// Whether a fork has to be told the rules for memory: its conversation has not been given them.
    pub rules: bool,
    /// Whether there is an index.
    pub index: bool,
    /// Memories that are shown whole: path and text.
    pub shown: &'a [(String, String)],
    /// Others that are known, the likeliest first.
    pub listed: &'a [Header],
    /// How many there are in all.
    pub known: usize,
}

/// The part of a conversation that is new.
#[derive(Debug, Clone, Copy)]
pub enum NewTurns<'a> {
    /// What stands between `<new>` and `</new>` in a conversation that is shown.
    Marked {
        /// The conversation, quoted.
        conversation: &'a str,
    },
    /// What was said in the conversation itself, from a message of the user's on.
    From {
        /// How that message begins.
        beginning: &'a str,
        /// When it was said.
        at: &'a str,
    },
}

/// What stands in the system prompt of an agent that is shown what was said.
pub fn instructions(team: Option<&Path>) -> String {
    render("extract-rules.md", context! { rules => true, team => team.is_some() })
}

/// What the agent is told.
pub fn directive(from: &Directive<'_>) -> String {
    let mut list = String::new();
    let mut listed = 0;
    for header in from.listed {
        let description = header.description.as_deref().map(|text| one_line(text, DESCRIPTION));
        let line = Header { description, modified: None, ..header.clone() }.to_string();
        if list.len() + line.len() > LIST_BYTES {
            break;
        }
        list = if list.is_empty() { line } else { list + "\n" + &line };
        listed += 1;
    }
    let quoted = |text: &str| crate::quoting::quoted(text).into_owned();
    let frame = |(path, text): &(String, String)| {
        format!("<memory path=\"{}\">\n{}\n</memory>\n", quoted(path), quoted(text.trim()))
    };
    let shown: String = from.shown.iter().map(frame).collect();
    let more = from.known.saturating_sub(listed + from.shown.len());
    let (conversation, beginning, at) = match from.new {
        NewTurns::Marked { conversation } => (Some(conversation), None, None),
        NewTurns::From { beginning, at } => (None, Some(quoted(beginning)), Some(at)),
    };
    render(
        "extract.md",
        context! {
            conversation => conversation,
            beginning => beginning,
            at => at,
            today => from.today,
            directory => from.directory.display().to_string(),
            team => from.team.map(|path| path.display().to_string()),
            rules => from.rules,
            index => from.index,
            shown => (!shown.is_empty()).then_some(shown),
            list => (!list.is_empty()).then(|| quoted(&list)),
            more => (more > 0).then_some(more),
        },
    )
}

/// Whether a system prompt has the rules for memory.
pub fn has_rules(system: &str) -> bool {
    system.contains(include_str!("prompts/not-saved.md").lines().next().unwrap_or_default())
}

/// Words with which people speak of themselves, of others, of rules, of reasons and of what was wrong. A request to do
/// something has none of them.
const SIGNS: [&str; 44] = [
    "i", "i'm", "i've", "my", "me", "we", "our", "us", "nobody", "everyone", "team", "customer", "always", "never",
    "prefer", "instead", "don't", "not", "no", "can't", "won't", "stop", "wrong", "right", "actually", "remember",
    "forget", "keep", "should", "must", "wants", "need", "needs", "because", "since", "until", "deadline", "owns",
    "called", "decided", "please", "perfect", "exactly", "every",
];

/// Longer texts are looked at, whatever is in them.
const LONG: usize = 40;

/// Whether a text of the user's has any sign of something to remember. It errs to yes: what it passes over is never looked
/// at by a model. Of languages it does not know it says nothing.
pub fn signals(text: &str) -> bool {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '!' | '?' | '"' | '(' | ')'))
        .map(|word| word.trim_matches('.').replace('\u{2019}', "'").to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let is_sign = |word: &String| {
        SIGNS.contains(&word.as_str())
            || word.contains("://")
            || word.contains('/') && word.contains('.')
            || word.bytes().filter(u8::is_ascii_digit).count() >= 4
            || DAYS.iter().any(|day| word.starts_with(day))
    };
    words.len() > LONG || !text.is_ascii() || words.iter().any(is_sign) || words.len() > 8 && says(&words)
}

/// Days and months, as far as they begin no other word.
const DAYS: [&str; 12] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "weekend",
];

/// Whether a longer sentence says how things are, rather than what to do: something is, are, has or was so.
fn says(words: &[String]) -> bool {
    words.iter().skip(1).any(|word| matches!(word.as_str(), "is" | "are" | "has" | "have" | "was" | "were" | "lives"))
}
