//! Whether a call runs, and what follows from it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use session::Error;
use settings::hooks::{Moment, Voice};
use settings::permission::{Answer, CallQuestion, Leave, Question, Weighed, Who};
use tokio_util::sync::CancellationToken;
use tools::permission::{Mode, Places, Rights, Rule};
use tools::{Output, Scope, Subject, Tool};
use transcript::{Block, Outcome, tool_names};

use crate::agent::NOT_RUN;
use crate::driver::{Asked, Driver};
use crate::event::Event;
use crate::hooks::response::{Before, agent, response};
use crate::hooks::{Answers, Called, Happening, Verdict};
use crate::plan;

/// What becomes of a call.
pub(crate) enum Ruling {
    /// It runs, about this, with these rights.
    Run(Subject, Rights),
    /// It does not, and the model is told why.
    Refused {
        /// In words for the model.
        why: String,
    },
}

/// What the model is told of a call that a hook's end of the turn has overtaken.
const OVERTAKEN: &str = "[Not run: a hook has ended the turn.]";

impl Driver {
    /// Decides on a call. Hooks may leave it with another input.
    pub(crate) async fn gate_call(
        &mut self,
        call: &mut Asked,
        scope: &Scope,
        cancel: &CancellationToken,
    ) -> Result<Ruling, Error> {
        if self.gate.stopped.is_some() {
            return Ok(refused(OVERTAKEN));
        }
        let known = self.parts.tools.iter().find(|known| known.name() == call.tool).cloned();
        let Some(tool) = known else { return Ok(Ruling::Run(Subject::Whole, Rights::Full)) }; // running it says which tools there are
        let leave = match self.hooks_on_every_call(&tool, call, scope, cancel).await? {
            Ok(leave) => leave,
            Err(why) => return Ok(refused(&why)),
        };
        if call.tool == tool_names::BASH {
            scope.find_wall().await;
        }
        let mut question = match self.weigh(&tool, call, scope, leave) {
            Weighed::Allow(rights) => return Ok(Ruling::Run(tool.subject(&call.input, scope), rights)),
            Weighed::Deny { why } => return self.denied(&tool, call, scope, why, cancel).await,
            Weighed::Ask(question) => *question,
        };
        match self.hooks_that_answer(&tool, call, scope, &question, cancel).await? {
            Some(Weighed::Allow(rights)) => return Ok(Ruling::Run(tool.subject(&call.input, scope), rights)),
            Some(Weighed::Deny { why }) => return Ok(refused(&why)),
            Some(Weighed::Ask(other)) => question = *other,
            None => {}
        }
        question.id.clone_from(&call.id);
        match self.ask_somebody(question, cancel).await? {
            Answer::Allow => {}
            Answer::Always(rules) => self.always(&rules),
            Answer::With { input, permissions } => {
                call.input = input.unwrap_or(std::mem::take(&mut call.input));
                self.change_permissions(&permissions, scope);
                // Who was asked has the last word on what is asked about, and on what is denied the rules have.
                if let Weighed::Deny { why } = self.weigh(&tool, call, scope, Leave::None) {
                    return self.denied(&tool, call, scope, why, cancel).await;
                }
            }
            Answer::Deny { why } => return Ok(refused(&why)),
            Answer::Unanswered { why } => return self.denied(&tool, call, scope, why, cancel).await,
        }
        Ok(Ruling::Run(tool.subject(&call.input, scope), Rights::Full))
    }

    fn weigh(&self, tool: &Arc<dyn Tool>, call: &Asked, scope: &Scope, leave: Leave) -> Weighed {
        let scope = scope.clone().for_call(&tool.subject(&call.input, scope));
        self.parts.policy.weigh(&**tool, &call.input, &scope, leave)
    }

