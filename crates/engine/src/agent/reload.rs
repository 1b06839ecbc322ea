//! Settings that change while a session runs. They apply from the next request on; the prompt stays until it is next
//! rebuilt. A choice made by hand stays in force unless the setting is managed.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use learning::knowledge::Knowledge;
use provider::Model;
use session::Error;
use settings::SandboxSettings;
use settings::permission::{ChosenBy, readable};
use tokio_util::sync::CancellationToken;
use transcript::Prologue;
use transcript::line::Body;

use super::{Agent, parts};
use crate::configuration::{Configuration, DreamSettings};
use crate::driver::Driver;
use crate::event::Event;
use crate::live::LiveSession;

/// Called before each request; returns the new settings if their files have changed. It must be cheap if they have not.
pub type Reload = Arc<dyn Fn() -> Option<BoxFuture<'static, Option<ChangedSettings>>> + Send + Sync>;

/// Changed settings.
pub struct ChangedSettings {
    /// The changed files, each with its source as hooks are told it.
    pub files: Vec<(PathBuf, Option<&'static str>)>,
    /// The new configuration.
    pub configuration: Configuration,
    /// The new model, if it differs.
    pub model: Option<Arc<dyn Model>>,
    /// Further messages for the user.
    pub messages: Vec<String>,
}

impl Agent {
    /// Applies changed settings. Each turn does so before its requests.
    pub async fn reload(&mut self, cancel: &CancellationToken) -> Result<(), Error> {
        let Some(changed) = self.reload.as_ref().and_then(|reload| reload()) else { return Ok(()) };
        let Some(ChangedSettings { files, configuration, model, messages }) = changed.await else { return Ok(()) };
        // The hooks that were there before the change have a say in it.
        if let Some(why) = self.driver.gate_settings(&files, cancel).await? {
            let text = format!("the settings have changed, but a hook keeps the change from taking effect: {why}");
            self.driver.live.tell(Event::Warning(text));
            return Ok(());
        }
        let before = self.in_force();
        self.follow(configuration, model).await?;
        // Rules that were answered with "always" are in force already, so nobody hears of them again.
        if self.in_force() != before {
            let files: Vec<String> = files.iter().map(|(file, _)| file.display().to_string()).collect();
            let text = format!("the settings have changed and are now in effect: {}", files.join(", "));
            self.driver.live.tell(Event::Warning(text));
            let (model, window) = (self.driver.live.talk.name.clone(), self.driver.live.talk.layers.window);
            self.driver.live.tell(Event::ModelChanged { model, window });
        }
        messages.into_iter().for_each(|text| self.driver.live.tell(Event::Warning(text)));
        Ok(())
    }

    /// Applies a new configuration, except for choices made by hand.
    async fn follow(&mut self, new: Configuration, model: Option<Arc<dyn Model>>) -> Result<(), Error> {
        if new.mode != self.configuration.mode {
            match new.managed.mode {
                true => self.mode().set(new.mode),
                false => self.mode().follow(new.mode),
            }
        }
        let Driver { live, gate, .. } = &mut self.driver;
        let LiveSession { session, talk, work, out, scope, .. } = live;
        if let Some(model) = model {
            (talk.model, talk.name) = (model, new.model.clone());
        }
        talk.follow(&new);
        work.follow(&new);
        gate.consent.follow(&new);
        gate.consent.hooks = gate.consent.hooks.clone().and(self.skills.hooks());
        let rules = &mut gate.consent.policy.rules;
        rules.allow.extend(parts::kept(session, work.scratchpad.as_deref())?);
        rules.allow.extend(gate.answered.iter().cloned());
        *scope = scope
            .clone()
            .with_directories(new.directories.clone())
            .with_readable(readable(rules))
            .with_environment(new.environment.clone());
        if let (Some(dreaming), DreamSettings { rhythm, model, window, purpose, excluded }) =
            (&mut self.dreaming, &new.dreams)
        {
            dreaming.set_rhythm(*rhythm);
            let excluded = excluded.clone().unwrap_or_else(|| dreaming.excluded().clone());
            dreaming.follow_model(model.clone(), *window);
            dreaming.follow(rules.clone(), *purpose, excluded);
        }
        let is_signalled_otherwise = out.signals != new.signals;
        out.follow(&new);
        if let (Some(knowledge), Some(said)) = (&mut self.known.knowledge, &new.knowledge_settings) {
            knowledge.follow(said.clone(), &talk.model, &out.ledger);
            self.driver.keep_memories(
                knowledge.memory_directory(),
                knowledge.indexing(),
                crate::driver::MemoryOwner::Users,
            );
        }
        self.contacts.follow(&new);
        if self.contacts.agents.is_some() && new.agents.is_some() {
            self.driver.listing.renew();
        }
        if is_signalled_otherwise {
            self.journal.move_to(new.signals.event_log.clone());
            self.driver.live.tell(Event::SignalsChanged(new.signals.clone()));
        }
        self.set_learning(new.learning.clone());
        self.confine(&new.sandbox, new.managed.sandbox).await?;
        self.configuration = new;
        self.declare()
    }

