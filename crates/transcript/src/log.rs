//! The log in memory: its lines, which of them are live, and the view they project to.
//!
//! A file may hold abandoned branches: other programs rewind by writing a new child of an earlier line. The live lines
//! are those that lead to the newest message: its ancestors, the other lines of their replies, and the results of their
//! calls (parallel calls branch, so walking parents alone would lose results). Our own sessions never branch; a rewind
//! is a commit like any other, and the lines behind it stay live (`aside`).

mod aside;

use std::collections::{HashMap, HashSet};

use crate::block::{Block, Kind};
use crate::commit::{Act, Extent};
use crate::id::Id;
use crate::line::{Body, Line, TextSource, Writer};
use crate::tokens::Estimator;
use crate::view::{View, ViewChange};

/// A session's lines and the view they project to.
#[derive(Debug, Clone, Default)]
pub struct Log {
    lines: Vec<Line>,
    tip: Option<Id>,
    view: View,
}

impl Log {
    /// Projects a file's lines.
    pub fn load(lines: Vec<Line>) -> Self {
        Self::load_watching(lines, |_, _| {})
    }

    /// Projects a file's lines and shows the caller the view just before each live line is applied.
    pub fn load_watching(lines: Vec<Line>, mut watch: impl FnMut(&View, &Line)) -> Self {
        let live = live(&lines);
        let mut view = View::default();
        for (line, live) in lines.iter().zip(&live) {
            if *live {
                watch(&view, line);
                view.push(line);
            }
        }
        let mut log = Self { lines, tip: None, view };
        log.tip = log.newest_visible();
        log
    }

    /// The live lines among a file's, in their order. Nothing is projected.
    pub fn live_lines(lines: Vec<Line>) -> Vec<Line> {
        let live = live(&lines);
        lines.into_iter().zip(live).filter_map(|(line, live)| live.then_some(line)).collect()
    }

    /// Appends a line and returns where the view changed.
    pub fn append(&mut self, line: Line) -> ViewChange {
        if line.sidechain {
            self.lines.push(line);
            return ViewChange::Grew;
        }
        if line.in_chain() && line.parent != self.tip {
            // A branch: what is live has to be found anew.
            let mut lines = std::mem::take(&mut self.lines);
            lines.push(line);
            *self = Self::load(lines);
            return ViewChange::From(0);
        }
        let change = self.view.push(&line);
        let goes_back = matches!(&line.body, Body::Commit(commit) if commit.moves_tip());
        if line.in_chain() && !line.id.as_ref().is_some_and(|id| self.view.is_taken_back(id)) {
            self.tip.clone_from(&line.id);
        }
        self.lines.push(line);
        if goes_back {
            self.tip = self.newest_visible();
        }
        change
    }

    /// The newest line of the conversation that is neither taken back nor behind a summary. If there is none, the
    /// summary.
    fn newest_visible(&self) -> Option<Id> {
        let chain = self.lines.iter().rev().filter(|line| !line.sidechain && line.in_chain());
        let mut ids = chain.clone().filter_map(|line| line.id.as_ref());
        let stands = |id: &&Id| self.view.has(id) && !self.view.is_hidden(id);
        let counts = |line: &&Line| {
            let boundary = match &line.body {
                Body::User { source: TextSource::Summary, .. } => line.parent.as_ref(),
                _ => line.id.as_ref(),
            };
            boundary.is_some_and(|boundary| self.view.counts(boundary))
        };
        ids.find(stands).or_else(|| chain.clone().find(counts)?.id.as_ref()).cloned()
    }

    /// True if nothing was ever said.
    pub fn is_empty(&self) -> bool {
        newest(&self.lines).is_none()
    }

    /// The first sent line whose bytes a commit would change; none if it would change none. Tried on a copy, so the
    /// cost grows with the view.
    pub fn first_change(&self, act: &Act) -> Option<Id> {
        let mut trial = self.view.clone();
        trial.try_commit(act);
        let sent = self.view.seams().answered;
        let mut after = trial.blocks();
        let mut before = self.view.blocks().take(sent);
        let first = before.find(|(_, role, block)| match after.next() {
            Some((_, new_role, new)) => *role != new_role || !block.is_same(new),
            None => true,
        });
        first.and_then(|(item, _, _)| self.view.line_of(item)).cloned()
    }

