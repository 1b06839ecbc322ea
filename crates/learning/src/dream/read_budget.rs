//! Limit on a dream's reading. A transcript can be larger than any window, and a dream that reads too much fails after
//! its cost was paid. So every result is cut, and once all of them together reach the limit, nothing more is shown.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tools::{Access, Limit, Output, Scope, Subject, Tool};
use transcript::{Block, ToolDefinition, tool_names};

use super::room::DreamRoom;

/// A tool whose results share the limit.
struct RationedTool {
    tool: Arc<dyn Tool>,
    each: usize,
    left: Arc<AtomicUsize>,
}

/// The tools; those that read share one limit.
pub(super) fn rationed(tools: Vec<Arc<dyn Tool>>, room: &DreamRoom) -> Vec<Arc<dyn Tool>> {
    let (left, each) = (Arc::new(AtomicUsize::new(room.read)), room.each);
    let ration = |tool: Arc<dyn Tool>| match tool.name() {
        tool_names::READ | tool_names::GREP | tool_names::GLOB | super::session_tool::NAME => {
            Arc::new(RationedTool { tool, each, left: left.clone() }) as Arc<dyn Tool>
        }
        _ => tool,
    };
    tools.into_iter().map(ration).collect()
}

impl Tool for RationedTool {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn definition(&self) -> ToolDefinition {
        self.tool.definition()
    }

    fn access(&self, input: &Value) -> Access {
        self.tool.access(input)
    }

    fn subject(&self, input: &Value, scope: &Scope) -> Subject {
        self.tool.subject(input, scope)
    }

    fn changes(&self, input: &Value, scope: &Scope) -> Option<PathBuf> {
        self.tool.changes(input, scope)
    }

    fn limit(&self) -> Limit {
        self.tool.limit()
    }

    fn run(&self, input: Value, scope: Scope) -> BoxFuture<'static, Output> {
        if self.left.load(Ordering::Relaxed) == 0 {
            let enough = "You have read enough for one run. Write down what you know, and come to an end.";
            return Box::pin(std::future::ready(Output::failed(enough)));
        }
        let (running, each, left) = (self.tool.run(input, scope), self.each, self.left.clone());
        Box::pin(async move {
            let output = running.await;
            let text = output.text();
            let most = each.min(left.load(Ordering::Relaxed));
            left.fetch_sub(text.len().min(most), Ordering::Relaxed);
            if text.len() <= most {
                return output;
            }
            let cut = &text[..text.floor_char_boundary(most)];
            let note = format!("{cut}\n[cut after {most} bytes; ask for less: a narrower pattern, a range of lines]");
            Output { content: vec![Block::text(note)], ..output }
        })
    }
}
