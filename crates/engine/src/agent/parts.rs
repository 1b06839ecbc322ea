//! Parts of which an agent is built.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use context::Layers;
use jiff::SignedDuration;
use learning::ledger::Ledger;
use mail::{Messenger, Neighbours};
use provider::Model;
use session::history::History;
use session::{Error, Session, World};
use settings::permission::{NoApprover, Policy};
use settings::{Admission, BasePaths, Notifications, Settings, rules};
use tools::permission::Rule;
use tools::{Environment, Tool, TypedTool};
use transcript::mark::Ttl;
use transcript::tool_names;

use super::Reload;
use crate::activity;
use crate::agents::{StartAgent, Subagents, TeamAgentTool, knowing};
use crate::configuration::{Configuration, MAX_OUTPUT_TOKENS};
use crate::hooks::Hooks;
use crate::parts::{Consent, Lineage, Outlets, PromptParts, Talk, Workplace};
use crate::prompt::SystemFacts;
use crate::run::TurnLimits;
use crate::send_message::SendMessage;
use crate::teammates::Teammates;

/// Parts of an agent, besides its session. [`Parts::new`] has a sensible value for everything; change what you need,
/// and hand it to [`Agent::new`](super::Agent::new).
#[derive(Clone)]
pub struct Parts {
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
    /// Other agents it can reach, and that can reach it.
    pub contacts: Contacts,
    /// Destinations for events and records.
    pub out: Outlets,
    /// Configuration from settings, flags and location, as far as the groups above hold it.
    pub(super) configuration: Configuration,
    /// Check for changed settings, made before each request.
    pub reload: Option<Reload>,
}

/// Reason why a session has no subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSubagents {
    /// It was built without them.
    NotGiven,
    /// It started without them. Adding them would break its cached prefix, which lives this long after a reply.
    BeganWithout(SignedDuration),
    /// A rule denies the tool.
    Forbidden,
}

/// Other agents it can reach, and that can reach it.
#[derive(Clone)]
pub struct Contacts {
    /// Definitions and subagents.
    pub agents: Option<Arc<Subagents>>,
    /// Outgoing messages, if it may send any.
    pub post: Option<Messenger>,
    /// Starter of teammates, if it may have any.
    pub teammates: Option<Teammates>,
    /// Senders outside the team whose messages are accepted.
    pub messages: Admission,
    /// Interval between labels of background agents and teammates; `None` for no labels.
    pub label_interval: Option<Duration>,
}

impl Contacts {
    pub(super) fn follow(&mut self, configuration: &Configuration) {
        (self.messages, self.label_interval) = (configuration.messages, configuration.label_interval);
        if let (Some(subagents), Some(registry)) = (&self.agents, &configuration.agents) {
            subagents.replace(registry.clone());
        }
    }
}

