//! Settings, merged from several files: a stronger one wins, lists are joined, and every value knows where it stands.
//!
//! The files are those Claude Code reads, so some of their keys are not for us. [`keys`] is the table of ours, [`Loaded`]
//! what the files say, and [`Settings`] what counts of it. A value that is broken, mistyped or has no say where it stands
//! is a [`Finding`] and is left out; nothing in a file stops a session.

mod edit;
mod extract;
mod finding;
pub mod keys;
mod load;
mod sandbox;
mod source;
mod span;
mod tracked;
pub mod variables;
mod watch;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use context::{Layers, When};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tools::permission::{BadRule, Mode, Places, Rule, Rules};
use transcript::mark::Ttl;
use transcript::price::{Price, Prices};
use transcript::tokens::Estimator;
use transcript::window::{AutoCompact, Window};

pub use edit::NotEdited;
pub use extract::Extract;
pub use finding::{Finding, Weight, nearest};
pub use load::{File, Loaded, Set, Standing};
pub use sandbox::Sandbox;
pub use source::{Files, Flag, Origin, Source, managed_directory};
pub use span::{Json, NotJson, Step};
pub use watch::Watch;

use crate::dream::gate::Rhythm;
use crate::hooks::{Hook, Hooks};
use crate::ledger::Budget;
use keys::{Key, Part};

/// What the settings say.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The model.
    pub model: Option<Chosen>,
    /// The permission mode a session starts in.
    pub mode: Option<Mode>,
    /// Whether `bypassPermissions` may be entered at all.
    pub bypass: Bypass,
    /// Permission rules.
    pub rules: Rules,
    /// More directories to work in.
    pub directories: Vec<PathBuf>,
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
    pub memory_directory: Option<(String, Source)>,
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
    /// When memories are brought into order, and by whom.
    pub dream: DreamSettings,
    /// What is learnt, and when.
    pub extract: Extract,
    /// `dailyLog`: whether sessions keep a daily log instead of memories.
    pub daily_log: Option<bool>,
    /// How the layers work, as far as the settings say.
    pub layers: LayerSettings,
    /// What they say of the sandbox.
    pub sandbox: Sandbox,
    /// The hooks that run, in their order.
    pub hooks: Hooks,
    /// Whose hooks run.
    pub hooks_of: HooksOf,
    /// Every value of the files, and whether it counts.
    pub sets: Vec<Set>,
    /// What is to be said of the files.
    pub findings: Vec<Finding>,
}

/// The model that the settings name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// Whose word it is.
    pub source: Source,
    /// What the user's own settings name, where a file below the project says otherwise. It decides about the server.
    pub own: Option<String>,
}

/// Whether `bypassPermissions` may be entered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bypass {
    /// By a flag, or by settings that are not the project's.
    #[default]
    Allowed,
    /// Not at all.
    Disabled,
}

/// What the settings say of dreams.
#[derive(Debug, Clone, Default)]
pub struct DreamSettings {
    /// `dream`.
    pub on: Option<bool>,
    /// `dreamHours`.
    pub hours: Option<u64>,
    /// `dreamSessions`.
    pub sessions: Option<u64>,
    /// `dreamModel`.
    pub model: Option<String>,
}

/// What the settings say of the layers.
#[derive(Debug, Clone, Default)]
pub struct LayerSettings {
    /// `autoCompact`.
    pub auto_compact: Option<bool>,
    /// `compactWhen`.
    pub when: Option<When>,
    /// `collapse`.
    pub collapse: Option<bool>,
    /// `snip`.
    pub snip: Option<bool>,
    /// `microcompact`.
    pub clear: Option<bool>,
    /// `digest`.
    pub digest: Option<bool>,
    /// `timeMicrocompact`.
    pub clear_when_idle: Option<bool>,
    /// `microcompactKeep`.
    pub kept_when_idle: Option<u64>,
    /// `notes`.
    pub notes: Option<bool>,
    /// `notesCompact`.
    pub notes_compact: Option<bool>,
    /// `notesShare`.
    pub notes_share: Option<u64>,
    /// `reactive`.
    pub reactive: Option<bool>,
    /// `reactiveOnly`.
    pub reactive_only: Option<bool>,
    /// `restoreFiles`.
    pub restored_files: Option<u64>,
    /// `cacheEdits`.
    pub cache_edits: Option<bool>,
    /// `cacheEditsAfter`.
    pub cache_edits_after: Option<u64>,
    /// `apiContextManagement`.
    pub api_edits: Option<bool>,
    /// `apiCompaction`.
    pub api_compact: Option<bool>,
    /// `apiThinkingTurns`.
    pub api_thinking: Option<u64>,
    /// `tokenEstimate`.
    pub estimator: Option<Estimator>,
    /// `cacheDiagnosis`.
    pub cache_diagnosis: Option<bool>,
}

