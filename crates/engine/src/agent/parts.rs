//! What an agent is put together from.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use context::Layers;
use learning::ledger::Ledger;
use mail::Post;
use provider::Model;
use provider::anthropic::envelope;
use session::home::{PROJECTS, git_branch};
use session::{Error, Session, World};
use settings::permission::{Approver, Nobody, Policy, readable};
use settings::{Admission, Ground, Settings, Signals, rules};
use tools::permission::Rule;
use tools::{Credentials, Environment, Scope, Tool, Typed};
use transcript::mark::Ttl;
use transcript::{Effort, Prologue, Request, Thinking, tool_names};

use super::{Listener, Reload};
use crate::agents::{Children, Latest, Sent, label};
use crate::hooks::Hooks;
use crate::journal::Journal;
use crate::prompt::{Ingredients, Surroundings, prologue};
use crate::run::Limits;
use crate::send_message::SendMessage;
use crate::teammates::Teammates;

/// The most a reply may be when nobody says.
pub const MAX_OUTPUT_TOKENS: u64 = 32_000;
/// The beta under which the provider leaves out what it is asked to.
const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";
/// The beta under which the provider compacts by itself.
const COMPACTION: &str = "compact-2026-01-12";
/// Thinking below this is refused by the API.
const LEAST_THINKING: u64 = 1_024;

/// What an agent is made of, besides its session. [`Parts::new`] has a sensible value for everything; change what you
/// need, and hand it to [`Agent::new`](super::Agent::new).
#[derive(Clone)]
pub struct Parts {
    /// The model it talks to.
    pub model: Arc<dyn Model>,
    /// That model's name, as the provider knows it.
    pub name: String,
    /// A smaller one, for what it can do as well.
    pub small: Option<Small>,
    /// The most a reply may be, in tokens.
    pub max_tokens: u64,
    /// The budget for thinking, in tokens; none or zero is no thinking.
    pub thinking: Option<u64>,
    /// How hard it is to try; as models do by themselves where nobody says. A model that cannot be asked is not.
    pub effort: Option<Effort>,
    /// What it can do.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Where it may work, besides the session's directory.
    pub directories: Vec<PathBuf>,
    /// What `~` stands for.
    pub user_home: Option<PathBuf>,
    /// The variables of commands.
    pub environment: Environment,
    /// The program that is a [guard](tools::guard) for commands; without one their process group is all that is ended.
    pub guard: Option<PathBuf>,
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
    /// Who it is, where another sent it out.
    pub sent: Option<Sent>,
    /// What it shares with others that were branched off from the same reply.
    pub branch: Option<Arc<Request>>,
    /// The request that was sent last, for those who say what an agent is doing.
    pub latest: Option<Latest>,
    /// How often those who work beside it say anew what they do; never without.
    pub labelled: Option<Duration>,
    /// Agents it may send out.
    pub agents: Option<Arc<Children>>,
    /// What it may do.
    pub policy: Policy,
    /// What else has a say, and what runs at certain moments.
    pub hooks: Hooks,
    /// How it makes itself known.
    pub signals: Signals,
    /// Reads a variable of this program, for headers of hooks that may hold one.
    pub variable: Option<fn(&str) -> Option<String>>,
    /// Who is asked about the rest.
    pub approver: Arc<dyn Approver>,
    /// How it reaches others, where it may.
    pub post: Option<Post>,
    /// How it starts teammates, where it may.
    pub teammates: Option<Teammates>,
    /// Whose messages from elsewhere are heard.
    pub messages: Admission,
    /// Where it may leave files of its own; beside its session where nobody says.
    pub scratchpad: Option<PathBuf>,
    /// How many tokens it is told it may use.
    pub budget: Option<u64>,
    /// What bounds a turn.
    pub limits: Limits,
    /// How long the provider keeps the cached prefix.
    pub ttl: Ttl,
    /// How it keeps within the window.
    pub layers: Layers,
    /// Who writes down what happens, where others tell it something too; else one of its own.
    pub journal: Option<Journal>,
    /// Who hears of what happens.
    pub listener: Listener,
    /// Where what is spent is written down.
    pub ledger: Arc<Ledger>,
    /// Who is asked before each request whether the settings have changed.
    pub reload: Option<Reload>,
}

