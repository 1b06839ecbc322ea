//! Decisions on calls, and their consequences.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use settings::hook_definitions::{HookAuthor, HookEvent};
use settings::permission::{
    CallGrant, CallQuestion, PermissionAnswer, PermissionUpdate, Question, Respondent, RuleBehavior, RuleDecision,
};
use tokio_util::sync::CancellationToken;
use tools::permission::{Places, Rights, Rule};
use tools::{Output, Runs, Subject, Tool};
use transcript::{Block, Outcome, tool_names};

use super::{Gate, GateSite};
use crate::event::Event;
use crate::hooks::response::{TextBefore, agent, response, text};
use crate::hooks::{HookInput, HookMessage, HookOutputs, HookVerdict, HookedCall};
use crate::plan;
use crate::run::NOT_RUN;
use crate::subagent::Subagent;

/// A call that the model asks for.
#[derive(Debug, Clone)]
pub(crate) struct ModelCall {
    /// Its id.
    pub(crate) id: String,
    /// The tool.
    pub(crate) tool: String,
    /// Its input.
    pub(crate) input: Value,
    /// Parallel or exclusive execution.
    pub(crate) runs: Runs,
    /// The raw input, if it is not valid JSON.
    pub(crate) invalid: Option<String>,
}

/// A call that has ended, for hooks.
pub(crate) struct EndedCall<'a> {
    /// The call.
    pub(crate) call: &'a ModelCall,
    /// Its subject.
    pub(crate) subject: &'a Subject,
    /// Earlier text of the file it changed.
    pub(crate) before: &'a TextBefore,
    /// Its output.
    pub(crate) output: &'a Output,
    /// Its duration.
    pub(crate) took: Duration,
    /// The subagent that it started.
    pub(crate) sent: Option<Arc<Subagent>>,
}

/// Decision on a call.
pub(crate) enum Ruling {
    /// It runs, on this subject, with these rights.
    Run(Subject, Rights),
    /// It does not run, and the model is told why.
    Refused {
        /// The reason, for the model.
        why: String,
    },
}

/// Result of a call that did not run because a hook ended the turn.
const OVERTAKEN: &str = "[Not run: a hook has ended the turn.]";

impl Gate {
    /// Decides on a call. Hooks may change its input.
    pub(crate) async fn decide(
        &mut self,
        site: &GateSite<'_>,
        call: &mut ModelCall,
        cancel: &CancellationToken,
    ) -> Ruling {
        if self.stopped.is_some() {
            return refused(OVERTAKEN);
        }
        let known = site.work.find(&call.tool);
        let Some(tool) = known else { return Ruling::Run(Subject::Whole, Rights::Full) }; // running it says which tools there are
        let leave = match self.hooks_on_every_call(site, &tool, call, cancel).await {
            Ok(leave) => leave,
            Err(why) => return refused(&why),
        };
        if call.tool == tool_names::BASH {
            site.scope.find_wall().await;
        }
        let mut question = match self.weigh(site, &tool, call, leave) {
            RuleDecision::Allow(rights) => return Ruling::Run(tool.subject(&call.input, site.scope), rights),
            RuleDecision::Deny { why } => return self.denied(site, &tool, call, why, cancel).await,
            RuleDecision::Ask(question) => *question,
        };
        match self.hooks_that_answer(site, &tool, call, &question, cancel).await {
            Some(RuleDecision::Allow(rights)) => return Ruling::Run(tool.subject(&call.input, site.scope), rights),
            Some(RuleDecision::Deny { why }) => return refused(&why),
            Some(RuleDecision::Ask(other)) => question = *other,
            None => {}
        }
        question.id.clone_from(&call.id);
        match self.ask_somebody(site, question, cancel).await {
            PermissionAnswer::Allow => {}
            PermissionAnswer::Always(rules) => self.always(&rules),
            PermissionAnswer::With { input, permissions } => {
                call.input = input.unwrap_or(std::mem::take(&mut call.input));
                self.change_permissions(site, &permissions);
                // Who was asked has the last word on what is asked about, and on what is denied the rules have.
                if let RuleDecision::Deny { why } = self.weigh(site, &tool, call, CallGrant::None) {
                    return self.denied(site, &tool, call, why, cancel).await;
                }
            }
            PermissionAnswer::Deny { why } => return refused(&why),
            PermissionAnswer::Unanswered { why } => return self.denied(site, &tool, call, why, cancel).await,
        }
        Ruling::Run(tool.subject(&call.input, site.scope), Rights::Full)
    }

    /// Decides on a call that nobody is asked about: what would need a question does not run.
    pub(crate) async fn decide_unasked(
        &mut self,
        site: &GateSite<'_>,
        call: &mut ModelCall,
        cancel: &CancellationToken,
    ) -> Ruling {
        let known = site.work.find(&call.tool);
        let Some(tool) = known else { return refused(&format!("{} cannot be used here", call.tool)) };
        let leave = match self.hooks_on_every_call(site, &tool, call, cancel).await {
            Ok(leave) => leave,
            Err(why) => return refused(&why),
        };
        site.scope.find_wall().await;
        match self.weigh(site, &tool, call, leave) {
            RuleDecision::Allow(rights) => Ruling::Run(tool.subject(&call.input, site.scope), rights),
            RuleDecision::Deny { why } => refused(&why),
            RuleDecision::Ask(question) => refused(&question.why),
        }
    }

