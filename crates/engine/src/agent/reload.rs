//! Settings that change while a session runs. What they say counts from the next request on; the prompt is not changed
//! before it is made anew. What was chosen by hand stays, unless it is managed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use context::Layers;
use futures_util::future::BoxFuture;
use learning::knowledge::Recollection;
use provider::Model;
use session::Error;
use settings::agents::Registry;
use settings::permission::ChosenBy;
use settings::{Admission, Budget, Bypass, Learning, Rhythm, Signals};
use tokio_util::sync::CancellationToken;
use tools::Environment;
use tools::permission::{Mode, Rule, Rules};
use transcript::line::Body;
use transcript::mark::Ttl;
use transcript::{Effort, Prologue};

use super::{Agent, parts};
use crate::driver::Driver;
use crate::event::Event;
use crate::hooks::Hooks;
use learning::fork::Small;

/// Asked before each request: what the settings say, if their files have changed. It is to be cheap where they have not.
pub type Reload = Arc<dyn Fn() -> Option<BoxFuture<'static, Option<Reloaded>>> + Send + Sync>;

/// What changed settings say.
pub struct Reloaded {
    /// The files that have changed, each with whose it is, as hooks are told.
    pub files: Vec<(PathBuf, Option<&'static str>)>,
    /// All rules, those of flags too.
    pub rules: Rules,
    /// The mode, where it is another than before.
    pub mode: Option<Said<Mode>>,
    /// Whether the mode that asks nothing counts.
    pub bypass: Bypass,
    /// More directories to work in.
    pub directories: Vec<PathBuf>,
    /// The variables of commands.
    pub environment: Environment,
    /// Whose messages from elsewhere are heard.
    pub messages: Admission,
    /// How often those who work beside it say what they do.
    pub labelled: Option<Duration>,
    /// The agents that can be sent out.
    pub agents: Option<Registry>,
    /// The hooks.
    pub hooks: Hooks,
    /// How the session makes itself known.
    pub signals: Signals,
    /// How to keep within the window.
    pub layers: Layers,
    /// What work in the background may spend.
    pub budget: Budget,
    /// When dreams come by themselves.
    pub dreams: Rhythm,
    /// The model that dreams.
    pub dream_model: String,
    /// What nothing is learnt from; none where that cannot be understood, and then it stays as it was.
    pub excluded: Option<Rules>,
    /// What is said of the sandbox.
    pub sandbox: Said<settings::SandboxSettings>,
    /// Where sessions and keys of ours lie: the sandbox does not show it.
    pub config: PathBuf,
    /// The most a reply may be, in tokens.
    pub max_tokens: u64,
    /// How hard the model tries.
    pub effort: Option<Effort>,
    /// How long the provider keeps the cached prefix.
    pub ttl: Ttl,
    /// The model to talk to, where it is another than before.
    pub model: Option<(Arc<dyn Model>, String)>,
    /// A smaller one.
    pub small: Option<Small>,
    /// What is said of memory and instruction files; none where there are none.
    pub knowledge: Option<Recollection>,
    /// How it learns; none where it does not.
    pub learning: Option<Learning>,
    /// What else is to be said.
    pub told: Vec<String>,
}

/// What the settings say, and whether nobody may choose otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said<T> {
    /// What.
    pub what: T,
    /// Whether the organisation says so.
    pub managed: bool,
}

