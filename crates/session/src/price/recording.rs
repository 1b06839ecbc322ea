//! A recorded session, ready to be priced.
//!
//! The conversation is what was said in it, without what the program that recorded it took out: no clearing and no
//! compaction of the record is played, so that every policy works on the same session. Where the user went back, it goes
//! back. What is paid outside the conversation (subagents in the same file, branches that were left, forks) is kept apart:
//! no policy changes it.

use std::collections::{HashMap, HashSet};

use context::{Fact, list};
use jiff::Timestamp;
use transcript::commit::{Act, Commit};
use transcript::line::{Body, Line, TextSource, Writer};
use transcript::mark::Ttl;
use transcript::price::{Price, Prices};
use transcript::size::Size;
use transcript::tokens::Tally;
use transcript::{Block, Id, Log, Prologue, Usage};

use super::edited::{EditedText, FileEdit};
use super::shown_files::ShownFiles;
use super::weight::{Stretch, Weights};

/// Bytes that stand for a token of what is before the messages.
const PROLOGUE_BYTES: f64 = 3.3;

/// A recorded session, ready to be priced.
#[derive(Debug)]
pub struct Recording {
    /// The conversation, in order.
    pub(super) lines: Vec<Line>,
    /// The requests of the conversation, in order.
    pub(super) requests: Vec<RecordedRequest>,
    /// Usage of all recorded requests, each reply once; and forks.
    pub(super) paid: Vec<PaidRequest>,
    pub(super) weights: Weights,
    pub(super) text: EditedText,
    pub(super) files: ShownFiles,
    /// True if the recording program took nothing out of it.
    is_whole: bool,
    /// Tokens that other sessions with the same beginning had left in the cache.
    pub(super) cached_before: u64,
    place_of_reply: HashMap<Id, usize>,
}

/// A request of the conversation.
#[derive(Debug)]
pub(super) struct RecordedRequest {
    pub(super) reply: Id,
    pub(super) time: Option<Timestamp>,
    pub(super) model: String,
    pub(super) price: Option<Price>,
    pub(super) output: u64,
    pub(super) edits: Vec<FileEdit>,
}

/// A request as the record tells of it.
#[derive(Debug)]
pub(super) struct PaidRequest {
    /// Its reply; none of a fork.
    pub(super) reply: Option<Id>,
    pub(super) time: Option<Timestamp>,
    pub(super) usage: Usage,
    pub(super) price: Option<Price>,
    /// The origin of a request outside the conversation: a layer, a kind of subagent, a hook.
    pub(super) fork_of: Option<String>,
    /// Compactions that the recording program made before it.
    pub(super) compactions: usize,
}

impl PaidRequest {
    /// True if a layer asked for it.
    pub(super) fn is_for_layers(&self) -> bool {
        self.fork_of.as_ref().is_some_and(|who| list::names().contains(&who.as_str()))
    }

    /// True if a subagent of one of these kinds made it, or asked for it.
    fn is_of_subagent(&self, kinds: &[String]) -> bool {
        let who = self.fork_of.as_deref().unwrap_or_default();
        kinds.iter().any(|kind| !kind.is_empty() && who.split(": ").next() == Some(kind))
    }
}

