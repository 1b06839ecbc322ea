//! The driver at the [gate](crate::gate): it asks, and writes down what is to be told.

use std::path::{Path, PathBuf};

use context::Occasion;
use memory::instructions::Loaded;
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::{Purpose, tool_names};

use super::Driver;
use crate::errand::Sent;
use crate::gate::Site;
use crate::hooks::{Answers, Happening, Start, Word};
use crate::run::End;

/// The gate, and the session it is asked about: no method could lend both at once.
macro_rules! gate {
    ($driver:expr) => {{
        let $crate::driver::Driver { session, scope, talk, work, lineage, out, gate, .. } = &mut *$driver;
        (gate, $crate::gate::Site { session, scope, talk, work, lineage, out })
    }};
    ($driver:expr, $scope:expr) => {{
        let $crate::driver::Driver { session, talk, work, lineage, out, gate, .. } = &mut *$driver;
        (gate, $crate::gate::Site { session, scope: $scope, talk, work, lineage, out })
    }};
}
pub(super) use gate;

impl Driver {
    /// The session that the gate is asked about.
    pub(crate) fn site(&self) -> Site<'_> {
        let Self { session, scope, talk, work, lineage, out, .. } = self;
        Site { session, scope, talk, work, lineage, out }
    }

    /// Writes down what models used that hooks asked.
    pub(super) fn write_used(&mut self) -> Result<(), Error> {
        self.gate.take_used().into_iter().try_for_each(|fact| self.record(fact))
    }

    /// Runs the hooks that a happening concerns.
    pub(crate) async fn hooked(&mut self, happening: &Happening, cancel: &CancellationToken) -> Result<Answers, Error> {
        let (gate, site) = gate!(self);
        let answers = gate.hooked(&site, happening, cancel).await;
        self.write_used()?;
        Ok(answers)
    }

    /// Puts what hooks said beside what was said.
    pub(crate) fn attach_words(&mut self, words: Vec<Word>) -> Result<(), Error> {
        self.write_used()?;
        for word in words {
            let text = self.site().bounded(&word.text);
            self.inject(Purpose::Hook, &Word { text, ..word }.plain())?;
        }
        Ok(())
    }

    /// What was said is about to be sent: what is to be told with it, or why it is held back.
    pub(crate) async fn gate_prompt(
        &mut self,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<Result<Vec<Word>, String>, Error> {
        let (gate, site) = gate!(self);
        let words = gate.prompt_submitted(&site, prompt, cancel).await;
        self.write_used()?;
        Ok(words)
    }

    /// The session starts, or a subagent's begins: what hooks add is told.
    pub(crate) async fn gate_start(
        &mut self,
        start: &Start,
        sent: Option<&Sent>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let (gate, site) = gate!(self);
        let words = match sent {
            Some(sent) => gate.sent_out(&site, sent, cancel).await,
            None => gate.starts(&site, start, cancel).await,
        };
        self.attach_words(words)
    }

    /// Whether a compaction may happen.
    pub(super) async fn gate_compaction(
        &mut self,
        occasion: &Occasion,
        cancel: &CancellationToken,
    ) -> Result<Result<(), String>, Error> {
        let (gate, site) = gate!(self);
        let may = gate.compaction(&site, occasion, cancel).await;
        self.write_used()?;
        Ok(may)
    }

    /// A compaction has happened.
    pub(super) async fn after_compaction(
        &mut self,
        occasion: &Occasion,
        summary: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let has_plans = self.work.tools.iter().any(|tool| tool.name() == tool_names::EXIT_PLAN_MODE);
        if let Some(plan) = crate::plan::restored(self.scope.temporary()).filter(|_| has_plans) {
            self.inject(Purpose::Plan, &plan)?;
        }
        self.gate_start(&Start::Compact { model: self.talk.name.clone() }, None, cancel).await?;
        let (gate, site) = gate!(self);
        gate.compacted(&site, occasion, summary, cancel).await;
        self.write_used()
    }

    /// The model has answered: whether it is to go on.
    pub(crate) async fn gate_end(
        &mut self,
        answer: &str,
        blocks: &mut u32,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let (gate, site) = gate!(self);
        let told = gate.answered(&site, answer, blocks, cancel).await;
        self.write_used()?;
        let Some(told) = told else { return Ok(false) };
        self.inject(Purpose::GoOn, &told)?;
        Ok(true)
    }

    /// A turn has ended.
    pub(crate) async fn ended(&mut self, end: &End, cancel: &CancellationToken) -> Result<(), Error> {
        let (gate, site) = gate!(self);
        gate.ended(&site, end, cancel).await;
        self.write_used()
    }

    /// Why changed settings do not count, where a hook says so.
    pub(crate) async fn gate_settings(
        &mut self,
        files: &[(PathBuf, Option<&'static str>)],
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        let (gate, site) = gate!(self);
        let why = gate.settings_changed(&site, files, cancel).await;
        self.write_used()?;
        Ok(why)
    }

    /// Instruction files were loaded.
    pub(crate) async fn loaded(
        &mut self,
        files: &[Loaded],
        trigger: Option<&Path>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let (gate, site) = gate!(self);
        gate.loaded(&site, files, trigger, cancel).await;
        self.write_used()
    }

    /// Before a request: what hooks have to say of files that have changed, and those that nobody waited for.
    pub(crate) async fn hear_hooks(&mut self, cancel: &CancellationToken) -> Result<(), Error> {
        let (gate, site) = gate!(self);
        let words = gate.look_at_files(&site, cancel).await;
        self.attach_words(words)?;
        let (gate, site) = gate!(self);
        let meanwhile = gate.consent.hooks.said_meanwhile().await;
        gate.take_in(&site, &meanwhile);
        self.attach_words(meanwhile.context())
    }

    /// Gives commands the variables that hooks have left.
    pub(super) fn take_variables(&mut self) {
        let (gate, site) = gate!(self);
        if let Some(environment) = gate.environment_with_variables(&site) {
            self.scope = self.scope.clone().with_environment(environment);
        }
    }
}