impl Agent {
    /// Takes in what the settings say now.
    pub(super) async fn reload(&mut self, cancel: &CancellationToken) -> Result<(), Error> {
        let Some(new) = self.reload.as_ref().and_then(|reload| reload()) else { return Ok(()) };
        let Some(mut new) = new.await else { return Ok(()) };
        // The hooks that were there before the change have a say in it.
        if let Some(why) = self.driver.gate_settings(&new.files, cancel).await? {
            let text = format!("the settings have changed; a hook keeps that from counting: {why}");
            self.driver.tell(Event::Warning(text));
            return Ok(());
        }
        new.rules.allow.extend(parts::kept(&self.driver.session, self.driver.work.scratchpad.as_deref())?);
        new.rules.allow.extend(self.driver.gate.answered.iter().cloned());
        // Rules that were answered with "always" are in force already, so nobody hears of them again.
        let before = self.in_force();
        let told = std::mem::take(&mut new.told);
        let files: Vec<String> = new.files.iter().map(|(file, _)| file.display().to_string()).collect();
        if let Some(Said { what, managed }) = new.mode {
            match managed {
                true => self.mode().set(what),
                false => self.mode().follow(what),
            }
        }
        let scope = self.driver.scope.clone().with_directories(new.directories.clone());
        let scope =
            scope.with_readable(settings::permission::readable(&new.rules)).with_environment(new.environment.clone());
        self.driver.scope = scope;
        (self.contacts.messages, self.contacts.labelled) = (new.messages, new.labelled);
        let Driver { talk, work, out, gate, listed, .. } = &mut self.driver;
        (work.directories, work.environment) = (new.directories, new.environment);
        (gate.consent.policy.rules, gate.consent.policy.bypass) = (new.rules, new.bypass);
        gate.consent.hooks = new.hooks.instead_of(&gate.consent.hooks);
        (talk.max_tokens, talk.ttl, talk.small) = (new.max_tokens, new.ttl, new.small);
        (talk.effort, talk.layers) = (new.effort, new.layers);
        if let Some(model) = new.model {
            (talk.model, talk.name) = model;
        }
        talk.layers.cache_edits &= talk.model.edits_cache();
        out.ledger.set_budget(new.budget);
        if let (Some(children), Some(registry)) = (&self.contacts.agents, new.agents) {
            children.replace(registry);
            *listed = None; // another list is told of, after all that was said
        }
        if out.signals != new.signals {
            out.signals = new.signals.clone();
            self.journal.move_to(new.signals.event_log.clone());
            self.driver.tell(Event::SignalsChanged(new.signals));
        }
        if let Some(dreaming) = &mut self.dreaming {
            dreaming.set_rhythm(new.dreams);
            let excluded = new.excluded.unwrap_or_else(|| dreaming.excluded().clone());
            dreaming.follow(new.dream_model, self.driver.gate.consent.policy.rules.clone(), excluded);
        }
        let window = self.driver.talk.layers.window;
        self.set_learning(new.learning);
        self.confine(new.sandbox, &new.config).await?;
        if let (Some(knowledge), Some(said)) = (&mut self.knowledge, new.knowledge) {
            knowledge.follow(said);
            self.driver.memories = knowledge.memory_directory().map(std::path::Path::to_owned);
        }
        self.declare()?;
        if self.in_force() != before {
            let text = format!("the settings have changed and count from now on: {}", files.join(", "));
            self.driver.tell(Event::Warning(text));
            self.driver.tell(Event::ModelChanged { model: self.driver.talk.name.clone(), window });
        }
        for text in told {
            self.driver.tell(Event::Warning(text));
        }
        Ok(())
    }

    /// Makes the sandbox anew, or lets it go.
    async fn confine(&mut self, said: Said<settings::SandboxSettings>, config: &std::path::Path) -> Result<(), Error> {
        let scope = &self.driver.scope;
        let by_hand = self.sandbox == ChosenBy::Hand && !said.managed;
        let is_on = if by_hand { scope.sandbox().is_some() } else { said.what.enabled == Some(true) };
        let made = match is_on {
            true => Some(Arc::new(settings::sandbox::sandbox(&said.what, scope, config).await?)),
            false => None,
        };
        scope.set_sandbox(made);
        Ok(())
    }

    /// Writes down what stands before the messages, where a request is now to say something else. Its text stays as it
    /// was sent, unless another model reads it, which has nothing of it in its cache.
    fn declare(&mut self) -> Result<(), Error> {
        let Some(known) = self.driver.session.log().view().prologue().cloned() else { return Ok(()) };
        let now = self.driver.prologue();
        let now = match now.model == known.model {
            true => Prologue { system: known.system.clone(), tools: known.tools.clone(), ..now },
            false => now,
        };
        if *known != now {
            self.driver.session.append(Body::Prologue(now))?;
        }
        Ok(())
    }

    /// What holds, as a text that is another when something else holds.
    fn in_force(&self) -> String {
        let Driver { talk, work, out, gate, scope, .. } = &self.driver;
        let policy = &gate.consent.policy;
        let policy = (texts(&policy.rules), policy.bypass, self.mode().get(), &work.directories, &work.environment);
        let small = talk.small.as_ref().map(|small| &small.name);
        let requests =
            (&talk.name, small, talk.max_tokens, talk.effort, talk.ttl, &talk.layers, self.contacts.labelled);
        let budget = out.ledger.budget();
        let sandbox = scope.sandbox().map(|sandbox| format!("{sandbox:?}"));
        let knowledge = self.knowledge.as_ref().map(learning::knowledge::Knowledge::in_force);
        let learning = self.learning();
        let agents = self.contacts.agents.as_ref().map(|agents| agents.registry());
        let hooks = (&gate.consent.hooks, &out.signals, self.contacts.messages, agents);
        let dreams = self.dreaming.as_ref().map(|dreaming| (dreaming.rhythm(), dreaming.model().to_owned()));
        format!("{policy:?} {requests:?} {budget:?} {sandbox:?} {knowledge:?} {learning:?} {hooks:?} {dreams:?}")
    }
}

fn texts(rules: &Rules) -> Vec<Vec<String>> {
    let sorted = |rules: &[Rule]| {
        let mut texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
        texts.sort();
        texts.dedup();
        texts
    };
    [&rules.allow, &rules.ask, &rules.deny].iter().map(|rules| sorted(rules)).collect()
}
