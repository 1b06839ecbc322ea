//! The step machine: what comes next in a turn.
//!
//! It does nothing itself. [`Run::next`] looks at the log and at what little a turn has to remember, and names the next
//! step; whoever drives it takes the step, appends what came of it to the log, and asks again. So a test can drive a
//! turn without a runtime, a model or a disk.
//!
//! ```
//! use engine::run::{Run, Step, TurnLimits};
//! use transcript::Log;
//! let run = Run::new(TurnLimits::default());
//! assert!(matches!(run.next(&Log::default()), Step::CallModel));
//! ```

use serde::{Deserialize, Serialize};
use transcript::block::Kind;
use transcript::price::Dollars;
use transcript::{Block, Log, Reply, StopReason, tool_names};

/// Number of identical calls in a row after which the model is told.
pub const REPEATS_BEFORE_NOTE: u32 = 3;
/// Number of identical calls in a row that ends the turn.
pub const REPEATS_ENDED: u32 = 10;
/// Tools that wait for something else, so that repeating them is normal.
const WAITING: [&str; 2] = [tool_names::TASK_OUTPUT, "BashOutput"];
/// Number of such calls that count as one.
const WAITS_AS_ONE: u32 = 20;

/// Limits of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnLimits {
    /// Limit on requests.
    pub max_rounds: Option<u32>,
    /// Token budget of the turn and its subagents; once it is spent, no further request is made.
    pub budget: Option<u64>,
    /// Cost of the whole session, with its agents and background work; past it no further request is made.
    #[serde(default)]
    pub cost: Option<Dollars>,
}

/// A running turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    limits: TurnLimits,
    rounds: u32,
    #[serde(default)]
    tokens: u64,
    /// Tokens used by subagents. A host may have kept a turn under the name `below`.
    #[serde(default, rename = "below")]
    subagent_tokens: u64,
    /// Cost of the session so far.
    #[serde(default)]
    cost: Dollars,
    stop: Option<StopReason>,
    last_calls: Vec<String>,
    repeats: u32,
}

/// The next step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send the view to the model.
    CallModel,
    /// Run these calls.
    CallTools(Vec<Block>),
    /// The turn is over.
    Done(RunEnd),
}

/// Reason for a turn's end, as far as the machine can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// The model answered without calling a tool.
    Answered,
    /// The answer was cut off at the output limit.
    OutputLimit,
    /// The model refused.
    Refused,
    /// The window is full.
    WindowFull,
    /// The limit on rounds was reached.
    MaxRounds,
    /// The token budget is spent.
    BudgetSpent,
    /// The session has cost as much as it may.
    CostLimit,
    /// The model made the same calls again and again.
    Looping,
}

impl Run {
    /// A turn that is about to start: the user's message is in the log.
    pub fn new(limits: TurnLimits) -> Self {
        Self {
            limits,
            rounds: 0,
            tokens: 0,
            subagent_tokens: 0,
            cost: Dollars::default(),
            stop: None,
            last_calls: Vec::new(),
            repeats: 0,
        }
    }

    /// The same turn, continued for messages from other agents: it has the rest of the budget.
    #[must_use]
    pub fn anew(&self, limits: TurnLimits) -> Self {
        Self { tokens: self.tokens, subagent_tokens: self.subagent_tokens, ..Self::new(limits) }
    }

    /// Sets the total of tokens used by subagents so far.
    pub fn used_below(&mut self, tokens: u64) {
        self.subagent_tokens = tokens;
    }

    /// The session has cost so much by now.
    pub fn has_cost(&mut self, cost: Dollars) {
        self.cost = cost;
    }

