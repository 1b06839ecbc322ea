//! A fork: a question to the conversation as it stands, asked outside of it.
//!
//! It sends what the parent sends, byte for byte, and then its own words: so it reads the parent's cache, and costs
//! little more than its answer. Nothing that the cache depends on may differ: not the tools, the limits, the thinking,
//! the breakpoints. A call that a fork may not make is refused when it tries; no tool is ever left out of the request.
//! All this is checked before every request.
//!
//! A fork that asks once adds no breakpoint, since nobody will read from there. One that works with tools for several
//! rounds marks its own tail, behind the parent's breakpoints, so that each of its rounds reads the one before.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use provider::Model;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tools::{Access, Limit, Output, Scope, Tool, ToolCall, run_all};
use transcript::block::Kind;
use transcript::mark::{BlockPlace, MOST_MARKS};
use transcript::{Block, Message, Outcome, Remarks, Reply, Request, Role, StopReason, Usage};

use crate::ledger::{BYTES_PER_TOKEN, BudgetPause, Ledger, broken_off};

/// A small model, for questions outside the conversation.
#[derive(Clone)]
pub struct SmallModel {
    /// The client.
    pub model: Arc<dyn Model>,
    /// Its name at the provider.
    pub name: String,
}

/// Default time limit of a fork.
const PATIENCE: Duration = Duration::from_secs(60);
/// Result of a call that is answered outside this conversation.
const STARTED: &str = "[This call is being answered beside this conversation.]";

/// A question to a conversation.
pub struct Fork {
    /// Name under which its costs are recorded.
    pub kind: &'static str,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The parent's request.
    pub parent: Request,
    /// The fork's own words.
    pub directive: Block,
    /// Policy for its tool calls.
    pub tools: ToolPolicy,
    /// Limit on requests.
    pub rounds: u32,
    /// Time limit for all of them.
    pub patience: Duration,
    /// Limit on the output of one, in tokens.
    pub most_output: Option<u64>,
    /// Limit on the tokens of all of them, read and written; beyond it no further one is made.
    pub budget: Option<u64>,
    /// Ledger for its costs, asked before each round.
    pub ledger: Arc<Ledger>,
    /// Stops it; a child of the parent's.
    pub cancel: CancellationToken,
}

/// Policy for the tool calls of a fork.
pub enum ToolPolicy {
    /// Every call is answered that tools do not run here.
    Deny,
    /// This function runs a call, or returns the reason it does not. When all calls of a round were run, the fork is
    /// done.
    Run(Box<CallRunner>),
    /// Real tools, as far as the judge allows; it goes on until it calls none.
    Tools {
        /// The parent's tools.
        tools: Vec<Arc<dyn Tool>>,
        /// Scope of the tools; the fork's own, so that what it reads does not count as read by the parent.
        scope: Scope,
        /// Judge of the calls.
        judge: Arc<dyn Judge>,
    },
}

/// Runs a call, by the tool's name and its input.
type CallRunner = dyn FnMut(&str, &Value) -> Result<String, String> + Send;

/// Decides which calls of a fork may run. Nobody is asked.
pub trait Judge: Send + Sync {
    /// Allows a call; the error is the reason it may not run.
    fn judge(&self, tool: &dyn Tool, input: &Value, scope: &Scope) -> Result<(), String>;
}

impl<F: Fn(&dyn Tool, &Value, &Scope) -> Result<(), String> + Send + Sync> Judge for F {
    fn judge(&self, tool: &dyn Tool, input: &Value, scope: &Scope) -> Result<(), String> {
        self(tool, input, scope)
    }
}

/// Result of a fork.
#[derive(Debug, Clone, PartialEq)]
pub struct ForkResult {
    /// The text of its last reply; if it may call no tool, the longest one.
    pub text: String,
    /// The blocks of its last reply.
    pub blocks: Vec<Block>,
    /// Usage of its first request, which should have read the parent's cache.
    pub first: Usage,
    /// Number of its requests.
    pub rounds: u32,
    /// The reason it was ended early, if it was.
    pub unfinished: Option<&'static str>,
}