    /// Rebuilds the sandbox, or drops it.
    async fn confine(&mut self, said: &SandboxSettings, is_managed: bool) -> Result<(), Error> {
        let scope = &self.driver.live.scope;
        let by_hand = self.sandbox == ChosenBy::Hand && !is_managed;
        let is_on = if by_hand { scope.sandbox().is_some() } else { said.enabled == Some(true) };
        let session = &self.driver.live.session;
        let config = session.config_home().unwrap_or_else(|| session.path());
        let made = match is_on {
            true => Some(Arc::new(settings::sandbox::sandbox(said, scope, config).await?)),
            false => None,
        };
        scope.set_sandbox(made);
        Ok(())
    }

    /// Records a changed prologue in the log, if the next request needs one. Its text stays as it was sent, unless
    /// another model reads it, which has none of it cached.
    pub(super) fn declare(&mut self) -> Result<(), Error> {
        let Some(known) = self.driver.live.session.log().view().prologue().cloned() else { return Ok(()) };
        let now = self.driver.live.prologue();
        let now = match now.model == known.model {
            true => Prologue { system: known.system.clone(), tools: known.tools.clone(), ..now },
            false => now,
        };
        if *known != now {
            self.driver.live.session.append(Body::Prologue(now))?;
        }
        Ok(())
    }

    /// The configuration in force: the settings, overridden by choices made by hand.
    pub fn in_force(&self) -> Configuration {
        let LiveSession { talk, prompt, work, out, scope, .. } = &self.driver.live;
        let (said, gate) = (&self.configuration, &self.driver.gate);
        let policy = &gate.consent.policy;
        let agents = self.contacts.agents.as_ref().map(|subagents| (*subagents.registry()).clone());
        Configuration {
            model: talk.name.clone(),
            small: talk.small.as_ref().map(|small| small.name.clone()),
            max_tokens: talk.max_tokens,
            effort: talk.effort,
            betas: talk.betas.clone(),
            ttl: talk.ttl,
            layers: talk.layers.clone(),
            rules: policy.rules.clone(),
            mode: policy.mode.get(),
            bypass: policy.bypass,
            hooks: gate.consent.hooks.settings().clone(),
            sandbox: SandboxSettings { enabled: Some(scope.sandbox().is_some()), ..said.sandbox.clone() },
            managed: said.managed,
            directories: work.directories.clone(),
            environment: work.environment.clone(),
            messages: self.contacts.messages,
            label_interval: self.contacts.label_interval,
            agents,
            signals: out.signals.clone(),
            budget: out.ledger.budget(),
            knowledge_settings: self.known.knowledge.as_ref().map(Knowledge::in_force),
            learning: self.learning().cloned(),
            dreams: self.dreaming.as_ref().map_or_else(
                || said.dreams.clone(),
                |dreaming| DreamSettings {
                    rhythm: dreaming.rhythm(),
                    model: dreaming.model().to_owned(),
                    window: dreaming.window(),
                    purpose: dreaming.purpose(),
                    excluded: Some(dreaming.excluded().clone()),
                },
            ),
            style: prompt.style.clone(),
        }
    }
}
