//! The gate: the one place that decides whether something happens, with everybody who has a say.
//!
//! It is asked about calls, prompts, compactions and the end of a turn. It can allow or prevent them, change a call's
//! input, tell the model something, or end the turn. For a call the order is fixed: hooks that see every call; the
//! rules, on the input as these have left it; hooks that answer permission requests; the person or the program. No hook
//! makes a call run that a rule denies or asks about: a hook's yes is worth what a rule's is, and a rule that denies or
//! asks is stronger than one that allows.

mod call;
mod hook_notifications;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use context::Fact;
use files::Glance;
use session::Session;
use settings::hook_definitions::{Hook, Kind};
use tokio_util::sync::CancellationToken;
use tools::Scope;
use tools::permission::Rule;

use crate::event::Event;
use crate::hooks::{
    CommonInput, HookContext, HookInput, HookInquiry, HookMessage, HookOutput, HookOutputs, Hooks, LIMIT_NAME, LONGEST,
};
use crate::parts::{Consent, Lineage, Outlets, Talk, Workplace};

pub(crate) use call::{EndedCall, ModelCall, Ruling};

/// The gate of a session: the deciders, and what they have left behind.
pub(crate) struct Gate {
    /// The deciders.
    pub(crate) consent: Consent,
    /// Rules from "always" answers: they hold to the session's end, wherever else they are written.
    pub(crate) answered: Vec<Rule>,
    /// Id of the last prompt that the user submitted.
    prompt: Option<String>,
    /// Messages for the model, to be attached to the next results.
    aside: Vec<HookMessage>,
    /// Reason why a hook ended the turn.
    stopped: Option<String>,
    /// Hook failures that the user was told about.
    told: HashSet<String>,
    /// Watched files, with their last known state.
    watched: Vec<(PathBuf, Option<Glance>)>,
    /// Watched files that a hook asked for.
    asked_for: BTreeSet<PathBuf>,
    /// Usage of models that hooks asked, until it is recorded.
    used: Vec<Fact>,
}

/// The session that the gate decides for.
pub(crate) struct GateSite<'a> {
    pub(crate) session: &'a Session,
    pub(crate) scope: &'a Scope,
    pub(crate) talk: &'a Talk,
    pub(crate) work: &'a Workplace,
    pub(crate) lineage: &'a Lineage,
    pub(crate) out: &'a Outlets,
}

impl GateSite<'_> {
    /// Sends an event.
    pub(crate) fn tell(&self, event: Event) {
        (self.out.listener)(event);
    }

    /// Bounds a hook's text: a long one goes to a file, and its beginning stays.
    pub(crate) fn bounded(&self, text: &str) -> String {
        let longest = self.talk.layers.spill_limits.get(LIMIT_NAME).copied().unwrap_or(LONGEST);
        if text.chars().count() <= longest {
            return text.to_owned();
        }
        let beginning: String = text.chars().take(longest / 5).collect();
        let id = format!("hook-{}", self.session.world().fresh_id());
        match self.session.keep_result(&id, "txt", text) {
            Ok(path) => format!("{beginning}\n[… all of it is in {}]", path.display()),
            Err(error) => format!("{beginning}\n[… the rest could not be kept: {error}]"),
        }
    }

    /// A hook's reason for blocking something, as the model is told.
    pub(crate) fn said_no(&self, word: &HookMessage) -> String {
        HookMessage { text: self.bounded(&word.text), ..word.clone() }.plain()
    }

    /// File in which hook commands may set environment variables for later commands.
    fn variables_file(&self) -> PathBuf {
        self.session.folder().join("hook-variables.sh")
    }
}

impl Gate {
    /// The gate of a session in which nothing has happened yet.
    pub(crate) fn new(consent: Consent) -> Self {
        Self {
            consent,
            answered: Vec::new(),
            prompt: None,
            aside: Vec::new(),
            stopped: None,
            told: HashSet::new(),
            watched: Vec::new(),
            asked_for: BTreeSet::new(),
            used: Vec::new(),
        }
    }

    /// Id of the last prompt that the user submitted.
    pub(crate) fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    /// Adds rules from an "always" answer.
    pub(crate) fn always(&mut self, rules: &[Rule]) {
        self.consent.policy.rules.allow.extend(rules.iter().cloned());
        self.answered.extend(rules.iter().cloned());
    }

