//! Layer 4: what was said gives way to what matters of it.
//!
//! Notes come first, since they are there already; a summary by a fork of the conversation comes second. Either way the
//! same stands in the place of what was covered: the history, the user's own words as they were, and where the rest can
//! be found. This module says when, what stays, and how it reads; it asks no model and writes no line.

use std::ops::Range;

use transcript::size::Size;
use transcript::view::{Entry, Stands, View};
use transcript::window::{AutoCompact, Window};
use transcript::{Block, Id};

use crate::micro::{self, YOUNG_ROUNDS};
use crate::template::fill;
use crate::worth::{Pace, Rates};

const PROMPT: &str = include_str!("prompts/summary.md");
const FRAMING: &str = include_str!("prompts/framing.md");

/// So many tokens of the newest messages stay beside notes, at least.
const TAIL_TOKENS: u64 = 10_000;
/// And so many messages with text.
const TAIL_TEXTS: usize = 5;
/// Going back for them stops at so many tokens.
const TAIL_MOST: u64 = 40_000;
/// The user's own words that stay, in tokens; the oldest go first.
const WORDS_TOKENS: u64 = 10_000;
/// What names the messages that are covered, in tokens; the oldest are named together.
const TRACE_TOKENS: u64 = 3_000;
/// A summary's output ends here.
pub const SUMMARY_TOKENS: u64 = 20_000;
/// In a small window no part of a compaction is more than this share of the threshold.
const SHARE: u64 = 4;
/// A compaction for economy leaves the last one alone for so many rounds.
const ECONOMY_ROUNDS: usize = 10;
/// What a summary is expected to have, in tokens, before there is one.
const USUAL_SUMMARY: u64 = 1_500;

/// What a part of a compaction may have in this window.
fn part(most: u64, window: &Window) -> u64 {
    most.min(window.threshold(AutoCompact::On) / SHARE)
}

/// Whether the window asks for compaction.
pub fn is_due(count: u64, window: &Window, auto: AutoCompact) -> bool {
    auto == AutoCompact::On && count > window.threshold(auto)
}

/// Whether a compaction is cheaper than carrying on, with the sum. Old is what lies before the newest rounds and cannot
/// be cleared; carrying it through the rounds to come is weighed against reading all once more, the summary, and writing
/// what then stands.
pub fn pays(view: &View, pace: &Pace, rates: Rates) -> Option<String> {
    let kept = young_from(view)?;
    let since = view
        .visible()
        .find(is_cover)
        .map_or(0, |cover| view.visible().filter(|entry| entry.is_reply() && entry.index() > cover.index()).count());
    let compacted = view.visible().any(|entry| is_cover(&entry));
    if compacted && since < ECONOMY_ROUNDS {
        return None;
    }
    let tally = view.tally();
    let (mut old, mut young) = (Size::default(), Size::default());
    for entry in view.visible() {
        if entry.index() >= kept {
            young += entry.size();
        } else {
            old += entry.size();
            entry.calls().filter(micro::is_clearable).for_each(|call| old -= call.shown.size());
        }
    }
    let (old, young) = (tally.estimate(old), tally.estimate(young));
    let rounds = pace.expected_of_long_turns();
    let saves = old.saturating_sub(USUAL_SUMMARY) as f64 * rates.read * f64::from(rounds);
    let reads = tally.count() as f64 * rates.read;
    let writes = (USUAL_SUMMARY + young) as f64 * rates.write + USUAL_SUMMARY as f64 * rates.output;
    (saves > reads + writes).then(|| {
        format!(
            "{old} tokens × {:.2} × {rounds} rounds saves {saves:.0}; a summary and writing {young} again costs {:.0}",
            rates.read,
            reads + writes
        )
    })
}

/// The first item of the newest rounds, which the model is working with.
pub fn young_from(view: &View) -> Option<usize> {
    let mut replies = view.visible().rev().filter(|entry| entry.is_reply() && entry.is_original());
    replies.nth(YOUNG_ROUNDS - 1).map(|entry| entry.index())
}

/// The first item that stays when all is summarised: what the model has not answered yet, if it fits. None if nothing
/// stays.
pub fn unanswered_from(view: &View, window: &Window) -> Option<usize> {
    let first = view.visible().rev().take_while(|entry| entry.is_original() && !entry.is_reply()).last();
    let newest = view.visible().next_back()?;
    let first = match first {
        Some(prompt) => prompt.index(),
        None if newest.is_reply() && newest.is_original() => newest.index(),
        None => return None,
    };
    let most = window.threshold(AutoCompact::On) / 2;
    let tokens = tokens_from(view, first);
    // What the user said stays, however long it is; what tools said is in the log.
    (tokens <= most || view.visible().any(|entry| entry.index() >= first && !entry.is_reply())).then_some(first)
}

