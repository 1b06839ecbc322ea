//! Sessions for tests.

use jiff::Timestamp;
use transcript::commit::{Act, Commit, Reason};
use transcript::line::{Body, Line, Source};
use transcript::{Block, Id, Log, Outcome, Usage};

/// A log in the making.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) log: Log,
    lines: usize,
}

impl Session {
    pub(crate) fn append(&mut self, body: Body) -> Id {
        self.lines += 1;
        let id = Id::from(format!("line-{}", self.lines));
        self.log.append(Line::new(id.clone(), self.log.tip().cloned(), Timestamp::UNIX_EPOCH, body));
        id
    }

    pub(crate) fn say(&mut self, text: &str) -> Id {
        self.append(Body::User { blocks: vec![Block::text(text)], source: Source::Said })
    }

    pub(crate) fn reply(&mut self, text: &str) -> Id {
        self.assistant(vec![Block::text(text)], None)
    }

    fn assistant(&mut self, blocks: Vec<Block>, usage: Option<Usage>) -> Id {
        let id = Id::from(format!("msg-{}", self.lines));
        self.append(Body::Assistant { id, model: "m".into(), blocks, usage, stop: None })
    }

    /// A call and its result of so many bytes; the call's id.
    pub(crate) fn call(&mut self, tool: &str, bytes: usize) -> String {
        let id = format!("toolu_{}", self.lines);
        self.assistant(vec![Block::tool_use(&id, tool, &serde_json::json!({"command": "x"}))], None);
        let result = Block::tool_result(&id, &[Block::text("x".repeat(bytes))], Outcome::Done);
        self.append(Body::User { blocks: vec![result], source: Source::Said });
        id
    }

    pub(crate) fn commit(&mut self, act: Act) -> Id {
        self.append(Body::Commit(Commit { act, reason: Reason::default() }))
    }
}
