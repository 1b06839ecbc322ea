//! Parts of which an agent is built, in groups: each part of the engine is given those it uses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use context::Layers;
use learning::fork::SmallModel;
use learning::ledger::Ledger;
use mail::task_file::TaskBoard;
use provider::Model;
use provider::anthropic::envelope;
use session::Session;
use session::home::git_branch;
use settings::Notifications;
use settings::permission::{Approver, Policy, readable};
use tools::{Environment, Scope, Tool};
use transcript::mark::Ttl;
use transcript::window::{Window, WindowHints};
use transcript::{Effort, Prologue, Request, Thinking, models, tool_names};

use crate::activity::LastRequest;
use crate::configuration::Configuration;
use crate::event::Listener;
use crate::hooks::Hooks;
use crate::journal::Journal;
use crate::prompt::{PrologueParts, SystemFacts, prologue};
use crate::run::TurnLimits;
use crate::servers::{LoadedTools, ServerTools};
use crate::skills::Skills;
use crate::subagent::SubagentIdentity;

/// Beta header for provider-side removal of content.
const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";
/// Beta header for provider-side compaction.
const COMPACTION: &str = "compact-2026-01-12";
/// Smallest thinking budget that the API accepts.
const LEAST_THINKING: u64 = 1_024;

/// The model, and how it is called.
#[derive(Clone)]
pub struct Talk {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The model's name at its provider.
    pub name: String,
    /// A smaller model, for simple work.
    pub small: Option<SmallModel>,
    /// Limit on a reply, in tokens.
    pub max_tokens: u64,
    /// Thinking budget, in tokens; `None` or 0 turns thinking off.
    pub thinking: Option<u64>,
    /// Effort of the model; its default if `None`. Sent only to models that support it.
    pub effort: Option<Effort>,
    /// Betas of the API that every request asks for, besides those that the layers need.
    pub betas: Vec<String>,
    /// Lifetime of the cached prefix at the provider.
    pub ttl: Ttl,
    /// Layers that keep it within the window.
    pub layers: Layers,
    /// Limits of a turn.
    pub limits: TurnLimits,
}

/// Parts of the system prompt.
#[derive(Clone)]
pub struct PromptParts {
    /// Sections of the system prompt that belong to the session, such as the rules of its memory.
    pub sections: Vec<String>,
    /// Facts about the system it runs on.
    pub system_facts: SystemFacts,
    /// Output style and language. They come after all other parts.
    pub style: Vec<String>,
    /// Replacement for our own system prompt.
    pub system: Option<String>,
    /// Text appended to the system prompt.
    pub system_suffix: Option<String>,
    /// Token budget that the prompt states.
    pub budget: Option<u64>,
}

/// The tools, and the environment they run in.
#[derive(Clone)]
pub struct Workplace {
    /// The tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Working directories besides the session's own.
    pub directories: Vec<PathBuf>,
    /// The directory for `~`.
    pub user_home: Option<PathBuf>,
    /// The task list, where tools for it are offered.
    pub tasks: Option<TaskBoard>,
    /// The skills, if there are any.
    pub skills: Option<Arc<Skills>>,
    /// The tools of MCP servers, if there are any.
    pub servers: Option<ServerTools>,
    /// Environment variables of commands.
    pub environment: Environment,
    /// The [guard](tools::guard) program for commands; without it only their process group is ended.
    pub guard: Option<PathBuf>,
    /// Scratchpad; next to the session if `None`.
    pub scratchpad: Option<PathBuf>,
    /// Reads an environment variable of this program, for hook headers that refer to one.
    pub variable: Option<fn(&str) -> Option<String>>,
}

/// Deciders on permission.
#[derive(Clone)]
pub struct Consent {
    /// The permission policy.
    pub policy: Policy,
    /// Hooks, which have a say and run at certain events.
    pub hooks: Hooks,
    /// Approver of everything else.
    pub approver: Arc<dyn Approver>,
}

/// Relation to the agent that started it, if one did.
#[derive(Clone)]
pub struct Lineage {
    /// Its identity, if it is a subagent.
    pub sent: Option<SubagentIdentity>,
    /// The request that it shares with other forks of the same reply.
    pub branch: Option<Arc<Request>>,
    /// The last request, for labels of its activity.
    pub latest: Option<LastRequest>,
}

/// Destinations for events and records.
#[derive(Clone)]
pub struct Outlets {
    /// Receiver of events.
    pub listener: Listener,
    /// Journal of events, if it is shared with others; else it gets one of its own.
    pub journal: Option<Journal>,
    /// The ledger that records spending.
    pub ledger: Arc<Ledger>,
    /// Notification settings.
    pub signals: Notifications,
}

/// Parts of a driver.
pub struct DriverParts {
    /// The model, and how it is called.
    pub talk: Talk,
    /// Parts of the system prompt.
    pub prompt: PromptParts,
    /// The tools, and the environment they run in.
    pub work: Workplace,
    /// Deciders on permission.
    pub consent: Consent,
    /// Relation to the agent that started it, if one did.
    pub lineage: Lineage,
    /// Destinations for events and records.
    pub out: Outlets,
}