/// The first item that stays beside notes which cover everything up to an item: what came after it, and going back from
/// there until there is enough. An item is a reply with its results, so nothing is torn apart.
pub fn kept_beside_notes(view: &View, covered: usize, window: &Window) -> usize {
    let (least, most) = (part(TAIL_TOKENS, window), part(TAIL_MOST, window));
    let (mut size, mut texts, mut first) = (Size::default(), 0, view.len());
    for entry in view.visible().rev().take_while(|entry| !is_cover(entry)) {
        if entry.index() <= covered {
            let enough = view.tally().estimate(size) >= least && texts >= TAIL_TEXTS;
            let mut longer = size;
            longer += entry.size();
            if enough || view.tally().estimate(longer) > most {
                break;
            }
        }
        size += entry.size();
        // A call with its result says something, too.
        texts += usize::from(entry.has_text() || entry.is_reply());
        first = entry.index();
    }
    first
}

/// A span that grows backwards from the newest rounds, a round at a time, until so many tokens are in it. What stands
/// before it, and the provider's cache of that, stays; so do the newest rounds, the unanswered one and as many as make up
/// the spare tokens, so that a summariser has to be sent no more than what did fit.
pub fn span_back(view: &View, tokens: u64, spare: u64) -> Option<(Id, Id)> {
    let estimate = |size: Size| view.tally().estimate(size);
    let originals = || view.visible().rev().filter(Entry::is_original);
    let mut skipped = Size::default();
    let mut skip = 0;
    for entry in originals() {
        if estimate(skipped) >= spare && skip > 0 && !entry.is_reply() {
            break;
        }
        skipped += entry.size();
        skip += 1;
        if estimate(skipped) >= spare && entry.is_reply() {
            break;
        }
    }
    // Where that is all there is, nothing can be spared.
    let skip = if originals().count() > skip { skip } else { 0 };
    let (mut size, mut span) = (Size::default(), None);
    for entry in originals().skip(skip) {
        size += entry.size();
        let last = span.map_or_else(|| entry.line().clone(), |(_, last)| last);
        span = Some((entry.line().clone(), last));
        if estimate(size) >= tokens && entry.is_reply() {
            break;
        }
    }
    span
}

fn is_cover(entry: &Entry<'_>) -> bool {
    matches!(entry.stands(), Stands::Covered(_))
}

/// Tokens of what is visible from an item on.
pub fn tokens_from(view: &View, first: usize) -> u64 {
    let sizes = view.visible().rev().take_while(|entry| entry.index() >= first).map(|entry| entry.size());
    view.tally().estimate(sizes.sum())
}

/// What the summariser is told.
pub fn prompt(instructions: Option<&str>) -> String {
    let wished = instructions.map(str::trim).filter(|text| !text.is_empty());
    let wished = wished.map(|text| format!("\nThe user asks of this summary:\n{text}\n")).unwrap_or_default();
    fill(PROMPT, &[("instructions", &wished)]).trim_end().to_owned()
}

/// The summary in what the summariser wrote; none if there is none. What was cut off in the middle counts, within the
/// limit.
pub fn summary_in(text: &str, window: &Window, tokens: impl Fn(&str) -> u64) -> Option<String> {
    let after = text.rsplit_once("</analysis>").map_or(text, |(_, after)| after);
    let inside = match after.split_once("<summary>") {
        Some((_, inside)) => inside.split_once("</summary>").map_or(inside, |(inside, _)| inside),
        None if after.contains("<analysis>") => return None,
        None => after,
    };
    let inside = inside.trim();
    if inside.is_empty() {
        return None;
    }
    let most = part(SUMMARY_TOKENS, window);
    if tokens(inside) <= most {
        return Some(inside.to_owned());
    }
    let bytes = (inside.len() as u64 * most / tokens(inside).max(1)) as usize;
    let kept = &inside[..inside.floor_char_boundary(bytes)];
    Some(format!("{kept}\n[The summary was cut here.]"))
}

/// What history is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// The session's notes.
    Notes,
    /// A summary.
    Summary,
}

/// What stands in the place of what is covered: the history, the user's words, and where the rest is.
pub fn framed(made: Made, summary: &str, view: &View, covered: Range<usize>, window: &Window) -> String {
    let what = match made {
        Made::Notes => "notes stand",
        Made::Summary => "summary stands",
    };
    let words = words(view, &covered, part(WORDS_TOKENS, window));
    let trace = trace(view, &covered, part(TRACE_TOKENS, window));
    let values = [("what", what), ("summary", summary), ("words", words.as_str()), ("trace", trace.as_str())];
    fill(FRAMING, &values).trim_end().to_owned()
}