    /// The next step.
    pub fn next(&self, log: &Log) -> Step {
        let calls = log.view().open_calls();
        if !calls.is_empty() {
            return if self.repeats() >= REPEATS_ENDED { Step::Done(RunEnd::Looping) } else { Step::CallTools(calls) };
        }
        let ending = match &self.stop {
            None | Some(StopReason::ToolUse | StopReason::PauseTurn) => return self.call_model(),
            // Calls came with it and were answered, whatever the reason was.
            Some(_) if !self.last_calls.is_empty() => return self.call_model(),
            Some(StopReason::MaxTokens) => RunEnd::OutputLimit,
            Some(StopReason::Refusal) => RunEnd::Refused,
            Some(StopReason::ModelContextWindowExceeded) => RunEnd::WindowFull,
            Some(StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_)) => RunEnd::Answered,
        };
        Step::Done(ending)
    }

    fn call_model(&self) -> Step {
        match self.limits.max_rounds {
            Some(most) if self.rounds >= most => Step::Done(RunEnd::MaxRounds),
            _ if self.limits.budget.is_some_and(|budget| self.tokens + self.subagent_tokens >= budget) => {
                Step::Done(RunEnd::BudgetSpent)
            }
            _ if self.limits.cost.is_some_and(|most| self.cost >= most) => Step::Done(RunEnd::CostLimit),
            _ => Step::CallModel,
        }
    }

    /// Takes in a reply.
    pub fn replied(&mut self, reply: &Reply) {
        self.rounds += 1;
        self.tokens += reply.usage.total();
        self.stop = Some(reply.stop.clone());
        let calls: Vec<String> = reply
            .blocks
            .iter()
            .filter_map(|block| match block.kind() {
                Kind::ToolUse { name, .. } => Some(format!("{name} {}", block.input().unwrap_or_default())),
                _ => None,
            })
            .collect();
        let again = !calls.is_empty() && calls == self.last_calls;
        self.repeats = if again { self.repeats + 1 } else { u32::from(!calls.is_empty()) };
        self.last_calls = calls;
    }

    /// Returns whether the newest calls only wait for something else.
    fn waits(&self) -> bool {
        let is_waiting = |call: &String| WAITING.iter().any(|tool| call.split(' ').next() == Some(*tool));
        !self.last_calls.is_empty() && self.last_calls.iter().all(is_waiting)
    }

    /// Continues after the reason for the end was resolved.
    pub fn goes_on(&mut self) {
        self.stop = None;
    }

    /// Number of requests in this turn.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Number of times in a row that the newest calls were made.
    pub fn repeats(&self) -> u32 {
        if self.waits() { self.repeats / WAITS_AS_ONE } else { self.repeats }
    }
}

/// Result of a call that did not run because the user stopped the turn.
pub(crate) const NOT_RUN: &str = "[Not run: the turn ended before it.]";