    /// The hooks that look at every call: what they leave the rules to decide, or why it does not run.
    async fn hooks_on_every_call(
        &mut self,
        tool: &Arc<dyn Tool>,
        call: &mut Asked,
        scope: &Scope,
        cancel: &CancellationToken,
    ) -> Result<Result<Leave, String>, Error> {
        if !self.parts.hooks.any(Moment::PreToolUse) {
            return Ok(if cancel.is_cancelled() { Err(NOT_RUN.to_owned()) } else { Ok(Leave::None) });
        }
        let subject = tool.subject(&call.input, scope);
        let happening = Happening::pre_tool_use(called(call, &told_input(call), &subject));
        let answers = self.hooked(&happening, cancel).await?;
        if cancel.is_cancelled() {
            return Ok(Err(NOT_RUN.to_owned()));
        }
        self.gate.aside.extend(answers.context());
        self.change_input(call, &answers);
        if let Some(why) = answers.stop() {
            self.gate.stopped = Some(why);
            return Ok(Err(OVERTAKEN.to_owned()));
        }
        Ok(match answers.verdict() {
            Some((Verdict::Deny, word)) => Err(self.said_no(&word)),
            Some((Verdict::Ask, _)) => Ok(Leave::Asked),
            Some((Verdict::Allow, _)) => Ok(Leave::AsByRule),
            None => Ok(Leave::None),
        })
    }

    /// The hooks that answer in place of a person. Their yes is a rule's: what a rule asks about is still asked.
    async fn hooks_that_answer(
        &mut self,
        tool: &Arc<dyn Tool>,
        call: &mut Asked,
        scope: &Scope,
        question: &CallQuestion,
        cancel: &CancellationToken,
    ) -> Result<Option<Weighed>, Error> {
        if !self.parts.hooks.any(Moment::PermissionRequest) {
            return Ok(None);
        }
        let told = told_input(call);
        let happening = Happening::permission_request(called(call, &told, &question.subject), &question.suggestions());
        let answers = self.hooked(&happening, cancel).await?;
        if let Some(why) = answers.stop() {
            self.gate.stopped = Some(why);
        }
        Ok(match answers.verdict() {
            Some((Verdict::Deny, word)) => Some(Weighed::Deny { why: self.said_no(&word) }),
            Some((Verdict::Allow, _)) => {
                self.change_input(call, &answers);
                // A project's hook sets none.
                let own = answers.0.iter().filter(|(hook, _)| hook.voice() == Voice::User);
                let changes: Vec<Value> = own.flat_map(|(_, said)| said.permissions.clone()).collect();
                self.change_permissions(&changes, scope);
                Some(self.weigh(tool, call, scope, Leave::AsByRule))
            }
            Some((Verdict::Ask, _)) | None => None,
        })
    }

    fn change_input(&mut self, call: &mut Asked, answers: &Answers) {
        let Some((mut input, voice, note)) = answers.input() else { return };
        if voice == Voice::Project {
            plan::ask::unanswered(&call.tool, &mut input); // a project's files do not answer in the user's name
        }
        call.input = input;
        if let Some(note) = note {
            self.tell(Event::Warning(note));
        }
    }

    /// Rules and modes that a hook of the user's, or the program that was asked, sets for this session.
    fn change_permissions(&mut self, changes: &[Value], scope: &Scope) {
        for change in changes {
            let mode = serde_json::from_value(change["mode"].clone()).ok();
            match (change["type"].as_str(), change["behavior"].as_str(), mode) {
                (Some("setMode"), _, Some(mode)) if mode != Mode::BypassPermissions => self.parts.policy.mode.set(mode),
                (Some("addRules"), Some(behaviour @ ("allow" | "ask" | "deny")), _) => {
                    let directory = scope.directory();
                    let places = Places { directory: directory.clone(), settings: directory, home: None, file: None };
                    let rules = change["rules"].as_array().into_iter().flatten().filter_map(|rule| {
                        let tool = rule["toolName"].as_str()?;
                        let text = match rule["ruleContent"].as_str() {
                            Some(content) => format!("{tool}({content})"),
                            None => tool.to_owned(),
                        };
                        Rule::parse(&text, &places).ok()
                    });
                    let rules: Vec<Rule> = rules.collect();
                    match behaviour {
                        "allow" => self.always(&rules),
                        "ask" => self.parts.policy.rules.ask.extend(rules),
                        _ => self.parts.policy.rules.deny.extend(rules),
                    }
                }
                _ => {
                    let what = change["type"].as_str().unwrap_or("a change without a type");
                    self.tell(Event::Warning(format!("{what} was asked for along with a yes, and cannot be had")));
                }
            }
        }
    }

    /// Asks the person or the program, and lets hooks know that somebody is waited for.
    async fn ask_somebody(&mut self, question: CallQuestion, cancel: &CancellationToken) -> Result<Answer, Error> {
        let approver = self.parts.approver.clone();
        if approver.who() == Who::Person {
            self.notify("Cairn needs your permission", "permission_prompt");
        }
        Ok(tokio::select! {
            biased;
            () = cancel.cancelled() => Answer::Deny { why: NOT_RUN.to_owned() },
            answer = approver.ask(Question::Call(Box::new(question))) => answer,
        })
    }

