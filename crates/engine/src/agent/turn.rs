//! A turn: runs the steps that the step machine names, until it is over.

use std::sync::Arc;

use learning::extract::Occasion;
use session::Error;
use tokio_util::sync::CancellationToken;
use tools::permission::Rules;
use tools::{Bash, Output, Tool, ToolCall, run_all};
use transcript::price::Dollars;
use transcript::{Block, Purpose, Usage, tool_names};

use super::incoming::MessageTiming;
use super::{Agent, agent_skills, parent_snapshot, text_of};
use crate::driver::ReplyResult;
use crate::event::Event;
use crate::hooks::SessionStart;
use crate::run::{NOT_RUN, Run, RunEnd, Step, TurnEnd};

/// Result of a turn.
#[derive(Debug)]
pub struct Turn {
    /// Reason for its end.
    pub end: TurnEnd,
    /// The text of the last reply.
    pub text: String,
    /// Number of requests.
    pub rounds: u32,
    /// Usage of all requests.
    pub usage: Usage,
    /// Tokens used by subagents, at every depth.
    pub subagent_tokens: u64,
}

impl Turn {
    /// A turn in which nothing has happened yet.
    pub(super) fn new(end: TurnEnd) -> Self {
        Self { end, text: String::new(), rounds: 0, usage: Usage::default(), subagent_tokens: 0 }
    }
}

impl Agent {
    /// Runs one turn for a text, without cancellation.
    pub async fn say(&mut self, text: &str) -> Turn {
        self.turn(vec![Block::text(text)], &CancellationToken::new()).await
    }

    /// Runs one turn: the user's message, and everything until the model answers without calling a tool. With an empty
    /// message the turn is for messages from other agents, and ends at once if there are none.
    pub async fn turn(&mut self, said: Vec<Block>, cancel: &CancellationToken) -> Turn {
        let mut turn = Turn::new(TurnEnd::Cancelled);
        self.reports.used = 0;
        if !said.is_empty()
            && let Err(error) = self.learn(Occasion::Begins)
        {
            return Turn::new(TurnEnd::NotWritten(error));
        }
        turn.end = match self.steps(said, cancel, &mut turn).await {
            Ok(end) => end,
            Err(error) => TurnEnd::NotWritten(error),
        };
        if let Err(error) = agent_skills::end_skills(self) {
            turn.end = TurnEnd::NotWritten(error);
        }
        if cancel.is_cancelled() {
            // Who stops the parent stops them all.
            self.agents().into_iter().for_each(|subagents| subagents.stop_all());
            self.contacts.teammates.iter().for_each(|teammates| drop(teammates.interrupt()));
        }
        if let Err(error) = self.reports.take_waited_for(&mut self.driver.live) {
            turn.end = TurnEnd::NotWritten(error);
        }
        turn.subagent_tokens = self.reports.used;
        if let Err(error) = self.driver.ended(&turn.end, cancel).await {
            turn.end = TurnEnd::NotWritten(error);
        }
        if let Some(knowledge) = &mut self.known.knowledge {
            knowledge.turn_ended();
        }
        if matches!(turn.end, TurnEnd::Ended(RunEnd::Answered))
            && let Err(error) = self.learn(Occasion::Turn)
        {
            turn.end = TurnEnd::NotWritten(error);
        }
        if let Err(error) = self.dream().await {
            turn.end = TurnEnd::NotWritten(error);
        }
        self.driver.live.tell(Event::TurnEnded { usage: turn.usage });
        turn
    }

    /// Runs the hooks for the session's start, once.
    pub(super) async fn starts(&mut self, cancel: &CancellationToken) -> Result<(), Error> {
        let Some(start) = self.start.take() else { return Ok(()) };
        let sent = self.driver.live.lineage.sent.clone();
        self.driver.gate_start(&start, sent.as_ref(), cancel).await?;
        match start {
            _ if self.driver.live.lineage.sent.is_some() => Ok(()), // it has those of the session it works for
            SessionStart::Clear => Ok(()), // they hear of instructions once something is said, as in Claude Code
            _ => self.loaded(cancel).await,
        }
    }

    /// Runs the hooks for the instruction files that a session starts with.
    async fn loaded(&mut self, cancel: &CancellationToken) -> Result<(), Error> {
        let files = self.known.knowledge.as_ref().map(|known| known.instructions().files.clone()).unwrap_or_default();
        self.driver.loaded(&files, None, cancel).await
    }

