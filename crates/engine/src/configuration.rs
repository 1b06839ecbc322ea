//! What settings, flags and place decide of a session.
//!
//! One function makes it when a session starts, and again whenever a settings file changes. What follows from it does so
//! in [`Parts::configured`](crate::agent::Parts::configured) and when an agent [reloads](crate::Agent::reload): both hand it
//! to the same groups.

use std::path::PathBuf;
use std::time::Duration;

use context::Layers;
use learning::dream::SourcePurpose;
use learning::knowledge::KnowledgeSettings;
use settings::agents::Registry;
use settings::{
    Admission, Budget, BypassPermission, HookSettings, Learning, Notifications, Rhythm, SandboxSettings, Settings, keys,
};
use tools::permission::{Mode, Rules};
use tools::{Credentials, Environment};
use transcript::Effort;
use transcript::mark::Ttl;
use transcript::window::{Window, WindowHints};

use crate::activity;

/// The most a reply may be when nobody says.
pub const MAX_OUTPUT_TOKENS: u64 = 32_000;

/// What settings, flags and place decide of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The model to talk to, by the name that its provider knows.
    pub model: String,
    /// A smaller one of the same provider, for what it can do as well.
    pub small: Option<String>,
    /// The most a reply may be, in tokens.
    pub max_tokens: u64,
    /// How hard the model tries.
    pub effort: Option<Effort>,
    /// Betas of the API that every request asks for.
    pub betas: Vec<String>,
    /// How long the provider keeps the cached prefix.
    pub ttl: Ttl,
    /// How to keep within the window.
    pub layers: Layers,
    /// All rules, those of flags too.
    pub rules: Rules,
    /// The mode.
    pub mode: Mode,
    /// Whether the mode that asks nothing counts.
    pub bypass: BypassPermission,
    /// The hooks.
    pub hooks: HookSettings,
    /// What is said of the sandbox.
    pub sandbox: SandboxSettings,
    /// What nobody chooses otherwise by hand.
    pub managed: ManagedSettings,
    /// More directories to work in.
    pub directories: Vec<PathBuf>,
    /// The variables of commands.
    pub environment: Environment,
    /// Whose messages from elsewhere are heard.
    pub messages: Admission,
    /// How often those who work beside it say what they do.
    pub labelled: Option<Duration>,
    /// The agents that can be sent out; none where none can.
    pub agents: Option<Registry>,
    /// How the session makes itself known.
    pub signals: Notifications,
    /// What work in the background may spend.
    pub budget: Budget,
    /// What is said of memory and instruction files; none where there are none.
    pub recollection: Option<KnowledgeSettings>,
    /// How it learns; none where it does not.
    pub learning: Option<Learning>,
    /// What is said of dreams.
    pub dreams: DreamSettings,
    /// How answers are to read. It stands in the prompt, so it counts from the next session on.
    pub manner: Vec<String>,
}

/// What the organisation has decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ManagedSettings {
    /// The mode.
    pub mode: bool,
    /// The sandbox.
    pub sandbox: bool,
}

/// What is said of dreams.
#[derive(Debug, Clone, PartialEq)]
pub struct DreamSettings {
    /// When they come by themselves.
    pub rhythm: Rhythm,
    /// The model that dreams.
    pub model: String,
    /// Its window, in tokens.
    pub window: u64,
    /// What they are for.
    pub purpose: SourcePurpose,
    /// What nothing is learnt from; none where that cannot be understood, and then it stays as it was.
    pub excluded: Option<Rules>,
}

impl Configuration {
    /// What the settings alone say, for a session with a model of this name.
    pub fn of(settings: &Settings, model: impl Into<String>) -> Self {
        let model = model.into();
        Self {
            small: settings.small_model.clone(),
            max_tokens: settings.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS),
            effort: settings.effort,
            betas: Vec::new(),
            ttl: settings.cache_ttl.unwrap_or_default(),
            layers: Layers { price: settings.prices.of(&model), ..settings.layers.clone() },
            rules: settings.rules.clone(),
            mode: settings.mode(),
            bypass: settings.bypass,
            hooks: settings.hooks.clone(),
            sandbox: settings.sandbox.clone(),
            managed: ManagedSettings {
                mode: settings.is_managed(&keys::MODE),
                sandbox: settings.is_managed(&keys::SANDBOX),
            },
            directories: settings.directories.clone(),
            environment: environment(settings),
            messages: settings.messages.unwrap_or_default(),
            labelled: activity::every(settings.label_seconds),
            agents: None,
            signals: settings.signals.clone(),
            budget: settings.budget,
            recollection: None,
            learning: None,
            dreams: DreamSettings {
                rhythm: settings.rhythm,
                model: settings.dream_model.clone().unwrap_or_else(|| model.clone()),
                window: Window::of(&WindowHints { model: &model, ..WindowHints::default() }).size,
                purpose: SourcePurpose::of(settings),
                excluded: None,
            },
            manner: Vec::new(),
            model,
        }
    }
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
