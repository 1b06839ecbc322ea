//! Hooks that ask a model whether a condition holds: a small model at once, or an agent that looks first.
//!
//! The agent reads and searches, as far as the rules allow it without asking, and does nothing else. No hook runs for
//! its calls. It is bounded in rounds, time and tokens; without a clear answer it decides nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use learning::fork::{Fork, ForkError, ToolPolicy};
use learning::ledger::Ledger;
use serde_json::{Value, json};
use settings::BasePaths;
use settings::hook_definitions::HookEvent;
use settings::permission::{CallGrant, Policy, RuleDecision};
use settings::rules;
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use tools::{Scope, Tool};
use transcript::mark::Marks;
use transcript::{Block, Prologue, Request, Usage, tool_names};

use super::hook_output::HookOutput;
use learning::fork::SmallModel;

const PROMPT: &str = include_str!("prompt.md");
const AGENT: &str = include_str!("agent.md");
/// Limit on the answer to a question, in tokens.
const ANSWER: u64 = 1_000;
/// Limit on a reply of an agent, which may think aloud and make calls, in tokens.
const REPLY: u64 = 4_000;
/// Limit on requests of an agent, as in Claude Code.
const ROUNDS: u32 = 50;
/// Token budget of all its requests.
const BUDGET: u64 = 500_000;
/// Tools of an agent.
const LOOKING: [&str; 3] = [tool_names::READ, tool_names::GREP, tool_names::GLOB];
/// Placeholder for the input in a question.
const ARGUMENTS: &str = "$ARGUMENTS";
/// Ledger kind for requests of hooks.
pub(crate) const KIND: &str = "hook";

/// Models that hooks can ask, and the limits for it.
#[derive(Clone)]
pub struct HookInquiry {
    /// The small model.
    pub small: SmallModel,
    /// Permission policy of its agents.
    pub policy: Policy,
    /// The scope of their tools.
    pub scope: Scope,
    /// The ledger that records the usage.
    pub ledger: Arc<Ledger>,
}

/// Kind of answerer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookAnswerer {
    /// A model, which answers at once.
    Model,
    /// An agent, which looks first.
    Agent,
}

/// A hook's question.
pub(super) struct HookQuestion<'a> {
    pub(super) who: HookAnswerer,
    pub(super) hook_event: HookEvent,
    pub(super) prompt: &'a str,
    /// The model; `None` for the small one.
    pub(super) model: Option<&'a str>,
    pub(super) input: &'a Value,
    /// The session's transcript.
    pub(super) transcript: &'a Path,
    pub(super) limit: Duration,
}

