//! What happened, request by request: tokens, price, and where a prompt broke with the one before it.
//!
//! A break is found by comparing chains (see [`prompt`](crate::prompt)) with those of recent requests of the same
//! lineage, that is of the same model and the same `metadata.user_id`. A request that extends an earlier one takes its
//! place; what remains are the ends of conversations. A new request breaks with the one it shares most with, unless
//!
//! - it extends it, or is a beginning of it;
//! - it only brings another user turn after a common beginning that holds a reply: a fork, or a second try;
//! - it has no reply in it yet and differs before the messages, or its lineage is unknown because it has no user id: a
//!   new conversation. With a user id, another first message is a break, as a compaction is one.

use std::collections::VecDeque;

use blake3::Hash;
use serde::{Deserialize, Serialize};

use crate::cache::Split;
use crate::prompt::{Place, Position, Prompt};

/// Requests listed; later ones only enter the totals.
const MOST_LINES: usize = 20_000;
/// Ends of conversations remembered for comparison.
const MOST_TRAILS: usize = 32;
/// Characters that a break quotes.
const EXCERPT_CHARS: usize = 120;
/// Characters before the difference that a break quotes.
const EXCERPT_LEAD: usize = 30;

/// Everything the simulator saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Requests in the order of their arrival.
    pub requests: Vec<Line>,
    /// Sums over all of them.
    pub totals: Totals,
}

/// One request to `/v1/messages`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its number; the first is 1.
    pub index: u64,
    /// The model it named.
    pub model: String,
    /// The kind of agent, when `metadata.user_id` is a JSON object with a field `agent`.
    pub agent: Option<String>,
    /// How its input was billed; zero when it was refused.
    #[serde(flatten)]
    pub input: Split,
    /// Output tokens.
    pub output: u64,
    /// US dollars.
    pub price: f64,
    /// HTTP status.
    pub status: u16,
    /// The error's message.
    pub error: Option<String>,
    /// The rule that replied.
    pub rule: Option<String>,
    /// The fault that struck.
    pub fault: Option<String>,
    /// Where it broke with an earlier request.
    pub broke: Option<Break>,
}

/// The first block that differs from the request before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Break {
    /// `tools[i]`, `system[i]`, `messages[i].content[j]` or `parameters`.
    pub place: String,
    /// The beginning of what stood there before.
    pub before: String,
    /// The beginning of what stands there now.
    pub after: String,
    /// Tokens from there to the end that an unbroken prefix would have kept.
    pub tokens: u64,
}

/// Sums over all requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// All requests, refused ones included.
    pub requests: u64,
    /// Refused ones.
    pub refused: u64,
    /// Sum of the inputs.
    #[serde(flatten)]
    pub input: Split,
    /// Sum of the outputs.
    pub output: u64,
    /// US dollars.
    pub price: f64,
    /// Requests that broke with an earlier one.
    pub breaks: u64,
    /// The largest context of one request.
    pub largest_context: u64,
    /// Part of all input that was read from the cache.
    pub hit_ratio: f64,
    /// Cache writes divided by the largest context: 1 when everything was written once.
    pub rewrite_factor: f64,
}

