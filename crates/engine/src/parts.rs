//! What an agent is put together from, in groups: each part of the engine is given those it uses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use context::Layers;
use learning::fork::SmallModel;
use learning::ledger::Ledger;
use mail::task_file::Board;
use provider::Model;
use provider::anthropic::envelope;
use session::Session;
use session::home::git_branch;
use settings::Notifications;
use settings::permission::{Approver, Policy, readable};
use tools::{Environment, Scope, Tool};
use transcript::mark::Ttl;
use transcript::{Effort, Prologue, Request, Thinking, tool_names};

use crate::activity::LastRequest;
use crate::configuration::Configuration;
use crate::event::Listener;
use crate::hooks::Hooks;
use crate::journal::Journal;
use crate::prompt::{PrologueParts, Surroundings, prologue};
use crate::run::TurnLimits;
use crate::subagent::SubagentIdentity;

/// The beta under which the provider leaves out what it is asked to.
const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";
/// The beta under which the provider compacts by itself.
const COMPACTION: &str = "compact-2026-01-12";
/// Thinking below this is refused by the API.
const LEAST_THINKING: u64 = 1_024;

/// The model that is talked to, and how.
#[derive(Clone)]
pub struct Talk {
    /// The model it talks to.
    pub model: Arc<dyn Model>,
    /// That model's name, as the provider knows it.
    pub name: String,
    /// A smaller one, for what it can do as well.
    pub small: Option<SmallModel>,
    /// The most a reply may be, in tokens.
    pub max_tokens: u64,
    /// The budget for thinking, in tokens; none or zero is no thinking.
    pub thinking: Option<u64>,
    /// How hard it is to try; as models do by themselves where nobody says. A model that cannot be asked is not.
    pub effort: Option<Effort>,
    /// Betas of the API that every request asks for, beside those that the layers need.
    pub betas: Vec<String>,
    /// How long the provider keeps the cached prefix.
    pub ttl: Ttl,
    /// How it keeps within the window.
    pub layers: Layers,
    /// What bounds a turn.
    pub limits: TurnLimits,
}

/// What the system prompt is made of.
#[derive(Clone)]
pub struct PromptParts {
    /// Sections of the system prompt that belong to the session, such as the rules of its memory.
    pub sections: Vec<String>,
    /// Where it runs, as the system prompt tells it.
    pub surroundings: Surroundings,
    /// How answers are to read: their language, their style. They stand after all other parts.
    pub manner: Vec<String>,
    /// In place of our own system prompt.
    pub system: Option<String>,
    /// After the system prompt.
    pub appended: Option<String>,
    /// How many tokens it is told it may use.
    pub budget: Option<u64>,
}

/// The tools, and where they run.
#[derive(Clone)]
pub struct Workplace {
    /// What it can do.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Where it may work, besides the session's directory.
    pub directories: Vec<PathBuf>,
    /// What `~` stands for.
    pub user_home: Option<PathBuf>,
    /// The task list, where tools for it are offered.
    pub tasks: Option<Board>,
    /// The variables of commands.
    pub environment: Environment,
    /// The program that is a [guard](tools::guard) for commands; without one their process group is all that is ended.
    pub guard: Option<PathBuf>,
    /// Where it may leave files of its own; beside its session where nobody says.
    pub scratchpad: Option<PathBuf>,
    /// Reads a variable of this program, for headers of hooks that may hold one.
    pub variable: Option<fn(&str) -> Option<String>>,
}

/// Who decides whether something happens.
#[derive(Clone)]
pub struct Consent {
    /// What it may do.
    pub policy: Policy,
    /// What else has a say, and what runs at certain moments.
    pub hooks: Hooks,
    /// Who is asked about the rest.
    pub approver: Arc<dyn Approver>,
}

/// Whose child it is, where another sent it out.
#[derive(Clone)]
pub struct Lineage {
    /// Who it is, where another sent it out.
    pub sent: Option<SubagentIdentity>,
    /// What it shares with others that were branched off from the same reply.
    pub branch: Option<Arc<Request>>,
    /// The request that was sent last, for those who say what an agent is doing.
    pub latest: Option<LastRequest>,
}

/// Where what happens is told and written down.
#[derive(Clone)]
pub struct Outlets {
    /// Who hears of what happens.
    pub listener: Listener,
    /// Who writes down what happens, where others tell it something too; else one of its own.
    pub journal: Option<Journal>,
    /// Where what is spent is written down.
    pub ledger: Arc<Ledger>,
    /// How it makes itself known.
    pub signals: Notifications,
}

/// What a driver is put together from.
pub struct DriverParts {
    /// The model that is talked to, and how.
    pub talk: Talk,
    /// What the system prompt is made of.
    pub prompt: PromptParts,
    /// The tools, and where they run.
    pub work: Workplace,
    /// Who decides whether something happens.
    pub consent: Consent,
    /// Whose child it is, where another sent it out.
    pub lineage: Lineage,
    /// Where what happens is told and written down.
    pub out: Outlets,
}