impl LayerSettings {
    fn of(sets: &Counting<'_>) -> Self {
        Self {
            auto_compact: sets.one(&keys::AUTO_COMPACT),
            when: sets.one(&keys::COMPACT_WHEN),
            collapse: sets.one(&keys::COLLAPSE),
            snip: sets.one(&keys::SNIP),
            clear: sets.one(&keys::MICROCOMPACT),
            digest: sets.one(&keys::DIGEST),
            clear_when_idle: sets.one(&keys::TIME_MICROCOMPACT),
            kept_when_idle: sets.one(&keys::MICROCOMPACT_KEEP),
            notes: sets.one(&keys::NOTES),
            notes_compact: sets.one(&keys::NOTES_COMPACT),
            notes_share: sets.one(&keys::NOTES_SHARE),
            reactive: sets.one(&keys::REACTIVE),
            reactive_only: sets.one(&keys::REACTIVE_ONLY),
            restored_files: sets.one(&keys::RESTORE_FILES),
            cache_edits: sets.one(&keys::CACHE_EDITS),
            cache_edits_after: sets.one(&keys::CACHE_EDITS_AFTER),
            api_edits: sets.one(&keys::API_CONTEXT_MANAGEMENT),
            api_compact: sets.one(&keys::API_COMPACTION),
            api_thinking: sets.one(&keys::API_THINKING),
            estimator: sets.one(&keys::TOKEN_ESTIMATE),
            cache_diagnosis: sets.one(&keys::CACHE_DIAGNOSIS),
        }
    }

    /// The layers as they say, in a window, at a price.
    pub fn layers(&self, window: Window, price: Option<Price>) -> Layers {
        let usual = Layers::default();
        Layers {
            window,
            price,
            collapse: self.collapse.unwrap_or(usual.collapse),
            snip: self.snip.unwrap_or(usual.snip),
            clear: self.clear.unwrap_or(usual.clear),
            digest: self.digest.unwrap_or(usual.digest),
            clear_when_idle: self.clear_when_idle.unwrap_or(usual.clear_when_idle),
            kept_when_idle: self.kept_when_idle.map_or(usual.kept_when_idle, |kept| kept as usize),
            auto_compact: if self.auto_compact == Some(false) { AutoCompact::Off } else { AutoCompact::On },
            when: self.when.unwrap_or(usual.when),
            notes: self.notes.unwrap_or(usual.notes),
            notes_compact: self.notes_compact.unwrap_or(usual.notes_compact),
            notes_share: match self.notes_share {
                None => usual.notes_share,
                Some(percent) => (percent > 0).then_some(percent as f64 / 100.0),
            },
            reactive: self.reactive.unwrap_or(usual.reactive),
            reactive_only: self.reactive_only.unwrap_or(usual.reactive_only),
            restored_files: self.restored_files.map_or(usual.restored_files, |files| files as usize),
            cache_edits: self.cache_edits.unwrap_or(usual.cache_edits),
            cache_edits_after: self.cache_edits_after.map_or(usual.cache_edits_after, |most| most as usize),
            api_edits: self.api_edits.unwrap_or(usual.api_edits),
            api_compact: self.api_compact.unwrap_or(usual.api_compact),
            api_thinking: self.api_thinking.or(usual.api_thinking),
            estimator: self.estimator.unwrap_or(usual.estimator),
            cache_diagnosis: self.cache_diagnosis.unwrap_or(usual.cache_diagnosis),
            ..usual
        }
    }
}

/// A server to talk to, as the settings have it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Which protocol it speaks.
    #[serde(rename = "type", default)]
    pub kind: ProviderKind,
    /// Its address.
    pub base_url: String,
    /// The environment variable that holds its key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The model, when only the entry is named.
    #[serde(default)]
    pub model: Option<String>,
    /// Its window, in tokens.
    #[serde(default)]
    pub window: Option<u64>,
    /// What it costs.
    #[serde(default)]
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

/// Where the paths in settings start from.
#[derive(Debug, Clone)]
pub struct Ground<'a> {
    /// The working directory.
    pub directory: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
}

/// The values that count.
struct Counting<'a> {
    sets: Vec<&'a Set>,
}