impl HookQuestion<'_> {
    /// Asks it.
    pub(super) async fn ask(&self, asking: &HookInquiry, cancel: &CancellationToken) -> HookOutput {
        let model = self.model.unwrap_or(&asking.small.name).to_owned();
        let (tools, rounds, budget) = match self.who {
            HookAnswerer::Model => (ToolPolicy::Deny, 1, None),
            HookAnswerer::Agent => (self.read_only_policy(asking), ROUNDS, Some(BUDGET)),
        };
        let offered: &[Arc<dyn Tool>] = match &tools {
            ToolPolicy::Tools { tools, .. } => tools,
            _ => &[],
        };
        let parent = self.request(&model, offered);
        let fork = Fork {
            tools,
            rounds,
            patience: self.limit,
            budget,
            cancel: cancel.clone(),
            ..Fork::new(KIND, &asking.small.model, parent, self.words(), &asking.ledger)
        };
        let (forked, used) = fork.run().await;
        match forked {
            Ok(done) => {
                let spent = done.rounds >= rounds || budget.is_some_and(|budget| used.total() >= budget);
                let said = match answered(self.hook_event, &done.text) {
                    None if spent && self.who == HookAnswerer::Agent => {
                        HookOutput::failed(format!("it gave no answer in {} rounds", done.rounds))
                    }
                    None => HookOutput::failed("the model's answer could not be understood"),
                    Some(said) => said,
                };
                HookOutput { used: Some((model, used)), ..said }
            }
            Err(error) => {
                let why = match error {
                    ForkError::Late(limit) => format!("it took longer than {} s", limit.as_secs_f64()),
                    ForkError::Cancelled => "it was stopped".to_owned(),
                    error => format!("the model was not reached: {error}"),
                };
                let used = (used != Usage::default()).then_some((model, used));
                HookOutput { used, ..HookOutput::failed(why) }
            }
        }
    }

    /// Policy for reading and searching, as far as the rules allow it without asking; the transcript can be read too.
    fn read_only_policy(&self, asking: &HookInquiry) -> ToolPolicy {
        let mut policy = Policy { mode: Mode::Default.into(), ..asking.policy.clone() };
        let context = BasePaths { directory: asking.scope.project(), home: None };
        policy
            .rules
            .allow
            .extend(rules(&[format!("Read(/{})", self.transcript.display())], &context).unwrap_or_default());
        let judge = move |tool: &dyn Tool, input: &Value, scope: &Scope| match policy.weigh(
            tool,
            input,
            scope,
            CallGrant::None,
        ) {
            RuleDecision::Allow(_) => Ok(()),
            RuleDecision::Deny { why } => Err(why),
            RuleDecision::Ask(question) => {
                Err(format!("{} was not run: {}, and nobody is asked.", question.tool, question.why))
            }
        };
        let tools = tools::standard().into_iter().filter(|tool| LOOKING.contains(&tool.name())).collect();
        ToolPolicy::Tools { tools, scope: asking.scope.fork(), judge: Arc::new(judge) }
    }

    /// The request before the question.
    fn request(&self, model: &str, tools: &[Arc<dyn Tool>]) -> Request {
        let (system, max_tokens) = match self.who {
            HookAnswerer::Model => (PROMPT, ANSWER),
            HookAnswerer::Agent => (AGENT, REPLY),
        };
        let schema = json!({
            "type": "object",
            "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string"}},
            "required": ["ok"],
            "additionalProperties": false,
        });
        let prologue = Prologue {
            model: model.to_owned(),
            max_tokens,
            system: vec![Block::text(system.trim())],
            static_blocks: 1,
            tools: tools.iter().map(|tool| tool.definition()).collect(),
            // What an agent says between its calls is free.
            format: (self.who == HookAnswerer::Model).then_some(schema),
            ..Prologue::default()
        };
        Request { prologue: Arc::new(prologue), messages: Vec::new(), marks: Marks::default() }
    }

    /// The question, with the input at its placeholder, or after it.
    fn words(&self) -> String {
        let input = self.input.to_string();
        match self.prompt.contains(ARGUMENTS) {
            true => self.prompt.replace(ARGUMENTS, &input),
            false => format!("{}\n\n{input}", self.prompt),
        }
    }
}

/// Parses an answer; `None` if it cannot be understood.
fn answered(hook_event: HookEvent, text: &str) -> Option<HookOutput> {
    // There may be words around it.
    let found = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to))?;
    let answer: Value = serde_json::from_str(found).ok()?;
    if answer["ok"].as_bool()? {
        return Some(HookOutput::default());
    }
    let reason = answer["reason"].as_str().unwrap_or("the condition does not hold").to_owned();
    Some(HookOutput::refusing(hook_event, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HOOK-2: `$ARGUMENTS` is replaced with the input; without it, the input follows.
    #[test]
    fn the_input_stands_where_the_question_says() {
        let asked = |prompt: &str| {
            let (hook_event, input, transcript) = (HookEvent::Stop, &json!({"a": 1}), Path::new("/t"));
            let (who, limit) = (HookAnswerer::Model, Duration::ZERO);
            HookQuestion { who, hook_event, prompt, model: None, input, transcript, limit }.words()
        };
        assert_eq!(asked("Is $ARGUMENTS fine?"), r#"Is {"a":1} fine?"#);
        assert_eq!(asked("Fine?"), "Fine?\n\n{\"a\":1}");
    }

    /// HOOK-2: a no blocks, and an answer that cannot be parsed decides nothing.
    #[test]
    fn a_models_answer_decides() {
        let of = |text: &str| answered(HookEvent::Stop, text);
        assert_eq!(of("{\"ok\": true}").unwrap().block, None);
        assert_eq!(of("Sure: {\"ok\": false, \"reason\": \"tests\"}.").unwrap().block.as_deref(), Some("tests"));
        assert!(of("yes").is_none() && of("{\"ok\": 1}").is_none());
    }
}