impl Report {
    /// Adds a line.
    pub(crate) fn add(&mut self, line: Line) {
        let totals = &mut self.totals;
        totals.requests += 1;
        totals.refused += u64::from(line.status != 200);
        totals.input.uncached += line.input.uncached;
        totals.input.write_5m += line.input.write_5m;
        totals.input.write_1h += line.input.write_1h;
        totals.input.read += line.input.read;
        totals.output += line.output;
        totals.price += line.price;
        totals.breaks += u64::from(line.broke.is_some());
        totals.largest_context = totals.largest_context.max(line.input.total());
        totals.hit_ratio = ratio(totals.input.read, totals.input.total());
        totals.rewrite_factor = ratio(totals.input.written(), totals.largest_context);
        if self.requests.len() < MOST_LINES {
            self.requests.push(line);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// One end of a conversation.
#[derive(Debug)]
struct Trail {
    lineage: String,
    chains: Vec<Hash>,
    prompt: Prompt,
}

/// The ends of recent conversations.
#[derive(Debug, Default)]
pub(crate) struct Trails {
    recent: VecDeque<Trail>,
}

impl Trails {
    /// Where `prompt` breaks with its lineage; remembers it.
    pub(crate) fn follow(&mut self, prompt: Prompt, user: Option<&str>) -> Option<Break> {
        let lineage = format!("{} {}", prompt.model, user.unwrap_or_default());
        let chains: Vec<Hash> = prompt.positions.iter().map(|position| position.chain).collect();
        let shared = |trail: &Trail| chains.iter().zip(&trail.chains).take_while(|(new, old)| new == old).count();
        let nearest = self
            .recent
            .iter()
            .enumerate()
            .filter(|(_, trail)| trail.lineage == lineage)
            .map(|(index, trail)| (shared(trail), index))
            .max();
        let mut broke = None;
        if let Some((common, index)) = nearest {
            let before = &self.recent[index];
            if common == before.chains.len() {
                self.recent.remove(index);
            } else if common < chains.len() {
                broke = find_break(&before.prompt, &prompt, common, user.is_some());
            }
        }
        self.recent.push_back(Trail { lineage, chains, prompt });
        if self.recent.len() > MOST_TRAILS {
            self.recent.pop_front();
        }
        broke
    }
}

fn find_break(before: &Prompt, after: &Prompt, common: usize, lineage_is_known: bool) -> Option<Break> {
    let replied = |positions: &[Position]| positions.iter().any(|position| position.assistant);
    let (shared, rest) = after.positions.split_at(common);
    let (old, new) = (before.positions.get(common)?, rest.first()?);
    let in_messages = |position: &Position| matches!(position.place, Place::Message { .. });
    let is_fork = replied(shared) && !replied(rest);
    let is_new = !replied(&after.positions) && !(lineage_is_known && in_messages(old) && in_messages(new));
    if is_fork || is_new {
        return None;
    }
    let tokens = before.positions[common..].iter().map(|position| position.tokens).sum();
    let (place, (before, after)) = if old.block == new.block {
        ("parameters".to_owned(), (before.parameters.clone(), after.parameters.clone()))
    } else {
        (new.place.to_string(), where_they_differ(&old.text, &new.text))
    };
    Some(Break { place, before, after, tokens })
}

/// Both texts from shortly before their first difference.
fn where_they_differ(before: &str, after: &str) -> (String, String) {
    let same = before.chars().zip(after.chars()).take_while(|(old, new)| old == new).count();
    let start = same.saturating_sub(EXCERPT_LEAD);
    let quote = |text: &str| {
        let lead = if start > 0 { "…" } else { "" };
        let mut rest = text.chars().skip(start);
        let quoted: String = rest.by_ref().take(EXCERPT_CHARS).collect();
        let tail = if rest.next().is_some() { "…" } else { "" };
        format!("{lead}{quoted}{tail}")
    };
    (quote(before), quote(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Counter;
    use serde_json::{Value, json};

    fn prompt(system: &str, turns: &[&str]) -> Prompt {
        let roles = ["user", "assistant"];
        let messages: Vec<Value> = turns
            .iter()
            .enumerate()
            .map(|(index, text)| json!({"role": roles[index % 2], "content": [{"type": "text", "text": text}]}))
            .collect();
        let body =
            json!({"model": "claude-opus-5", "system": [{"type": "text", "text": system}], "messages": messages});
        Prompt::new(&body, Counter::new(1.0))
    }

    fn places(prompts: &[(&str, &[&str])]) -> Vec<Option<String>> {
        let mut trails = Trails::default();
        let follow = |(system, turns): &(&str, &[&str])| trails.follow(prompt(system, turns), Some("one"));
        prompts.iter().map(follow).map(|broke| broke.map(|broke| broke.place)).collect()
    }

    #[test]
    fn appending_breaks_nothing() {
        assert_eq!(
            places(&[("s", &["a"]), ("s", &["a", "b", "c"]), ("s", &["a", "b", "c", "d", "e"])]),
            [None, None, None]
        );
    }

    #[test]
    fn a_change_in_the_middle_is_found_although_the_first_request_is_extended() {
        let found = places(&[("s", &["a"]), ("s", &["a", "b", "c"]), ("s", &["a", "B", "c", "d", "e"])]);
        assert_eq!(found[2].as_deref(), Some("messages[1].content[0]"));
    }

    #[test]
    fn the_last_user_turn_changed_in_retrospect_is_found() {
        let found = places(&[("s", &["a", "b", "c"]), ("s", &["a", "b", "C", "d", "e"])]);
        assert_eq!(found[1].as_deref(), Some("messages[2].content[0]"));
    }

    #[test]
    fn a_fork_and_the_return_from_it_are_no_breaks() {
        let found = places(&[
            ("s", &["a"]),
            ("s", &["a", "b", "fork"]),
            ("s", &["a", "b", "fork", "x", "y"]),
            ("s", &["a", "b", "c"]),
            ("s", &["a", "b", "c", "d", "e"]),
        ]);
        assert!(found.iter().all(Option::is_none), "{found:?}");
    }

    #[test]
    fn a_changed_system_prompt_is_a_break_and_another_conversation_is_not() {
        let found = places(&[("s", &["a"]), ("S", &["a", "b", "c"]), ("other", &["x"])]);
        assert_eq!(found[1].as_deref(), Some("system[0]"));
        assert_eq!(found[2], None);
    }

    #[test]
    fn another_first_message_is_a_compaction_when_the_lineage_is_known() {
        let found = |user| {
            let mut trails = Trails::default();
            trails.follow(prompt("s", &["a", "b", "c"]), user);
            trails.follow(prompt("s", &["summary"]), user).map(|broke| broke.place)
        };
        assert_eq!(found(Some("me")).as_deref(), Some("messages[0].content[0]"));
        assert_eq!(found(None), None);
    }

    #[test]
    fn the_quotes_begin_near_the_difference() {
        let same = "x".repeat(500);
        let (before, after) = where_they_differ(&format!("{same}old"), &format!("{same}new"));
        assert_eq!(before, format!("…{}old", "x".repeat(EXCERPT_LEAD)));
        assert_eq!(after, format!("…{}new", "x".repeat(EXCERPT_LEAD)));
    }
}
