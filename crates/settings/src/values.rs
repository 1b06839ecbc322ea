//! The effective values of the settings.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use context::Layers;
use serde::Deserialize;
use tools::permission::{Mode, Rules};
use transcript::Effort;
use transcript::mark::Ttl;
use transcript::price::{Price, Prices};

use crate::background::{Admission, Budget, Rhythm};
use crate::effective_values::{BasePaths, EffectiveValues, expand};
use crate::extract::Extract;
use crate::finding::{SettingsFinding, Weight};
use crate::hook_definitions::settings::{HookSettings, HooksOf, hooks_of};
use crate::keys::{self, SettingKey};
use crate::kind::ValuePart;
use crate::layers::layers;
use crate::load::{self, LoadedSettings, SetValue, ValueStatus};
use crate::notifications::Notifications;
use crate::rules::rules_of;
use crate::sandbox::SandboxSettings;
use crate::source::{SettingsSource, ValueOrigin};

/// The effective settings.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The model.
    pub model: Option<NamedModel>,
    /// The permission mode a session starts in.
    pub mode: Option<Mode>,
    /// Availability of the mode `bypassPermissions`.
    pub bypass: BypassPermission,
    /// Permission rules.
    pub rules: Rules,
    /// More directories to work in.
    pub directories: Vec<PathBuf>,
    /// `effortLevel`: effort asked of the model.
    pub effort: Option<Effort>,
    /// `language`: the language of answers.
    pub language: Option<String>,
    /// `outputStyle`: style of answers.
    pub output_style: Option<String>,
    /// The most tokens of a reply.
    pub max_output_tokens: Option<u64>,
    /// Lifetime of the provider's cached prefix.
    pub cache_ttl: Option<Ttl>,
    /// Prices that the built-in table does not have.
    pub prices: Prices,
    /// Other servers, by the name before the slash in a model's name.
    pub providers: BTreeMap<String, Provider>,
    /// Variables for the commands that tools run.
    pub environment: BTreeMap<String, String>,
    /// Those of them that no project file set: they also apply where the program itself reads a variable.
    pub own_environment: BTreeMap<String, String>,
    /// `autoMemoryEnabled`.
    pub auto_memory: Option<bool>,
    /// `autoMemoryDirectory`, and its source.
    pub memory_directory: Option<(String, SettingsSource)>,
    /// `claudeMdExcludes`: instruction files that are not loaded.
    pub claude_md_excludes: Vec<String>,
    /// `skipIndex`: memory without an index.
    pub skip_index: Option<bool>,
    /// `searchPastContext`: tell the model how to search past sessions.
    pub search_past: Option<bool>,
    /// `recall`: attach memories automatically.
    pub recall: Option<bool>,
    /// `teamDeletions`: delete files of team memory for everyone.
    pub team_deletions: Option<bool>,
    /// `smallModel`: the model for side questions.
    pub small_model: Option<String>,
    /// `selectorModel`: the model that chooses which memories matter.
    pub selector_model: Option<String>,
    /// The budget of background work.
    pub budget: Budget,
    /// The conditions of automatic dreams.
    pub rhythm: Rhythm,
    /// The model that dreams.
    pub dream_model: Option<String>,
    /// Settings of learning.
    pub extract: Extract,
    /// `dailyLog`: keep a daily log instead of memories.
    pub daily_log: Option<bool>,
    /// `commandCredentials`: pass variables that look like credentials to commands.
    pub command_credentials: Option<bool>,
    /// `teammates`: let the model start teammates.
    pub teammates: Option<bool>,
    /// `labelSeconds`: seconds after which labels are renewed.
    pub label_seconds: Option<u64>,
    /// `messages`: admission of messages from other sessions.
    pub messages: Option<Admission>,
    /// The layers, with window and price still to be set.
    pub layers: Layers,
    /// Settings of the sandbox.
    pub sandbox: SandboxSettings,
    /// The hooks that run, in their order.
    pub hooks: HookSettings,
    /// `agents`: their definitions, as written.
    pub agents: Vec<SetValue>,
    /// `enabledPlugins`: those to use, by `name@marketplace`, and whether a project's settings say so.
    pub enabled_plugins: BTreeMap<String, SettingsSource>,
    /// `pluginDirectories`: folders of plugins.
    pub plugin_directories: Vec<PathBuf>,
    /// `mcpServers`: their definitions, as written.
    pub servers: Vec<SetValue>,
    /// `disabledMcpServers`: servers that are not started, each with its origin.
    pub disabled_servers: Vec<(String, ValueOrigin)>,
    /// `webSearch`: whether the provider's own search is offered; by what is known of the provider if nothing is said.
    pub web_search: Option<bool>,
    /// `webPrivateHosts`: hosts at private addresses that may be contacted.
    pub private_hosts: Vec<String>,
    /// Output outside the conversation.
    pub signals: Notifications,
    /// Every value of the files, with its status.
    pub sets: Vec<SetValue>,
    /// Findings in the files.
    pub findings: Vec<SettingsFinding>,
}