    /// A call that was denied and not by a person: hooks are told.
    async fn denied(
        &mut self,
        tool: &Arc<dyn Tool>,
        call: &Asked,
        scope: &Scope,
        why: String,
        cancel: &CancellationToken,
    ) -> Result<Ruling, Error> {
        let subject = tool.subject(&call.input, scope);
        let happening = Happening::permission_denied(called(call, &told_input(call), &subject), &why);
        let answers = self.hooked(&happening, cancel).await?;
        self.gate.aside.extend(answers.context());
        Ok(Ruling::Refused { why })
    }

    /// Whether somebody has to see a result before it is written.
    pub(crate) fn has_hooks_on_results(&self) -> bool {
        self.parts.hooks.any(Moment::PostToolUse) || self.parts.hooks.any(Moment::PostToolUseFailure)
    }

    /// What a file holds that a call is about to change, where hooks are told of it.
    pub(crate) fn before(&self, changes: Option<&PathBuf>) -> Before {
        match changes {
            Some(path) if self.parts.hooks.any(Moment::PostToolUse) => Before::read(path),
            _ => Before::None,
        }
    }

    /// Lets hooks see what a call gave. Nobody else waits for them.
    pub(crate) fn hooks_on_result(
        &mut self,
        call: &Asked,
        subject: &Subject,
        before: &Before,
        output: &Output,
        took: Duration,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Answers> + use<> {
        let told = told_input(call);
        let (called, milliseconds) = (called(call, &told, subject), took.as_millis() as u64);
        let happening = match output.outcome {
            Outcome::Done => {
                let sent = self.parts.agents.as_ref().and_then(|children| children.sent_by(&call.id));
                let response = match sent {
                    Some(errand) => agent(&errand, &call.input, took),
                    None => response(&call.tool, &call.input, subject, output, before, took),
                };
                Happening::post_tool_use(called, &response, milliseconds)
            }
            Outcome::Failed => {
                Happening::post_tool_use_failure(called, &output.text(), cancel.is_cancelled(), milliseconds)
            }
        };
        let running = self.begin_hooks(&happening).map(|(hooks, ground)| (hooks, ground, happening, cancel.clone()));
        async move {
            match running {
                Some((hooks, ground, happening, cancel)) => hooks.run(&happening, &ground, &cancel).await,
                None => Answers::default(),
            }
        }
    }

    /// What a call gave once hooks have seen it.
    pub(crate) fn after_hooks(&mut self, mut output: Output, answers: &Answers) -> Result<Output, Error> {
        self.take_in(answers)?;
        if let Some(changed) = answers.output() {
            let text = changed.as_str().map_or_else(|| changed.to_string(), str::to_owned);
            output.content = vec![Block::text(text)];
        }
        self.gate.aside.extend(answers.blocks());
        self.gate.aside.extend(answers.context());
        self.gate.stopped = self.gate.stopped.take().or(answers.stop());
        Ok(output)
    }

    /// All calls of a reply have ended: hooks see them together, and what hooks had to say is put beside the results.
    pub(crate) async fn gate_results(
        &mut self,
        results: &[(String, Value, String, Value)],
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        if self.parts.hooks.any(Moment::PostToolBatch) && !cancel.is_cancelled() {
            let answers = self.hooked(&Happening::post_tool_batch(results), cancel).await?;
            self.gate.aside.extend(answers.context());
            let block = answers.block().map(|word| word.text);
            self.gate.stopped = self.gate.stopped.take().or(answers.stop()).or(block);
        }
        let aside = std::mem::take(&mut self.gate.aside);
        self.attach_words(aside)
    }
}

fn refused(why: &str) -> Ruling {
    Ruling::Refused { why: why.to_owned() }
}

fn called<'a>(call: &'a Asked, input: &'a Value, subject: &'a Subject) -> Called<'a> {
    Called { tool: &call.tool, input, id: &call.id, subject }
}

/// A call's input with what stands where nothing is said, as Claude Code tells it.
pub(crate) fn told_input(call: &Asked) -> Value {
    let mut input = call.input.clone();
    if call.tool == tool_names::EDIT && input.is_object() && input["replace_all"].is_null() {
        input["replace_all"] = json!(false);
    }
    input
}
