//! What an agent is put together from.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use context::Layers;
use jiff::SignedDuration;
use learning::ledger::Ledger;
use mail::{Neighbours, Post};
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
use crate::agents::{InTeam, SendOut, Subagents, knowing};
use crate::configuration::{Configuration, MAX_OUTPUT_TOKENS};
use crate::hooks::Hooks;
use crate::parts::{Consent, Lineage, Outlets, PromptParts, Talk, Workplace};
use crate::prompt::Surroundings;
use crate::run::TurnLimits;
use crate::send_message::SendMessage;
use crate::teammates::Teammates;

/// What an agent is made of, besides its session. [`Parts::new`] has a sensible value for everything; change what you
/// need, and hand it to [`Agent::new`](super::Agent::new).
#[derive(Clone)]
pub struct Parts {
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
    /// Whom it knows, and who reaches it.
    pub contacts: Contacts,
    /// Where what happens is told and written down.
    pub out: Outlets,
    /// What settings, flags and place decide, as far as it is in the groups above.
    pub(super) said: Configuration,
    /// Who is asked before each request whether the settings have changed.
    pub reload: Option<Reload>,
}

/// Why a session sends no agents out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSubagents {
    /// It was not given any.
    NotGiven,
    /// It began without them. To add them would cost its cache, which is kept for so long after a reply.
    BeganWithout(SignedDuration),
    /// A rule denies the tool.
    Forbidden,
}

/// Whom it knows, and who reaches it.
#[derive(Clone)]
pub struct Contacts {
    /// Agents it may send out.
    pub agents: Option<Arc<Subagents>>,
    /// How it reaches others, where it may.
    pub post: Option<Post>,
    /// How it starts teammates, where it may.
    pub teammates: Option<Teammates>,
    /// Whose messages from elsewhere are heard.
    pub messages: Admission,
    /// How often those who work beside it say anew what they do; never without.
    pub labelled: Option<Duration>,
}

impl Contacts {
    pub(super) fn follow(&mut self, configuration: &Configuration) {
        (self.messages, self.labelled) = (configuration.messages, configuration.labelled);
        if let (Some(children), Some(registry)) = (&self.agents, &configuration.agents) {
            children.replace(registry.clone());
        }
    }
}

impl Parts {
    /// The standard tools, nobody to ask, and nobody who listens.
    pub fn new(model: Arc<dyn Model>, name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            said: Configuration::of(&Settings::default(), &name),
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
                surroundings: Surroundings::default(),
                manner: Vec::new(),
                system: None,
                appended: None,
                budget: None,
            },
            work: Workplace {
                tools: tools::standard(),
                directories: Vec::new(),
                user_home: None,
                tasks: None,
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
                labelled: activity::every(None),
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

    /// With what the settings say.
    #[must_use]
    pub fn with_settings(self, settings: &Settings) -> Self {
        let configuration = Configuration::of(settings, &self.talk.name);
        self.configured(configuration)
    }

    /// With what settings, flags and place decide.
    #[must_use]
    pub fn configured(mut self, configuration: Configuration) -> Self {
        self.talk.follow(&configuration);
        self.work.follow(&configuration);
        self.consent.follow(&configuration);
        self.consent.policy.mode = configuration.mode.into();
        self.contacts.follow(&configuration);
        self.out.follow(&configuration);
        self.prompt.manner.clone_from(&configuration.manner);
        self.said = configuration;
        self
    }

    /// With the tools that know the session, and without those that it may not have. Says why it sends nobody out, where it
    /// does not.
    pub(super) fn fitted(mut self, session: &Session) -> (Self, Option<NoSubagents>) {
        if let (Some(post), Some(children)) = (&self.contacts.post, &self.contacts.agents) {
            post.sends_out(&(children.clone() as Arc<dyn Neighbours>));
        }
        let tools = &mut self.work.tools;
        if !tools.is_empty() {
            tools.push(Arc::new(History::new(session.path())));
            if let Some(children) = &self.contacts.agents {
                *tools = knowing(std::mem::take(tools), children);
                let tool: Arc<dyn Tool> = Arc::new(SendOut::of(children.clone()));
                tools.push(match self.contacts.teammates.clone() {
                    Some(teammates) => Arc::new(InTeam::new(tool, teammates, children.clone())),
                    None => tool,
                });
            }
        }
        let mut alone = self.contacts.agents.is_none().then_some(NoSubagents::NotGiven);
        if let Some(known) = session.known_prologue().filter(|_| session.idle() < self.talk.ttl.duration()) {
            // While its cache may hold, a session that began without them goes on without: others would cost all of it.
            let names: Vec<&str> = known.tools.iter().map(|tool| tool.name.as_str()).collect();
            self.work.tools.retain(|tool| !added_later(tool.name()) || names.contains(&tool.name()));
            if !names.contains(&SendOut::NAME) && self.contacts.agents.take().is_some() {
                alone = Some(NoSubagents::BeganWithout(self.talk.ttl.duration()));
            }
        }
        let mut fitted = self.without_forbidden_tools();
        let sends = fitted.work.tools.iter().any(|tool| tool.name() == SendOut::NAME);
        if !sends && fitted.contacts.agents.take().is_some() {
            alone = Some(NoSubagents::Forbidden);
        }
        (fitted, alone)
    }

    /// Without the tools of which no call may ever run: what is not offered is not asked for, and costs no tokens.
    fn without_forbidden_tools(mut self) -> Self {
        self.work.tools.retain(|tool| !self.consent.policy.rules.forbid(tool.name()));
        // Without commands there is nothing in the background to look at.
        if !self.work.tools.iter().any(|tool| tool.name() == tool_names::BASH) {
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

/// Whether a session may have begun without a tool that others have.
fn added_later(tool: &str) -> bool {
    settings::agents::OF_PLANS.contains(&tool) || [SendOut::NAME, SendMessage::NAME].contains(&tool)
}

/// Results that were put into files beside the session can be read again, and files of its own written.
pub(super) fn kept(session: &Session, scratchpad: Option<&Path>) -> Result<Vec<Rule>, Error> {
    let mut inside = vec![format!("Read(/{}/**)", session.folder().display())];
    if let Some(path) = scratchpad {
        inside.extend([tool_names::READ, tool_names::EDIT].map(|may| format!("{may}(/{}/**)", path.display())));
    }
    Ok(rules(&inside, &BasePaths { directory: session.directory(), home: None })?)
}
