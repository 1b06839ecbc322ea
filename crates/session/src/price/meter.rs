//! The meter: follows a replay and writes the bill.
//!
//! It knows what every item in view weighs and adds up only what changed since the request before, so that a request costs
//! no more to price than what it brought. What it counted is reported to the layers as the provider would.

use std::path::PathBuf;

use context::layer::{WritingSubject, WritingTask};
use jiff::Timestamp;
use transcript::Block;
use transcript::mark::Ttl;
use transcript::view::{View, ViewChange, ViewEntry};
use transcript::window::Window;

use super::bill::{LayerAction, RequestBill, SessionBill};
use super::cache::{CacheClock, CacheSplit};
use super::edited::TextInView;
use super::recording::{RecordedRequest, Recording};
use crate::replay::{FileReadAgain, LayerDeed, ReplayObserver, RequestAnswer, SentRequest};

/// Output of a reply that only reads a file again, in tokens.
const READ_OUTPUT: u64 = 150;

/// Writes the bill of one session under one policy.
pub(super) struct Meter<'a> {
    recording: &'a Recording,
    window: Option<Window>,
    /// The lifetime that the layers are told of.
    ttl: Ttl,
    clocks: [CacheClock; 2],
    /// The weight of each item of the view.
    items: Vec<ItemWeight>,
    /// The stretch that each item was said in; none of what was not in the record.
    stretches: Vec<Option<usize>>,
    /// The sum of the items.
    tokens: u64,
    text: TextInView<'a>,
    /// Items from here on may weigh something else by now.
    unweighed: usize,
    /// The first item from which on the request changed.
    changed: Option<usize>,
    /// The item of the newest reply.
    newest_reply: usize,
    /// Requests of the record that are over.
    answered: usize,
    /// True if the model is reading files again before the recorded reply.
    is_reading_again: bool,
    /// The bill of the request to come.
    next: RequestBill,
    bill: SessionBill,
}

/// The weight of an item of the view.
#[derive(Debug, Default)]
struct ItemWeight {
    tokens: u64,
    /// Lines that edits replace.
    lines: Vec<u64>,
}

impl<'a> Meter<'a> {
    pub(super) fn new(recording: &'a Recording, window: Option<Window>, ttl: Ttl) -> Self {
        Self {
            recording,
            window,
            ttl,
            clocks: [CacheClock::new(Ttl::FiveMinutes), CacheClock::new(Ttl::OneHour)],
            items: Vec::new(),
            stretches: Vec::new(),
            tokens: 0,
            text: TextInView::new(&recording.text),
            unweighed: 0,
            changed: None,
            newest_reply: 0,
            answered: 0,
            is_reading_again: false,
            next: RequestBill::default(),
            bill: SessionBill::default(),
        }
    }

    pub(super) fn end(self) -> SessionBill {
        self.bill
    }

    /// Weighs what changed since the last time.
    fn weigh(&mut self, view: &View) {
        let from = self.unweighed.min(self.changed.unwrap_or(usize::MAX)).min(self.items.len());
        if let Some(changed) = self.changed.take() {
            let behind: u64 = self.items.iter().skip(changed).map(|item| item.tokens).sum();
            let prefix = self.recording.weights.prologue() + self.tokens - behind;
            self.clocks.iter_mut().for_each(|clock| clock.keep_prefix(prefix));
        }
        for item in self.items.drain(from..) {
            self.tokens -= item.tokens;
            self.text.leave(&item.lines);
        }
        let stretch = (!self.is_reading_again).then_some(self.answered);
        self.stretches.resize(view.len().max(self.stretches.len()), stretch);
        self.items.resize_with(view.len(), ItemWeight::default);
        // Only what is shown: a long session has many more items that are not.
        let shown: Vec<ViewEntry<'_>> = view.visible().rev().take_while(|entry| entry.index() >= from).collect();
        for entry in shown.into_iter().rev() {
            let at = entry.index();
            let tokens = self.recording.weights.tokens(entry.size(), self.stretches[at]);
            self.tokens += tokens;
            self.items[at] = ItemWeight { tokens, lines: self.text.enter(entry.shown().map(|(_, block)| block)) };
        }
        self.unweighed = self.newest_reply;
    }