impl Recording {
    /// Reads off what lines say.
    pub fn of(lines: Vec<Line>, prices: &Prices) -> Self {
        let paid = paid(&lines, prices);
        let takes_out = |line: &Line| matches!(&line.body, Body::Commit(commit) if commit.act.changes_sent());
        let is_untouched = !lines.iter().any(takes_out);
        let mut lines: Vec<Line> = Log::live_lines(joined(lines)).into_iter().filter(is_said).collect();
        let usage: HashMap<&Id, Usage> =
            paid.iter().filter_map(|request| Some((request.reply.as_ref()?, request.usage))).collect();
        let (requests, stretches) = requests(&lines, &usage, prices);
        let recorded_prologue = lines.iter().find_map(|line| match &line.body {
            Body::Prologue(prologue) => Some(prologue),
            _ => None,
        });
        let estimate = recorded_prologue.map_or(0, |prologue| Tally::default().of_prologue(prologue));
        let weights = Weights::of(&stretches, estimate);
        let is_whole = is_untouched && weights.fit(&stretches);
        if recorded_prologue.is_none() {
            let model = requests.first().map(|request| request.model.clone()).unwrap_or_default();
            lines.insert(0, stand_in(model, weights.prologue()));
        }
        // One program works on it from beginning to end: what it counted before counts.
        lines.iter_mut().for_each(|line| line.writer = Writer::Cairn);
        let files = ShownFiles::of(&mut lines);
        let text = EditedText::of(&lines, requests.iter().flat_map(|request| &request.edits));
        let first = requests.first().and_then(|request| usage.get(&request.reply));
        let cached_before = first.map_or(0, |usage| usage.cache_read_input_tokens.min(weights.prologue()));
        let place_of_reply = requests.iter().enumerate().map(|(at, one)| (one.reply.clone(), at)).collect();
        Self { lines, requests, paid, weights, text, files, is_whole, cached_before, place_of_reply }
    }

    /// The same session, with nothing before its messages: neither paid for nor in the window. What a policy saves then
    /// stands against the messages alone.
    #[must_use]
    pub fn without_prologue(mut self) -> Self {
        self.weights.leave_out_prologue();
        self.cached_before = 0;
        if let Some(Body::Prologue(prologue)) = self.lines.first_mut().map(|line| &mut line.body) {
            prologue.system.clear();
        }
        self
    }

    /// The same session without what its subagents of some kinds used: they have files of their own, which are priced too.
    #[must_use]
    pub fn without_subagents(mut self, kinds: &[String]) -> Self {
        self.paid.retain(|request| !request.is_of_subagent(kinds));
        self
    }

    /// The model of the newest request; empty where there was none.
    pub fn model(&self) -> &str {
        self.requests.last().map_or("", |request| &request.model)
    }

    /// The number of requests in the conversation.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// True if there was no request.
    pub fn is_empty(&self) -> bool {
        self.paid.is_empty() && self.requests.is_empty()
    }

    /// The lifetime for which most was written to the cache.
    pub fn ttl(&self) -> Ttl {
        let written = |of: fn(&Usage) -> u64| self.paid.iter().map(|request| of(&request.usage)).sum::<u64>();
        let hour = written(|usage| usage.cache_creation.ephemeral_1h_input_tokens);
        if hour * 2 > written(|usage| usage.cache_creation_input_tokens) { Ttl::OneHour } else { Ttl::FiveMinutes }
    }

    /// True if the recording program took nothing out of the view.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// True if the recording program compacted it, and no request in it filled half of a window.
    pub(super) fn was_compacted_below_half(&self, window: u64) -> bool {
        let is_compacted = self.paid.iter().any(|request| request.compactions > 0);
        is_compacted && self.paid.iter().all(|request| request.usage.context() * 2 < window)
    }

    /// The price of the newest model that has one.
    pub(super) fn price(&self) -> Option<Price> {
        self.requests.iter().rev().find_map(|request| request.price)
    }

    /// The place of a reply's request in the conversation.
    pub(super) fn place_of(&self, reply: &Id) -> Option<usize> {
        self.place_of_reply.get(reply).copied()
    }
}

/// The lines as one conversation: some programs name a line as the one before that they never wrote, mostly at a
/// compaction. Then the newest line that was written stands before it.
fn joined(mut lines: Vec<Line>) -> Vec<Line> {
    let known: HashSet<Id> = lines.iter().filter_map(|line| line.id.clone()).collect();
    let mut newest: Option<Id> = None;
    for line in lines.iter_mut().filter(|line| !line.sidechain && line.id.is_some()) {
        let is_compaction = matches!(&line.body, Body::Commit(Commit { act: Act::Compact { .. }, .. }));
        let is_lost = line.parent.as_ref().map_or(is_compaction, |parent| !known.contains(parent));
        if is_lost {
            line.parent.clone_from(&newest);
        }
        if line.in_chain() {
            newest.clone_from(&line.id);
        }
    }
    lines
}