/// Failure of a fork.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// Its request would not have read the parent's cache: a bug of this program.
    #[error("a fork would differ from its parent in {0}; it was not sent")]
    Differs(&'static str),
    /// The provider refused or failed.
    #[error(transparent)]
    Provider(provider::Error),
    /// The day's budget is spent.
    #[error(transparent)]
    Paused(#[from] BudgetPause),
    /// It took too long.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The user stopped it.
    #[error("stopped")]
    Cancelled,
}

impl Fork {
    /// One request without tool calls, with the default time limit. Callers set more if they need it.
    pub fn new(
        kind: &'static str,
        model: &Arc<dyn Model>,
        parent: Request,
        directive: impl AsRef<str>,
        ledger: &Arc<Ledger>,
    ) -> Self {
        Self {
            kind,
            model: model.clone(),
            parent,
            directive: Block::text(directive.as_ref()),
            tools: ToolPolicy::Deny,
            rounds: 1,
            patience: PATIENCE,
            most_output: None,
            budget: None,
            ledger: ledger.clone(),
            cancel: CancellationToken::new(),
        }
    }

    /// Runs it to its end. Its usage is returned in any case.
    pub async fn run(mut self) -> (Result<ForkResult, ForkError>, Usage) {
        let (mut used, mut cut) = (Usage::default(), Usage::default());
        let (patience, cancel) = (self.patience, self.cancel.clone());
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ForkError::Cancelled),
            () = tokio::time::sleep(patience) => Err(ForkError::Late(patience)),
            outcome = self.ask(&mut used, &mut cut) => outcome,
        };
        used += cut;
        (outcome, used)
    }

    /// `cut` is the usage of replies that were not finished.
    async fn ask(&mut self, used: &mut Usage, cut: &mut Usage) -> Result<ForkResult, ForkError> {
        let mut request = self.parent.clone();
        append(&mut request.messages, vec![self.directive.clone()]);
        let (mut rounds, mut first, mut answer) = (0, Usage::default(), String::new());
        loop {
            if matches!(self.tools, ToolPolicy::Tools { .. }) {
                mark_tail(&self.parent, &mut request);
            }
            extends(&self.parent, &request)?;
            self.ledger.allows(self.kind)?;
            rounds += 1;
            let events = self.ledger.ask(self.kind, &self.model, request.clone());
            let reply = reply(events, self.most_output, cut).await?;
            *used += reply.usage;
            *used += std::mem::take(cut);
            if rounds == 1 {
                first = reply.usage;
            }
            let calls: Vec<Block> =
                reply.blocks.iter().filter(|block| matches!(block.kind(), Kind::ToolUse { .. })).cloned().collect();
            let (results, all_ran) = self.answer(&calls).await;
            let done = match self.tools {
                ToolPolicy::Tools { .. } => calls.is_empty(),
                _ => all_ran,
            };
            let spent = self.budget.is_some_and(|budget| used.total() >= budget);
            let unfinished = match () {
                () if reply.stop == StopReason::MaxTokens => Some("its answer was cut off"),
                () if done => None,
                () if spent => Some("it had used up its tokens"),
                () if rounds >= self.rounds => Some("it had no end after its last round"),
                () => Some(""),
            };
            // A provider that compacts by itself answers with a summary.
            let text = |block: &Block| block.as_text().or_else(|| block.compaction());
            let text = reply.blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n");
            // Where only text is wanted, it may stand beside a call that is refused, and only a word comes after it.
            if !matches!(self.tools, ToolPolicy::Deny) || text.len() > answer.len() {
                answer = text;
            }
            if unfinished != Some("") {
                return Ok(ForkResult { text: answer, blocks: reply.blocks, first, rounds, unfinished });
            }
            request.messages.push(Message { role: Role::Assistant, blocks: reply.blocks });
            request.messages.push(Message { role: Role::User, blocks: results });
        }
    }

    /// Answers calls according to the policy, and returns whether all were run.
    async fn answer(&mut self, calls: &[Block]) -> (Vec<Block>, bool) {
        if let ToolPolicy::Tools { tools, scope, judge } = &self.tools {
            let scope = scope.clone().with_cancel(self.cancel.clone());
            let outputs = run_judged(calls, tools, &scope, &**judge).await;
            return results_of(calls, outputs);
        }
        let mut outputs = Vec::new();
        for call in calls {
            let Kind::ToolUse { name, .. } = call.kind() else { continue };
            let input = call.input().unwrap_or_default();
            let said = |text: Result<String, String>| match text {
                Ok(text) => Output::done(text, ""),
                Err(why) => Output::failed(why),
            };
            outputs.push(match &mut self.tools {
                ToolPolicy::Run(run) => said(run(name, &input)),
                ToolPolicy::Deny | ToolPolicy::Tools { .. } => {
                    Output::failed("Tools do not run here. Answer with text.")
                }
            });
        }
        results_of(calls, outputs)
    }
}