impl Talk {
    /// All but the model itself, which may have been chosen by hand.
    pub(crate) fn follow(&mut self, configuration: &Configuration) {
        (self.max_tokens, self.effort, self.ttl) = (configuration.max_tokens, configuration.effort, configuration.ttl);
        self.layers = configuration.layers.clone();
        self.betas.clone_from(&configuration.betas);
        self.layers.cache_edits &= self.model.edits_cache();
        let model = self.model.clone();
        self.small = configuration.small.clone().map(|name| SmallModel { model, name });
    }

    /// The small model, or the only one there is.
    pub(crate) fn smallest(&self) -> SmallModel {
        self.small.clone().unwrap_or_else(|| SmallModel { model: self.model.clone(), name: self.name.clone() })
    }

    fn betas(&self) -> Vec<String> {
        let edits = self.layers.api_edits.then_some(CONTEXT_MANAGEMENT);
        let compacts = self.layers.api_compact.then_some(COMPACTION);
        let diagnosis = self.layers.cache_diagnosis.then_some(envelope::DIAGNOSIS);
        let of_layers = edits.into_iter().chain(compacts).chain(diagnosis).map(str::to_owned);
        self.betas.iter().cloned().chain(of_layers).collect()
    }

    fn thinks(&self) -> Option<Thinking> {
        self.thinking.and_then(|budget| thinking(budget, self.max_tokens))
    }

    /// What the provider may leave out by itself.
    fn context_management(&self, tools: &[Arc<dyn Tool>]) -> serde_json::Value {
        context::server::edits(&self.layers, self.thinks().is_some(), tools.iter().map(|tool| tool.name().to_owned()))
    }
}

impl Workplace {
    pub(crate) fn follow(&mut self, configuration: &Configuration) {
        self.directories.clone_from(&configuration.directories);
        self.environment = configuration.environment.clone();
    }

    fn makes_files(&self) -> bool {
        self.tools.iter().any(|tool| [tool_names::WRITE, tool_names::BASH].contains(&tool.name()))
    }

    /// Where the tools run. What a rule keeps from being read, searches do not find.
    pub(crate) fn scope(&self, session: &Session, policy: &Policy) -> Scope {
        Scope::new(session.directory(), session.folder())
            .with_directories(self.directories.clone())
            .with_environment(self.environment.clone())
            .with_readable(readable(&policy.rules))
            // What is kept of this and other sessions is not for commands to look at.
            .with_private(session.config_home().map(Path::to_owned).into_iter().collect())
            .with_home(self.user_home.clone())
            .with_scratchpad(self.scratchpad.clone())
            .with_guard(self.guard.clone())
    }
}

impl Consent {
    /// All but the mode, which may have been chosen by hand.
    pub(crate) fn follow(&mut self, configuration: &Configuration) {
        (self.policy.rules, self.policy.bypass) = (configuration.rules.clone(), configuration.bypass);
        self.hooks = Hooks::new(configuration.hooks.clone()).instead_of(&self.hooks);
    }
}

impl Outlets {
    pub(crate) fn follow(&mut self, configuration: &Configuration) {
        self.signals = configuration.signals.clone();
        self.ledger.set_budget(configuration.budget);
    }
}

impl PromptParts {
    /// What stands before the messages; like `known`, where a session that goes on has sent that before.
    pub(crate) fn prologue(
        &self,
        talk: &Talk,
        work: &Workplace,
        session: &Session,
        known: Option<&Prologue>,
    ) -> Prologue {
        let ingredients = PrologueParts {
            model: &talk.name,
            max_tokens: talk.max_tokens,
            thinking: talk.thinks(),
            effort: talk.effort.and_then(|effort| effort.of(&talk.name)),
            betas: talk.betas(),
            context_management: (talk.layers.api_edits || talk.layers.api_compact)
                .then(|| talk.context_management(&work.tools)),
            tools: work.tools.iter().map(|tool| tool.definition()).collect(),
            directory: session.directory(),
            extra_directories: &work.directories,
            branch: &git_branch(session.directory()),
            sections: self.sections.clone(),
            scratchpad: work.scratchpad.as_deref().filter(|_| work.makes_files()),
            budget: self.budget,
            surroundings: &self.surroundings,
            manner: self.manner.clone(),
            custom: self.system.as_deref(),
            appended: self.appended.as_deref(),
            now: session.world().now(),
        };
        prologue(&ingredients, known)
    }
}

/// A budget for thinking that the API takes: at least 1,024 and below the output limit.
fn thinking(budget: u64, max_tokens: u64) -> Option<Thinking> {
    let most = max_tokens.checked_sub(1).filter(|&most| most >= LEAST_THINKING && budget > 0)?;
    Some(Thinking::Enabled { budget_tokens: budget.clamp(LEAST_THINKING, most) })
}
