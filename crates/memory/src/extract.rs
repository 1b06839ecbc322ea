//! What an agent is told that writes down what a session leaves behind.
//!
//! It is a fork of the conversation, so what stands here is all that is paid in full: where the session has been given the
//! rules for memory already, they are not said again, and of what is known only so much is listed.

use std::path::Path;

use minijinja::context;

use crate::scan::{Header, one_line};
use crate::taxonomy::render;

/// How many memories are listed.
const LISTED: usize = 60;

/// How much of a description is.
const DESCRIPTION: usize = 90;

/// How many bytes the list may have: with the rest it stays below a tenth of a conversation of 50,000 tokens.
const LIST_BYTES: usize = 6_000;

/// What the words depend on.
#[derive(Debug, Clone, Copy)]
pub struct Directive<'a> {
    /// How many of the newest messages it is about; none is all of them.
    pub messages: Option<usize>,
    /// The memory directory.
    pub directory: &'a Path,
    /// The directory that is shared, if there is one.
    pub team: Option<&'a Path>,
    /// Whether the rules for memory have to be said: the session has not been given them.
    pub rules: bool,
    /// Whether there is an index.
    pub index: bool,
    /// What is known already, the newest first.
    pub known: &'a [Header],
}

/// What the agent is told.
pub fn directive(from: &Directive<'_>) -> String {
    let mut manifest = String::new();
    let mut listed = 0;
    for header in from.known.iter().take(LISTED) {
        let description = header.description.as_deref().map(|text| one_line(text, DESCRIPTION));
        let line = Header { description, modified: None, ..header.clone() }.to_string();
        if manifest.len() + line.len() > LIST_BYTES {
            break;
        }
        manifest = if manifest.is_empty() { line } else { manifest + "\n" + &line };
        listed += 1;
    }
    let more = from.known.len() - listed;
    render(
        "extract.md",
        context! {
            all => from.messages.is_none(),
            count => from.messages,
            directory => from.directory.display().to_string(),
            team => from.team.map(|path| path.display().to_string()),
            rules => from.rules,
            index => from.index,
            manifest => (!manifest.is_empty()).then(|| crate::neutral::quoted(&manifest).to_string()),
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
