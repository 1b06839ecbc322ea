//! Replay: a recorded session, played through the layers without a model.
//!
//! What was said is said again, in its order and at its times; what the layers would do to it is done; what the model
//! would have seen is checked at every round. Summaries are the record's own where it has them, else filler of a stated
//! size. Usage figures of the record are left out: they count what was sent then, not what would be sent here.

use std::collections::HashSet;

use context::compact::{self, Made};
use context::micro;
use context::spill::{self, Fresh};
use context::worth::Pace;
use jiff::Timestamp;
use serde::Serialize;
use transcript::block::Kind;
use transcript::commit::{Act, Commit, Extent, Reason, Replacement, Trigger};
use transcript::line::{Body, Line, Source};
use transcript::mark::Ttl;
use transcript::view::{Change, View};
use transcript::{Block, Id, Log, Message, Role};

use crate::layers::{Layers, limit};

/// A summary that is made up has so many tokens, unless told otherwise.
pub const SUMMARY_TOKENS: u64 = 1_500;

/// One request that would have been sent.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Which, from 1.
    pub round: usize,
    /// The view's tokens.
    pub tokens: u64,
    /// What the layers did before it.
    pub commits: Vec<Done>,
}

/// What a layer did.
#[derive(Debug, Clone, Serialize)]
pub struct Done {
    /// Which layer.
    pub layer: &'static str,
    /// Tokens that left the view.
    pub freed: u64,
    /// Why.
    pub why: String,
}

/// A session, played again.
#[derive(Debug, Clone, Serialize)]
pub struct Replayed {
    /// Every request.
    pub rounds: Vec<Round>,
    /// What should never happen, and did.
    pub broken: Vec<String>,
}

/// Plays lines through the layers.
pub fn replay(lines: Vec<Line>, layers: &Layers, summary_tokens: u64) -> Replayed {
    let mut player = Player::new(layers, summary_tokens);
    let mut live: Vec<Line> = Vec::new();
    Log::load_watching(lines, |_, line| live.push(line.clone()));
    let mut replies: HashSet<Id> = HashSet::new();
    for line in live {
        let body = match line.body {
            Body::User { blocks, source: Source::Summary } => {
                player.recorded_summary = blocks.iter().find_map(Block::as_text);
                continue;
            }
            Body::Assistant { id, model, blocks, stop, .. } => {
                if replies.insert(id.clone()) {
                    player.round(line.time);
                }
                Body::Assistant { id, model, blocks, usage: None, stop }
            }
            body @ (Body::User { .. } | Body::Attachment { .. } | Body::Prologue(_)) => body,
            Body::Commit(_) | Body::Meta(_) | Body::Other => continue,
        };
        if matches!(body, Body::User { source: Source::Said, .. }) && !is_results(&body) {
            player.pace.turn();
        }
        player.append(line.id, line.time, body);
    }
    Replayed { rounds: player.rounds, broken: player.broken }
}

fn is_results(body: &Body) -> bool {
    let Body::User { blocks, .. } = body else { return false };
    blocks.iter().any(|block| matches!(block.kind(), Kind::ToolResult { .. }))
}

struct Player<'a> {
    layers: &'a Layers,
    summary_tokens: u64,
    recorded_summary: Option<String>,
    log: Log,
    pace: Pace,
    replied_at: Option<Timestamp>,
    /// What the request before this one had, and from which item on it may differ by now.
    sent: Vec<Block>,
    changed: Option<usize>,
    rounds: Vec<Round>,
    broken: Vec<String>,
    names: u64,
}

impl<'a> Player<'a> {
    fn new(layers: &'a Layers, summary_tokens: u64) -> Self {
        Self {
            layers,
            summary_tokens,
            recorded_summary: None,
            log: Log::default(),
            pace: Pace::default(),
            replied_at: None,
            sent: Vec::new(),
            changed: None,
            rounds: Vec::new(),
            broken: Vec::new(),
            names: 0,
        }
    }

    fn append(&mut self, id: Option<Id>, time: Option<Timestamp>, body: Body) {
        let id = id.unwrap_or_else(|| {
            self.names += 1;
            Id::from(format!("replayed-{}", self.names))
        });
        let line = Line::new(id, self.log.tip().cloned(), time.unwrap_or(Timestamp::UNIX_EPOCH), body);
        let change = match self.log.append(line) {
            Change::Grew => return,
            Change::Prologue => 0,
            Change::From(item) => item,
        };
        self.changed = Some(self.changed.map_or(change, |changed| changed.min(change)));
    }

    fn commit(&mut self, act: Act, reason: Reason) {
        self.append(None, None, Body::Commit(Commit { act, reason }));
    }

    fn count(&self) -> u64 {
        self.log.view().tally().count()
    }

    /// A request is about to be sent.
    fn round(&mut self, now: Option<Timestamp>) {
        let mut commits = Vec::new();
        self.spill(&mut commits);
        self.clear(now, &mut commits);
        if compact::is_due(self.count(), &self.layers.window, self.layers.auto_compact) {
            self.compact(&mut commits);
        }
        let round = self.rounds.len() + 1;
        let limit = self.layers.window.effective;
        let tokens = self.count();
        if tokens > limit && self.layers.auto_compact == transcript::window::AutoCompact::On {
            self.broken.push(format!("round {round}: {tokens} tokens are more than the window's {limit}"));
        }
        self.check(round);
        self.rounds.push(Round { round, tokens, commits });
        self.pace.round();
        self.replied_at = now;
    }

