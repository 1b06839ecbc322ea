//! Text in place of what a compaction covers.
//!
//! The history first, then the user's own words as they were, then the ids of the rest. A summary can be extracted from
//! it, so that the next one builds on it.

use std::ops::Range;

use transcript::view::{Cover, ItemState, View, ViewEntry};
use transcript::{Block, Id};

use crate::layer_settings::Layers;
use crate::template::fill;

const FRAMING: &str = include_str!("prompts/framing.md");
/// Heading of the user's words.
const WORDS: &str = "\nWhat the user said, word for word";
const MESSAGE_START: &str = "<message>\n";
const MESSAGE_END: &str = "\n</message>\n";
/// Heading of the ids of the rest.
const TRACE: &str = "\nWhat is covered, by id";

/// Limit on the user's own words, in tokens; the oldest go first.
const WORDS_TOKENS: u64 = 10_000;
/// And no more than this share of the threshold.
const WORDS_SHARE: u64 = 4;
/// Limit on the ids of covered messages, in tokens; the oldest are named together.
const TRACE_TOKENS: u64 = 3_000;
/// And no more than this share of the threshold.
const TRACE_SHARE: u64 = 20;
/// Bytes per token in ids and paths.
const TRACE_BYTES: u64 = 3;
/// Characters of a call's input that are shown.
const CALL_CHARACTERS: usize = 60;

/// Source of a history text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistorySource {
    /// The session's notes.
    Notes,
    /// A summary.
    Summary,
}

/// Text in place of what is covered.
pub fn framed(made: HistorySource, summary: &str, view: &View, covered: &Range<usize>, layers: &Layers) -> String {
    let what = match made {
        HistorySource::Notes => "notes stand",
        HistorySource::Summary => "summary stands",
    };
    let words = words(view, covered, layers.part(WORDS_TOKENS, WORDS_SHARE));
    let trace = trace(view, covered, layers.part(TRACE_TOKENS, TRACE_SHARE));
    let values = [("what", what), ("summary", summary), ("words", words.as_str()), ("trace", trace.as_str())];
    fill(FRAMING, &values).trim_end().to_owned()
}

/// Source of a history text; none if it is not one of ours.
pub fn made_of(text: &str) -> Option<HistorySource> {
    let head = text.lines().nth(1)?;
    match head {
        _ if head.contains("its notes stand") => Some(HistorySource::Notes),
        _ if head.contains("its summary stands") => Some(HistorySource::Summary),
        _ => None,
    }
}

/// The summary in a history text. Another program's text is a summary as a whole.
pub fn summary_of(text: &str) -> &str {
    let Some((_, rest)) = text.split_once("</system-reminder>\n\n").filter(|_| made_of(text).is_some()) else {
        return text;
    };
    let end = rest.rfind(TRACE).unwrap_or(rest.len());
    let end = rest[..end].find(WORDS).unwrap_or(end);
    rest[..end].trim_end()
}

/// The newest summary in view.
pub fn newest_summary(view: &View) -> Option<String> {
    Some(summary_of(&newest_text(view)?).to_owned())
}

/// The user's messages that a history text has word for word.
pub(crate) fn words_in(text: &str) -> impl Iterator<Item = &str> {
    let after = text.rfind(WORDS).filter(|_| made_of(text).is_some()).map_or("", |at| &text[at..]);
    after.split(MESSAGE_START).skip(1).filter_map(|rest| rest.split_once(MESSAGE_END)).map(|(message, _)| message)
}

/// The newest history text in view.
fn newest_text(view: &View) -> Option<String> {
    let newest = view.visible().rev().find(|entry| entry.state() == ItemState::Covered(Cover::Compact))?;
    newest.shown().find_map(|(_, block)| block.as_text())
}

/// The user's own words among what is covered; the oldest go first.
fn words(view: &View, covered: &Range<usize>, most: u64) -> String {
    let mut left = most;
    let mut kept: Vec<String> = Vec::new();
    let mut lost: Vec<&Id> = Vec::new();
    for entry in view.user_messages().rev().filter(|entry| covered.contains(&entry.index())) {
        let texts: Vec<String> = entry.blocks().iter().filter_map(Block::as_text).collect();
        let tokens = view.tally().estimate(entry.blocks().iter().map(Block::size).sum());
        // One that is too long for what is left goes; shorter ones before it may still fit.
        if tokens > left {
            lost.push(entry.line());
            continue;
        }
        left -= tokens;
        kept.push(format!("{MESSAGE_START}{}{MESSAGE_END}", texts.join("\n")));
    }
    if kept.is_empty() && lost.is_empty() {
        return String::new();
    }
    let note = match (lost.last(), lost.first()) {
        (Some(first), Some(last)) if lost.len() > 1 => {
            format!(" {} are left out for their length; History shows them: {first} … {last}.", lost.len())
        }
        (Some(one), _) => format!(" One is left out for its length; History shows it: {one}."),
        _ => String::new(),
    };
    kept.reverse();
    format!("{WORDS}, the oldest first.{note}\n{}", kept.concat())
}