    /// The request that is sent next.
    fn coming(&self) -> Option<&'a RecordedRequest> {
        self.recording.requests.get(self.answered)
    }

    fn charge(&mut self, splits: [CacheSplit; 2], output: u64, what: Charge) {
        let Some(price) = self.coming().and_then(|request| request.price) else {
            self.next.is_unpriced = true;
            return;
        };
        for (clock, split) in self.clocks.iter().zip(splits) {
            let ttl = clock.ttl();
            let amount = split.cost(&price, ttl, output);
            self.next.cost.add_at(ttl, amount);
            match what {
                Charge::Request => {}
                Charge::Fork => self.next.forks.add_at(ttl, amount),
                Charge::Regret => self.next.regrets.add_at(ttl, amount),
            }
        }
    }

    /// The files that have to be read again before the recorded reply can be written.
    fn missing(&mut self, request: &RecordedRequest) -> Vec<FileReadAgain> {
        let mut files: Vec<FileReadAgain> = Vec::new();
        for edit in &request.edits {
            let file = || self.recording.files.text_before(&edit.path, self.answered);
            let Some(text) = self.text.missing(edit, file) else { continue };
            self.next.missed_edits += 1;
            if !files.iter().any(|file| file.path == edit.path) {
                files.push(FileReadAgain { path: edit.path.clone(), text });
            }
        }
        files
    }

    fn estimate(&self, text: &str) -> u64 {
        self.recording.weights.tokens(Block::text(text).size(), None)
    }
}

/// The kind of a charge.
#[derive(Clone, Copy)]
enum Charge {
    Request,
    Fork,
    Regret,
}

impl ReplayObserver for Meter<'_> {
    fn changed(&mut self, _: &View, change: ViewChange) {
        match change {
            ViewChange::Grew => {}
            ViewChange::From(item) => self.changed = Some(self.changed.map_or(item, |changed| changed.min(item))),
            ViewChange::Prologue => self.clocks.iter_mut().for_each(|clock| clock.keep_prefix(0)),
        }
    }

    fn written(&mut self, view: &View, now: Timestamp, write: &WritingTask, text: &str) {
        self.weigh(view);
        let Some(request) = self.coming() else { return };
        let (own, output) = (self.estimate(&write.directive), self.estimate(text));
        let splits = match &write.about {
            WritingSubject::Conversation { end } => {
                let behind: u64 = self.items.iter().skip(*end).map(|item| item.tokens).sum();
                let prefix = self.recording.weights.prologue() + self.tokens - behind;
                self.clocks.each_mut().map(|clock| clock.fork(&request.model, now, prefix, own))
            }
            WritingSubject::Alone(about) => {
                let uncached = own + self.estimate(about);
                [CacheSplit { uncached, ..CacheSplit::default() }; 2]
            }
        };
        self.charge(splits, output, Charge::Fork);
    }

    fn acted(&mut self, done: &LayerDeed) {
        // A note that a command printed nothing is a spill too, and takes nothing out.
        if done.freed == 0 && done.layer == "spill" {
            return;
        }
        self.next.actions.push(LayerAction { layer: done.layer, freed: done.freed });
    }

    fn files(&mut self, paths: &[PathBuf]) -> Vec<(PathBuf, String)> {
        let text = |path: &PathBuf| self.recording.files.text_before(path.to_str()?, self.answered);
        paths.iter().filter_map(|path| Some((path.clone(), text(path)?))).collect()
    }

    fn request(&mut self, sent: &SentRequest<'_>) -> RequestAnswer {
        self.weigh(sent.view);
        let Some(request) = self.coming().filter(|request| request.reply == *sent.reply) else {
            return RequestAnswer::AsRecorded;
        };
        if self.answered == 0 && !self.is_reading_again {
            let cached = self.recording.cached_before;
            self.clocks.iter_mut().for_each(|clock| clock.prime(&request.model, sent.time, cached));
        }
        let tokens = self.recording.weights.prologue() + self.tokens;
        let missing = if self.is_reading_again { Vec::new() } else { self.missing(request) };
        let splits = self.clocks.each_mut().map(|clock| clock.request(&request.model, sent.time, tokens));
        let split = if self.ttl == Ttl::FiveMinutes { splits[0] } else { splits[1] };
        self.next.overflows |= self.window.is_some_and(|window| tokens > window.effective);
        self.newest_reply = sent.view.len();
        self.unweighed = self.newest_reply;
        if !missing.is_empty() {
            self.is_reading_again = true;
            self.charge(splits, READ_OUTPUT, Charge::Regret);
            return RequestAnswer::ReadAgain { files: missing, usage: split.usage(self.ttl, READ_OUTPUT) };
        }
        self.charge(splits, request.output, Charge::Request);
        let next = std::mem::take(&mut self.next);
        self.bill.requests.push(RequestBill {
            reply: Some(request.reply.clone()),
            time: request.time,
            edits: request.edits.len(),
            ..next
        });
        self.is_reading_again = false;
        self.answered += 1;
        RequestAnswer::Reported(split.usage(self.ttl, request.output))
    }
}