impl Talk {
    /// Applies a configuration, except for the model, which may have been chosen by hand.
    pub(crate) fn follow(&mut self, configuration: &Configuration) {
        (self.max_tokens, self.effort, self.ttl) = (configuration.max_tokens, configuration.effort, configuration.ttl);
        self.layers = configuration.layers.clone();
        self.betas.clone_from(&configuration.betas);
        self.layers.cache_edits &= self.model.edits_cache();
        let model = self.model.clone();
        self.small = configuration.small.clone().map(|name| SmallModel { model, name });
    }

    /// Switches to another model. A short name stands for the newest of its kind, or for the configured small model; on a
    /// server without such models, the model stays.
    pub(crate) fn choose(&mut self, model: &str) {
        let kind = models::newest_of(model);
        if let ("haiku", Some(small)) = (model, &self.small) {
            (self.model, self.name) = (small.model.clone(), small.name.clone());
            return self.narrow_window();
        }
        if kind.is_none() || models::is_claude(&self.name) {
            kind.unwrap_or(model).clone_into(&mut self.name);
            self.narrow_window();
        }
    }

    /// Narrows the window to that of a smaller model.
    fn narrow_window(&mut self) {
        let own = Window::of(&WindowHints { model: &self.name, max_output: self.max_tokens, ..WindowHints::default() });
        if own.size < self.layers.window.size {
            self.layers.window = own;
        }
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

    /// Context edits that the provider may make.
    fn context_management(&self, tools: &[Arc<dyn Tool>]) -> serde_json::Value {
        context::provider_edits::edits(
            &self.layers,
            self.thinks().is_some(),
            tools.iter().map(|tool| tool.name().to_owned()),
        )
    }
}

impl Workplace {
    pub(crate) fn follow(&mut self, configuration: &Configuration) {
        self.directories.clone_from(&configuration.directories);
        self.environment = configuration.environment.clone();
    }

    /// The tool of a name, also one of a server that no request declares.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let declared = self.tools.iter().find(|tool| tool.name() == name).cloned();
        declared.or_else(|| self.servers.as_ref()?.find(name))
    }

    /// Limit on a tool's output in characters; `None` if it bounds itself.
    pub(crate) fn limit_of(&self, name: &str) -> Option<usize> {
        let of_server = self.servers.as_ref().filter(|_| self.tools.iter().all(|tool| tool.name() != name));
        match of_server.and_then(|servers| servers.find(name)) {
            Some(tool) => tools::limit_of(&[tool], name),
            None => tools::limit_of(&self.tools, name),
        }
    }

    /// The tools that can run these calls.
    pub(crate) fn for_calls<'c>(&self, names: impl Iterator<Item = &'c str>) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.tools.clone();
        for name in names {
            if tools.iter().all(|tool| tool.name() != name) {
                tools.extend(self.find(name));
            }
        }
        tools
    }

    fn makes_files(&self) -> bool {
        self.tools.iter().any(|tool| [tool_names::WRITE, tool_names::BASH].contains(&tool.name()))
    }

    /// The scope of the tools. Searches skip what a rule denies to read.
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
    /// Applies a configuration, except for the mode, which may have been chosen by hand.
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
    /// The prologue; equal to `known` if a resumed session has sent that before.
    pub(crate) fn prologue(
        &self,
        talk: &Talk,
        work: &Workplace,
        session: &Session,
        (known, loaded): (Option<&Prologue>, LoadedTools),
    ) -> Prologue {
        let ingredients = PrologueParts {
            model: &talk.name,
            max_tokens: talk.max_tokens,
            thinking: talk.thinks(),
            effort: talk.effort.and_then(|effort| effort.of(&talk.name)),
            betas: talk.betas(),
            context_management: (talk.layers.api_edits || talk.layers.api_compact)
                .then(|| talk.context_management(&work.tools)),
            tools: [work.tools.iter().map(|tool| tool.definition()).collect(), loaded.declared].concat(),
            loaded: loaded.deferred,
            directory: session.directory(),
            extra_directories: &work.directories,
            branch: &git_branch(session.directory()),
            sections: self.sections.clone(),
            scratchpad: work.scratchpad.as_deref().filter(|_| work.makes_files()),
            budget: self.budget,
            system_facts: &self.system_facts,
            style: self.style.clone(),
            custom: self.system.as_deref(),
            system_suffix: self.system_suffix.as_deref(),
            now: session.world().now(),
        };
        prologue(&ingredients, known)
    }
}

/// A thinking budget that the API accepts: at least 1,024 and below the output limit.
fn thinking(budget: u64, max_tokens: u64) -> Option<Thinking> {
    let most = max_tokens.checked_sub(1).filter(|&most| most >= LEAST_THINKING && budget > 0)?;
    Some(Thinking::Enabled { budget_tokens: budget.clamp(LEAST_THINKING, most) })
}
