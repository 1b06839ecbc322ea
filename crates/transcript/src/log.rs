//! The log in memory: its lines, which of them are live, and the view they project to.
//!
//! A file may hold abandoned branches: other programs rewind by writing a new child of an earlier line. Live is what
//! leads to the newest message: its ancestors, the other lines of their replies, and the results of their calls
//! (parallel calls branch, so walking parents alone would lose results). Our own sessions never branch; to go back is a
//! commit like any other.

use std::collections::{HashMap, HashSet};

use crate::block::{Block, Kind};
use crate::id::Id;
use crate::line::{Body, Line, Writer};
use crate::view::{Change, View};

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

    /// Projects a file's lines and shows the view just before each live one is taken in.
    pub fn load_watching(lines: Vec<Line>, mut watch: impl FnMut(&View, &Line)) -> Self {
        let live = live(&lines);
        let mut view = View::default();
        for (line, live) in lines.iter().zip(&live) {
            if *live {
                watch(&view, line);
                view.push(line);
            }
        }
        let tip = newest(&lines).and_then(|tip| lines[tip].id.clone());
        Self { lines, tip, view }
    }

    /// Takes one more line and says where the view changed.
    pub fn append(&mut self, line: Line) -> Change {
        if line.sidechain {
            self.lines.push(line);
            return Change::Grew;
        }
        if line.in_chain() && line.parent != self.tip {
            // A branch: what is live has to be found anew.
            let mut lines = std::mem::take(&mut self.lines);
            lines.push(line);
            *self = Self::load(lines);
            return Change::From(0);
        }
        let change = self.view.push(&line);
        if line.in_chain() {
            self.tip.clone_from(&line.id);
        }
        self.lines.push(line);
        change
    }

    /// All lines, live or not.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// What the model sees.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The line the next one follows.
    pub fn tip(&self) -> Option<&Id> {
        self.tip.as_ref()
    }

    /// Whether another program wrote last, so that the session has to be continued in a file of its own.
    pub fn is_foreign(&self) -> bool {
        newest(&self.lines).is_some_and(|tip| self.lines[tip].writer == Writer::Other)
    }
}

fn newest(lines: &[Line]) -> Option<usize> {
    lines.iter().rposition(|line| !line.sidechain && line.id.is_some() && line.in_chain())
}

/// Which lines are live. Commits and meta lines always are: they stand off the chain and do nothing where what they
/// name is not visible.
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
    let mut at = newest(lines);
    while let Some(here) = at.filter(|&here| !live[here]) {
        live[here] = true;
        at = lines[here].parent.as_ref().and_then(|parent| place.get(parent)).copied();
    }
    for (line, live) in lines.iter().zip(&mut live) {
        *live |= !line.sidechain && matches!(line.body, Body::Commit(_) | Body::Prologue(_) | Body::Meta(_));
    }
    mark_branches(lines, &mut live);
    for at in repeated {
        live[at] = false; // written twice is said once
    }
    live
}

/// Marks what belongs to a live reply though the chain does not lead through it: its other lines, and the results of its
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
    let mut calls: HashSet<&str> = HashSet::new();
    for (line, live) in lines.iter().zip(live).filter(|(line, _)| !line.sidechain) {
        match &line.body {
            Body::Assistant { id, blocks, .. } if replies.contains(id) => {
                *live = true;
                calls.extend(blocks.iter().filter_map(|block| match block.kind() {
                    Kind::ToolUse { id, .. } => Some(&**id),
                    _ => None,
                }));
            }
            Body::User { blocks, .. } if !*live => {
                let answers =
                    |block: &Block| matches!(block.kind(), Kind::ToolResult { id, .. } if calls.contains(&**id));
                *live = blocks.iter().any(answers);
            }
            _ => {}
        }
    }
}
