//! Whether what was said is sent, a compaction happens, a turn ends, a change of the settings counts.

use std::path::PathBuf;

use context::Occasion;
use session::{Beside, Error};
use settings::hooks::Moment;
use settings::permission::Who;
use tokio_util::sync::CancellationToken;
use transcript::line::{Body, Source};
use transcript::mark::Ttl;
use transcript::{Block, tool_names};

use crate::agent::End;
use crate::agents::Sent;
use crate::driver::Driver;
use crate::event::Event;
use crate::hooks::{Happening, Left, Start, Word};

/// So many times in a row a hook may send the model on.
const MOST_BLOCKS: u32 = 8;

impl Driver {
    /// What was said is about to be sent: what is to be told with it, or why it is held back.
    pub(crate) async fn gate_prompt(
        &mut self,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<Result<Vec<Word>, String>, Error> {
        if self.parts.hooks.list().is_empty() {
            return Ok(Ok(Vec::new()));
        }
        // An agent's orders are not the user's words: it works for those its parent was told.
        if let Some(sent) = &self.parts.sent {
            self.gate.prompt.clone_from(&sent.prompt);
            return Ok(Ok(Vec::new()));
        }
        self.gate.prompt = Some(self.session.world().fresh_id().to_string());
        if !self.parts.hooks.any(Moment::UserPromptSubmit) {
            return Ok(Ok(Vec::new()));
        }
        let answers = self.hooked(&Happening::user_prompt_submit(prompt), cancel).await?;
        Ok(match answers.stop().or_else(|| answers.block().map(|word| word.text)) {
            Some(why) => Err(self.bounded_word(&why)),
            None => Ok(answers.context()),
        })
    }

    /// The session starts: what hooks add to it.
    pub(crate) async fn gate_start(&mut self, start: &Start, cancel: &CancellationToken) -> Result<Vec<Word>, Error> {
        if !self.parts.hooks.any(Moment::SessionStart) {
            return Ok(Vec::new());
        }
        self.prepare_variables();
        let mut happening = Happening::session_start(start);
        if *start == Start::Startup && self.parts.approver.who() == Who::Person {
            // Claude Code tells it in a terminal, and not elsewhere.
            happening = happening.with([("model".to_owned(), self.parts.name.clone().into())].into_iter().collect());
        }
        if let (Start::Resume, Some(left)) = (start, self.left()) {
            happening = happening.left(&left);
        }
        let answers = self.hooked(&happening, cancel).await?;
        Ok(answers.context())
    }

    /// An agent begins that was sent out: what hooks add to what it is told.
    pub(crate) async fn gate_sent(&mut self, sent: &Sent, cancel: &CancellationToken) -> Result<Vec<Word>, Error> {
        if !self.parts.hooks.any(Moment::SubagentStart) {
            return Ok(Vec::new());
        }
        self.gate.prompt.clone_from(&sent.prompt);
        let answers = self.hooked(&Happening::subagent_start(&sent.id, &sent.kind), cancel).await?;
        Ok(answers.context())
    }

    /// How a session was left that goes on.
    fn left(&self) -> Option<Left> {
        let lines = self.session.log().lines().iter().rev();
        let last = lines.filter(|line| matches!(line.body, Body::Assistant { .. })).find_map(|line| line.time)?;
        let seconds = self.session.world().now().duration_since(last).as_secs();
        let tokens = self.session.log().view().tally().count();
        let (kept, price) = match self.parts.ttl {
            Ttl::FiveMinutes => (300, self.parts.layers.price.map(|price| price.cache_write_5m)),
            Ttl::OneHour => (3_600, self.parts.layers.price.map(|price| price.cache_write_1h)),
        };
        let cost = price.map(|price| price * tokens as f64 / 1_000_000.0);
        Some(Left { seconds, tokens, expired: seconds > kept, cost })
    }

    /// Whether a compaction may happen.
    pub(crate) async fn gate_compaction(
        &mut self,
        occasion: &Occasion,
        cancel: &CancellationToken,
    ) -> Result<Result<(), String>, Error> {
        if matches!(occasion, Occasion::Asked { .. }) && !self.parts.hooks.list().is_empty() {
            self.gate.prompt = Some(self.session.world().fresh_id().to_string()); // the user has asked for it
        }
        if !self.parts.hooks.any(Moment::PreCompact) {
            return Ok(Ok(()));
        }
        let instructions = match occasion {
            Occasion::Asked { instructions, .. } => instructions.as_deref(),
            _ => None,
        };
        let happening = Happening::pre_compact(trigger(occasion), Some(instructions.unwrap_or_default()));
        let answers = self.hooked(&happening, cancel).await?;
        Ok(match answers.stop().or_else(|| answers.block().map(|word| word.text)) {
            Some(why) => Err(self.bounded_word(&why)),
            None => Ok(()),
        })
    }

    /// A compaction has happened.
    pub(crate) async fn after_compaction(
        &mut self,
        occasion: &Occasion,
        summary: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let start = Start::Compact { model: self.parts.name.clone() };
        let has_plans = self.parts.tools.iter().any(|tool| tool.name() == tool_names::EXIT_PLAN_MODE);
        if let Some(plan) = crate::plan::restored(self.scope.temporary()).filter(|_| has_plans) {
            self.attach(vec![Block::text(plan)], &Beside::default())?;
        }
        let words = self.gate_start(&start, cancel).await?;
        self.attach_words(words)?;
        if self.parts.hooks.any(Moment::PostCompact) {
            self.hooked(&Happening::post_compact(trigger(occasion), summary), cancel).await?;
        }
        Ok(())
    }

    /// The model has answered: whether it is to go on. `blocks` counts how often in a row it was sent on.
    pub(crate) async fn gate_end(
        &mut self,
        answer: &str,
        blocks: &mut u32,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let moment = if self.parts.sent.is_none() { Moment::Stop } else { Moment::SubagentStop };
        if !self.parts.hooks.any(moment) {
            return Ok(false);
        }
        let jobs = self.scope.jobs().list();
        let happening = match &self.parts.sent {
            None => Happening::stop(*blocks > 0, answer, &jobs),
            Some(sent) => Happening::subagent_stop(*blocks > 0, answer, &jobs, (&sent.kind, self.session.path())),
        };
        let answers = self.hooked(&happening, cancel).await?;
        let failed = answers.0.iter().find_map(|(_, said)| said.failed.clone());
        // One that was stopped with its turn has not failed.
        if let Some(why) = failed.filter(|_| !cancel.is_cancelled()) {
            self.hooked(&Happening::stop_failure("stop_hook_failed", &why), cancel).await?;
        }
        let Some(word) = answers.block().filter(|_| answers.stop().is_none() && !cancel.is_cancelled()) else {
            return Ok(false);
        };
        *blocks += 1;
        if *blocks > MOST_BLOCKS {
            let text =
                format!("a {} hook has sent the model on {MOST_BLOCKS} times in a row: the turn ends", moment.name());
            self.tell(Event::Warning(text));
            return Ok(false);
        }
        let blocks = vec![Block::text(self.said_no(&word))];
        self.session.append(Body::User { blocks, source: Source::Injected })?;
        Ok(true)
    }

    /// A turn has ended by an error.
    pub(crate) async fn ended(&mut self, end: &End, cancel: &CancellationToken) -> Result<(), Error> {
        if !self.parts.hooks.any(Moment::StopFailure) {
            return Ok(());
        }
        let (error, details) = match end {
            End::Failed(error) => (category(error), error.to_string()),
            End::NoRoom(why) => ("invalid_request", why.clone()),
            End::Ended(crate::run::Ending::OutputLimit) => ("max_output_tokens", "the output limit".to_owned()),
            _ => return Ok(()),
        };
        self.hooked(&Happening::stop_failure(error, &details), cancel).await?;
        Ok(())
    }

    /// Whether changed settings count: why not, of each file for which a hook says so.
    pub(crate) async fn gate_settings(
        &mut self,
        files: &[(PathBuf, Option<&'static str>)],
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        let mut blocked = None;
        for (file, source) in files {
            let Some(source) = source else { continue };
            let answers = self.hooked(&Happening::config_change(source, file), cancel).await?;
            // Nobody keeps an organisation's settings from counting.
            if let Some(word) = answers.block().filter(|_| *source != "policy_settings") {
                blocked.get_or_insert(word.text);
            }
        }
        Ok(blocked)
    }
}

fn trigger(occasion: &Occasion) -> &'static str {
    if matches!(occasion, Occasion::Asked { .. }) { "manual" } else { "auto" }
}

/// What kind of error it was, in Claude Code's words.
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
