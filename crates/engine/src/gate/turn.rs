//! Decisions on prompts, compactions, the end of turns and changed settings.

use std::path::PathBuf;

use context::Occasion;
use serde_json::json;
use settings::hook_definitions::HookEvent;
use settings::permission::Respondent;
use tokio_util::sync::CancellationToken;
use transcript::line::Body;
use transcript::mark::Ttl;

use super::{Gate, GateSite};
use crate::event::Event;
use crate::hooks::{HookInput, HookMessage, SessionExit, SessionStart};
use crate::run::{RunEnd, TurnEnd};
use crate::subagent::SubagentIdentity;

/// Number of times in a row that a hook may make the model continue.
const MOST_BLOCKS: u32 = 8;

impl Gate {
    /// Runs the hooks on a prompt; returns the text to attach, or the reason it is blocked.
    pub(crate) async fn prompt_submitted(
        &mut self,
        site: &GateSite<'_>,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<HookMessage>, String> {
        if self.consent.hooks.list().is_empty() {
            return Ok(Vec::new());
        }
        // An agent's orders are not the user's words: it works for those its parent was told.
        if let Some(sent) = &site.lineage.sent {
            self.prompt.clone_from(&sent.prompt);
            return Ok(Vec::new());
        }
        self.prompt = Some(site.session.world().fresh_id().to_string());
        if !self.consent.hooks.any(HookEvent::UserPromptSubmit) {
            return Ok(Vec::new());
        }
        let answers = self.hooked(site, &HookInput::user_prompt_submit(prompt), cancel).await;
        match answers.stop().or_else(|| answers.block().map(|word| word.text)) {
            Some(why) => Err(site.bounded(&why)),
            None => Ok(answers.context()),
        }
    }

    /// Runs the hooks for the session's start; returns what they add.
    pub(crate) async fn starts(
        &mut self,
        site: &GateSite<'_>,
        start: &SessionStart,
        cancel: &CancellationToken,
    ) -> Vec<HookMessage> {
        if !self.consent.hooks.any(HookEvent::SessionStart) {
            return Vec::new();
        }
        site.prepare_variables();
        let mut hook_input = HookInput::session_start(start);
        if *start == SessionStart::Startup && self.consent.approver.respondent() == Respondent::Person {
            // Claude Code tells it in a terminal, and not elsewhere.
            hook_input = hook_input.with(json!({"model": site.talk.name}));
        }
        if let (SessionStart::Resume, Some(left)) = (start, site.left()) {
            hook_input = hook_input.left(&left);
        }
        self.hooked(site, &hook_input, cancel).await.context()
    }

    /// Runs the hooks for a subagent's start; returns what they add to its prompt.
    pub(crate) async fn subagent_started(
        &mut self,
        site: &GateSite<'_>,
        sent: &SubagentIdentity,
        cancel: &CancellationToken,
    ) -> Vec<HookMessage> {
        if !self.consent.hooks.any(HookEvent::SubagentStart) {
            return Vec::new();
        }
        self.prompt.clone_from(&sent.prompt);
        self.hooked(site, &HookInput::subagent_start(&sent.id, &sent.kind), cancel).await.context()
    }

    /// Asks hooks whether a compaction may happen; the error is the reason it may not.
    pub(crate) async fn compaction(
        &mut self,
        site: &GateSite<'_>,
        occasion: &Occasion,
        cancel: &CancellationToken,
    ) -> Result<(), String> {
        if matches!(occasion, Occasion::UserRequest { .. }) && !self.consent.hooks.list().is_empty() {
            self.prompt = Some(site.session.world().fresh_id().to_string()); // the user has asked for it
        }
        if !self.consent.hooks.any(HookEvent::PreCompact) {
            return Ok(());
        }
        let instructions = match occasion {
            Occasion::UserRequest { instructions, .. } => instructions.as_deref(),
            _ => None,
        };
        let hook_input = HookInput::pre_compact(trigger(occasion), Some(instructions.unwrap_or_default()));
        let answers = self.hooked(site, &hook_input, cancel).await;
        match answers.stop().or_else(|| answers.block().map(|word| word.text)) {
            Some(why) => Err(site.bounded(&why)),
            None => Ok(()),
        }
    }

    /// Runs the hooks after a compaction.
    pub(crate) async fn compacted(
        &mut self,
        site: &GateSite<'_>,
        occasion: &Occasion,
        summary: &str,
        cancel: &CancellationToken,
    ) {
        if self.consent.hooks.any(HookEvent::PostCompact) {
            self.hooked(site, &HookInput::post_compact(trigger(occasion), summary), cancel).await;
        }
    }