/// A small model, for questions beside the conversation.
#[derive(Clone)]
pub struct Small {
    /// The client.
    pub model: Arc<dyn Model>,
    /// Its name, as the provider knows it.
    pub name: String,
}

impl Parts {
    /// The standard tools, nobody to ask, and nobody who listens.
    pub fn new(model: Arc<dyn Model>, name: impl Into<String>) -> Self {
        Self {
            model,
            name: name.into(),
            small: None,
            max_tokens: MAX_OUTPUT_TOKENS,
            thinking: None,
            effort: None,
            tools: tools::standard(),
            directories: Vec::new(),
            user_home: None,
            environment: Environment::default(),
            guard: None,
            sections: Vec::new(),
            surroundings: Surroundings::default(),
            manner: Vec::new(),
            system: None,
            appended: None,
            sent: None,
            branch: None,
            latest: None,
            labelled: label::every(None),
            agents: None,
            policy: Policy::default(),
            hooks: Hooks::default(),
            signals: Signals::default(),
            variable: None,
            approver: Arc::new(Nobody),
            post: None,
            teammates: None,
            messages: Admission::default(),
            scratchpad: None,
            budget: None,
            limits: Limits::default(),
            ttl: Ttl::default(),
            layers: Layers::default(),
            journal: None,
            listener: Arc::new(|_| {}),
            ledger: Arc::new(Ledger::in_memory(World::real())),
            reload: None,
        }
    }

    /// With what the settings say of rules, mode, directories and limits.
    #[must_use]
    pub fn with_settings(mut self, settings: &Settings) -> Self {
        self.policy.mode = settings.mode.unwrap_or_default().into();
        self.policy.rules = settings.rules.clone();
        self.policy.bypass = settings.bypass;
        self.hooks = Hooks::new(settings.hooks.clone());
        self.signals = settings.signals.clone();
        self.directories.clone_from(&settings.directories);
        self.environment = environment(settings);
        self.messages = settings.messages.unwrap_or_default();
        self.labelled = label::every(settings.label_seconds);
        self.max_tokens = settings.max_output_tokens.unwrap_or(self.max_tokens);
        self.ttl = settings.cache_ttl.unwrap_or_default();
        self.effort = settings.effort;
        self
    }

    /// Without the tools of which no call may ever run: what is not offered is not asked for, and costs no tokens.
    #[must_use]
    pub(super) fn without_forbidden_tools(mut self) -> Self {
        self.tools.retain(|tool| !self.policy.rules.forbid(tool.name()));
        // Without commands there is nothing in the background to look at.
        if !self.tools.iter().any(|tool| tool.name() == tool_names::BASH) {
            self.tools.retain(|tool| ![tool_names::TASK_OUTPUT, tool_names::TASK_STOP].contains(&tool.name()));
        }
        // Nor is there anybody to write to without agents, a team, or somebody who sent it out.
        let in_team = self.teammates.is_some() || self.post.as_ref().is_some_and(|post| post.team().is_some());
        if self.sent.is_none() && !in_team && !self.tools.iter().any(|tool| tool.name() == tool_names::AGENT) {
            self.tools.retain(|tool| tool.name() != SendMessage::NAME);
        }
        self
    }

    /// What stands before the messages; of a resumed session, as it was sent before.
    pub(crate) fn prologue(&self, session: &Session) -> Prologue {
        self.prologue_like(session, session.known_prologue())
    }

    /// What stands before the messages, all of it computed anew.
    pub(crate) fn fresh_prologue(&self, session: &Session) -> Prologue {
        self.prologue_like(session, None)
    }

