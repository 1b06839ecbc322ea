//! Plain rules for clearing old tool results, and the provider's own: what others do, to compare with.
//!
//! Each is a layer like ours and looks at the same view. It looks back from the newest result to the first that it has
//! cleared already, so that a long session costs no more for each request than a short one.

use context::layer::{Decision, LayerChange};
use context::provider_edits;
use context::{Layer, LayerRole, Layers, Situation, clear};
use transcript::commit::{Act, CLEARED, CallName, Commit, Reason, Trigger};
use transcript::size::Size;
use transcript::tool_names;
use transcript::view::{AnsweredCall, ItemState, View, ViewEntry};

/// Results older than so many rounds are cleared, as soon as they have so many tokens together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgeRule {
    /// Rounds for which a result is kept.
    pub rounds: usize,
    /// Rounds for which what was read of a file is kept.
    pub read_rounds: usize,
    /// Tokens that are cleared at a time, at least.
    pub least_tokens: u64,
}

/// All results but those of the newest rounds are masked, before every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskRule {
    /// Rounds whose results are kept.
    pub rounds: usize,
}

/// The provider clears old results by itself, as `clear_tool_uses` asks it to: on every request anew, from the history as
/// it was sent. So once it has begun, it goes on with every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderRule {
    /// Tokens from which on it clears.
    pub trigger: u64,
    /// Tool uses whose results are kept.
    pub keep: usize,
    /// Tokens that are cleared, at least.
    pub least_tokens: u64,
}

impl ProviderRule {
    /// The rule as it is asked for in requests.
    pub fn of(layers: &Layers) -> Self {
        let layers = Layers { api_edits: true, ..layers.clone() };
        let edits = provider_edits::edits(&layers, false, std::iter::empty());
        let number = |key: &str| edits["edits"][0][key]["value"].as_u64().unwrap_or_default();
        let keep = usize::try_from(number("keep")).unwrap_or(usize::MAX);
        Self { trigger: number("trigger"), keep, least_tokens: number("clear_at_least") }
    }
}

impl Layer for AgeRule {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Clear
    }

    fn is_on(&self, _: &Layers) -> bool {
        true
    }

    fn decide(&self, view: &View, _: &Situation<'_>) -> Decision {
        let (mut old, mut size) = (Vec::new(), Size::default());
        'replies: for (round, reply) in replies(view).enumerate() {
            for call in reply.calls().rev() {
                if is_cleared(&call) && round >= self.rounds.max(self.read_rounds) {
                    break 'replies;
                }
                let kept = if call.tool == tool_names::READ { self.read_rounds } else { self.rounds };
                if round >= kept && clear::is_clearable(&call) && !is_cleared(&call) {
                    size += call.shown.size();
                    old.push(call.name());
                }
            }
        }
        let is_enough = !old.is_empty() && view.tally().estimate(size) >= self.least_tokens;
        if is_enough { clearing(old) } else { Decision::Nothing }
    }
}

impl Layer for MaskRule {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Clear
    }

    fn is_on(&self, _: &Layers) -> bool {
        true
    }

    fn decide(&self, view: &View, _: &Situation<'_>) -> Decision {
        let is_longer = |call: &AnsweredCall<'_>| call.shown.size().result_bytes > CLEARED.len();
        let old = replies(view).skip(self.rounds).flat_map(|entry| entry.calls().rev());
        let behind = old.filter(|call| call.result.is_some()).take_while(|call| !is_cleared(call));
        clearing(behind.filter(is_longer).map(|call| call.name()).collect())
    }
}

impl Layer for ProviderRule {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Clear
    }

    fn is_on(&self, _: &Layers) -> bool {
        true
    }

    fn decide(&self, view: &View, _: &Situation<'_>) -> Decision {
        let (mut old, mut size, mut has_begun) = (Vec::new(), Size::default(), false);
        let calls = replies(view).flat_map(|entry| entry.calls().rev()).filter(|call| call.result.is_some());
        for call in calls.skip(self.keep) {
            if is_cleared(&call) {
                has_begun = true;
                break;
            }
            if clear::CLEARABLE.contains(&call.tool) {
                size += call.shown.size();
                old.push(call.name());
            }
        }
        let is_due = view.tally().count() > self.trigger && view.tally().estimate(size) >= self.least_tokens;
        if has_begun || is_due { clearing(old) } else { Decision::Nothing }
    }
}

fn replies(view: &View) -> impl Iterator<Item = ViewEntry<'_>> {
    view.visible().rev().filter(|entry| entry.state() == ItemState::Reply)
}

fn is_cleared(call: &AnsweredCall<'_>) -> bool {
    call.result.is_some_and(|result| !result.is_same(call.shown))
}

/// The clearing of results that are named the newest first.
fn clearing(mut results: Vec<CallName>) -> Decision {
    if results.is_empty() {
        return Decision::Nothing;
    }
    results.reverse();
    let act = Act::Clear { results, trigger: Trigger::Auto, digest: None };
    Decision::Commit(LayerChange::of(Commit { act, reason: Reason::default() }))
}
