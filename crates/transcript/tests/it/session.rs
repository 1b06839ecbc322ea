//! Random sessions: a small language of what can happen, and a writer that turns it into lines.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use transcript::block::Kind;
use transcript::commit::{Act, Commit, Extent, Reason, Replacement, Trigger};
use transcript::line::{Body, Context, Line, TextSource};
use transcript::view::ViewChange;
use transcript::{Block, Id, Log, Outcome, Prologue, Role, Usage};

/// Something that happens.
#[derive(Debug, Clone)]
pub enum Op {
    Say(String),
    Attach(String),
    Reply { text: String, calls: u8, split: bool, thinking: bool, usage: bool },
    Result(Index, String),
    Stray(String),
    Spill(Vec<Index>),
    Clear(Vec<Index>),
    CacheEdit(Index),
    Snip(Vec<Index>),
    Collapse(Index, Index),
    Rewind(Index),
    Compact(Index, Index, bool),
    CompactAll,
    CompactBefore(Index),
    Restore(String),
    Undo(Index),
    Prologue(u8),
}

pub fn op() -> impl Strategy<Value = Op> {
    let text = "[a-z \u{e9}\u{4e2d}\"\\\\]{0,12}";
    let index = any::<Index>;
    prop_oneof![
        4 => text.prop_map(Op::Say),
        1 => text.prop_map(Op::Attach),
        6 => (text, 0..4u8, any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(text, calls, split, thinking, usage)| Op::Reply { text, calls, split, thinking, usage }),
        8 => (index(), text).prop_map(|(at, text)| Op::Result(at, text)),
        1 => text.prop_map(Op::Stray),
        2 => prop::collection::vec(index(), 1..3).prop_map(Op::Spill),
        2 => prop::collection::vec(index(), 1..4).prop_map(Op::Clear),
        1 => index().prop_map(Op::CacheEdit),
        1 => prop::collection::vec(index(), 1..4).prop_map(Op::Snip),
        1 => (index(), index()).prop_map(|(a, b)| Op::Collapse(a, b)),
        1 => index().prop_map(Op::Rewind),
        1 => (index(), index(), prop::bool::weighted(0.8)).prop_map(|(a, b, whole)| Op::Compact(a, b, whole)),
        1 => Just(Op::CompactAll),
        1 => index().prop_map(Op::CompactBefore),
        1 => text.prop_map(Op::Restore),
        3 => index().prop_map(Op::Undo),
        1 => (0..3u8).prop_map(Op::Prologue),
    ]
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 0..60)
}

/// An index where any will do.
pub fn some_index() -> Index {
    use proptest::strategy::ValueTree;
    any::<Index>().new_tree(&mut proptest::test_runner::TestRunner::deterministic()).unwrap().current()
}

/// A session being written.
#[derive(Default)]
pub struct Session {
    pub log: Log,
    pub commits: Vec<Id>,
    written: usize,
    calls: Vec<String>,
    replies: usize,
}

impl Session {
    pub fn of(ops: &[Op]) -> Self {
        let mut session = Self::default();
        for op in ops {
            session.happen(op);
        }
        session
    }