/// Runs calls as far as they are allowed. Adjacent ones that only read run in parallel; every other one is judged and
/// run alone, so that it sees the effect of the one before.
async fn run_judged(calls: &[Block], tools: &[Arc<dyn Tool>], scope: &Scope, judge: &dyn Judge) -> Vec<Output> {
    let known = |call: &Block| match call.kind() {
        Kind::ToolUse { name, .. } => tools.iter().find(|tool| tool.name() == &**name),
        _ => None,
    };
    let looks = |call: &Block| {
        known(call).is_some_and(|tool| tool.access(&call.input().unwrap_or_default()) == Access::ReadOnly)
    };
    let mut outputs = Vec::new();
    for group in calls.chunk_by(|one, next| looks(one) && looks(next)) {
        let (mut denied, mut running) = (Vec::new(), Vec::new());
        for call in group {
            let Kind::ToolUse { name, .. } = call.kind() else { continue };
            let (input, tool) = (call.input().unwrap_or_default(), known(call));
            // What is judged is what runs: links are followed once.
            let subject = tool.map(|tool| tool.subject(&input, scope));
            let judged = subject.as_ref().map_or_else(|| scope.clone(), |one| scope.clone().for_call(one));
            let verdict = tool.map_or(Ok(()), |tool| judge.judge(&**tool, &input, &judged));
            if verdict.is_ok() {
                running.push(ToolCall { subject, ..ToolCall::new(name.to_string(), input) });
            }
            denied.push((tool, verdict.err()));
        }
        let mut ran = run_all(running, tools, scope, |_, _| {}).await.into_iter();
        outputs.extend(denied.into_iter().map(|(tool, denied)| match denied {
            Some(why) => Output::failed(why),
            None => bounded(ran.next().unwrap_or_else(|| Output::failed("It did not run.")), tool),
        }));
    }
    outputs
}

/// An output cut to the limit of its tool, since nothing is written to a file for a fork.
fn bounded(output: Output, tool: Option<&Arc<dyn Tool>>) -> Output {
    let Some(Limit::Characters(most)) = tool.map(|tool| tool.limit()) else { return output };
    let text = output.text();
    match text.char_indices().nth(most) {
        Some((end, _)) => {
            let text = format!("{}\n[cut at {most} characters; ask for less]", &text[..end]);
            Output { content: vec![Block::text(text)], ..output }
        }
        None => output,
    }
}

/// Outputs as the results of their calls, and true if all of them succeeded.
fn results_of(calls: &[Block], outputs: Vec<Output>) -> (Vec<Block>, bool) {
    let all_ran = outputs.iter().all(|output| output.outcome == Outcome::Done);
    let ids = calls.iter().filter_map(|call| match call.kind() {
        Kind::ToolUse { id, .. } => Some(id),
        _ => None,
    });
    let results = ids.zip(outputs).map(|(id, output)| Block::tool_result(id, &output.content, output.outcome));
    (results.collect(), all_ran)
}