    /// Takes the usage of models that hooks asked, to be recorded.
    pub(crate) fn take_used(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.used)
    }

    /// Takes the reason why a hook has ended the turn, if one has.
    pub(crate) fn take_stopped(&mut self) -> Option<String> {
        self.stopped.take()
    }

    /// Runs the hooks that match an event, and passes on their messages to the user.
    pub(crate) async fn hooked(
        &mut self,
        site: &GateSite<'_>,
        hook_input: &HookInput,
        cancel: &CancellationToken,
    ) -> HookOutputs {
        let Some((hooks, context)) = self.begin_hooks(site, hook_input) else { return HookOutputs::default() };
        let answers = hooks.run(hook_input, &context, cancel).await;
        self.take_in(site, &answers);
        answers
    }

    /// Announces the hooks of an event and returns their context; `None` if no hook matches.
    fn begin_hooks(&self, site: &GateSite<'_>, hook_input: &HookInput) -> Option<(Hooks, HookContext)> {
        let hooks = &self.consent.hooks;
        if !hooks.any(hook_input.hook_event) {
            return None;
        }
        let concerned = hooks.concerned(hook_input);
        let status = concerned.iter().find_map(|hook| hook.status.clone());
        if concerned.is_empty() {
            return None;
        }
        site.tell(Event::HooksStarted { hook_event: hook_input.hook_event, status });
        Some((hooks.clone(), self.context_for(site, hook_input)))
    }

    /// Context for the hooks of an event, with models to ask if one of them needs it.
    fn context_for(&self, site: &GateSite<'_>, hook_input: &HookInput) -> HookContext {
        let asks = |hook: &Arc<Hook>| matches!(hook.kind, Kind::Prompt { .. } | Kind::Agent { .. });
        let asking = self.consent.hooks.concerned(hook_input).iter().any(asks).then(|| Arc::new(self.asking(site)));
        HookContext { asking, ..self.context(site) }
    }

    /// Models that hooks can ask, and the limits for it.
    fn asking(&self, site: &GateSite<'_>) -> HookInquiry {
        HookInquiry {
            small: site.talk.smallest(),
            policy: self.consent.policy.clone(),
            scope: site.scope.clone(),
            ledger: site.out.ledger.clone(),
        }
    }

    /// Context for hooks, without anybody to ask.
    fn context(&self, site: &GateSite<'_>) -> HookContext {
        let sent = site.lineage.sent.as_ref();
        HookContext {
            common: CommonInput {
                session: site.session.id().to_owned(),
                transcript: sent.map_or(site.session.path(), |sent| &sent.session).to_owned(),
                agent: sent.map(|sent| (sent.id.clone(), sent.kind.clone())),
                directory: site.scope.directory(),
                prompt: self.prompt.clone(),
                mode: self.consent.policy.mode.get(),
                effort: site.talk.effort.and_then(|effort| effort.of(&site.talk.name)),
            },
            project: site.scope.project().to_owned(),
            environment: site.work.environment.clone(),
            guard: site.work.guard.clone(),
            variables: site.variables_file(),
            asking: None,
            servers: site.work.servers.as_ref().map(|tools| tools.servers().clone()),
            variable: site.work.variable,
        }
    }

    /// Takes in what every hook output can hold: failures, messages, usage, files to watch.
    pub(crate) fn take_in(&mut self, site: &GateSite<'_>, answers: &HookOutputs) {
        for (hook, said) in &answers.0 {
            let HookOutput { failed, message, used, watch, .. } = said;
            if let Some(why) = failed {
                let text = format!("a {} hook failed ({}): {why}", hook.hook_event.name(), hook.shown());
                // One that fails at every call is told of once.
                if self.told.insert(text.clone()) {
                    site.tell(Event::Warning(text));
                }
            }
            if let Some(text) = message {
                site.tell(Event::HookMessage { hook_event: hook.hook_event, text: site.bounded(text) });
            }
            if let Some((model, usage)) = used {
                let (agent, model, usage) = (crate::hooks::KIND.to_owned(), model.clone(), *usage);
                self.used.push(Fact::Side { agent, model, usage });
            }
            let project = site.scope.project();
            self.asked_for.extend(watch.iter().map(|path| project.join(path)));
        }
    }
}