/// True if a line is part of the conversation; a rewind is the user's doing, and no policy's.
fn is_said(line: &Line) -> bool {
    match &line.body {
        Body::User { source, .. } => *source != TextSource::Summary,
        Body::Assistant { .. } | Body::Attachment { .. } | Body::Prologue(_) => true,
        Body::Commit(commit) => matches!(commit.act, Act::Rewind { .. } | Act::Undo { .. }),
        Body::Meta(_) | Body::Other => false,
    }
}

/// Usage of every request, each reply once: several lines may belong to one, and the last of them has the whole output.
fn paid(lines: &[Line], prices: &Prices) -> Vec<PaidRequest> {
    let mut place: HashMap<&Id, usize> = HashMap::new();
    let mut paid: Vec<PaidRequest> = Vec::new();
    let mut compactions = 0;
    for line in lines {
        match &line.body {
            Body::Commit(commit) => compactions += usize::from(matches!(commit.act, Act::Compact { .. })),
            Body::Assistant { id, model, usage: Some(usage), .. } => match place.get(id) {
                Some(&at) => paid[at].usage = *usage,
                None => {
                    place.insert(id, paid.len());
                    paid.push(PaidRequest {
                        reply: Some(id.clone()),
                        time: line.time,
                        usage: *usage,
                        price: prices.of(model),
                        fork_of: None,
                        compactions: std::mem::take(&mut compactions),
                    });
                }
            },
            Body::Meta(_) => paid.extend(fork(line, prices)),
            _ => {}
        }
    }
    paid
}

/// A request outside the conversation, if a line tells of one.
fn fork(line: &Line, prices: &Prices) -> Option<PaidRequest> {
    let Some(Fact::Side { agent, model, usage }) = Fact::of(line) else { return None };
    let price = prices.of(&model);
    Some(PaidRequest { reply: None, time: line.time, usage, price, fork_of: Some(agent), compactions: 0 })
}

/// The requests of a conversation, and the stretches before each.
fn requests(lines: &[Line], usage: &HashMap<&Id, Usage>, prices: &Prices) -> (Vec<RecordedRequest>, Vec<Stretch>) {
    let mut requests: Vec<RecordedRequest> = Vec::new();
    let mut stretches: Vec<Stretch> = Vec::new();
    let (mut said, mut seen) = (Size::default(), HashSet::new());
    for line in lines {
        match &line.body {
            Body::Assistant { id, model, blocks, .. } => {
                if seen.insert(id) {
                    let used = usage.get(id).copied().unwrap_or_default();
                    let request_tokens = Some(used.context()).filter(|tokens| *tokens > 0);
                    stretches.push(Stretch { size: std::mem::take(&mut said), request_tokens });
                    requests.push(RecordedRequest {
                        reply: id.clone(),
                        time: line.time,
                        model: model.clone(),
                        price: prices.of(model),
                        output: used.output_tokens,
                        edits: Vec::new(),
                    });
                }
                if let Some(newest) = requests.last_mut() {
                    newest.edits.extend(blocks.iter().flat_map(FileEdit::of));
                }
                said += sent(blocks);
            }
            Body::User { blocks, .. } | Body::Attachment { blocks } => said += sent(blocks),
            _ => {}
        }
    }
    (requests, stretches)
}

fn sent(blocks: &[Block]) -> Size {
    blocks.iter().filter(|block| block.is_sendable()).map(Block::size).sum()
}

/// A substitute of the same size for a prologue that the record does not have.
fn stand_in(model: String, tokens: u64) -> Line {
    let system = vec![Block::text("x".repeat((tokens as f64 * PROLOGUE_BYTES) as usize))];
    let prologue = Prologue { model, max_tokens: 1, system, ..Prologue::default() };
    Line::new(Id::from("prologue"), None, Timestamp::UNIX_EPOCH, Body::Prologue(prologue))
}