    fn weigh(&self, site: &GateSite<'_>, tool: &Arc<dyn Tool>, call: &ModelCall, leave: CallGrant) -> RuleDecision {
        let scope = site.scope.clone().for_call(&tool.subject(&call.input, site.scope));
        self.consent.policy.weigh(&**tool, &call.input, &scope, leave)
    }

    /// Runs the hooks that see every call; returns what they leave the rules to decide, or the reason for a refusal.
    async fn hooks_on_every_call(
        &mut self,
        site: &GateSite<'_>,
        tool: &Arc<dyn Tool>,
        call: &mut ModelCall,
        cancel: &CancellationToken,
    ) -> Result<CallGrant, String> {
        if !self.consent.hooks.any(HookEvent::PreToolUse) {
            return if cancel.is_cancelled() { Err(NOT_RUN.to_owned()) } else { Ok(CallGrant::None) };
        }
        let subject = tool.subject(&call.input, site.scope);
        let hook_input = HookInput::pre_tool_use(called(call, &call.reported_input(), &subject));
        let answers = self.hooked(site, &hook_input, cancel).await;
        if cancel.is_cancelled() {
            return Err(NOT_RUN.to_owned());
        }
        self.aside.extend(answers.context());
        self.change_input(site, call, &answers);
        if let Some(why) = answers.stop() {
            self.stopped = Some(why);
            return Err(OVERTAKEN.to_owned());
        }
        match answers.verdict() {
            Some((HookVerdict::Deny, word)) => Err(site.said_no(&word)),
            Some((HookVerdict::Ask, _)) => Ok(CallGrant::AskAnyway),
            Some((HookVerdict::Allow, _)) => Ok(CallGrant::AsByRule),
            None => Ok(CallGrant::None),
        }
    }

    /// Runs the hooks that answer in place of a person. Their yes is worth a rule's: what a rule asks about is still
    /// asked.
    async fn hooks_that_answer(
        &mut self,
        site: &GateSite<'_>,
        tool: &Arc<dyn Tool>,
        call: &mut ModelCall,
        question: &CallQuestion,
        cancel: &CancellationToken,
    ) -> Option<RuleDecision> {
        if !self.consent.hooks.any(HookEvent::PermissionRequest) {
            return None;
        }
        let told = call.reported_input();
        let hook_input = HookInput::permission_request(called(call, &told, &question.subject), &question.suggestions());
        let answers = self.hooked(site, &hook_input, cancel).await;
        if let Some(why) = answers.stop() {
            self.stopped = Some(why);
        }
        match answers.verdict() {
            Some((HookVerdict::Deny, word)) => Some(RuleDecision::Deny { why: site.said_no(&word) }),
            Some((HookVerdict::Allow, _)) => {
                self.change_input(site, call, &answers);
                // A project's hook sets none.
                let own = answers.0.iter().filter(|(hook, said)| said.author_of(hook) == HookAuthor::User);
                let changes: Vec<Value> = own.flat_map(|(_, said)| said.permissions.clone()).collect();
                self.change_permissions(site, &changes);
                Some(self.weigh(site, tool, call, CallGrant::AsByRule))
            }
            Some((HookVerdict::Ask, _)) | None => None,
        }
    }

    fn change_input(&mut self, site: &GateSite<'_>, call: &mut ModelCall, answers: &HookOutputs) {
        let Some((mut input, author, note)) = answers.input() else { return };
        if author == HookAuthor::Project {
            plan::ask::unanswered(&call.tool, &mut input); // a project's files do not answer in the user's name
        }
        call.input = input;
        if let Some(note) = note {
            site.tell(Event::Warning(note));
        }
    }

    /// Applies rules and modes that a user's hook, or the program that was asked, sets for this session.
    fn change_permissions(&mut self, site: &GateSite<'_>, changes: &[Value]) {
        for change in changes {
            match PermissionUpdate::of(change) {
                Ok(PermissionUpdate::SetMode { mode, .. }) => self.consent.policy.mode.set(mode),
                Ok(PermissionUpdate::AddRules { rules, behavior, .. }) => {
                    let directory = site.scope.directory();
                    let places = Places { directory: directory.clone(), settings: directory, home: None, file: None };
                    let rules = rules.iter().filter_map(|rule| Rule::parse(&rule.to_string(), &places).ok());
                    let rules: Vec<Rule> = rules.collect();
                    match behavior {
                        RuleBehavior::Allow => self.always(&rules),
                        RuleBehavior::Ask => self.consent.policy.rules.ask.extend(rules),
                        RuleBehavior::Deny => self.consent.policy.rules.deny.extend(rules),
                    }
                }
                Err(what) => {
                    site.tell(Event::Warning(format!("{what} was requested with the answer, and is not supported")));
                }
            }
        }
    }