    fn spill(&mut self, commits: &mut Vec<Done>) {
        if !self.layers.spill {
            return;
        }
        let view = self.log.view();
        let fresh = view.fresh_results();
        let tools = tools::standard();
        let fresh: Vec<Fresh<'_>> =
            fresh.iter().map(|(id, tool, result)| Fresh { id, tool, result, limit: limit(&tools, tool) }).collect();
        let replacements: Vec<Replacement> = spill::decide(&fresh)
            .iter()
            .map(|spill| Replacement {
                call: spill.id.as_str().into(),
                replacement: spill.replacement(&format!("tool-results/{}.txt", spill.id)),
            })
            .collect();
        if !replacements.is_empty() {
            let before = self.count();
            self.commit(Act::Spill { replacements }, Reason::default());
            self.done("spill", before, "over the limit of a result", commits);
        }
    }

    fn clear(&mut self, now: Option<Timestamp>, commits: &mut Vec<Done>) {
        let idle = now.zip(self.replied_at).map(|(now, then)| now.duration_since(then));
        let situation = self.layers.situation(idle, &self.pace, Ttl::default());
        if let Some(clear) = micro::decide(self.log.view(), &situation) {
            let (before, why) = (self.count(), clear.why.clone());
            let reason = Reason { freed: Some(clear.freed), changes_from: Some(clear.changes_from), why: None };
            self.commit(Act::Clear { results: clear.results, trigger: Trigger::Auto, digest: None }, reason);
            self.done("clear", before, &why, commits);
        }
    }

    fn compact(&mut self, commits: &mut Vec<Done>) {
        let (view, window) = (self.log.view(), &self.layers.window);
        let kept = compact::unanswered_from(view, window).unwrap_or(view.len());
        if kept == 0 {
            return;
        }
        let extent = view.line_of(kept).map_or(Extent::Everything, |line| Extent::Before(line.clone()));
        let filler = || "something was done, and is told here. ".repeat(self.summary_tokens as usize / 12 + 1);
        let tokens = |text: &str| view.tally().estimate(Block::text(text).size());
        let summary = self.recorded_summary.take().unwrap_or_else(filler);
        let summary = compact::summary_in(&summary, window, tokens).unwrap_or_else(filler);
        let text = compact::framed(Made::Summary, &summary, view, 0..kept, window);
        let (before, changes_from) = (self.count(), view.line_of(0).cloned());
        let reason = Reason { changes_from, ..Reason::default() };
        self.commit(Act::Compact { extent, trigger: Trigger::Auto, pre_tokens: before }, reason);
        self.append(None, None, Body::User { blocks: vec![Block::text(text)], source: Source::Summary });
        self.done("compact", before, "the window was full", commits);
    }

    fn done(&self, layer: &'static str, before: u64, why: &str, commits: &mut Vec<Done>) {
        commits.push(Done { layer, freed: before.saturating_sub(self.count()), why: why.to_owned() });
    }

    /// What must hold of every request: calls are answered, roles take turns, and nothing that was sent changed without a
    /// commit that says so.
    fn check(&mut self, round: usize) {
        let view = self.log.view();
        if let Some(wrong) = unpaired(&view.messages()) {
            self.broken.push(format!("round {round}: {wrong}"));
        }
        let stable = self.changed.take().map_or(self.sent.len(), |item| blocks_before(view, item));
        let blocks: Vec<Block> = view.blocks().map(|(_, _, block)| block.clone()).collect();
        let same = self.sent.iter().zip(&blocks).take(stable).all(|(was, is)| was.is_same(is));
        if !same || blocks.len() < stable.min(self.sent.len()) {
            self.broken.push(format!("round {round}: what was sent changed, and no commit says so"));
        }
        self.sent = blocks;
    }
}

fn blocks_before(view: &View, item: usize) -> usize {
    view.blocks().take_while(|(at, _, _)| *at < item).count()
}

/// What the API would refuse in these messages.
fn unpaired(messages: &[Message]) -> Option<String> {
    if messages.first().is_some_and(|first| first.role != Role::User) {
        return Some("the first message is not the user's".to_owned());
    }
    for (at, message) in messages.iter().enumerate() {
        if messages.get(at + 1).is_some_and(|next| next.role == message.role) {
            return Some(format!("messages {at} and {} are of one role", at + 1));
        }
        let next = messages.get(at + 1).map(|next| next.blocks.as_slice()).unwrap_or_default();
        for block in &message.blocks {
            if let Kind::ToolUse { id, .. } = block.kind()
                && !next.iter().any(|one| matches!(one.kind(), Kind::ToolResult { id: of, .. } if of == id))
            {
                return Some(format!("call {id} has no result"));
            }
            if let Kind::ToolResult { id, .. } = block.kind() {
                let before = at.checked_sub(1).map(|at| messages[at].blocks.as_slice()).unwrap_or_default();
                if !before.iter().any(|one| matches!(one.kind(), Kind::ToolUse { id: of, .. } if of == id)) {
                    return Some(format!("result {id} has no call"));
                }
            }
        }
    }
    None
}
