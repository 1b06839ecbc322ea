//! The driver's calls to the [gate](crate::gate), and the attachments that follow from them.

use std::path::{Path, PathBuf};

use context::Occasion;
use memory::instructions::LoadedInstruction;
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::{Purpose, tool_names};

use super::Driver;
use crate::hooks::{HookInput, HookMessage, HookOutputs, SessionStart};
use crate::run::TurnEnd;
use crate::subagent::SubagentIdentity;

impl Driver {
    /// Records the usage of models that hooks asked.
    pub(crate) fn write_used(&mut self) -> Result<(), Error> {
        self.gate.take_used().into_iter().try_for_each(|fact| self.live.record(fact))
    }

    /// Runs the hooks that match an event.
    pub(crate) async fn hooked(
        &mut self,
        hook_input: &HookInput,
        cancel: &CancellationToken,
    ) -> Result<HookOutputs, Error> {
        let answers = self.gate.hooked(&self.live.site(), hook_input, cancel).await;
        self.write_used()?;
        Ok(answers)
    }

    /// Attaches hook messages.
    pub(crate) fn attach_words(&mut self, words: Vec<HookMessage>) -> Result<(), Error> {
        self.write_used()?;
        for word in words {
            let text = self.live.site().bounded(&word.text);
            self.live.inject(Purpose::Hook, &HookMessage { text, ..word }.plain())?;
        }
        Ok(())
    }

    /// Asks the gate about the user's prompt; returns the text to attach, or the reason it is blocked.
    pub(crate) async fn gate_prompt(
        &mut self,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<Result<Vec<HookMessage>, String>, Error> {
        let words = self.gate.prompt_submitted(&self.live.site(), prompt, cancel).await;
        self.write_used()?;
        Ok(words)
    }

    /// Runs the hooks for the start of a session or a subagent, and attaches what they add.
    pub(crate) async fn gate_start(
        &mut self,
        start: &SessionStart,
        sent: Option<&SubagentIdentity>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let words = match sent {
            Some(sent) => self.gate.subagent_started(&self.live.site(), sent, cancel).await,
            None => self.gate.starts(&self.live.site(), start, cancel).await,
        };
        self.attach_words(words)
    }

    /// Asks the gate whether a compaction may happen.
    pub(super) async fn gate_compaction(
        &mut self,
        occasion: &Occasion,
        cancel: &CancellationToken,
    ) -> Result<Result<(), String>, Error> {
        let may = self.gate.compaction(&self.live.site(), occasion, cancel).await;
        self.write_used()?;
        Ok(may)
    }

    /// Tells the gate of a finished compaction.
    pub(super) async fn after_compaction(
        &mut self,
        occasion: &Occasion,
        summary: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let has_plans = self.live.work.tools.iter().any(|tool| tool.name() == tool_names::EXIT_PLAN_MODE);
        if let Some(plan) = crate::plan::restored(self.live.scope.temporary()).filter(|_| has_plans) {
            self.live.inject(Purpose::Plan, &plan)?;
        }
        super::task_reminder::restore(&mut self.live)?;
        super::called_skills::restore(&mut self.live)?;
        self.gate_start(&SessionStart::Compact { model: self.live.talk.name.clone() }, None, cancel).await?;
        self.gate.compacted(&self.live.site(), occasion, summary, cancel).await;
        self.write_used()
    }

    /// Asks the gate after the model's answer whether the turn is to continue.
    pub(crate) async fn gate_end(
        &mut self,
        answer: &str,
        blocks: &mut u32,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let told = self.gate.answered(&self.live.site(), answer, blocks, cancel).await;
        self.write_used()?;
        let Some(told) = told else { return Ok(false) };
        self.live.inject(Purpose::GoOn, &told)?;
        Ok(true)
    }

    /// Tells the gate that a turn has ended.
    pub(crate) async fn ended(&mut self, end: &TurnEnd, cancel: &CancellationToken) -> Result<(), Error> {
        self.gate.ended(&self.live.site(), end, cancel).await;
        self.write_used()
    }

    /// Asks the gate about changed settings; returns the reason if a hook blocks them.
    pub(crate) async fn gate_settings(
        &mut self,
        files: &[(PathBuf, Option<&'static str>)],
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        let why = self.gate.settings_changed(&self.live.site(), files, cancel).await;
        self.write_used()?;
        Ok(why)
    }

    /// Tells the gate that instruction files were loaded.
    pub(crate) async fn loaded(
        &mut self,
        files: &[LoadedInstruction],
        trigger: Option<&Path>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        self.gate.loaded(&self.live.site(), files, trigger, cancel).await;
        self.write_used()
    }

    /// Collects hook messages before a request: about changed files, and from background hooks.
    pub(crate) async fn hear_hooks(&mut self, cancel: &CancellationToken) -> Result<(), Error> {
        let words = self.gate.look_at_files(&self.live.site(), cancel).await;
        self.attach_words(words)?;
        let meanwhile = self.gate.consent.hooks.take_background_outputs().await;
        self.gate.take_in(&self.live.site(), &meanwhile);
        self.attach_words(meanwhile.context())
    }

    /// Gives commands the environment variables that hooks have set.
    pub(super) fn take_variables(&mut self) {
        if let Some(environment) = self.gate.environment_with_variables(&self.live.site()) {
            self.live.scope = self.live.scope.clone().with_environment(environment);
        }
    }
}
