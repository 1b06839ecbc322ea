//! Configuration of a session, from settings, flags and location.
//!
//! One function builds it when a session starts, and again whenever a settings file changes. It is applied in
//! [`Parts::configured`](crate::agent::Parts::configured) and when an agent [reloads](crate::Agent::reload): both hand
//! it to the same groups.

use std::path::PathBuf;
use std::time::Duration;

use context::Layers;
use learning::dream::SourcePurpose;
use learning::knowledge::KnowledgeSettings;
use settings::agent_definitions::Registry;
use settings::{
    Admission, Budget, BypassPermission, HookSettings, Learning, Notifications, Rhythm, SandboxSettings, Settings, keys,
};
use tools::permission::{Mode, Rules};
use tools::{Credentials, Environment};
use transcript::Effort;
use transcript::mark::Ttl;
use transcript::window::{Window, WindowHints};

use crate::activity;

/// Default limit on a reply, in tokens.
pub const MAX_OUTPUT_TOKENS: u64 = 32_000;

/// Configuration of a session, from settings, flags and location.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The model, by its provider's name for it.
    pub model: String,
    /// A smaller model of the same provider, for simple work.
    pub small: Option<String>,
    /// Limit on a reply, in tokens.
    pub max_tokens: u64,
    /// Effort of the model.
    pub effort: Option<Effort>,
    /// Betas of the API that every request asks for.
    pub betas: Vec<String>,
    /// Lifetime of the cached prefix at the provider.
    pub ttl: Ttl,
    /// Layers that keep the session within the window.
    pub layers: Layers,
    /// All rules, including those from flags.
    pub rules: Rules,
    /// The permission mode.
    pub mode: Mode,
    /// Availability of `bypassPermissions`.
    pub bypass: BypassPermission,
    /// The hooks.
    pub hooks: HookSettings,
    /// Sandbox settings.
    pub sandbox: SandboxSettings,
    /// Settings that cannot be overridden by hand.
    pub managed: ManagedSettings,
    /// Additional working directories.
    pub directories: Vec<PathBuf>,
    /// Environment variables of commands.
    pub environment: Environment,
    /// Senders outside the team whose messages are accepted.
    pub messages: Admission,
    /// Interval between labels of background agents and teammates.
    pub label_interval: Option<Duration>,
    /// Definitions of agents; `None` if none can be started.
    pub agents: Option<Registry>,
    /// Notification settings.
    pub signals: Notifications,
    /// Budget of background work.
    pub budget: Budget,
    /// Settings of memory and instruction files; `None` if there are none.
    pub knowledge_settings: Option<KnowledgeSettings>,
    /// Settings of learning; `None` if it is off.
    pub learning: Option<Learning>,
    /// Settings of dreams.
    pub dreams: DreamSettings,
    /// Output style and language. They are part of the prompt, so a change applies from the next session on.
    pub style: Vec<String>,
}

/// Settings that the organisation has decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ManagedSettings {
    /// The mode.
    pub mode: bool,
    /// The sandbox.
    pub sandbox: bool,
}

/// Settings of dreams.
#[derive(Debug, Clone, PartialEq)]
pub struct DreamSettings {
    /// Schedule of automatic dreams.
    pub rhythm: Rhythm,
    /// The model that dreams.
    pub model: String,
    /// Its window, in tokens.
    pub window: u64,
    /// Purpose of the sources.
    pub purpose: SourcePurpose,
    /// Rules for what is never learnt from; `None` if they cannot be parsed, which leaves the old ones in force.
    pub excluded: Option<Rules>,
}

impl Configuration {
    /// The configuration from settings alone, for a session with a model of this name.
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
            label_interval: activity::every(settings.label_seconds),
            agents: None,
            signals: settings.signals.clone(),
            budget: settings.budget,
            knowledge_settings: None,
            learning: None,
            dreams: DreamSettings {
                rhythm: settings.rhythm,
                model: settings.dream_model.clone().unwrap_or_else(|| model.clone()),
                window: Window::of(&WindowHints { model: &model, ..WindowHints::default() }).size,
                purpose: SourcePurpose::of(settings),
                excluded: None,
            },
            style: Vec::new(),
            model,
        }
    }
}

/// Environment variables of commands, from settings.
pub fn environment(settings: &Settings) -> Environment {
    let keys = settings.providers.values().filter_map(|provider| provider.key_env.clone());
    let credentials = match settings.command_credentials {
        Some(false) => Credentials::Withheld,
        Some(true) | None => Credentials::Given,
    };
    Environment { given: settings.environment.clone(), hidden: keys.collect(), credentials, ..Environment::default() }
}