    fn prologue_like(&self, session: &Session, known: Option<&Prologue>) -> Prologue {
        let ingredients = Ingredients {
            model: &self.name,
            max_tokens: self.max_tokens,
            thinking: self.thinking.and_then(|budget| thinking(budget, self.max_tokens)),
            effort: self.effort.and_then(|effort| effort.of(&self.name)),
            betas: self.betas(),
            context_management: (self.layers.api_edits || self.layers.api_compact).then(|| self.context_management()),
            tools: self.tools.iter().map(|tool| tool.definition()).collect(),
            directory: session.directory(),
            extra_directories: &self.directories,
            branch: &git_branch(session.directory()),
            sections: self.sections.clone(),
            scratchpad: self.scratchpad.as_deref().filter(|_| self.makes_files()),
            budget: self.budget,
            surroundings: &self.surroundings,
            manner: self.manner.clone(),
            custom: self.system.as_deref(),
            appended: self.appended.as_deref(),
            now: session.world().now(),
        };
        prologue(&ingredients, known)
    }

    fn makes_files(&self) -> bool {
        self.tools.iter().any(|tool| [tool_names::WRITE, tool_names::BASH].contains(&tool.name()))
    }

    fn betas(&self) -> Vec<String> {
        let edits = self.layers.api_edits.then_some(CONTEXT_MANAGEMENT);
        let compacts = self.layers.api_compact.then_some(COMPACTION);
        let diagnosis = self.layers.cache_diagnosis.then_some(envelope::DIAGNOSIS);
        edits.into_iter().chain(compacts).chain(diagnosis).map(str::to_owned).collect()
    }

    /// What the provider may leave out by itself.
    fn context_management(&self) -> serde_json::Value {
        let thinks = self.thinking.and_then(|budget| thinking(budget, self.max_tokens)).is_some();
        context::server::edits(&self.layers, thinks, self.tools.iter().map(|tool| tool.name().to_owned()))
    }

    /// Where the tools run. What a rule keeps from being read, searches do not find.
    pub(crate) fn scope(&self, session: &Session) -> Scope {
        let mut scope = Scope::new(session.directory(), session.folder())
            .with_directories(self.directories.clone())
            .with_environment(self.environment.clone())
            .with_readable(readable(&self.policy.rules));
        // What is kept of this and other sessions is not for commands to look at.
        let projects = session.path().ancestors().find(|place| place.ends_with(PROJECTS));
        if let Some(config) = projects.and_then(Path::parent) {
            scope = scope.with_private(vec![config.to_owned()]);
        }
        if let Some(home) = &self.user_home {
            scope = scope.with_home(home.clone());
        }
        if let Some(scratchpad) = &self.scratchpad {
            scope = scope.with_scratchpad(scratchpad.clone());
        }
        if let Some(guard) = &self.guard {
            scope = scope.with_guard(guard.clone());
        }
        scope
    }
}

/// Results that were put into files beside the session can be read again, and files of its own written.
pub(super) fn kept(session: &Session, scratchpad: Option<&Path>) -> Result<Vec<Rule>, Error> {
    let mut inside = vec![format!("Read(/{}/**)", session.folder().display())];
    if let Some(path) = scratchpad {
        inside.extend([tool_names::READ, tool_names::EDIT].map(|may| format!("{may}(/{}/**)", path.display())));
    }
    Ok(rules(&inside, &Ground { directory: session.directory(), home: None })?)
}

/// The variables of commands, as the settings say.
pub fn environment(settings: &Settings) -> Environment {
    let keys = settings.providers.values().filter_map(|provider| provider.key_env.clone());
    let credentials = match settings.command_credentials {
        Some(false) => Credentials::Withheld,
        Some(true) | None => Credentials::Given,
    };
    Environment { given: settings.environment.clone(), hidden: keys.collect(), credentials }
}

/// A budget for thinking that the API takes: at least 1,024 and below the output limit.
fn thinking(budget: u64, max_tokens: u64) -> Option<Thinking> {
    let most = max_tokens.checked_sub(1).filter(|&most| most >= LEAST_THINKING && budget > 0)?;
    Some(Thinking::Enabled { budget_tokens: budget.clamp(LEAST_THINKING, most) })
}