    /// Writes what an operation means here and says where the view changed.
    pub fn happen(&mut self, op: &Op) -> ViewChange {
        match op {
            Op::Say(text) => self.user(vec![Block::text(text)]),
            Op::Attach(text) => self.write(Body::Attachment { blocks: vec![Block::text(text)] }),
            Op::Reply { text, calls, split, thinking, usage } => self.reply(text, *calls, *split, *thinking, *usage),
            Op::Result(at, text) => {
                let open = self.log.view().open_calls();
                match open.get(at.index(open.len().max(1))).map(Block::kind) {
                    Some(Kind::ToolUse { id, .. }) => {
                        self.user(vec![Block::tool_result(id, &[Block::text(text)], Outcome::Done)])
                    }
                    _ => ViewChange::Grew,
                }
            }
            Op::Stray(text) => {
                self.user(vec![Block::tool_result("nobody", &[Block::text(text)], Outcome::Done), Block::text(text)])
            }
            Op::Spill(at) => {
                let replacements = self.pick_calls(at).into_iter().map(|id| Replacement {
                    replacement: format!("<persisted-output>{id}</persisted-output>"),
                    call: id.into(),
                });
                let replacements = replacements.collect();
                self.commit(Act::Spill { replacements })
            }
            Op::Clear(at) => {
                let results: Vec<_> = self.pick_calls(at).into_iter().map(Into::into).collect();
                // Of several the newest has what was written down of them.
                let digest = (results.len() > 1).then(|| format!("[cleared] {} results", results.len()));
                self.commit(Act::Clear { results, trigger: Trigger::Auto, digest })
            }
            Op::CacheEdit(at) => match self.log.tip().cloned() {
                Some(anchor) => {
                    let results = self.pick_calls(std::slice::from_ref(at));
                    self.commit(Act::CacheEdit { results, anchor })
                }
                None => ViewChange::Grew,
            },
            Op::Snip(at) => {
                let uuids = at.iter().filter_map(|at| self.pick_line(at)).collect();
                self.commit(Act::Snip { uuids, marker: "[snipped]".into() })
            }
            Op::Collapse(a, b) => match self.span(a, b) {
                Some((line, last)) if line == last => self.commit(Act::Strip { line, text: "[image]".into() }),
                Some((first, last)) => {
                    let summary = format!("[collapsed {first} to {last}]");
                    self.commit(Act::Collapse { first, last, summary })
                }
                None => ViewChange::Grew,
            },
            Op::Rewind(at) => match self.pick_line(at).zip(self.log.tip().cloned()) {
                Some((first, last)) => self.commit(Act::Rewind { first, last }),
                None => ViewChange::Grew,
            },
            Op::Compact(a, b, whole) => match self.span(a, b) {
                Some((first, last)) => self.compact(Extent::Span { first, last }, *whole),
                None => ViewChange::Grew,
            },
            Op::CompactAll => self.compact(Extent::Everything, true),
            Op::CompactBefore(at) => match self.pick_line(at) {
                Some(kept) => self.compact(Extent::Before(kept), true),
                None => ViewChange::Grew,
            },
            Op::Restore(text) => self.commit(Act::Restore { blocks: vec![Block::text(format!("restored {text}"))] }),
            Op::Undo(at) => match self.pick_commit(at) {
                Some(commit) => self.undo(commit),
                None => ViewChange::Grew,
            },
            Op::Prologue(variant) => self.write(Body::Prologue(prologue(*variant))),
        }
    }

    pub fn close_calls(&mut self) {
        while !self.log.view().open_calls().is_empty() {
            self.happen(&Op::Result(some_index(), "done".into()));
        }
    }

    pub fn undo(&mut self, commit: Id) -> ViewChange {
        self.commit(Act::Undo { commit })
    }

    /// Goes back to before a line, from the newest one.
    pub fn rewind_to(&mut self, first: &str) -> ViewChange {
        let last = self.log.tip().cloned().unwrap();
        self.commit(Act::Rewind { first: first.into(), last })
    }

    /// Compacts all before a line.
    pub fn compact_before(&mut self, kept: &str) -> ViewChange {
        self.compact(Extent::Before(kept.into()), true)
    }

    pub fn pick_commit(&self, at: &Index) -> Option<Id> {
        (!self.commits.is_empty()).then(|| self.commits[at.index(self.commits.len())].clone())
    }

    fn compact(&mut self, extent: Extent, whole: bool) -> ViewChange {
        let change = self.commit(Act::Compact { extent, trigger: Trigger::Auto, pre_tokens: 9 });
        if !whole {
            return change;
        }
        let text = format!("summary {}", self.written);
        change.min(self.write(Body::User { blocks: vec![Block::text(text)], source: TextSource::Summary }))
    }

