//! Layer 2: old tool results are cleared.
//!
//! What a tool said many rounds ago is seldom needed, and can be had again: by its call, by `History`, by running the
//! tool once more. So it is the first to go. Three occasions, and nothing else:
//!
//! - **idle**: nobody spoke for an hour, the provider's cache is gone, and whatever is sent has to be written anyway;
//! - **tight**: the window fills up, or saving is asked for, and the sum of [`worth`](crate::worth) says that it pays;
//! - **due**: compaction is due, and clearing alone makes room enough.
//!
//! Only results of tools that look or write (below) are cleared; never thinking, text, what the user said, or what other
//! servers' tools returned.

use jiff::SignedDuration;
use serde::Deserialize;
use transcript::Id;
use transcript::commit::{CLEARED, CallName};
use transcript::size::Size;
use transcript::view::{Answered, View};
use transcript::window::{AutoCompact, Window};

use crate::worth::{Pace, Rates, Sum};

/// Tools whose results are cleared.
pub const CLEARABLE: [&str; 9] =
    ["Read", "Bash", "PowerShell", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"];
/// After so long without a reply the provider's cache is gone, whatever was asked for.
const IDLE: SignedDuration = SignedDuration::from_mins(60);
/// So many results stay when a session wakes up, unless the settings say otherwise; one always does.
pub const KEPT_WHEN_IDLE: usize = 5;
/// Results of so many replies stay when room is made: the model is working with them.
pub const YOUNG_ROUNDS: usize = 3;

/// When layers make room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// When the window asks for it.
    #[default]
    Window,
    /// As soon as it is cheaper than carrying on.
    Economy,
}

/// What the decision depends on, besides the view.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// How long ago the newest reply came.
    pub idle: Option<SignedDuration>,
    /// The model's window.
    pub window: Window,
    /// Whether compaction happens by itself.
    pub auto: AutoCompact,
    /// When to make room.
    pub when: When,
    /// How long turns are.
    pub pace: &'a Pace,
    /// What tokens cost.
    pub rates: Rates,
    /// How many results stay when a session wakes up.
    pub kept_when_idle: usize,
    /// Whether results are cleared to make room.
    pub may_pay: bool,
}

/// Results to clear.
#[derive(Debug, Clone, PartialEq)]
pub struct Clear {
    /// Their calls.
    pub results: Vec<CallName>,
    /// Tokens that leave the view.
    pub freed: u64,
    /// The first line whose sent bytes change.
    pub changes_from: Id,
    /// Why it is worth it.
    pub why: String,
}

/// A result that may go.
struct Old {
    call: CallName,
    line: Id,
    item: usize,
    size: Size,
    /// How many rounds ago it stopped being young.
    age: usize,
}

/// Decides what is cleared.
pub fn decide(view: &View, now: &Situation<'_>) -> Option<Clear> {
    if now.idle.is_some_and(|idle| idle >= IDLE) {
        return idle(view, now);
    }
    let count = view.tally().count();
    let tight = count >= now.window.warning(now.auto);
    if !now.may_pay || (!tight && now.when == When::Window) {
        return None;
    }
    let old = old(view, YOUNG_ROUNDS);
    let first = old.last()?;
    let (size, mut suffix) = (old.iter().map(|one| one.size).sum(), Size::default());
    let behind = view.visible().rev().take_while(|entry| entry.index() >= first.item);
    behind.for_each(|entry| suffix += entry.size());
    suffix -= size;
    let tally = view.tally();
    let marks = tally.estimate(transcript::Block::text(CLEARED).size()) * old.len() as u64;
    let cleared = tally.estimate(size).saturating_sub(marks);
    let sum = Sum { cleared, suffix: tally.estimate(suffix) + marks, rounds: now.pace.expected(), rates: now.rates };
    let threshold = now.window.threshold(now.auto);
    let due = count > threshold && count.saturating_sub(cleared) < now.window.warning(now.auto);
    let worth = sum.pays() && (tight || paid_for(view, &old, now) >= sum.costs());
    if cleared == 0 || !(due || worth) {
        return None;
    }
    let why = if due { format!("compaction is due; {sum}") } else { sum.to_string() };
    Some(clear(old, cleared, why))
}

/// The provider clears from here on, at the latest.
const SERVER_TRIGGER: u64 = 180_000;
/// It clears at least so much, or what leaves [`SERVER_LEFT`].
const SERVER_LEAST: u64 = 140_000;
const SERVER_LEFT: u64 = 40_000;