impl<'a> Counting<'a> {
    fn of(&self, key: &Key) -> impl Iterator<Item = &'a Set> {
        self.sets.iter().copied().filter(move |set| set.key.name == key.name)
    }

    fn one<T: DeserializeOwned>(&self, key: &Key) -> Option<T> {
        self.of(key).find_map(|set| serde_json::from_value(set.value.clone()).ok())
    }

    fn texts(&self, key: &Key) -> Vec<String> {
        self.of(key).filter_map(|set| set.value.as_str().map(str::to_owned)).collect()
    }

    fn entries<T: DeserializeOwned>(&self, key: &Key) -> Vec<(String, T)> {
        let entry = |set: &Set| match &set.part {
            Part::Entry(name) => Some((name.clone(), serde_json::from_value(set.value.clone()).ok()?)),
            _ => None,
        };
        self.of(key).filter_map(entry).collect()
    }

    fn paths(&self, key: &Key, ground: &Ground<'_>) -> Vec<PathBuf> {
        self.of(key).filter_map(|set| Some(sandbox::path(set.value.as_str()?, &set.origin, ground))).collect()
    }
}

impl Settings {
    /// What counts of what the files say. `trusted` says whether the user trusts a value that stands below the project.
    pub fn of(loaded: &Loaded, ground: &Ground<'_>, trusted: &dyn Fn(&Set) -> bool) -> Self {
        let sets = loaded.judged(trusted);
        let mut findings = loaded.findings.clone();
        let counting = Counting { sets: sets.iter().filter(|set| set.standing == Standing::Counts).collect() };
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
            bypass: if is_disabled { Bypass::Disabled } else { Bypass::Allowed },
            rules: rules_of(&counting, ground, &mut findings),
            directories: directories(&counting, ground),
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
            dream: DreamSettings {
                on: counting.one(&keys::DREAM),
                hours: counting.one(&keys::DREAM_HOURS),
                sessions: counting.one(&keys::DREAM_SESSIONS),
                model: counting.one(&keys::DREAM_MODEL),
            },
            daily_log: counting.one(&keys::DAILY_LOG),
            layers: LayerSettings::of(&counting),
            sandbox: Sandbox::of(&counting, ground),
            hooks,
            hooks_of: whose,
            sets: Vec::new(),
            findings,
        };
        Self { sets, ..settings }
    }

    /// When dreams come by themselves: not where sessions keep a daily log, and the user asks for one.
    pub fn rhythm(&self) -> Rhythm {
        let usual = Rhythm::default();
        Rhythm {
            on: self.dream.on.unwrap_or(usual.on) && self.daily_log != Some(true),
            hours: self.dream.hours.unwrap_or(usual.hours),
            sessions: self.dream.sessions.unwrap_or(usual.sessions),
        }
    }

    /// What the user should know before a session starts.
    pub fn warnings(&self) -> Vec<String> {
        let told = self.findings.iter().filter(|finding| finding.weight > Weight::Note);
        told.map(ToString::to_string).collect()
    }

    /// The values of a key that count, with where they stand.
    pub fn counting(&self, key: &Key) -> impl Iterator<Item = &Set> {
        let name = key.name;
        self.sets.iter().filter(move |set| set.key.name == name && set.standing == Standing::Counts)
    }

    /// Whether an organisation has fixed a key, so that no flag changes it.
    pub fn is_managed(&self, key: &Key) -> bool {
        self.counting(key).any(|set| set.origin.source == Source::Managed)
    }
}

fn model(loaded: &Loaded, counting: &Counting<'_>) -> Option<Chosen> {
    let set = counting.of(&keys::MODEL).next()?;
    let of_user = |set: &&Set| set.key.name == keys::MODEL.name && !set.origin.source.is_below_project();
    let own = loaded.sets.iter().rev().find(of_user).and_then(|set| set.value.as_str()).map(str::to_owned);
    let (name, source) = (set.value.as_str()?.to_owned(), set.origin.source);
    Some(Chosen { name, source, own: own.filter(|_| source.is_below_project()) })
}

fn budget(counting: &Counting<'_>) -> Budget {
    Budget {
        usd: counting.one(&keys::BUDGET_USD).unwrap_or(Budget::default().usd),
        tokens: counting.one(&keys::BUDGET_TOKENS),
        project_usd: counting.one(&keys::BUDGET_PROJECT_USD),
        project_tokens: counting.one(&keys::BUDGET_PROJECT_TOKENS),
    }
}

fn mode(name: &str) -> Option<Mode> {
    let name = if name == "manual" { "default" } else { name };
    serde_json::from_value(name.into()).ok()
}