    /// Runs the hooks after the model's answer; returns the text for the model if it is to continue. `blocks` counts
    /// how often in a row it did.
    pub(crate) async fn answered(
        &mut self,
        site: &GateSite<'_>,
        answer: &str,
        blocks: &mut u32,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let hook_event = if site.lineage.sent.is_none() { HookEvent::Stop } else { HookEvent::SubagentStop };
        if !self.consent.hooks.any(hook_event) {
            return None;
        }
        let jobs = site.scope.jobs().list();
        let hook_input = match &site.lineage.sent {
            None => HookInput::stop(*blocks > 0, answer, &jobs),
            Some(sent) => HookInput::subagent_stop(*blocks > 0, answer, &jobs, (&sent.kind, site.session.path())),
        };
        let answers = self.hooked(site, &hook_input, cancel).await;
        let failed = answers.0.iter().find_map(|(_, said)| said.failed.clone());
        // One that was stopped with its turn has not failed.
        if let Some(why) = failed.filter(|_| !cancel.is_cancelled()) {
            self.hooked(site, &HookInput::stop_failure("stop_hook_failed", &why), cancel).await;
        }
        let word = answers.block().filter(|_| answers.stop().is_none() && !cancel.is_cancelled())?;
        *blocks += 1;
        if *blocks > MOST_BLOCKS {
            let text = format!(
                "a {} hook has made the model continue {MOST_BLOCKS} times in a row: the turn ends",
                hook_event.name()
            );
            site.tell(Event::Warning(text));
            return None;
        }
        Some(site.said_no(&word))
    }

    /// Runs the hooks for a turn that ended with an error.
    pub(crate) async fn ended(&mut self, site: &GateSite<'_>, end: &TurnEnd, cancel: &CancellationToken) {
        if !self.consent.hooks.any(HookEvent::StopFailure) {
            return;
        }
        let (error, details) = match end {
            TurnEnd::Failed(error) => (category(error), error.to_string()),
            TurnEnd::NoRoom(why) => ("invalid_request", why.clone()),
            TurnEnd::Ended(RunEnd::OutputLimit) => ("max_output_tokens", "the output limit".to_owned()),
            _ => return,
        };
        self.hooked(site, &HookInput::stop_failure(error, &details), cancel).await;
    }

    /// Asks hooks about changed settings; returns the reason for each file that one blocks.
    pub(crate) async fn settings_changed(
        &mut self,
        site: &GateSite<'_>,
        files: &[(PathBuf, Option<&'static str>)],
        cancel: &CancellationToken,
    ) -> Option<String> {
        let mut blocked = None;
        for (file, source) in files {
            let Some(source) = source else { continue };
            let answers = self.hooked(site, &HookInput::config_change(source, file), cancel).await;
            // Nobody keeps an organisation's settings from counting.
            if let Some(word) = answers.block().filter(|_| *source != "policy_settings") {
                blocked.get_or_insert(word.text);
            }
        }
        blocked
    }
}

impl GateSite<'_> {
    /// State in which a resumed session was left.
    fn left(&self) -> Option<SessionExit> {
        let lines = self.session.log().lines().iter().rev();
        let last = lines.filter(|line| matches!(line.body, Body::Assistant { .. })).find_map(|line| line.time)?;
        let seconds = self.session.world().now().duration_since(last).as_secs();
        let tokens = self.session.log().view().tally().count();
        let (kept, price) = match self.talk.ttl {
            Ttl::FiveMinutes => (300, self.talk.layers.price.map(|price| price.cache_write_5m)),
            Ttl::OneHour => (3_600, self.talk.layers.price.map(|price| price.cache_write_1h)),
        };
        let cost = price.map(|price| price * tokens as f64 / 1_000_000.0);
        Some(SessionExit { seconds, tokens, expired: seconds > kept, cost })
    }
}

fn trigger(occasion: &Occasion) -> &'static str {
    if matches!(occasion, Occasion::UserRequest { .. }) { "manual" } else { "auto" }
}

/// Category of an error, in Claude Code's words.
fn category(error: &provider::Error) -> &'static str {
    use provider::Error as E;
    match error {
        E::Auth { .. } => "authentication_failed",
        E::Billing { .. } => "billing_error",
        E::Busy { .. } => "rate_limit",
        E::Unreachable { .. } | E::Cut { .. } | E::Idle { .. } | E::Malformed { .. } => "server_error",
        E::Overflow { .. } | E::Refused { .. } => "invalid_request",
        _ => "unknown",
    }
}
