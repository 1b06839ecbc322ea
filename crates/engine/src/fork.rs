//! A fork: a question to the conversation as it stands, asked beside it.
//!
//! It sends what the parent sends, byte for byte, and then its own words: so it reads the parent's cache, and costs little
//! more than its answer. Nothing that the cache looks at may differ: not the tools, the limits, the thinking, the
//! breakpoints. What a fork may not do is refused when it tries, never left out of what it is offered. That it keeps to
//! this is checked before every request.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use provider::Model;
use tokio_util::sync::CancellationToken;
use transcript::block::Kind;
use transcript::{Block, Message, Outcome, Remarks, Reply, Request, Role, StopReason, Usage};

/// About so many bytes are a token of output; where a stream is stopped, that is near enough.
const BYTES_PER_TOKEN: u64 = 4;

/// A question to a conversation.
pub struct Fork {
    /// Who asks: the name its costs go under.
    pub kind: &'static str,
    /// The model.
    pub model: Arc<dyn Model>,
    /// What the parent would send.
    pub parent: Request,
    /// The fork's own words.
    pub directive: Block,
    /// What happens when it calls a tool. When all its calls of a round were run, it is done.
    pub tools: ToolPolicy,
    /// The most requests.
    pub rounds: u32,
    /// The most time for all of them.
    pub patience: Duration,
    /// Where the output is cut off, in tokens.
    pub most_output: Option<u64>,
    /// Stops it; a child of the parent's.
    pub cancel: CancellationToken,
}

/// What happens when a fork calls a tool.
pub enum ToolPolicy {
    /// It is told that tools do not run here.
    Deny,
    /// This runs it, or says why not.
    Run(Box<Running>),
}

/// Runs a call, by the tool's name and its input.
type Running = dyn FnMut(&str, &serde_json::Value) -> Result<String, String> + Send;

/// What came of a fork.
#[derive(Debug, Clone, PartialEq)]
pub struct Forked {
    /// The text of its last reply.
    pub text: String,
    /// What it used.
    pub usage: Usage,
    /// How many requests it made.
    pub rounds: u32,
}

/// Why a fork came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// Its request would not have read the parent's cache: a fault of this program.
    #[error("a fork would differ from its parent in {0}; it was not sent")]
    Differs(&'static str),
    /// The provider refused or failed.
    #[error(transparent)]
    Provider(provider::Error),
    /// It answered, and there is nothing in it.
    #[error("{0}")]
    Nothing(&'static str),
    /// It took too long.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The user stopped it.
    #[error("stopped")]
    Cancelled,
}

impl Fork {
    /// Runs it to its end.
    pub async fn run(mut self) -> Result<Forked, (ForkError, Usage)> {
        let mut used = Usage::default();
        let (patience, cancel) = (self.patience, self.cancel.clone());
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ForkError::Cancelled),
            () = tokio::time::sleep(patience) => Err(ForkError::Late(patience)),
            outcome = self.ask(&mut used) => outcome,
        };
        outcome.map_err(|error| (error, used))
    }

    async fn ask(&mut self, used: &mut Usage) -> Result<Forked, ForkError> {
        let mut request = self.parent.clone();
        append(&mut request.messages, vec![self.directive.clone()]);
        let mut rounds = 0;
        loop {
            extends(&self.parent, &request)?;
            rounds += 1;
            let reply = reply(&*self.model, request.clone(), self.most_output).await?;
            super::agent::add(used, &reply.usage);
            let calls: Vec<Block> =
                reply.blocks.iter().filter(|block| matches!(block.kind(), Kind::ToolUse { .. })).cloned().collect();
            let (results, all_ran) = self.answer(&calls);
            if all_ran || rounds >= self.rounds || reply.stop == StopReason::MaxTokens {
                let texts: Vec<String> = reply.blocks.iter().filter_map(Block::as_text).collect();
                return Ok(Forked { text: texts.join("\n"), usage: *used, rounds });
            }
            request.messages.push(Message { role: Role::Assistant, blocks: reply.blocks });
            request.messages.push(Message { role: Role::User, blocks: results });
        }
    }

    /// Answers calls as the policy says, and says whether all were run.
    fn answer(&mut self, calls: &[Block]) -> (Vec<Block>, bool) {
        let (mut results, mut all_ran) = (Vec::new(), true);
        for call in calls {
            let Kind::ToolUse { id, name } = call.kind() else { continue };
            let answer = match &mut self.tools {
                ToolPolicy::Deny => Err("Tools do not run here. Answer with text.".to_owned()),
                ToolPolicy::Run(run) => run(name, &call.input().unwrap_or_default()),
            };
            let (text, outcome) = match answer {
                Ok(text) => (text, Outcome::Done),
                Err(why) => (why, Outcome::Failed),
            };
            all_ran &= outcome == Outcome::Done;
            results.push(Block::tool_result(id, &[Block::text(text)], outcome));
        }
        (results, all_ran)
    }
}