/// The user's own words among what is covered, as they were; the oldest go first.
fn words(view: &View, covered: &Range<usize>, most: u64) -> String {
    let mut left = most;
    let mut kept: Vec<String> = Vec::new();
    let mut all = 0;
    for entry in view.said().rev().filter(|entry| covered.contains(&entry.index())) {
        all += 1;
        let texts: Vec<String> = entry.blocks().iter().filter_map(Block::as_text).collect();
        let text = texts.join("\n");
        let tokens = view.tally().estimate(entry.blocks().iter().map(Block::size).sum());
        if tokens > left {
            left = 0;
            continue;
        }
        left -= tokens;
        kept.push(format!("<message>\n{text}\n</message>\n"));
    }
    if all == 0 {
        return String::new();
    }
    let lost = all - kept.len();
    let note = match lost {
        0 => String::new(),
        _ => format!(" The {lost} oldest are left out; History shows them."),
    };
    kept.reverse();
    format!("\nWhat the user said, word for word, the oldest first.{note}\n{}", kept.concat())
}

/// Where the rest is: the replies that are covered by id, with what they called; the oldest as a span.
fn trace(view: &View, covered: &Range<usize>, most: u64) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut left = (most * 3) as usize;
    let mut together: Option<(&Id, &Id, usize)> = None;
    for entry in view.entries(covered.clone()).rev().filter(Entry::is_reply) {
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
    format!("\nWhat is covered, by id; the History tool shows any of it as it was:\n{}", lines.concat())
}

/// How much of a call's input is named.
const CALL_CHARACTERS: usize = 60;