impl Parts {
    /// The standard tools, no approver and no listener.
    pub fn new(model: Arc<dyn Model>, name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            configuration: Configuration::of(&Settings::default(), &name),
            talk: Talk {
                model,
                name,
                small: None,
                max_tokens: MAX_OUTPUT_TOKENS,
                thinking: None,
                effort: None,
                betas: Vec::new(),
                ttl: Ttl::default(),
                layers: Layers::default(),
                limits: TurnLimits::default(),
            },
            prompt: PromptParts {
                sections: Vec::new(),
                system_facts: SystemFacts::default(),
                style: Vec::new(),
                system: None,
                system_suffix: None,
                budget: None,
            },
            work: Workplace {
                tools: tools::standard(),
                directories: Vec::new(),
                user_home: None,
                tasks: None,
                skills: None,
                servers: None,
                environment: Environment::default(),
                guard: None,
                scratchpad: None,
                variable: None,
            },
            consent: Consent { policy: Policy::default(), hooks: Hooks::default(), approver: Arc::new(NoApprover) },
            lineage: Lineage { sent: None, branch: None, latest: None },
            contacts: Contacts {
                agents: None,
                post: None,
                teammates: None,
                messages: Admission::default(),
                label_interval: activity::every(None),
            },
            out: Outlets {
                listener: Arc::new(|_| {}),
                journal: None,
                ledger: Arc::new(Ledger::in_memory(World::real())),
                signals: Notifications::default(),
            },
            reload: None,
        }
    }

    /// Applies the settings.
    #[must_use]
    pub fn with_settings(self, settings: &Settings) -> Self {
        let configuration = Configuration::of(settings, &self.talk.name);
        self.configured(configuration)
    }

    /// Applies a configuration.
    #[must_use]
    pub fn configured(mut self, configuration: Configuration) -> Self {
        self.talk.follow(&configuration);
        self.work.follow(&configuration);
        self.consent.follow(&configuration);
        self.consent.policy.mode = configuration.mode.into();
        self.contacts.follow(&configuration);
        self.out.follow(&configuration);
        self.prompt.style.clone_from(&configuration.style);
        self.configuration = configuration;
        self
    }

    /// Adds the tools that need the session, and removes those it may not have. Also returns the reason for having no
    /// subagents, if it has none.
    pub(super) fn fitted(mut self, session: &Session) -> (Self, Option<NoSubagents>) {
        if let (Some(post), Some(subagents)) = (&self.contacts.post, &self.contacts.agents) {
            post.sends_out(&(subagents.clone() as Arc<dyn Neighbours>));
        }
        let tools = &mut self.work.tools;
        if !tools.is_empty() {
            tools.push(Arc::new(History::new(session.path())));
            if let Some(subagents) = &self.contacts.agents {
                *tools = knowing(std::mem::take(tools), subagents);
                let tool: Arc<dyn Tool> = Arc::new(StartAgent::of(subagents.clone()));
                tools.push(match self.contacts.teammates.clone() {
                    Some(teammates) => Arc::new(TeamAgentTool::new(tool, teammates, subagents.clone())),
                    None => tool,
                });
            }
        }
        let mut alone = self.contacts.agents.is_none().then_some(NoSubagents::NotGiven);
        if let Some(known) = session.known_prologue().filter(|_| session.idle() < self.talk.ttl.duration()) {
            // While its cache may hold, a session that began without them goes on without: others would cost all of it.
            let names: Vec<&str> = known.tools.iter().map(|tool| tool.name.as_str()).collect();
            self.work.tools.retain(|tool| !added_later(tool.name()) || names.contains(&tool.name()));
            if !names.contains(&StartAgent::NAME) && self.contacts.agents.take().is_some() {
                alone = Some(NoSubagents::BeganWithout(self.talk.ttl.duration()));
            }
        }
        let mut fitted = self.without_forbidden_tools();
        let sends = fitted.work.tools.iter().any(|tool| tool.name() == StartAgent::NAME);
        if !sends && fitted.contacts.agents.take().is_some() {
            alone = Some(NoSubagents::Forbidden);
        }
        (fitted, alone)
    }

    /// Removes tools that rules deny entirely: a tool that is not offered is not called, and costs no tokens.
    fn without_forbidden_tools(mut self) -> Self {
        self.work.tools.retain(|tool| !self.consent.policy.rules.forbid(tool.name()));
        if let Some(servers) = &self.work.servers {
            let rules = self.consent.policy.rules.clone();
            self.work.servers = Some(servers.only(move |tool| !rules.forbid(tool)));
        }
        // Without commands and servers there is nothing in the background to look at.
        let has_servers = self.work.tools.iter().any(|tool| tool.name() == tool_names::TOOL_SEARCH);
        if !has_servers && !self.work.tools.iter().any(|tool| tool.name() == tool_names::BASH) {
            self.work.tools.retain(|tool| ![tool_names::TASK_OUTPUT, tool_names::TASK_STOP].contains(&tool.name()));
        }
        // Nor is there anybody to write to without agents, a team, or somebody who sent it out.
        let in_team =
            self.contacts.teammates.is_some() || self.contacts.post.as_ref().is_some_and(|post| post.team().is_some());
        if self.lineage.sent.is_none()
            && !in_team
            && !self.work.tools.iter().any(|tool| tool.name() == tool_names::AGENT)
        {
            self.work.tools.retain(|tool| tool.name() != SendMessage::NAME);
        }
        self
    }
}

/// True for tools that older sessions may have started without.
fn added_later(tool: &str) -> bool {
    settings::agent_definitions::OF_PLANS.contains(&tool) || [StartAgent::NAME, SendMessage::NAME].contains(&tool)
}

/// Rules that let it read spilled results next to the session, and write to its scratchpad.
pub(super) fn kept(session: &Session, scratchpad: Option<&Path>) -> Result<Vec<Rule>, Error> {
    let mut inside = vec![format!("Read(/{}/**)", session.folder().display())];
    if let Some(path) = scratchpad {
        inside.extend([tool_names::READ, tool_names::EDIT].map(|may| format!("{may}(/{}/**)", path.display())));
    }
    Ok(rules(&inside, &BasePaths { directory: session.directory(), home: None })?)
}
