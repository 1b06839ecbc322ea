//! Breaks of a prompt with the one it should have extended.
//!
//! A break is found by comparing chains (see [`cached_prompt`](crate::cached_prompt)) with those of recent requests of the same
//! lineage, that is of the same model and the same `metadata.user_id`. A request that extends an earlier one takes its
//! place; what remains are the ends of conversations. A new request breaks with the one it shares most with, unless
//!
//! - it extends it, or is a beginning of it;
//! - it only brings another user turn after a common beginning that holds a reply: a fork, or a second try;
//! - it has no reply in it yet and differs before the messages, or its lineage is unknown because it has no user id: a
//!   new conversation. With a user id, another first message is a break, as a compaction is one.
//!
//! The same comparison answers a request's `diagnostics`.

use std::collections::VecDeque;

use blake3::Hash;
use serde_json::{Value, json};

use crate::cached_prompt::{Position, Prompt, PromptPlace};
use crate::report::PrefixBreak;

/// Ends of conversations remembered for comparison.
const MOST_TRAILS: usize = 32;
/// Characters that a break quotes.
const EXCERPT_CHARS: usize = 120;
/// Characters before the difference that a break quotes.
const EXCERPT_LEAD: usize = 30;

/// One end of a conversation.
#[derive(Debug)]
struct Trail {
    lineage: String,
    /// The id of the reply.
    id: String,
    chains: Vec<Hash>,
    prompt: Prompt,
}

/// The ends of recent conversations.
#[derive(Debug, Default)]
pub(crate) struct Trails {
    recent: VecDeque<Trail>,
}

impl Trails {
    /// The reply's `diagnostics`: why the prompt does not extend that of the reply `previous`.
    pub(crate) fn diagnose(&self, prompt: &Prompt, previous: &str) -> Value {
        let Some(before) = self.recent.iter().find(|trail| trail.id == previous) else {
            return json!({"cache_miss_reason": {"type": "previous_message_not_found"}});
        };
        let (old, new) = (&before.prompt.positions, &prompt.positions);
        let common = old.iter().zip(new).take_while(|(old, new)| old.chain == new.chain).count();
        let Some(lost) = old.get(common) else {
            return Value::Null;
        };
        let kind = match (lost.place, new.get(common).map(|position| position.place)) {
            _ if before.prompt.model != prompt.model => "model_changed",
            (PromptPlace::Tool(_), _) | (_, Some(PromptPlace::Tool(_))) => "tools_changed",
            (PromptPlace::System(_), _) | (_, Some(PromptPlace::System(_))) => "system_changed",
            _ if before.prompt.parameters != prompt.parameters => {
                return json!({"cache_miss_reason": {"type": "unavailable"}});
            }
            _ => "messages_changed",
        };
        let missed: u64 = old[common..].iter().map(|position| position.tokens).sum();
        json!({"cache_miss_reason": {"type": kind, "cache_missed_input_tokens": missed}})
    }

    /// The break of `prompt` with its lineage, if there is one; remembers the prompt.
    pub(crate) fn follow(&mut self, prompt: Prompt, user: Option<&str>, id: &str) -> Option<PrefixBreak> {
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
        self.recent.push_back(Trail { lineage, id: id.to_owned(), chains, prompt });
        if self.recent.len() > MOST_TRAILS {
            self.recent.pop_front();
        }
        broke
    }
}

fn find_break(before: &Prompt, after: &Prompt, common: usize, lineage_is_known: bool) -> Option<PrefixBreak> {
    let replied = |positions: &[Position]| positions.iter().any(|position| position.assistant);
    let (shared, rest) = after.positions.split_at(common);
    let (old, new) = (before.positions.get(common)?, rest.first()?);
    let in_messages = |position: &Position| matches!(position.place, PromptPlace::Message { .. });
    let is_fork = replied(shared) && !replied(rest);
    let is_compaction = lineage_is_known && in_messages(old) && in_messages(new);
    let is_new = !replied(&after.positions) && !is_compaction;
    if is_fork || is_new {
        return None;
    }
    let tokens = before.positions[common..].iter().map(|position| position.tokens).sum();
    let (place, (before, after)) = if old.block == new.block {
        ("parameters".to_owned(), (before.parameters.clone(), after.parameters.clone()))
    } else {
        (new.place.to_string(), where_they_differ(&old.text, &new.text))
    };
    Some(PrefixBreak { place, before, after, tokens })
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
        let follow = |(system, turns): &(&str, &[&str])| trails.follow(prompt(system, turns), Some("one"), "id");
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
            trails.follow(prompt("s", &["a", "b", "c"]), user, "id");
            trails.follow(prompt("s", &["summary"]), user, "id").map(|broke| broke.place)
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

    #[test]
    fn a_diagnosis_names_what_changed() {
        let mut trails = Trails::default();
        trails.follow(prompt("s", &["a", "b", "c"]), None, "msg_1");
        let kind = |prompt: &Prompt, previous: &str| {
            trails.diagnose(prompt, previous)["cache_miss_reason"]["type"].as_str().map(str::to_owned)
        };
        assert_eq!(kind(&prompt("s", &["a", "b", "c", "d", "e"]), "msg_1"), None);
        assert_eq!(kind(&prompt("S", &["a", "b", "c"]), "msg_1").as_deref(), Some("system_changed"));
        assert_eq!(kind(&prompt("s", &["a", "B", "c"]), "msg_1").as_deref(), Some("messages_changed"));
        assert_eq!(kind(&prompt("s", &["a"]), "msg_0").as_deref(), Some("previous_message_not_found"));
    }
}
