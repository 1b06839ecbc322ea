//! Turns as text for a model that has not seen them: who said what, and when.
//!
//! Words alone: tool results, injected text, and what the user took back are left out. The text is data to whoever
//! reads it, so tags in it are made harmless.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use transcript::block::Kind;
use transcript::line::{Body, Line, TextSource};
use transcript::{Block, Log};

use super::turns::LoggedTurn;

/// Characters of one message of the user; a longer one loses its middle.
const USER: usize = 8_000;
/// Characters of one message of the model.
const ASSISTANT: usize = 3_000;

/// Speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The user, who typed it.
    User,
    /// The model.
    Assistant,
}

/// The text of a turn.
pub(crate) fn turn_text(log: &Log, turn: &LoggedTurn, zone: &TimeZone) -> String {
    let mut text = String::new();
    for line in &log.lines()[turn.lines.clone()] {
        let Some((speaker, words)) = words_on(log, line) else { continue };
        text.push_str(&rendered(speaker, line.time, &words, zone));
    }
    memory::quoting::quoted(&text).into_owned()
}

/// Speaker and words of a line; none if it was taken back or has no words.
pub(crate) fn words_on(log: &Log, line: &Line) -> Option<(Speaker, String)> {
    let (speaker, words) = match &line.body {
        Body::User { source: TextSource::Direct, .. } => (Speaker::User, line.typed().join("\n")),
        Body::Assistant { blocks, .. } => (Speaker::Assistant, words_of(blocks)),
        _ => return None,
    };
    let taken_back = line.id.as_ref().is_some_and(|id| log.view().is_taken_back(id));
    (!line.sidechain && !taken_back && !words.trim().is_empty()).then_some((speaker, words))
}

/// One message: its speaker, its time if it is the user's, and its words. A long one loses its middle.
pub(crate) fn rendered(speaker: Speaker, at: Option<Timestamp>, words: &str, zone: &TimeZone) -> String {
    let at = at.map(|at| format!(" ({})", readable_time(&at.to_zoned(zone.clone())))).unwrap_or_default();
    match speaker {
        Speaker::User => format!("User{at}: {}\n\n", shortened(words.trim(), USER)),
        Speaker::Assistant => format!("Assistant: {}\n\n", shortened(words.trim(), ASSISTANT)),
    }
}

/// A time in a readable form.
pub(crate) fn readable_time(at: &Zoned) -> String {
    at.strftime("%A, %Y-%m-%d, %H:%M").to_string()
}

/// The text of blocks, without calls, results and thinking.
pub(crate) fn words_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter(|block| *block.kind() == Kind::Text).filter_map(Block::as_text);
    texts.collect::<Vec<_>>().join("\n")
}

/// A text without its middle, if it is longer than `most`.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let from = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..from(most / 2)], &text[from(length - most / 2)..]);
    format!("{head}\n[{} characters are left out here]\n{tail}", length - most / 2 * 2)
}
