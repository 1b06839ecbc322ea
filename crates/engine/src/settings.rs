//! Settings, merged from several files: a later one is stronger, lists are joined.
//!
//! The files are those Claude Code reads, so most of their keys are not for us. A key of ours with a value of the wrong
//! type is reported with its file and left out; it never stops a session. [`keys`] is the table of ours.

pub mod keys;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use context::micro::When;
use serde::Deserialize;
use serde_json::Value;
use tools::permission::{BadRule, Mode, Places, Rule, Rules};
use transcript::mark::Ttl;
use transcript::price::{Price, Prices};
use transcript::window::{AutoCompact, Window};

use crate::error::Error;
use crate::layers::Layers;

/// The largest settings file that is read.
const SETTINGS_LIMIT: u64 = 1_000_000;

/// What the settings say.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The model.
    pub model: Option<String>,
    /// The permission mode a session starts in.
    pub mode: Option<Mode>,
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
    /// `autoMemoryEnabled`.
    pub auto_memory: Option<bool>,
    /// `autoMemoryDirectory`, with the file that says so.
    pub memory_directories: Vec<(PathBuf, String)>,
    /// `claudeMdExcludes`: instruction files that are not loaded.
    pub claude_md_excludes: Vec<String>,
    /// `recall`: whether memories are brought up by themselves.
    pub recall: Option<bool>,
    /// `smallModel`: the model for side questions.
    pub small_model: Option<String>,
    /// How the layers work, as far as the settings say.
    pub layers: LayerSettings,
    /// What was wrong in the files.
    pub warnings: Vec<String>,
}

/// What the settings say of the layers.
#[derive(Debug, Clone, Default)]
pub struct LayerSettings {
    /// `autoCompact`.
    pub auto_compact: Option<bool>,
    /// `compactWhen`.
    pub when: Option<When>,
    /// `microcompact`.
    pub clear: Option<bool>,
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
    /// `restoreFiles`.
    pub restored_files: Option<u64>,
    /// `apiContextManagement`.
    pub api_edits: Option<bool>,
    /// `cacheDiagnosis`.
    pub cache_diagnosis: Option<bool>,
}

impl LayerSettings {
    fn take(&mut self, value: &Value, wrong: &mut keys::Wrong<'_>) {
        self.auto_compact = keys::AUTO_COMPACT.read(value, wrong).or(self.auto_compact);
        self.when = keys::COMPACT_WHEN.read(value, wrong).or(self.when);
        self.clear = keys::MICROCOMPACT.read(value, wrong).or(self.clear);
        self.clear_when_idle = keys::TIME_MICROCOMPACT.read(value, wrong).or(self.clear_when_idle);
        self.kept_when_idle = keys::MICROCOMPACT_KEEP.read(value, wrong).or(self.kept_when_idle);
        self.notes = keys::NOTES.read(value, wrong).or(self.notes);
        self.notes_compact = keys::NOTES_COMPACT.read(value, wrong).or(self.notes_compact);
        self.notes_share = keys::NOTES_SHARE.read(value, wrong).or(self.notes_share);
        self.reactive = keys::REACTIVE.read(value, wrong).or(self.reactive);
        self.restored_files = keys::RESTORE_FILES.read(value, wrong).or(self.restored_files);
        self.api_edits = keys::API_CONTEXT_MANAGEMENT.read(value, wrong).or(self.api_edits);
        self.cache_diagnosis = keys::CACHE_DIAGNOSIS.read(value, wrong).or(self.cache_diagnosis);
    }

    /// The layers as they say, in a window, at a price.
    pub fn layers(&self, window: Window, price: Option<Price>) -> Layers {
        let usual = Layers::default();
        Layers {
            window,
            price,
            clear: self.clear.unwrap_or(usual.clear),
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
            restored_files: self.restored_files.map_or(usual.restored_files, |files| files as usize),
            api_edits: self.api_edits.unwrap_or(usual.api_edits),
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

impl Settings {
    /// Reads the files that exist, weakest first.
    pub fn load(paths: &[PathBuf], ground: &Ground<'_>) -> Result<Self, Error> {
        let mut settings = Self::default();
        let mut prices = Vec::new();
        for path in paths {
            let bytes = match files::read(path, SETTINGS_LIMIT) {
                Ok(snapshot) => snapshot.bytes,
                Err(files::Error::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let bad = |why: String| Error::Settings { path: path.clone(), why };
            let value: Value = serde_json::from_slice(&bytes).map_err(|error| bad(format!("not JSON: {error}")))?;
            if !value.is_object() {
                return Err(bad("settings are a JSON object".into()));
            }
            settings.take(&value, path, ground, &mut prices);
        }
        settings.prices = Prices::with(prices);
        Ok(settings)
    }

    fn take(&mut self, value: &Value, path: &Path, ground: &Ground<'_>, prices: &mut Vec<(String, Price)>) {
        let mut warnings = Vec::new();
        let mut wrong = |key: &str, expected: &str| {
            warnings.push(format!("{}: {key} should be {expected}; it is left out", path.display()));
        };
        keys::check_objects(value, &mut wrong);
        self.model = keys::MODEL.read(value, &mut wrong).or(self.model.take());
        self.max_output_tokens = keys::MAX_OUTPUT_TOKENS.read(value, &mut wrong).or(self.max_output_tokens);
        self.cache_ttl = keys::CACHE_TTL.read(value, &mut wrong).or(self.cache_ttl);
        self.mode = keys::MODE.read(value, &mut wrong).or(self.mode);
        prices.extend(keys::PRICES.entries(value, &mut wrong));
        for (name, entry) in keys::PROVIDERS.entries::<Provider>(value, &mut wrong) {
            if let (Some(price), Some(model)) = (entry.price, &entry.model) {
                prices.push((model.clone(), price));
            }
            self.providers.insert(name, entry);
        }
        self.auto_memory = keys::AUTO_MEMORY.read(value, &mut wrong).or(self.auto_memory);
        self.recall = keys::RECALL.read(value, &mut wrong).or(self.recall);
        self.small_model = keys::SMALL_MODEL.read(value, &mut wrong).or(self.small_model.take());
        let memory_directory = keys::MEMORY_DIRECTORY.read(value, &mut wrong);
        self.memory_directories.extend(memory_directory.map(|directory| (path.to_owned(), directory)));
        self.layers.take(value, &mut wrong);
        self.claude_md_excludes.extend(keys::EXCLUDES.texts(value, &mut wrong));
        for directory in keys::DIRECTORIES.texts(value, &mut wrong) {
            self.directories.push(ground.directory.join(expand(&directory, ground)));
        }
        let lists = [
            (keys::ALLOW.texts(value, &mut wrong), &mut self.rules.allow),
            (keys::ASK.texts(value, &mut wrong), &mut self.rules.ask),
            (keys::DENY.texts(value, &mut wrong), &mut self.rules.deny),
        ];
        let places = Places {
            directory: ground.directory.to_owned(),
            settings: settings_root(path),
            home: ground.home.map(Path::to_owned),
            file: Some(path.to_owned()),
        };
        for (texts, rules) in lists {
            for text in texts {
                match Rule::parse(&text, &places) {
                    Ok(rule) => rules.push(rule),
                    Err(error) => warnings.push(format!("{}: {error}", path.display())),
                }
            }
        }
        self.warnings.append(&mut warnings);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_in_one_flag_are_split_outside_of_parentheses() {
        assert_eq!(split_rules("Bash(git log:*, x) Read,Edit"), ["Bash(git log:*, x)", "Read", "Edit"]);
    }
}