/// The request that all forks of one reply share: every call of the reply gets the same result in each of them, so that
/// they begin with the same bytes.
pub fn branched(mut parent: Request) -> Request {
    let called = |message: &Message| -> Vec<Block> {
        let calls = message.blocks.iter().filter_map(|block| match block.kind() {
            Kind::ToolUse { id, .. } => Some(Block::tool_result(id, &[Block::text(STARTED)], Outcome::Done)),
            _ => None,
        });
        calls.collect()
    };
    let newest = parent.messages.iter().rposition(|message| message.role == Role::Assistant);
    let Some(newest) = newest.filter(|newest| !called(&parent.messages[*newest]).is_empty()) else { return parent };
    let results = called(&parent.messages[newest]);
    parent.messages.truncate(newest + 1);
    parent.messages.push(Message { role: Role::User, blocks: results });
    let ends = newest + 1;
    // The first of them writes what they share, and the others read it: a breakpoint stands at its end, and one is left for
    // the tail of each. From the last of the system blocks the provider looks back to the others.
    parent.marks.messages.retain(|place| place.message < ends);
    let before = parent.marks.messages.pop();
    let shared = BlockPlace { message: ends, block: parent.messages[ends].blocks.len() - 1 };
    parent.marks.messages = before.into_iter().chain([shared]).collect();
    let most = parent.marks.system.len().saturating_sub(1);
    parent.marks.system.drain(..most);
    parent.marks.edits.retain(|edit| edit.behind.message < ends);
    parent
}

/// A later request of a branched conversation: it keeps the breakpoints that all branches share for as long as it
/// begins with the shared part, and has one more at its end.
pub fn following(branch: &Request, mut request: Request) -> Request {
    let own = request.marks.clone();
    mark_tail(branch, &mut request);
    request.marks.after.clone_from(&own.after);
    if extends(branch, &request).is_err() {
        request.marks = own; // it has gone on since, and made room
    }
    request
}

/// Results of the newest reply's calls that all its branches share.
pub fn placeholders(branch: &Request) -> Vec<Block> {
    branch.messages.last().map(|last| last.blocks.clone()).unwrap_or_default()
}

/// One request. If the output passes its limit, the stream is dropped, and the part received so far is the reply. `cut`
/// is the usage of a reply that was not finished.
async fn reply(
    mut events: BoxStream<'static, provider::Event>,
    most_output: Option<u64>,
    cut: &mut Usage,
) -> Result<Reply, ForkError> {
    let mut before = *cut;
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
            provider::Event::Done(reply) => {
                *cut = before;
                return Ok(reply);
            }
            provider::Event::Failed(error) => return Err(ForkError::Provider(error)),
            provider::Event::Started { id, model, usage } => {
                (so_far.id, so_far.model, so_far.usage) = (id, model, usage);
            }
            provider::Event::Restarted => {
                (text, bytes, before) = (String::new(), 0, *cut);
                so_far.usage = Usage::default();
            }
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
            *cut = before;
            return Ok(so_far);
        }
        *cut = before;
        *cut += broken_off(so_far.usage, bytes);
    }
    let (host, cause) = ("the model".to_owned(), "the stream ended early".to_owned());
    Err(ForkError::Provider(provider::Error::Cut { host, cause }))
}

/// Adds blocks of the user's side at the end.
pub(crate) fn append(messages: &mut Vec<Message>, blocks: Vec<Block>) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User => last.blocks.extend(blocks),
        _ => messages.push(Message { role: Role::User, blocks }),
    }
}

/// Adds a breakpoint at the end of a request, behind those of its parent, if one is left.
fn mark_tail(parent: &Request, request: &mut Request) {
    request.marks = parent.marks.clone();
    let tail = request.messages.last().map(|last| (request.messages.len() - 1, last.blocks.len()));
    if let Some((message, blocks @ 1..)) = tail
        && request.marks.system.len() + request.marks.messages.len() < MOST_MARKS
    {
        request.marks.messages.push(BlockPlace { message, block: blocks - 1 });
    }
}

/// Checks that a request begins with everything its parent would send, breakpoints included.
fn extends(parent: &Request, child: &Request) -> Result<(), ForkError> {
    if !Arc::ptr_eq(&parent.prologue, &child.prologue) && parent.prologue != child.prologue {
        return Err(ForkError::Differs("what stands before the messages"));
    }
    let (was, is) = (&parent.marks, &child.marks);
    if was.system != is.system || was.ttl != is.ttl || was.edits != is.edits || !is.messages.starts_with(&was.messages)
    {
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