/// What the provider is asked to clear by itself, where it can: results of the same tools, when the window is as full as
/// it would be for us, and so much at a time that writing the rest again is worth it.
pub fn server_edits(window: &Window, auto: AutoCompact, tools: impl Iterator<Item = String>) -> serde_json::Value {
    let trigger = window.warning(auto).min(SERVER_TRIGGER);
    let least = SERVER_LEAST.min(trigger.saturating_sub(SERVER_LEFT.min(trigger / 2)));
    let excluded: Vec<String> = tools.filter(|tool| !CLEARABLE.contains(&tool.as_str())).collect();
    serde_json::json!({
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": KEPT_WHEN_IDLE},
        "clear_at_least": {"type": "input_tokens", "value": least},
        "exclude_tools": excluded,
    })
}

/// Tokens that could be cleared, if it paid.
pub fn clearable(view: &View) -> u64 {
    view.tally().estimate(old(view, YOUNG_ROUNDS).iter().map(|one| one.size).sum())
}

/// What was paid so far for carrying old results. To wait until that is as much as the price of clearing them is never
/// more than twice as dear as to know the future.
fn paid_for(view: &View, old: &[Old], now: &Situation<'_>) -> f64 {
    let carried = |one: &Old| view.tally().estimate(one.size) as f64 * one.age as f64;
    old.iter().map(carried).sum::<f64>() * now.rates.read
}

fn idle(view: &View, now: &Situation<'_>) -> Option<Clear> {
    let mut old = old(view, 0);
    let kept = now.kept_when_idle.max(1).min(old.len());
    old.drain(..kept);
    let freed = view.tally().estimate(old.iter().map(|one| one.size).sum());
    let minutes = now.idle.map_or(0, |idle| idle.as_mins());
    (freed > 0).then(|| clear(old, freed, format!("nobody spoke for {minutes} minutes: the cache is cold")))
}

fn clear(old: Vec<Old>, freed: u64, why: String) -> Clear {
    let changes_from = old.last().map(|one| one.line.clone()).unwrap_or_else(|| Id::from(""));
    let results = old.into_iter().rev().map(|one| one.call).collect();
    Clear { results, freed, changes_from, why }
}

/// Results that may go, the newest first; those of the newest `young` replies stay.
fn old(view: &View, young: usize) -> Vec<Old> {
    let mut old = Vec::new();
    let replies = view.visible().rev().filter(|entry| entry.is_reply() && entry.is_original());
    for (round, entry) in replies.enumerate().skip(young) {
        let clearable = entry.calls().rev().filter(is_clearable);
        old.extend(clearable.map(|call| Old {
            call: call.name(),
            line: entry.line().clone(),
            item: entry.index(),
            size: call.shown.size(),
            age: round - young,
        }));
    }
    old
}

/// Smaller results than this are left: what stands in their place is hardly shorter.
const LEAST_BYTES: usize = 200;