/// The model that the settings name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedModel {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: SettingsSource,
    /// The model of the user's own settings, if a project's file overrides it. It decides about the server.
    pub own: Option<String>,
}

/// Availability of the mode `bypassPermissions`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BypassPermission {
    /// It can be entered by a flag, or by settings that are not the project's.
    #[default]
    Allowed,
    /// It cannot be entered.
    Disabled,
}

/// A server, as the settings define it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Its protocol.
    #[serde(rename = "type", default)]
    pub kind: ProviderKind,
    /// Its address.
    pub base_url: String,
    /// The environment variable that holds its key.
    pub key_env: Option<String>,
    /// The model, if only the entry is named.
    pub model: Option<String>,
    /// Its window, in tokens.
    pub window: Option<u64>,
    /// Its price.
    pub price: Option<Price>,
}

/// The protocol of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// Chat completions.
    #[default]
    OpenAi,
    /// The Messages API.
    Anthropic,
}

impl Settings {
    /// The effective settings. `trusted` says whether the user trusts a value of a project's file.
    pub fn of(loaded: &LoadedSettings, base_paths: &BasePaths<'_>, trusted: &dyn Fn(&SetValue) -> bool) -> Self {
        let sets = loaded.judged(trusted);
        let mut findings = loaded.findings.clone();
        let counting =
            EffectiveValues { sets: sets.iter().filter(|set| set.standing == ValueStatus::Counts).collect() };
        let mut prices: Vec<(String, Price)> = counting.entries(&keys::PRICES);
        let providers: BTreeMap<String, Provider> = counting.entries(&keys::PROVIDERS).into_iter().collect();
        let priced = providers.values().filter_map(|entry| Some((entry.model.clone()?, entry.price?)));
        prices.splice(..0, priced);
        let is_disabled = loaded.has_broken_managed() || counting.of(&keys::NO_BYPASS).next().is_some();
        let whose = HooksOf::of(&counting);
        let hooks = hooks_of(whose, &counting, base_paths, &mut findings);
        let settings = Self {
            model: model(loaded, &counting),
            mode: counting.one::<String>(&keys::MODE).as_deref().and_then(mode),
            bypass: if is_disabled { BypassPermission::Disabled } else { BypassPermission::Allowed },
            rules: rules_of(&counting, base_paths, &mut findings),
            directories: expanded(&counting, &keys::DIRECTORIES, base_paths),
            effort: counting.one(&keys::EFFORT),
            language: counting.one(&keys::LANGUAGE),
            output_style: counting.one(&keys::OUTPUT_STYLE),
            max_output_tokens: counting.one(&keys::MAX_OUTPUT_TOKENS),
            cache_ttl: counting.one(&keys::CACHE_TTL),
            prices: Prices::with(prices),
            providers,
            environment: variables_of(counting.sets.iter().copied()),
            own_environment: variables_of(loaded.sets.iter().filter(|set| !set.origin.source.is_below_project())),
            auto_memory: counting.one(&keys::AUTO_MEMORY),
            memory_directory: counting
                .of(&keys::MEMORY_DIRECTORY)
                .find_map(|set| Some((set.value.as_str()?.to_owned(), set.origin.source))),
            claude_md_excludes: counting.texts(&keys::EXCLUDES),
            skip_index: counting.one(&keys::SKIP_INDEX),
            search_past: counting.one(&keys::SEARCH_PAST),
            recall: counting.one(&keys::RECALL),
            team_deletions: counting.one(&keys::TEAM_DELETIONS),
            small_model: counting.one(&keys::SMALL_MODEL),
            selector_model: counting.one(&keys::SELECTOR_MODEL),
            budget: budget(&counting),
            extract: Extract::of(&counting),
            rhythm: rhythm(&counting),
            dream_model: counting.one(&keys::DREAM_MODEL),
            daily_log: counting.one(&keys::DAILY_LOG),
            command_credentials: counting.one(&keys::COMMAND_CREDENTIALS),
            teammates: counting.one(&keys::TEAMMATES),
            label_seconds: counting.one(&keys::LABEL_SECONDS),
            messages: counting.one(&keys::MESSAGES),
            layers: layers(&counting),
            sandbox: SandboxSettings::of(&counting, base_paths),
            hooks,
            agents: counting.of(&keys::AGENTS).cloned().collect(),
            enabled_plugins: enabled_plugins(&counting),
            plugin_directories: expanded(&counting, &keys::PLUGIN_DIRECTORIES, base_paths),
            servers: counting.of(&keys::SERVERS).cloned().collect(),
            disabled_servers: counting
                .of(&keys::DISABLED_SERVERS)
                .filter_map(|set| Some((set.value.as_str()?.to_owned(), set.origin.clone())))
                .collect(),
            web_search: counting.one(&keys::WEB_SEARCH),
            private_hosts: counting.texts(&keys::PRIVATE_HOSTS),
            signals: Notifications::of(&counting, whose, base_paths),
            sets: Vec::new(),
            findings,
        };
        Self { sets, ..settings }
    }

