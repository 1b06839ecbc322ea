//! A tool of a server, as the engine runs it.
//!
//! That a server calls its tool read-only grants nothing: every call is one that may change something, unless a rule of the
//! user's covers it. While a call is waited for, its progress is on the screen, and it can be moved to the background.

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use mcp::{CallProgress, OnProgress, ServerReply, ToolInteraction};
use serde_json::{Map, Value};
use tools::{Access, CallWait, EndedCall, Limit, Output, ProgressLines, Runs, Scope, Subject, Tool};
use transcript::block::Outcome;
use transcript::message::ToolDefinition;

use super::OfferedTool;

/// The most characters of a result that stay in the conversation, unless the server asks for more: 25,000 tokens at four
/// characters each.
const USUAL_LIMIT: usize = 100_000;
/// The most characters of a result in a list of calls.
const SUMMARY: usize = 100;

/// A tool of a server.
pub(crate) struct ServerTool(OfferedTool);

impl ServerTool {
    pub(crate) fn of(offered: OfferedTool) -> Self {
        Self(offered)
    }
}

impl Tool for ServerTool {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn definition(&self) -> ToolDefinition {
        self.0.offer.definition(&self.0.name)
    }

    fn access(&self, _: &Value) -> Access {
        match self.0.offer.interaction {
            ToolInteraction::ByRules => Access::Changes,
            ToolInteraction::EachTime => Access::Asks,
        }
    }

    fn subject(&self, _: &Value, _: &Scope) -> Subject {
        Subject::Whole
    }

    fn runs(&self, _: &Value) -> Runs {
        if self.0.offer.claims_read_only { Runs::Parallel } else { Runs::Alone }
    }

    fn limit(&self) -> Limit {
        Limit::Characters(self.0.offer.most_result_chars.unwrap_or(USUAL_LIMIT))
    }

    fn run(&self, input: Value, scope: Scope) -> BoxFuture<'static, Output> {
        let arguments = match input {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            _ => return Box::pin(ready(Output::failed("The input of this tool is an object."))),
        };
        let OfferedTool { name, offer, server } = self.0.clone();
        Box::pin(async move {
            let front = scope.jobs().call_in_front(scope.call(), &name);
            let heard = on_progress(front.progress());
            let work = async move {
                let Some(connection) = server.connection() else {
                    return Output::failed("This server is switched off.");
                };
                match connection.call(&offer.name, arguments, Some(heard)).await {
                    Ok(reply) => output(reply),
                    Err(error @ mcp::Error::NeedsLogin { .. }) => {
                        Output::failed(format!("{error}: the user can run `cairn mcp login {}`.", server.name))
                    }
                    Err(error) => Output::failed(error.to_string()),
                }
            };
            tokio::select! {
                waited = scope.jobs().wait_for_call(front, work, |output| ended(&output)) => match waited {
                    CallWait::Answered(output) => output,
                    CallWait::Moved(id) => moved(&id),
                },
                () = scope.cancel().cancelled() => Output::failed("cancelled by the user"),
            }
        })
    }
}

/// Progress as lines: the server's words, or else its numbers.
fn on_progress(lines: ProgressLines) -> OnProgress {
    Arc::new(move |progress: CallProgress| {
        let CallProgress { done, total, message } = progress;
        let numbers = total.map_or_else(|| done.to_string(), |total| format!("{done} of {total}"));
        lines.push(&message.map_or_else(|| numbers.clone(), |message| format!("{message} ({numbers})")));
    })
}

/// The answer to a call in the background, as TaskOutput shows it.
fn ended(output: &Output) -> EndedCall {
    let others = output.content.iter().filter(|block| block.as_text().is_none()).count();
    let mut text = output.text();
    if others > 0 {
        text.push_str(&format!("\n[{others} pictures or documents are left out of an answer in the background]"));
    }
    EndedCall { text, failed: output.outcome != Outcome::Done }
}

fn moved(id: &str) -> Output {
    let text = format!(
        "The server has not answered yet, so the call runs on in the background as {id}. TaskOutput shows its progress and \
         its answer, TaskStop stops it; it does not outlive the session."
    );
    Output::done(text, format!("Running as {id}"))
}

fn output(reply: ServerReply) -> Output {
    let text = reply.blocks.iter().find_map(|block| block.as_text()).unwrap_or_default();
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let summary = match line.char_indices().nth(SUMMARY) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    };
    match reply.outcome {
        Outcome::Done => Output::of(reply.blocks, summary),
        outcome => Output { outcome, ..Output::of(reply.blocks, summary) },
    }
}
