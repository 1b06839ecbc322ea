//! The values that count, of all that the files say.

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
use crate::hooks::settings::{HookSettings, HooksOf, hooks_of};
use crate::keys::{self, SettingKey};
use crate::kind::ValuePart;
use crate::layers::layers;
use crate::load::{self, LoadedSettings, SetValue, ValueStatus};
use crate::notifications::Notifications;
use crate::rules::rules_of;
use crate::sandbox::SandboxSettings;
use crate::source::SettingsSource;

/// What the settings say.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The model.
    pub model: Option<NamedModel>,
    /// The permission mode a session starts in.
    pub mode: Option<Mode>,
    /// Whether `bypassPermissions` may be entered at all.
    pub bypass: BypassPermission,
    /// Permission rules.
    pub rules: Rules,
    /// More directories to work in.
    pub directories: Vec<PathBuf>,
    /// `effortLevel`: how hard the model tries.
    pub effort: Option<Effort>,
    /// `language`: the language of answers.
    pub language: Option<String>,
    /// `outputStyle`: how they read.
    pub output_style: Option<String>,
    /// The most a reply may be.
    pub max_output_tokens: Option<u64>,
    /// How long the provider keeps the cached prefix.
    pub cache_ttl: Option<Ttl>,
    /// Prices that the table does not have.
    pub prices: Prices,
    /// Other models, by the name that stands before a slash in a model's name.
    pub providers: BTreeMap<String, Provider>,
    /// Variables for the commands that tools run.
    pub environment: BTreeMap<String, String>,
    /// Those of them that no file below the project had a say in: they count where the program itself reads a variable.
    pub own_environment: BTreeMap<String, String>,
    /// `autoMemoryEnabled`.
    pub auto_memory: Option<bool>,
    /// `autoMemoryDirectory`, and whose word it is.
    pub memory_directory: Option<(String, SettingsSource)>,
    /// `claudeMdExcludes`: instruction files that are not loaded.
    pub claude_md_excludes: Vec<String>,
    /// `skipIndex`: whether memory has no index.
    pub skip_index: Option<bool>,
    /// `searchPastContext`: whether the model is told how to search past sessions.
    pub search_past: Option<bool>,
    /// `recall`: whether memories are brought up by themselves.
    pub recall: Option<bool>,
    /// `teamDeletions`: whether a file that is deleted from team memory is deleted for all.
    pub team_deletions: Option<bool>,
    /// `smallModel`: the model for side questions.
    pub small_model: Option<String>,
    /// `selectorModel`: the model that is asked which memories matter.
    pub selector_model: Option<String>,
    /// What work in the background may spend.
    pub budget: Budget,
    /// When memories are brought into order by themselves.
    pub rhythm: Rhythm,
    /// The model that does so.
    pub dream_model: Option<String>,
    /// What is learnt, and when.
    pub extract: Extract,
    /// `dailyLog`: whether sessions keep a daily log instead of memories.
    pub daily_log: Option<bool>,
    /// `commandCredentials`: whether commands get variables that look like credentials.
    pub command_credentials: Option<bool>,
    /// `teammates`: whether the model may start processes that work beside the session.
    pub teammates: Option<bool>,
    /// `labelSeconds`: how often those who work beside the session say what they do.
    pub label_seconds: Option<u64>,
    /// `messages`: whose messages from elsewhere are heard.
    pub messages: Option<Admission>,
    /// How the layers work, in a window and at a price that are still to be named.
    pub layers: Layers,
    /// What they say of the sandbox.
    pub sandbox: SandboxSettings,
    /// The hooks that run, in their order.
    pub hooks: HookSettings,
    /// `agents`: those that can be sent out, as they are written.
    pub agents: Vec<SetValue>,
    /// How a session makes itself known.
    pub signals: Notifications,
    /// Every value of the files, and whether it counts.
    pub sets: Vec<SetValue>,
    /// What is to be said of the files.
    pub findings: Vec<SettingsFinding>,
}

/// The model that the settings name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedModel {
    /// Its name.
    pub name: String,
    /// Whose word it is.
    pub source: SettingsSource,
    /// What the user's own settings name, where a file below the project says otherwise. It decides about the server.
    pub own: Option<String>,
}

/// Whether `bypassPermissions` may be entered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BypassPermission {
    /// By a flag, or by settings that are not the project's.
    #[default]
    Allowed,
    /// Not at all.
    Disabled,
}

/// A server to talk to, as the settings have it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Which protocol it speaks.
    #[serde(rename = "type", default)]
    pub kind: ProviderKind,
    /// Its address.
    pub base_url: String,
    /// The environment variable that holds its key.
    pub key_env: Option<String>,
    /// The model, when only the entry is named.
    pub model: Option<String>,
    /// Its window, in tokens.
    pub window: Option<u64>,
    /// What it costs.
    pub price: Option<Price>,
}

/// Which protocol a server speaks.
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
    /// What counts of what the files say. `trusted` says whether the user trusts a value that stands below the project.
    pub fn of(loaded: &LoadedSettings, ground: &BasePaths<'_>, trusted: &dyn Fn(&SetValue) -> bool) -> Self {
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
        let hooks = hooks_of(whose, &counting, ground, &mut findings);
        let settings = Self {
            model: model(loaded, &counting),
            mode: counting.one::<String>(&keys::MODE).as_deref().and_then(mode),
            bypass: if is_disabled { BypassPermission::Disabled } else { BypassPermission::Allowed },
            rules: rules_of(&counting, ground, &mut findings),
            directories: directories(&counting, ground),
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
            sandbox: SandboxSettings::of(&counting, ground),
            hooks,
            agents: counting.of(&keys::AGENTS).cloned().collect(),
            signals: Notifications::of(&counting, whose, ground),
            sets: Vec::new(),
            findings,
        };
        Self { sets, ..settings }
    }

    /// The mode a session starts in, if nobody names another: not the one that asks nothing where that is disabled.
    pub fn mode(&self) -> Mode {
        match self.mode.unwrap_or_default() {
            Mode::BypassPermissions if self.bypass == BypassPermission::Disabled => Mode::Default,
            mode => mode,
        }
    }

    /// What the user should know before a session starts.
    pub fn warnings(&self) -> Vec<String> {
        let told = self.findings.iter().filter(|finding| finding.weight > Weight::Note);
        told.map(ToString::to_string).collect()
    }

    /// The values of a key that count, with where they stand.
    pub fn counting(&self, key: &SettingKey) -> impl Iterator<Item = &SetValue> {
        let name = key.name;
        self.sets.iter().filter(move |set| set.key.name == name && set.standing == ValueStatus::Counts)
    }

    /// Whether an organisation has fixed a key, so that no flag changes it.
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

fn directories(counting: &EffectiveValues<'_>, ground: &BasePaths<'_>) -> Vec<PathBuf> {
    let texts = counting.texts(&keys::DIRECTORIES);
    texts.iter().map(|directory| ground.directory.join(expand(directory, ground))).collect()
}