    /// The mode a session starts in by default: not `bypassPermissions` if that is disabled.
    pub fn mode(&self) -> Mode {
        match self.mode.unwrap_or_default() {
            Mode::BypassPermissions if self.bypass == BypassPermission::Disabled => Mode::Default,
            mode => mode,
        }
    }

    /// Findings that the user should see before a session starts.
    pub fn warnings(&self) -> Vec<String> {
        let told = self.findings.iter().filter(|finding| finding.weight > Weight::Note);
        told.map(ToString::to_string).collect()
    }

    /// The effective values of a key, with their origins.
    pub fn counting(&self, key: &SettingKey) -> impl Iterator<Item = &SetValue> {
        let name = key.name;
        self.sets.iter().filter(move |set| set.key.name == name && set.standing == ValueStatus::Counts)
    }

    /// True if an organisation has set a key, so that no flag changes it.
    pub fn is_managed(&self, key: &SettingKey) -> bool {
        self.counting(key).any(|set| set.origin.source == SettingsSource::Managed)
    }
}

fn model(loaded: &LoadedSettings, counting: &EffectiveValues<'_>) -> Option<NamedModel> {
    let set = counting.of(&keys::MODEL).next()?;
    let of_user = |set: &&SetValue| set.key.name == keys::MODEL.name && !set.origin.source.is_below_project();
    let own = loaded.sets.iter().rev().find(of_user).and_then(|set| set.value.as_str()).map(str::to_owned);
    let (name, source) = (set.value.as_str()?.to_owned(), set.origin.source);
    Some(NamedModel { name, source, own: own.filter(|_| source.is_below_project()) })
}

fn rhythm(counting: &EffectiveValues<'_>) -> Rhythm {
    let usual = Rhythm::default();
    // Not where sessions keep a daily log, and the user asks for a dream.
    let logs = counting.one(&keys::DAILY_LOG) == Some(true);
    Rhythm {
        on: counting.one(&keys::DREAM).unwrap_or(usual.on) && !logs,
        hours: counting.one(&keys::DREAM_HOURS).unwrap_or(usual.hours),
        sessions: counting.one(&keys::DREAM_SESSIONS).unwrap_or(usual.sessions),
    }
}

fn budget(counting: &EffectiveValues<'_>) -> Budget {
    Budget {
        usd: counting.one(&keys::BUDGET_USD).unwrap_or(Budget::default().usd),
        tokens: counting.one(&keys::BUDGET_TOKENS),
        project_usd: counting.one(&keys::BUDGET_PROJECT_USD),
        project_tokens: counting.one(&keys::BUDGET_PROJECT_TOKENS),
        agent_tokens: counting.one(&keys::BUDGET_AGENT_TOKENS),
    }
}

fn mode(name: &str) -> Option<Mode> {
    let name = if name == "manual" { "default" } else { name };
    serde_json::from_value(name.into()).ok()
}

fn variables_of<'a>(sets: impl Iterator<Item = &'a SetValue>) -> BTreeMap<String, String> {
    let variable = |set: &SetValue| match &set.part {
        ValuePart::Entry(name) if set.key.name == keys::ENV.name => Some((name.clone(), load::text(&set.value))),
        _ => None,
    };
    // The strongest comes last.
    sets.filter_map(variable).collect()
}

/// The plugins to use, with the file that says so.
fn enabled_plugins(counting: &EffectiveValues<'_>) -> BTreeMap<String, SettingsSource> {
    let enabled = |set: &SetValue| match &set.part {
        ValuePart::Entry(id) if set.value == true => Some((id.clone(), set.origin.source)),
        _ => None,
    };
    counting.of(&keys::ENABLED_PLUGINS).filter_map(enabled).collect()
}

/// The directories of a key, from the working directory.
fn expanded(counting: &EffectiveValues<'_>, key: &SettingKey, base_paths: &BasePaths<'_>) -> Vec<PathBuf> {
    let texts = counting.texts(key);
    texts.iter().map(|directory| base_paths.directory.join(expand(directory, base_paths))).collect()
}
