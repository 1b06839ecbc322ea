//! A tool of a server, as the engine runs it.
//!
//! That a server calls its tool read-only grants nothing: every call is one that may change something, unless a rule of the
//! user's covers it.

use futures_util::future::{BoxFuture, ready};
use mcp::{ServerReply, ToolInteraction};
use serde_json::{Map, Value};
use tools::{Access, Limit, Output, Runs, Scope, Subject, Tool};
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
        let OfferedTool { offer, server, .. } = self.0.clone();
        Box::pin(async move {
            let Some(connection) = server.connection() else { return Output::failed("This server is switched off.") };
            tokio::select! {
                reply = connection.call(&offer.name, arguments, None) => match reply {
                    Ok(reply) => output(reply),
                    Err(error @ mcp::Error::NeedsLogin { .. }) => {
                        Output::failed(format!("{error}: the user can run `cairn mcp login {}`.", server.name))
                    }
                    Err(error) => Output::failed(error.to_string()),
                },
                () = scope.cancel().cancelled() => Output::failed("cancelled by the user"),
            }
        })
    }
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