/// Whether a result may be cleared, and there is something to gain.
pub(crate) fn is_clearable(call: &Answered<'_>) -> bool {
    let size = call.shown.size();
    let is_worth_it = size.result_bytes > LEAST_BYTES || size.media > 0;
    call.result.is_some() && CLEARABLE.contains(&call.tool) && is_worth_it
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Session;
    use transcript::commit::{Act, Trigger};
    use transcript::mark::Ttl;

    fn ids(clear: &Clear) -> Vec<&str> {
        clear.results.iter().map(|call| call.id.as_str()).collect()
    }

    fn situation(pace: &Pace) -> Situation<'_> {
        Situation {
            idle: None,
            window: Window { size: 100_000, effective: 80_000 },
            auto: AutoCompact::On,
            when: When::Window,
            pace,
            rates: Rates::of(None, Ttl::FiveMinutes),
            kept_when_idle: KEPT_WHEN_IDLE,
            may_pay: true,
        }
    }

    /// MICRO-2: after an hour without a reply all results but the newest five are cleared, one at least stays whatever
    /// the settings say; a minute less, and nothing is.
    #[test]
    fn after_an_hour_old_results_go() {
        let mut session = Session::default();
        session.say("go");
        let calls: Vec<String> = (0..8).map(|_| session.call("Bash", 3_000)).collect();
        let pace = Pace::default();
        let idle = |minutes| Some(SignedDuration::from_mins(minutes));
        assert_eq!(decide(session.log.view(), &Situation { idle: idle(59), ..situation(&pace) }), None);
        let clear = decide(session.log.view(), &Situation { idle: idle(60), ..situation(&pace) }).unwrap();
        assert_eq!(ids(&clear), calls[..3]);
        assert!(clear.why.contains("60 minutes"));
        let none_kept = Situation { idle: idle(90), kept_when_idle: 0, ..situation(&pace) };
        assert_eq!(ids(&decide(session.log.view(), &none_kept).unwrap()), calls[..7]);
    }

    /// MICRO-4: the provider clears at min(180,000, threshold − 20,000), at least 140,000 or what leaves 40,000, and only
    /// what we would.
    #[test]
    fn the_provider_is_asked_for_what_we_would_do() {
        let edits = |size: u64, effective| {
            let tools = ["Read", "Bash", "History"].map(str::to_owned);
            server_edits(&Window { size, effective }, AutoCompact::On, tools.into_iter())
        };
        let large = edits(1_000_000, 980_000);
        assert_eq!((&large["trigger"]["value"], &large["clear_at_least"]["value"]), (&180_000.into(), &140_000.into()));
        assert_eq!(large["exclude_tools"], serde_json::json!(["History"]));
        let usual = edits(200_000, 180_000);
        assert_eq!((&usual["trigger"]["value"], &usual["clear_at_least"]["value"]), (&147_000.into(), &107_000.into()));
    }

    /// MICRO-1: only results of tools that look or write are cleared; not what other servers' tools returned, nor what
    /// was cleared already.
    #[test]
    fn only_what_can_be_had_again_is_cleared() {
        let mut session = Session::default();
        session.say("go");
        let mut calls = Vec::new();
        for tool in CLEARABLE.into_iter().chain(["mcp__db__query", "History", "Agent"]) {
            calls.push(session.call(tool, 1_000));
        }
        session.call("Bash", 10);
        let pace = Pace::default();
        let now = Situation { idle: Some(SignedDuration::from_hours(2)), kept_when_idle: 1, ..situation(&pace) };
        let clear = decide(session.log.view(), &now).unwrap();
        assert_eq!(ids(&clear), calls[..8], "the newest of the nine stays, and so do the small and the foreign ones");
        session.commit(Act::Clear { results: clear.results, trigger: Trigger::Auto, digest: None });
        assert_eq!(decide(session.log.view(), &now), None);
    }

    /// MICRO-5, MICRO-6: when it is tight, results older than three rounds go if the sum says that it pays; the commit
    /// carries the sum and the tokens freed. With room enough nothing is touched.
    #[test]
    fn when_it_is_tight_old_results_go_if_that_pays() {
        let mut session = Session::default();
        session.say("go");
        let calls: Vec<String> = (0..13).map(|_| session.call("Bash", 10_000)).collect();
        let pace = Pace::default();
        assert_eq!(decide(session.log.view(), &situation(&pace)), None, "44,000 tokens are not tight");
        session.call("Bash", 10_000);
        let clear = decide(session.log.view(), &situation(&pace)).unwrap();
        assert_eq!(ids(&clear), calls[..11], "those of the three newest replies stay");
        assert!((35_000..38_000).contains(&clear.freed), "{}", clear.freed);
        assert!(clear.why.contains("× 8 rounds saves"), "{}", clear.why);
        assert_eq!(clear.changes_from.as_str(), "line-2");
        let before = session.log.view().tally().count();
        session.commit(Act::Clear { results: clear.results, trigger: Trigger::Auto, digest: None });
        let freed = before - session.log.view().tally().count();
        assert!(freed.abs_diff(clear.freed) < 200, "{freed} against {}", clear.freed);
        session.say(&"words ".repeat(30_000));
        session.reply("ok");
        assert_eq!(
            decide(session.log.view(), &situation(&pace)),
            None,
            "a text behind them would have to be written again"
        );
    }

    /// COMPACT-14: in economy old results go when carrying them has cost as much as writing the rest again, and not
    /// before.
    #[test]
    fn in_economy_results_go_when_they_have_been_paid_for() {
        let mut session = Session::default();
        session.say("go");
        let pace = Pace::default();
        let now = Situation {
            when: When::Economy,
            window: Window { size: 1_000_000, effective: 980_000 },
            ..situation(&pace)
        };
        let mut rounds = 0;
        let clear = loop {
            session.call("Bash", 10_000);
            rounds += 1;
            if let Some(clear) = decide(session.log.view(), &now) {
                break clear;
            }
        };
        assert!((9..14).contains(&rounds), "{rounds}");
        assert_eq!(clear.results.len(), rounds - 3);
    }
}