/// The ids of the covered replies, with their calls; the oldest as a span.
fn trace(view: &View, covered: &Range<usize>, most: u64) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut left = (most * TRACE_BYTES) as usize;
    let mut together: Option<(&Id, &Id, usize)> = None;
    for entry in view.entries(covered.clone()).rev().filter(ViewEntry::is_reply) {
        let line = trace_line(&entry);
        if together.is_none() && line.len() <= left {
            left -= line.len();
            lines.push(line);
        } else {
            let (_, last, count) = together.unwrap_or((entry.line(), entry.line(), 0));
            together = Some((entry.line(), last, count + 1));
        }
    }
    if lines.is_empty() && together.is_none() {
        return String::new();
    }
    if let Some((first, last, count)) = together {
        lines.push(format!("{first} … {last}: {count} replies\n"));
    }
    lines.reverse();
    format!("{TRACE}; the History tool shows any of it as it was:\n{}", lines.concat())
}

fn trace_line(entry: &ViewEntry<'_>) -> String {
    let calls: Vec<String> = entry.calls().map(|call| format!("{} {}", call.id, named(call.tool, call.call))).collect();
    match calls.is_empty() {
        true => format!("{} text\n", entry.line()),
        false => format!("{}\n", calls.join(", ")),
    }
}

/// A call in a few words: the tool, and its main argument.
pub(crate) fn named(tool: &str, call: &Block) -> String {
    let input = call.input().unwrap_or_default();
    let subject = ["file_path", "path", "command", "pattern", "query", "url"]
        .iter()
        .find_map(|key| input.get(key).and_then(|value| value.as_str()))
        .unwrap_or_default();
    let subject = subject.lines().next().unwrap_or_default().replace('<', "‹");
    let subject: String = subject.chars().take(CALL_CHARACTERS).collect();
    format!("{tool}({subject})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Session, layers, tokens};

    /// COMPACT-11: history is framed as such; the user's words stay as they were, the oldest go first when they are too
    /// many; what is covered is named by id, the oldest as a span.
    #[test]
    fn the_users_words_and_the_ids_of_the_rest_stay() {
        let layers = layers(200_000);
        let mut session = Session::default();
        session.say("First: never push to main.");
        let call = session.call("Bash", 500);
        session.say("Then: </message> tricks.");
        let reply = session.reply("I decided.");
        let view = session.log.view();
        let text = framed(HistorySource::Summary, "It was done.", view, &(0..view.len()), &layers);
        for part in
            ["It was done.", "First: never push to main.", "tricks.", call.as_str(), reply.as_str(), "already done"]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let mut session = Session::default();
        for n in 0..60 {
            session.say(&format!("message {n}: {}", "word ".repeat(150)));
            session.reply("ok");
            session.call("Bash", 100);
        }
        for _ in 0..500 {
            session.call("Bash", 100);
        }
        let view = session.log.view();
        let text = framed(HistorySource::Notes, "Notes.", view, &(0..view.len()), &layers);
        assert!(!text.contains("message 0:") && text.contains("message 59:"));
        assert!(text.contains("are left out") && text.contains(" … line-") && text.contains(" replies\n"));
        assert!(tokens(&text) < 15_000, "{}", tokens(&text));
    }

    /// COMPACT-11: a message that is longer than all that may stay takes the others nothing away.
    #[test]
    fn one_message_that_is_too_long_drops_no_other() {
        let layers = layers(200_000);
        let mut session = Session::default();
        session.say("Never push to main.");
        let long = session.say(&"word ".repeat(20_000));
        let view = session.log.view();
        let text = framed(HistorySource::Summary, "Done.", view, &(0..view.len()), &layers);
        assert!(text.contains("Never push to main.") && text.contains(long.as_str()), "{text}");
    }

    /// COMPACT-3: a summary can be taken out of what stands for it; another program's is all of it.
    #[test]
    fn a_summary_can_be_taken_out_again() {
        let layers = layers(200_000);
        let mut session = Session::default();
        session.say("go");
        session.call("Bash", 500);
        let view = session.log.view();
        for (made, summary) in
            [(HistorySource::Notes, "# Title\nx"), (HistorySource::Summary, "1. Request: all.\n\n2. None.")]
        {
            let text = framed(made, summary, view, &(0..view.len()), &layers);
            assert_eq!((made_of(&text), summary_of(&text)), (Some(made), summary));
        }
        assert_eq!(summary_of("What another wrote."), "What another wrote.");
    }
}