fn variables_of<'a>(sets: impl Iterator<Item = &'a Set>) -> BTreeMap<String, String> {
    let variable = |set: &Set| match &set.part {
        Part::Entry(name) if set.key.name == keys::ENV.name => Some((name.clone(), load::text(&set.value))),
        _ => None,
    };
    // The strongest comes last.
    sets.filter_map(variable).collect()
}

fn directories(counting: &Counting<'_>, ground: &Ground<'_>) -> Vec<PathBuf> {
    let texts = counting.texts(&keys::DIRECTORIES);
    texts.iter().map(|directory| ground.directory.join(expand(directory, ground))).collect()
}

/// Whose hooks run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HooksOf {
    /// Everybody's, as far as they are trusted.
    #[default]
    All,
    /// An organisation's.
    Managed,
    /// Nobody's.
    Nobody,
}

impl HooksOf {
    fn of(counting: &Counting<'_>) -> Self {
        let says = |key: &Key| counting.of(key).find(|set| set.value == true).map(|set| set.origin.source);
        match (says(&keys::NO_HOOKS), says(&keys::MANAGED_HOOKS)) {
            (Some(Source::Managed), _) => Self::Nobody,
            (None, None) => Self::All,
            _ => Self::Managed,
        }
    }
}

/// The hooks that run, and what is to be said of them.
fn hooks_of(whose: HooksOf, counting: &Counting<'_>, ground: &Ground<'_>, findings: &mut Vec<Finding>) -> Hooks {
    let mut hooks = Vec::new();
    for set in counting.sets.iter().filter(|set| set.key.name.starts_with("hooks.")) {
        let Some((hook, told)) = Hook::of(set, &places(&set.origin, ground)) else { continue };
        findings.extend(told.into_iter().map(|text| Finding {
            weight: Weight::Warning,
            file: set.origin.file.clone(),
            line: set.origin.line,
            column: set.origin.column,
            key: Some(set.key.name.to_owned()),
            text: format!("a {} hook: {text}", hook.moment.name()),
        }));
        let runs = match whose {
            HooksOf::All => true,
            HooksOf::Managed => set.origin.source == Source::Managed,
            HooksOf::Nobody => false,
        };
        if runs {
            hooks.push(hook);
        }
    }
    let listed = |key: &Key| Some(counting.texts(key)).filter(|texts| !texts.is_empty());
    Hooks::new(hooks).with_http(listed(&keys::HTTP_HOOKS), listed(&keys::HTTP_VARIABLES))
}

fn places(origin: &Origin, ground: &Ground<'_>) -> Places {
    Places {
        directory: ground.directory.to_owned(),
        settings: origin.file.as_deref().map_or_else(|| ground.directory.to_owned(), settings_root),
        home: ground.home.map(Path::to_owned),
        file: origin.file.clone(),
    }
}

fn rules_of(counting: &Counting<'_>, ground: &Ground<'_>, findings: &mut Vec<Finding>) -> Rules {
    let mut of = |key: &Key| {
        let mut rules = Vec::new();
        for set in counting.of(key) {
            match Rule::parse(set.value.as_str().unwrap_or_default(), &places(&set.origin, ground)) {
                Ok(rule) => rules.push(rule),
                Err(error) => findings.push(Finding {
                    weight: Weight::Error,
                    file: set.origin.file.clone(),
                    line: set.origin.line,
                    column: set.origin.column,
                    key: Some(key.name.to_owned()),
                    text: error.to_string(),
                }),
            }
        }
        rules
    };
    Rules { allow: of(&keys::ALLOW), ask: of(&keys::ASK), deny: of(&keys::DENY) }
}

/// Rules as they are given in flags, `Bash(git *),Read` or one by one.
pub fn rules(texts: &[String], ground: &Ground<'_>) -> Result<Vec<Rule>, BadRule> {
    let places = Places {
        directory: ground.directory.to_owned(),
        settings: ground.directory.to_owned(),
        home: ground.home.map(Path::to_owned),
        file: None,
    };
    let split = texts.iter().flat_map(|text| split_rules(text));
    split.map(|text| Rule::parse(text, &places)).collect()
}

/// Splits at commas and blanks outside of parentheses.
fn split_rules(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' | ' ' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn expand(path: &str, ground: &Ground<'_>) -> PathBuf {
    match (path.strip_prefix("~/"), ground.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// The directory a settings file speaks of: that of `.claude/settings.json` is the one above.
fn settings_root(path: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(path);
    let root = if parent.ends_with(".claude") { parent.parent().unwrap_or(parent) } else { parent };
    root.to_owned()
}