    async fn steps(&mut self, said: Vec<Block>, cancel: &CancellationToken, turn: &mut Turn) -> Result<TurnEnd, Error> {
        self.known.turn_begins();
        let cleared = self.start == Some(SessionStart::Clear);
        self.starts(cancel).await?;
        if said.is_empty() {
            // Nobody said anything: what others wrote, or what agents report, is what the turn is for.
            let mail = self.take_mail(MessageTiming::Begins, cancel).await?;
            if !self.reports.take(&mut self.driver.live)? && !mail {
                return Ok(TurnEnd::Ended(RunEnd::Answered));
            }
        } else if let Some(end) = self.hear(said, cancel).await? {
            return Ok(end);
        }
        if cleared {
            self.loaded(cancel).await?;
        }
        let mut blocks = 0;
        let mut run = Run::new(self.driver.live.talk.limits);
        loop {
            if cancel.is_cancelled() {
                self.driver.interrupt(Vec::new())?;
                return Ok(TurnEnd::Cancelled);
            }
            self.reports.take_waited_for(&mut self.driver.live)?;
            run.used_below(self.reports.used);
            run.has_cost(Dollars::rounded(self.driver.live.out.ledger.here().unwrap_or_default()));
            let mut step = run.next(self.session().log());
            if !matches!(step, Step::CallTools(_))
                && let Some(said) = self.inbox.next()
            {
                // What was said meanwhile joins this round; after an answer it begins a turn of its own.
                if matches!(step, Step::Done(_)) {
                    self.driver.live.answer_open_calls(NOT_RUN)?;
                    run = Run::new(self.driver.live.talk.limits);
                }
                step = Step::CallModel;
                let mut said = Some(said);
                while let Some(words) = said {
                    let held_back = match self.hear(words, cancel).await? {
                        Some(TurnEnd::Stopped(why)) => Some(format!("a hook held back your message: {why}")),
                        Some(TurnEnd::NotCalled(why)) => Some(why),
                        _ => None,
                    };
                    held_back.into_iter().for_each(|why| self.driver.live.tell(Event::Warning(why)));
                    said = self.inbox.next();
                }
            }
            if matches!(step, Step::CallModel | Step::Done(RunEnd::Answered))
                && self.take_mail(MessageTiming::Joins, cancel).await?
                && matches!(step, Step::Done(_))
            {
                (run, step) = (run.anew(self.driver.live.talk.limits), Step::CallModel);
            }
            if !matches!(step, Step::CallTools(_))
                && self.reports.take(&mut self.driver.live)?
                && matches!(step, Step::Done(_))
            {
                self.driver.live.answer_open_calls(NOT_RUN)?;
                run.goes_on();
                step = run.next(self.session().log());
            }
            if matches!(step, Step::CallModel) {
                self.reload(cancel).await?;
                self.driver.hear_hooks(cancel).await?;
            }
            match step {
                Step::CallModel => match self.ask(run.rounds() + 1, cancel).await? {
                    ReplyResult::NoRoom(why) => return Ok(TurnEnd::NoRoom(why)),
                    ReplyResult::Whole(reply) => {
                        turn.usage += reply.usage;
                        turn.text = text_of(&reply.blocks);
                        run.replied(&reply);
                        turn.rounds += 1;
                    }
                    ReplyResult::Cancelled => return Ok(TurnEnd::Cancelled),
                    ReplyResult::Failed(error) => return Ok(TurnEnd::Failed(error)),
                },
                Step::CallTools(calls) => {
                    let mut calls = self.driver.calls(&calls);
                    let caller = parent_snapshot::caller(self, &calls, Rules::default(), cancel);
                    self.driver.call_tools(&mut calls, run.repeats(), caller, cancel).await?;
                    self.known.touched(&calls, &mut self.driver, cancel).await?;
                    agent_skills::take_called_skills(self, &calls, cancel).await?;
                    if calls.iter().any(|call| call.tool == tool_names::TOOL_SEARCH) {
                        self.declare()?; // what was loaded
                    }
                    self.tasks.round(&calls, &mut self.driver.live)?;
                    self.name_teammates()?;
                    if let Some(why) = self.driver.gate.take_stopped() {
                        return Ok(TurnEnd::Stopped(why));
                    }
                }
                Step::Done(RunEnd::WindowFull) if self.driver.overflowed(&mut self.known.knowledge, cancel).await? => {
                    run.goes_on();
                }
                Step::Done(RunEnd::Answered) if self.driver.gate_end(&turn.text, &mut blocks, cancel).await? => {
                    run.goes_on();
                }
                Step::Done(RunEnd::Answered) if self.reports.wait(&mut self.driver.live, cancel).await? => {
                    run.goes_on();
                }
                Step::Done(ending) => {
                    self.driver.live.answer_open_calls(NOT_RUN)?;
                    self.driver.turn_ends(&mut self.known.knowledge, cancel).await?;
                    return Ok(TurnEnd::Ended(ending));
                }
            }
        }
    }

    /// Runs a command the user typed. Asks for no permission and calls no model; the model sees command and output with
    /// the user's next message.
    pub async fn shell(&mut self, command: &str, cancel: &CancellationToken) -> Turn {
        let mut turn = Turn::new(TurnEnd::Ended(RunEnd::Answered));
        let id = format!("shell-{}", self.session().world().fresh_id());
        let (tool, input) = (tool_names::BASH.to_owned(), serde_json::json!({"command": command}));
        self.driver.live.tell(Event::ToolStarted { id: id.clone(), tool: tool.clone(), input: input.clone() });
        let scope = self.driver.live.scope.clone().with_cancel(cancel.clone());
        let mut call = ToolCall::new(tool.clone(), input);
        if scope.sandbox().is_some() {
            call.input["dangerouslyDisableSandbox"] = true.into(); // it is the model that is kept in there
        }
        let bash: [Arc<dyn Tool>; 1] = [Arc::new(Bash)]; // what the model may use is no limit to the user
        let output = run_all(vec![call], &bash, &scope, |_, _| {}).await.pop();
        let output = output.unwrap_or_else(|| Output::failed(NOT_RUN));
        turn.text = output.text();
        let shown = self.driver.live.bounded_output(&id, &turn.text);
        let text = format!("I ran a command.\n<command>{command}</command>\n<output>\n{shown}\n</output>");
        if let Err(error) = self.driver.live.inject(Purpose::Command, &text) {
            turn.end = TurnEnd::NotWritten(error);
        }
        self.driver.live.tell(Event::ToolEnded { id, tool, output });
        turn
    }
}