    /// Asks the person or the program, and notifies hooks of the wait.
    async fn ask_somebody(
        &mut self,
        site: &GateSite<'_>,
        question: CallQuestion,
        cancel: &CancellationToken,
    ) -> PermissionAnswer {
        let approver = self.consent.approver.clone();
        if approver.respondent() == Respondent::Person {
            self.notify(site, "Cairn needs your permission", "permission_prompt");
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => PermissionAnswer::Deny { why: NOT_RUN.to_owned() },
            answer = approver.ask(Question::Call(Box::new(question))) => answer,
        }
    }

    /// Tells hooks of a call that was denied, but not by a person.
    async fn denied(
        &mut self,
        site: &GateSite<'_>,
        tool: &Arc<dyn Tool>,
        call: &ModelCall,
        why: String,
        cancel: &CancellationToken,
    ) -> Ruling {
        let subject = tool.subject(&call.input, site.scope);
        let hook_input = HookInput::permission_denied(called(call, &call.reported_input(), &subject), &why);
        let answers = self.hooked(site, &hook_input, cancel).await;
        self.aside.extend(answers.context());
        Ruling::Refused { why }
    }

    /// Returns whether hooks have to see a result before it is logged.
    pub(crate) fn has_hooks_on_results(&self) -> bool {
        self.consent.hooks.any(HookEvent::PostToolUse) || self.consent.hooks.any(HookEvent::PostToolUseFailure)
    }

    /// Current text of the file that a call is about to change, if hooks are told of it.
    pub(crate) fn before(&self, changes: Option<&PathBuf>) -> TextBefore {
        changes.filter(|_| self.consent.hooks.any(HookEvent::PostToolUse)).and_then(|path| text(path))
    }

    /// Runs hooks on the result of a call. Only that call's result waits for them.
    pub(crate) fn hooks_on_result(
        &self,
        site: &GateSite<'_>,
        ended: &EndedCall<'_>,
        cancel: &CancellationToken,
    ) -> impl Future<Output = HookOutputs> + use<> {
        let EndedCall { call, subject, before, output, took, sent } = ended;
        let told = call.reported_input();
        let (called, milliseconds) = (called(call, &told, subject), took.as_millis() as u64);
        let hook_input = match output.outcome {
            Outcome::Done => {
                let response = match sent {
                    Some(subagent) => agent(subagent, &call.input, *took),
                    None => response(&call.tool, &call.input, subject, output, before, *took),
                };
                HookInput::post_tool_use(called, &response, milliseconds)
            }
            Outcome::Failed => {
                HookInput::post_tool_use_failure(called, &output.text(), cancel.is_cancelled(), milliseconds)
            }
        };
        let running =
            self.begin_hooks(site, &hook_input).map(|(hooks, context)| (hooks, context, hook_input, cancel.clone()));
        async move {
            match running {
                Some((hooks, context, hook_input, cancel)) => hooks.run(&hook_input, &context, &cancel).await,
                None => HookOutputs::default(),
            }
        }
    }

    /// Output of a call after hooks have seen it.
    pub(crate) fn after_hooks(&mut self, site: &GateSite<'_>, mut output: Output, answers: &HookOutputs) -> Output {
        self.take_in(site, answers);
        if let Some(changed) = answers.output() {
            let text = changed.as_str().map_or_else(|| changed.to_string(), str::to_owned);
            output.content = vec![Block::text(text)];
        }
        self.aside.extend(answers.blocks());
        self.aside.extend(answers.context());
        self.stopped = self.stopped.take().or(answers.stop());
        output
    }

    /// Runs the hooks for all calls of a reply together. Returns their messages for the model.
    pub(crate) async fn results(
        &mut self,
        site: &GateSite<'_>,
        results: &[(String, Value, String, Value)],
        cancel: &CancellationToken,
    ) -> Vec<HookMessage> {
        if self.consent.hooks.any(HookEvent::PostToolBatch) && !cancel.is_cancelled() {
            let answers = self.hooked(site, &HookInput::post_tool_batch(results), cancel).await;
            self.aside.extend(answers.context());
            let block = answers.block().map(|word| word.text);
            self.stopped = self.stopped.take().or(answers.stop()).or(block);
        }
        std::mem::take(&mut self.aside)
    }
}

fn refused(why: &str) -> Ruling {
    Ruling::Refused { why: why.to_owned() }
}

fn called<'a>(call: &'a ModelCall, input: &'a Value, subject: &'a Subject) -> HookedCall<'a> {
    HookedCall { tool: &call.tool, input, id: &call.id, subject }
}

impl ModelCall {
    /// Its input with default values filled in, as Claude Code reports it.
    pub(crate) fn reported_input(&self) -> Value {
        let mut input = self.input.clone();
        if self.tool == tool_names::EDIT && input.is_object() && input["replace_all"].is_null() {
            input["replace_all"] = json!(false);
        }
        input
    }
}