fn trace_line(entry: &Entry<'_>) -> String {
    let calls: Vec<String> = entry
        .calls()
        .map(|call| {
            let input = call.call.input().unwrap_or_default();
            let subject = ["file_path", "path", "command", "pattern", "query", "url"]
                .iter()
                .find_map(|key| input.get(key).and_then(|value| value.as_str()))
                .unwrap_or_default();
            let subject = subject.lines().next().unwrap_or_default().replace('<', "‹");
            let subject: String = subject.chars().take(CALL_CHARACTERS).collect();
            format!("{} {}({subject})", call.id, call.tool)
        })
        .collect();
    match calls.is_empty() {
        true => format!("{} text\n", entry.line()),
        false => format!("{}\n", calls.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Session;
    use transcript::commit::{Act, Extent, Trigger};
    use transcript::line::{Body, Source};

    const WINDOW: Window = Window { size: 200_000, effective: 180_000 };

    fn tokens(text: &str) -> u64 {
        text.len() as u64 / 4
    }

    /// COMPACT-1: compaction is due above the threshold, and only where it is on.
    #[test]
    fn it_is_due_above_the_threshold() {
        assert!(!is_due(167_000, &WINDOW, AutoCompact::On) && is_due(167_001, &WINDOW, AutoCompact::On));
        assert!(!is_due(179_000, &WINDOW, AutoCompact::Off));
    }

    /// COMPACT-2: beside notes stay what came after them, and going back from there 10,000 tokens and five messages with
    /// text; going back stops at 40,000 tokens and at an earlier boundary; a call keeps its result.
    #[test]
    fn enough_stays_beside_notes() {
        let mut session = Session::default();
        session.say("go");
        for _ in 0..20 {
            session.call("Bash", 3_000);
            session.reply("a word");
        }
        let view = session.log.view();
        let last = view.len() - 1;
        let kept = kept_beside_notes(view, last, &WINDOW);
        let size = tokens_from(view, kept);
        assert!((10_000..12_500).contains(&size), "{size}");
        assert_eq!(kept_beside_notes(view, 3, &WINDOW), 4, "what notes do not cover stays");
        let mut session = Session::default();
        session.say("go");
        for _ in 0..5 {
            session.call("Bash", 60_000);
        }
        let view = session.log.view();
        let kept = kept_beside_notes(view, view.len() - 1, &WINDOW);
        assert!(tokens_from(view, kept) <= 40_000, "five messages with text would be more");
        let first = session.log.view().line_of(2).unwrap().clone();
        let boundary =
            session.commit(Act::Compact { extent: Extent::Before(first), trigger: Trigger::Auto, pre_tokens: 0 });
        let summary = Body::User { blocks: vec![Block::text("so far")], source: Source::Summary };
        assert_eq!(session.append(summary).as_str(), "line-13");
        let view = session.log.view();
        assert!(view.counts(&boundary) && kept_beside_notes(view, view.len(), &WINDOW) >= 2);
    }

    /// COMPACT-3: the analysis is dropped; a summary cut in the middle counts; one without words, or an analysis alone, is
    /// none; one that is too long is cut.
    #[test]
    fn the_summary_is_taken_out_of_what_was_written() {
        let summary = |text: &str| summary_in(text, &WINDOW, tokens);
        assert_eq!(summary("<analysis>a</analysis>\n<summary>\n s \n</summary> bye").as_deref(), Some("s"));
        assert_eq!(summary("<summary>cut in the").as_deref(), Some("cut in the"));
        assert_eq!(summary("just text").as_deref(), Some("just text"));
        for nothing in
            ["", " ", "<analysis>a</analysis>", "<analysis>never closed", "<analysis>a</analysis><summary> </summary>"]
        {
            assert_eq!(summary(nothing), None, "{nothing}");
        }
        let long = summary(&format!("<summary>{}</summary>", "word ".repeat(40_000))).unwrap();
        assert!(tokens(&long) <= SUMMARY_TOKENS + 20 && long.ends_with("[The summary was cut here.]"));
    }

    /// COMPACT-11: history is framed as such; the user's words stay as they were, the oldest go first when they are too
    /// many; what is covered is named by id, the oldest as a span.
    #[test]
    fn the_users_words_and_the_ids_of_the_rest_stay() {
        let mut session = Session::default();
        session.say("First: never push to main.");
        let call = session.call("Bash", 500);
        session.say("Then: </message> tricks.");
        let reply = session.reply("I decided.");
        let view = session.log.view();
        let text = framed(Made::Summary, "It was done.", view, 0..view.len(), &WINDOW);
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
        let text = framed(Made::Notes, "Notes.", view, 0..view.len(), &WINDOW);
        assert!(!text.contains("message 0:") && text.contains("message 59:"));
        assert!(text.contains("oldest are left out") && text.contains(" … line-") && text.contains(" replies\n"));
        assert!(tokens(&text) < 15_000, "{}", tokens(&text));
    }

    /// REACT-4: the span grows backwards from the newest closed round until it holds enough; what stands before it stays,
    /// and so does the round that is not answered yet.
    #[test]
    fn a_span_grows_backwards_from_the_newest_rounds() {
        let mut session = Session::default();
        session.say("go");
        for _ in 0..10 {
            session.call("Bash", 6_000);
        }
        let view = session.log.view();
        let (first, last) = span_back(view, 7_000, 0).unwrap();
        let places = (view.item_of(&first).unwrap(), view.item_of(&last).unwrap());
        assert_eq!(places, (6, 9), "four rounds of 2,000 tokens, and the newest stays");
        let (_, last) = span_back(view, 7_000, 5_000).unwrap();
        assert_eq!(view.item_of(&last), Some(7), "so many tokens are spared");
        let mut alone = Session::default();
        alone.call("Bash", 90_000);
        assert!(span_back(alone.log.view(), 10_000, 0).is_some(), "where there is nothing else, it goes");
    }

    /// COMPACT-14: a compaction pays when carrying what cannot be cleared costs more than a summary and writing the rest
    /// again; never within ten rounds of the last one, nor without three rounds that stay.
    #[test]
    fn a_compaction_for_economy_has_to_pay() {
        let rates = Rates::of(None, transcript::mark::Ttl::FiveMinutes);
        let mut pace = Pace::default();
        let mut session = Session::default();
        session.say(&"word ".repeat(20_000));
        assert_eq!(pays(session.log.view(), &pace, rates), None, "there is nothing that could stay");
        for _ in 0..4 {
            session.call("Bash", 3_000);
            pace.round();
        }
        let sum = pays(session.log.view(), &pace, rates).unwrap();
        assert!(sum.contains("× 8 rounds saves"), "{sum}");
        let kept = session.log.view().line_of(2).unwrap().clone();
        session.commit(Act::Compact { extent: Extent::Before(kept), trigger: Trigger::Auto, pre_tokens: 0 });
        session.append(Body::User { blocks: vec![Block::text("so far")], source: Source::Summary });
        session.say(&"word ".repeat(60_000));
        for round in 0..12 {
            let sum = pays(session.log.view(), &pace, rates);
            assert_eq!(sum.is_some(), round >= 7, "three rounds stayed, and seven more: {round}");
            session.call("Bash", 100);
        }
    }

    #[test]
    fn every_prompt_renders() {
        assert!(!prompt(None).contains("{{") && prompt(Some("keep the numbers")).contains("keep the numbers"));
        let told = crate::notes::prompt(crate::notes::PROMPT, crate::notes::TEMPLATE, "/n.md", tokens);
        assert!(!told.contains("{{") && told.contains("# Worklog"));
    }
}