    /// The lines of messages that a compaction keeps, in order.
    pub fn kept_by(&self, extent: &Extent) -> Vec<Id> {
        let at = |id: &Id| self.lines.iter().position(|line| line.id.as_ref() == Some(id));
        let covered = match extent {
            Extent::Before(kept) => at(kept).map(|kept| 0..kept),
            Extent::Span { first, last } => at(first).zip(at(last)).map(|(first, last)| first..last + 1),
            Extent::Everything => None,
        };
        let Some(covered) = covered else { return Vec::new() };
        let stands = |line: &Line| match &line.body {
            // An earlier summary, before what is covered now.
            Body::User { source: TextSource::Summary, .. } => {
                line.parent.as_ref().is_some_and(|id| self.view.counts(id))
            }
            Body::User { .. } | Body::Assistant { .. } | Body::Attachment { .. } => {
                line.id.as_ref().is_some_and(|id| self.view.has(id) && !self.view.is_hidden(id))
            }
            _ => false,
        };
        let lines = self.lines.iter().enumerate().filter(|(at, line)| !covered.contains(at) && !line.sidechain);
        lines.filter(|(_, line)| stands(line)).filter_map(|(_, line)| line.id.clone()).collect()
    }

    /// Sets the token estimator.
    pub fn use_estimator(&mut self, estimator: Estimator) {
        self.view.use_estimator(estimator);
    }

    /// All lines, live or not.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The view: what the model sees.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The line that the next one follows.
    pub fn tip(&self) -> Option<&Id> {
        self.tip.as_ref()
    }

    /// True if another program wrote last, so that the session has to be continued in its own file.
    pub fn is_foreign(&self) -> bool {
        newest(&self.lines).is_some_and(|tip| self.lines[tip].writer == Writer::Other)
    }
}

fn newest(lines: &[Line]) -> Option<usize> {
    lines.iter().rposition(|line| !line.sidechain && line.id.is_some() && line.in_chain())
}

/// Marks the live lines. Commits and meta lines always are: they are not part of the chain, and have no effect if what
/// they name is not visible.
fn live(lines: &[Line]) -> Vec<bool> {
    let mut place: HashMap<&Id, usize> = HashMap::with_capacity(lines.len());
    let mut repeated: Vec<usize> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(id) = &line.id
            && *place.entry(id).or_insert(at) != at
        {
            repeated.push(at);
        }
    }
    let mut live = vec![false; lines.len()];
    aside::mark_chain(lines, &place, &mut live, newest(lines));
    aside::mark_summaries(lines, &place, &mut live);
    for (line, live) in lines.iter().zip(&mut live) {
        *live |= !line.sidechain && matches!(line.body, Body::Commit(_) | Body::Prologue(_) | Body::Meta(_));
    }
    mark_branches(lines, &mut live);
    for at in repeated {
        live[at] = false; // written twice is said once
    }
    live
}

/// Marks the rest of each live reply that the chain does not pass through: its other lines, and the results of its
/// calls.
fn mark_branches(lines: &[Line], live: &mut [bool]) {
    let is_said = |line: &Line| matches!(line.body, Body::Assistant { .. } | Body::User { .. });
    if lines.iter().zip(&*live).all(|(line, live)| *live || line.sidechain || !is_said(line)) {
        return;
    }
    let replies: HashSet<&Id> = lines
        .iter()
        .zip(&*live)
        .filter_map(|(line, live)| match &line.body {
            Body::Assistant { id, .. } if *live => Some(id),
            _ => None,
        })
        .collect();
    // The calls of live replies, and those of others: an id that both have says nothing.
    let (mut calls, mut others): (HashSet<&str>, HashSet<&str>) = Default::default();
    for line in lines.iter().filter(|line| !line.sidechain) {
        if let Body::Assistant { id, blocks, .. } = &line.body {
            let ids = blocks.iter().filter_map(|block| match block.kind() {
                Kind::ToolUse { id, .. } => Some(&**id),
                _ => None,
            });
            if replies.contains(id) { calls.extend(ids) } else { others.extend(ids) }
        }
    }
    for (line, live) in lines.iter().zip(live).filter(|(line, _)| !line.sidechain) {
        match &line.body {
            Body::Assistant { id, .. } => *live |= replies.contains(id),
            Body::User { blocks, .. } if !*live => {
                let answers = |block: &Block| matches!(block.kind(), Kind::ToolResult { id, .. } if calls.contains(&**id) && !others.contains(&**id));
                *live = blocks.iter().any(answers);
            }
            _ => {}
        }
    }
}