/// Reason for a turn's end.
#[derive(Debug)]
pub enum TurnEnd {
    /// The step machine ended it.
    Ended(RunEnd),
    /// The user stopped it.
    Cancelled,
    /// The model could not be reached, or refused.
    Failed(provider::Error),
    /// There is no room for the request, and no layer could make any.
    NoRoom(String),
    /// The log could not be written. Everything acknowledged before is there.
    NotWritten(session::Error),
    /// A hook ended it, or blocked the prompt, for this reason.
    Stopped(String),
    /// A skill or a server's prompt that the message calls could not be called, for this reason.
    NotCalled(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transcript::line::{Body, Line, TextSource};
    use transcript::{Id, Outcome, Remarks, Usage};

    struct TurnProgress {
        run: Run,
        log: Log,
        written: u32,
    }

    impl TurnProgress {
        fn new(limits: TurnLimits) -> Self {
            let mut turn = Self { run: Run::new(limits), log: Log::default(), written: 0 };
            turn.write(Body::User { blocks: vec![Block::text("go")], source: TextSource::Direct });
            turn
        }

        fn write(&mut self, body: Body) {
            self.written += 1;
            let id = Id::from(format!("l{}", self.written));
            self.log.append(Line::new(id, self.log.tip().cloned(), jiff::Timestamp::UNIX_EPOCH, body));
        }

        fn reply(&mut self, stop: StopReason, blocks: Vec<Block>) -> Step {
            let id = format!("m{}", self.written);
            let reply =
                Reply { id, model: "m".into(), blocks, stop, usage: Usage::default(), remarks: Remarks::default() };
            let (id, blocks) = (Id::from(&reply.id), reply.blocks.clone());
            self.write(Body::Assistant { id, model: "m".into(), blocks, usage: None, stop: None });
            self.run.replied(&reply);
            self.run.next(&self.log)
        }

        fn answer(&mut self, id: &str) -> Step {
            let result = Block::tool_result(id, &[Block::text("ok")], Outcome::Done);
            self.write(Body::User { blocks: vec![result], source: TextSource::Direct });
            self.run.next(&self.log)
        }
    }

    fn call(id: &str, command: &str) -> Block {
        Block::tool_use(id, "Bash", &json!({"command": command}))
    }

    /// LOOP-1: a turn goes model, tools, model, until the model answers without a call.
    #[test]
    fn a_turn_goes_on_while_tools_are_called() {
        let mut turn = TurnProgress::new(TurnLimits::default());
        assert_eq!(turn.run.next(&turn.log), Step::CallModel);
        let step = turn.reply(StopReason::ToolUse, vec![call("a", "ls"), call("b", "pwd")]);
        assert_eq!(step, Step::CallTools(vec![call("a", "ls"), call("b", "pwd")]));
        assert_eq!(turn.answer("b"), Step::CallTools(vec![call("a", "ls")]));
        assert_eq!(turn.answer("a"), Step::CallModel);
        assert_eq!(turn.reply(StopReason::EndTurn, vec![Block::text("done")]), Step::Done(RunEnd::Answered));
    }

    /// LOOP-1: the limit on rounds ends a turn between rounds, with every call answered.
    #[test]
    fn the_limit_of_rounds_ends_a_turn_with_every_call_answered() {
        let mut turn = TurnProgress::new(TurnLimits { max_rounds: Some(1), ..TurnLimits::default() });
        assert!(matches!(turn.reply(StopReason::ToolUse, vec![call("a", "ls")]), Step::CallTools(_)));
        assert_eq!(turn.answer("a"), Step::Done(RunEnd::MaxRounds));
    }

    #[test]
    fn a_model_that_repeats_itself_is_stopped() {
        let mut turn = TurnProgress::new(TurnLimits::default());
        for round in 1..REPEATS_ENDED {
            let id = format!("c{round}");
            assert!(matches!(turn.reply(StopReason::ToolUse, vec![call(&id, "ls")]), Step::CallTools(_)));
            turn.answer(&id);
        }
        assert_eq!(turn.reply(StopReason::ToolUse, vec![call("last", "ls")]), Step::Done(RunEnd::Looping));
    }

    /// LOOP-1: polling a background command is waiting and not a loop, though not forever.
    #[test]
    fn waiting_for_a_command_is_no_loop() {
        let mut turn = TurnProgress::new(TurnLimits::default());
        let look = |id: &str| Block::tool_use(id, "TaskOutput", &serde_json::json!({"task_id": "b1"}));
        let mut looks = 0;
        while let Step::CallTools(_) = turn.reply(StopReason::ToolUse, vec![look(&format!("c{looks}"))]) {
            turn.answer(&format!("c{looks}"));
            looks += 1;
            assert_eq!(turn.run.repeats() >= REPEATS_BEFORE_NOTE, looks >= 60, "{looks}");
        }
        assert_eq!(looks, 199);
    }

    #[test]
    fn another_call_in_between_is_no_loop() {
        let mut turn = TurnProgress::new(TurnLimits::default());
        for round in 0..40 {
            let (id, command) = (format!("c{round}"), if round % 5 == 0 { "pwd" } else { "ls" });
            assert!(matches!(turn.reply(StopReason::ToolUse, vec![call(&id, command)]), Step::CallTools(_)));
            turn.answer(&id);
        }
    }

    #[test]
    fn what_the_provider_paused_is_sent_back() {
        let mut turn = TurnProgress::new(TurnLimits::default());
        assert_eq!(turn.reply(StopReason::PauseTurn, vec![Block::text("so far")]), Step::CallModel);
        assert_eq!(turn.reply(StopReason::Refusal, vec![Block::text("no")]), Step::Done(RunEnd::Refused));
        assert_eq!(turn.reply(StopReason::MaxTokens, vec![Block::text("and")]), Step::Done(RunEnd::OutputLimit));
    }
}
