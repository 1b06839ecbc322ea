//! Prompts for the agent that extracts memories from a session.
//!
//! The new part of a prompt is paid in full with every run: of the known memories only those most similar to the
//! conversation are shown. The rules are the same for all runs that are shown the conversation: they are in the system
//! prompt, which the provider caches. A fork has the system prompt of its conversation; if that has the rules for
//! memory, they are not repeated.

use std::path::Path;

use minijinja::context;

use crate::scan::{Header, one_line};
use crate::taxonomy::render;

/// Characters shown of a description.
const DESCRIPTION: usize = 90;

/// Limit on the list of memories, in bytes.
const LIST_BYTES: usize = 5_000;

/// Limit on memories shown in full, in bytes.
pub const SHOWN_BYTES: usize = 6_000;

/// Values of the directive.
#[derive(Debug, Clone, Copy)]
pub struct Directive<'a> {
    /// The new part.
    pub new: NewTurns<'a>,
    /// Today, as people write it.
    pub today: &'a str,
    /// The memory directory.
    pub directory: &'a Path,
    /// The shared directory, if there is one.
    pub team: Option<&'a Path>,
    /// True if a fork has to be told the rules for memory: its conversation was not given them.
    pub rules: bool,
    /// True if there is an index.
    pub index: bool,
    /// Memories shown in full: path and text.
    pub shown: &'a [(String, String)],
    /// Other known memories, likeliest first.
    pub listed: &'a [Header],
    /// Total number of memories.
    pub known: usize,
}

/// The new part of a conversation.
#[derive(Debug, Clone, Copy)]
pub enum NewTurns<'a> {
    /// The part between `<new>` and `</new>` of a conversation that is shown.
    Marked {
        /// The conversation, quoted.
        conversation: &'a str,
    },
    /// The part of the conversation itself that starts with a message of the user's.
    From {
        /// Beginning of that message.
        beginning: &'a str,
        /// Time of that message.
        at: &'a str,
    },
}

/// System prompt of an agent that is shown the conversation.
pub fn instructions(team: Option<&Path>) -> String {
    render("extract-rules.md", context! { rules => true, team => team.is_some() })
}

/// The directive for the agent.
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

/// Returns whether a system prompt has the rules for memory.
pub fn has_rules(system: &str) -> bool {
    system.contains(include_str!("prompts/not-saved.md").lines().next().unwrap_or_default())
}

/// Words with which people speak of themselves, of others, of rules, of reasons and of mistakes. A request to do
/// something has none of them.
const SIGNS: [&str; 44] = [
    "i", "i'm", "i've", "my", "me", "we", "our", "us", "nobody", "everyone", "team", "customer", "always", "never",
    "prefer", "instead", "don't", "not", "no", "can't", "won't", "stop", "wrong", "right", "actually", "remember",
    "forget", "keep", "should", "must", "wants", "need", "needs", "because", "since", "until", "deadline", "owns",
    "called", "decided", "please", "perfect", "exactly", "every",
];

/// Length from which on a text is examined, whatever is in it.
const LONG: usize = 40;

/// Returns whether a user's text has any sign of something to remember. It errs on the side of true: what it rejects is
/// never seen by a model. It does not judge languages it does not know.
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

/// Returns whether a longer sentence describes how things are, rather than what to do: something is, are, has or was
/// so.
fn says(words: &[String]) -> bool {
    words.iter().skip(1).any(|word| matches!(word.as_str(), "is" | "are" | "has" | "have" | "was" | "were" | "lives"))
}