/// One request. Where the output passes its limit the stream is dropped, and what came so far is the reply.
async fn reply(model: &dyn Model, request: Request, most_output: Option<u64>) -> Result<Reply, ForkError> {
    let mut events = model.stream(request);
    let mut so_far = Reply {
        id: String::new(),
        model: String::new(),
        blocks: Vec::new(),
        stop: StopReason::MaxTokens,
        usage: Usage::default(),
        remarks: Remarks::default(),
    };
    let (mut text, mut bytes) = (String::new(), 0);
    while let Some(event) = events.next().await {
        match event {
            provider::Event::Done(reply) => return Ok(reply),
            provider::Event::Failed(error) => return Err(ForkError::Provider(error)),
            provider::Event::Started { id, model, usage } => {
                (so_far.id, so_far.model, so_far.usage) = (id, model, usage);
            }
            provider::Event::Restarted => (text, bytes) = (String::new(), 0),
            provider::Event::Text(more) => {
                bytes += more.len() as u64;
                text.push_str(&more);
            }
            provider::Event::Thinking(more) | provider::Event::ToolInput { partial_json: more, .. } => {
                bytes += more.len() as u64;
            }
            provider::Event::Block(_) | provider::Event::Retrying { .. } => {}
        }
        if most_output.is_some_and(|most| bytes / BYTES_PER_TOKEN >= most) {
            so_far.blocks.push(Block::text(&text));
            so_far.usage.output_tokens = bytes / BYTES_PER_TOKEN;
            return Ok(so_far);
        }
    }
    let (host, cause) = ("the model".to_owned(), "the stream ended without an end".to_owned());
    Err(ForkError::Provider(provider::Error::Cut { host, cause }))
}

/// Puts blocks of the user's side at the end.
pub(crate) fn append(messages: &mut Vec<Message>, blocks: Vec<Block>) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User => last.blocks.extend(blocks),
        _ => messages.push(Message { role: Role::User, blocks }),
    }
}

/// Whether a request begins with all that its parent would send, breakpoints included.
fn extends(parent: &Request, child: &Request) -> Result<(), ForkError> {
    if !Arc::ptr_eq(&parent.prologue, &child.prologue) && parent.prologue != child.prologue {
        return Err(ForkError::Differs("what stands before the messages"));
    }
    if parent.marks != child.marks {
        return Err(ForkError::Differs("its breakpoints"));
    }
    let blocks = |request: &Request| -> Vec<(Role, Block)> {
        let of =
            |message: &Message| message.blocks.iter().map(|block| (message.role, block.clone())).collect::<Vec<_>>();
        request.messages.iter().flat_map(of).collect()
    };
    let (parent, child) = (blocks(parent), blocks(child));
    let same = parent.len() <= child.len()
        && parent.iter().zip(&child).all(|((role, was), (now, is))| role == now && was.is_same(is));
    if same { Ok(()) } else { Err(ForkError::Differs("its messages")) }
}
