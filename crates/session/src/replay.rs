//! Replay: a recorded session, played through the layers without a model.
//!
//! What was said is said again, in its order and at its times; the same layers decide as in a live session; what the
//! model would have seen is checked at every round. What a layer needs is taken from the record: summaries, notes, what
//! was written down, where results went. Where the record has none, filler of a stated size stands for it.
//!
//! As long as the layers decide what the record says they decided, its usage figures and facts count, so that a session
//! played with the settings it had gives the commits it has. From the first difference on they tell of another session,
//! and are left out.

mod check;
mod player;
mod recorded;
mod replay_observer;

use context::{Layer, Layers};
use serde::Serialize;
use transcript::Log;
use transcript::line::Line;
use transcript::mark::Ttl;

use check::CheckedReplay;
use player::{Player, Windows};

pub use replay_observer::{FileReadAgain, ReplayObserver, RequestAnswer, SentRequest};

/// A summary that is made up has so many tokens, unless told otherwise.
pub const SUMMARY_TOKENS: u64 = 1_500;

/// One request that would have been sent.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayedRound {
    /// Its number, from 1.
    pub round: usize,
    /// The view's tokens.
    pub tokens: u64,
    /// The layers' actions before it.
    pub commits: Vec<LayerDeed>,
}

/// An action of a layer.
#[derive(Debug, Clone, Serialize)]
pub struct LayerDeed {
    /// The layer.
    pub layer: &'static str,
    /// Tokens that left the view.
    pub freed: u64,
    /// Why.
    pub why: String,
    /// The calls whose results it took, where it took results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<String>,
}

/// A session, played again.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayedSession {
    /// Every request.
    pub rounds: Vec<ReplayedRound>,
    /// Broken invariants.
    pub broken: Vec<String>,
    /// The first round in which the layers did something else than the record says; none if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs_from: Option<usize>,
}

/// Plays lines through the layers, in the windows that the record says they were worked in.
pub fn replay_as_recorded(lines: Vec<Line>, layers: &Layers, summary_tokens: u64) -> ReplayedSession {
    check(&Log::live_lines(lines), layers, summary_tokens, Windows::Recorded)
}

/// Plays lines through the layers.
pub fn replay(lines: Vec<Line>, layers: &Layers, summary_tokens: u64) -> ReplayedSession {
    check(&Log::live_lines(lines), layers, summary_tokens, Windows::Given)
}

/// The layers to replay, with their configuration.
#[derive(Clone, Copy)]
pub struct ReplayPlan<'a> {
    /// The layers, in the order in which they act.
    pub list: &'a [&'a dyn Layer],
    /// The layers.
    pub layers: &'a Layers,
    /// Lifetime of the provider's cache.
    pub ttl: Ttl,
    /// The size of summaries that are made up.
    pub summary_tokens: u64,
}

/// Plays the lines of one conversation in their order, for somebody who follows it. Nothing is checked.
pub fn follow(lines: &[Line], plan: &ReplayPlan<'_>, follower: &mut dyn ReplayObserver) {
    Player::new(plan, Windows::Given, follower).play_all(lines);
}

fn check(lines: &[Line], layers: &Layers, summary_tokens: u64, windows: Windows) -> ReplayedSession {
    let plan = ReplayPlan { list: context::list::LIST, layers, ttl: Ttl::default(), summary_tokens };
    let mut checked = CheckedReplay::default();
    let mut player = Player::new(&plan, windows, &mut checked);
    player.play_all(lines);
    let (rounds, differs_from) = player.end();
    ReplayedSession { rounds, broken: checked.broken, differs_from }
}