    fn reply(&mut self, text: &str, calls: u8, split: bool, thinking: bool, usage: bool) -> ViewChange {
        self.replies += 1;
        let id = Id::from(format!("msg_{}", self.replies));
        let mut blocks = Vec::new();
        if thinking {
            blocks.push(Block::from_value(json!({"type": "thinking", "thinking": text, "signature": "s"})));
        }
        blocks.push(Block::text(text));
        for _ in 0..calls {
            let call = format!("toolu_{}", self.calls.len());
            blocks.push(Block::tool_use(&call, "Read", &json!({"file_path": text})));
            self.calls.push(call);
        }
        let usage = usage.then(|| Usage { input_tokens: 100, output_tokens: 9, ..Usage::default() });
        let lines: Vec<Vec<Block>> =
            if split { blocks.into_iter().map(|block| vec![block]).collect() } else { vec![blocks] };
        let changes = lines.into_iter().map(|blocks| {
            let body = Body::Assistant { id: id.clone(), model: "m".into(), blocks, usage, stop: None };
            self.write(body)
        });
        changes.min().unwrap_or(ViewChange::Grew)
    }

    fn user(&mut self, blocks: Vec<Block>) -> ViewChange {
        self.write(Body::User { blocks, source: TextSource::Direct })
    }

    fn commit(&mut self, act: Act) -> ViewChange {
        let change = self.write(Body::Commit(Commit { act, reason: Reason::default() }));
        self.commits.push(Id::from(format!("line-{}", self.written)));
        change
    }

    fn write(&mut self, body: Body) -> ViewChange {
        self.written += 1;
        let time = jiff::Timestamp::from_second(1_800_000_000 + self.written as i64).unwrap();
        let id = Id::from(format!("line-{}", self.written));
        self.log.append(Line::new(id, self.log.tip().cloned(), time, body))
    }

    fn pick_calls(&self, at: &[Index]) -> Vec<String> {
        if self.calls.is_empty() {
            return Vec::new();
        }
        at.iter().map(|at| self.calls[at.index(self.calls.len())].clone()).collect()
    }

    fn pick_line(&self, at: &Index) -> Option<Id> {
        let lines = self.log.lines();
        (!lines.is_empty()).then(|| lines[at.index(lines.len())].id.clone()).flatten()
    }

    fn span(&self, a: &Index, b: &Index) -> Option<(Id, Id)> {
        let lines = self.log.lines();
        if lines.is_empty() {
            return None;
        }
        let (a, b) = (a.index(lines.len()), b.index(lines.len()));
        lines[a.min(b)].id.clone().zip(lines[a.max(b)].id.clone())
    }

    pub fn file(&self) -> String {
        self.log.lines().iter().map(|line| line.render(&context())).collect()
    }
}

pub fn context() -> Context {
    Context { session: "s".into(), cwd: "/w".into(), branch: "main".into(), agent: None }
}

pub fn prologue(variant: u8) -> Prologue {
    Prologue {
        loaded: Vec::new(),
        model: format!("model-{variant}"),
        max_tokens: 1_000,
        system: vec![Block::text("be brief")],
        static_blocks: 1,
        own_blocks: 0,
        tools: Vec::new(),
        thinking: None,
        effort: None,
        betas: Vec::new(),
        format: None,
        context_management: None,
        web_search: None,
    }
}

/// Reads a file's bytes back, skipping what is torn.
pub fn read(bytes: &[u8]) -> Log {
    Log::load(bytes.split(|&byte| byte == b'\n').filter_map(|line| Line::parse(line).ok()).collect())
}

/// What the model sees, block by block.
pub fn seen(log: &Log) -> Vec<(usize, Role, String)> {
    log.view().blocks().map(|(item, role, block)| (item, role, block.json().to_owned())).collect()
}

/// What the model sees, without where it came from.
pub fn bytes(log: &Log) -> Vec<(Role, String)> {
    seen(log).into_iter().map(|(_, role, json)| (role, json)).collect()
}
