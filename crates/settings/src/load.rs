//! Loads files into values, each with its origin and status.
//!
//! Nothing here stops a session. What is broken, mistyped or not allowed in its file becomes a finding and is ignored.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::elsewhere::stand_in;
use super::finding::{self, SettingsFinding, Weight};
use super::json_positions::{Json, PathStep};
use super::keys::{self, KEYS, SettingKey};
use super::source::{Files, Flag, SettingsSource, ValueOrigin};
use super::{tracked, variables};
use crate::kind::ValuePart;

/// The largest settings file that is read.
const SETTINGS_LIMIT: u64 = 1_000_000;

/// The content of the files, before it is decided which values are effective.
#[derive(Debug, Clone, Default)]
pub struct LoadedSettings {
    /// Every valid value, the weakest file first.
    pub sets: Vec<SetValue>,
    /// Findings in the files.
    pub findings: Vec<SettingsFinding>,
    /// The files that were read, the weakest first.
    pub files: Vec<File>,
    broken_managed: bool,
}

/// A file that was read.
#[derive(Debug, Clone)]
pub struct File {
    /// Its source.
    pub source: SettingsSource,
    /// Its path; none for settings given as text.
    pub path: Option<PathBuf>,
    /// Its content.
    pub json: Json,
}

/// One value that a file sets: a whole value, an element of a list, or an entry of an object.
#[derive(Debug, Clone)]
pub struct SetValue {
    /// The key.
    pub key: &'static SettingKey,
    /// The part of the key's value.
    pub part: ValuePart,
    /// The value.
    pub value: Value,
    /// Its place.
    pub origin: ValueOrigin,
    /// Its status.
    pub standing: ValueStatus,
}

/// The effect of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueStatus {
    /// It is effective.
    Counts,
    /// A stronger file overrides it.
    Overridden,
    /// It would be effective if the user trusted the directory with it.
    Untrusted,
    /// It is never effective from there, for this reason.
    Never(&'static str),
}

impl SetValue {
    /// The key's name, followed by the entry's.
    pub fn name(&self) -> String {
        match &self.part {
            ValuePart::Entry(name) => format!("{}.{name}", self.key.name),
            _ => self.key.name.to_owned(),
        }
    }
}

impl LoadedSettings {
    /// Reads the files that exist.
    pub fn read(files: &Files) -> Self {
        let mut loaded = Self::default();
        let local = if tracked::is_tracked(&files.local) { SettingsSource::Project } else { SettingsSource::Local };
        if files.sources.user {
            loaded.file(SettingsSource::User, &files.user);
        }
        let is_users =
            |path| files::real(path).is_ok_and(|path| files::real(&files.user).is_ok_and(|user| user == path));
        let below = [
            (SettingsSource::Project, &files.project, files.sources.project),
            (local, &files.local, files.sources.local),
        ];
        for (source, path, is_read) in below {
            // In the home directory the project's file is the user's own.
            if is_read && !is_users(path) {
                loaded.file(source, path);
            }
        }
        match &files.flag {
            Some(Flag::File(path)) => loaded.file(SettingsSource::Flag, path),
            Some(Flag::Text(text)) => loaded.take(SettingsSource::Flag, None, text.as_bytes()),
            None => {}
        }
        for path in files.managed.iter().flat_map(|directory| Files::managed(directory)) {
            loaded.file(SettingsSource::Managed, &path);
        }
        loaded.forbid();
        loaded
    }

    /// True if a managed file is invalid, so that what it forbids is unknown.
    pub fn has_broken_managed(&self) -> bool {
        self.broken_managed
    }

    /// The values with their status. `trusted` says whether the user trusts a value of a project's file.
    pub fn judged(&self, trusted: &dyn Fn(&SetValue) -> bool) -> Vec<SetValue> {
        let mut sets = self.sets.clone();
        for set in &mut sets {
            let needs_trust = set.origin.source.is_below_project() && set.key.reach != keys::MaySet::Anyone;
            if set.standing == ValueStatus::Counts && needs_trust && !trusted(set) {
                set.standing = ValueStatus::Untrusted;
            }
        }
        for index in 0..sets.len() {
            let (set, later) = (&sets[index], &sets[index + 1..]);
            let again = |other: &SetValue| {
                other.standing == ValueStatus::Counts && *other.key == *set.key && other.part == set.part
            };
            if set.standing == ValueStatus::Counts && !set.key.kind.is_joined() && later.iter().any(again) {
                sets[index].standing = ValueStatus::Overridden;
            }
        }
        sets
    }

    fn file(&mut self, source: SettingsSource, path: &Path) {
        match files::read(path, SETTINGS_LIMIT) {
            Ok(file) => self.take(source, Some(path), &file.bytes),
            Err(files::Error::NotFound { .. }) => {}
            Err(error) => self.broken(source, Some(path), (1, 1), &format!("it cannot be read ({error})")),
        }
    }

    fn broken(&mut self, source: SettingsSource, path: Option<&Path>, (line, column): (usize, usize), why: &str) {
        self.broken_managed |= source == SettingsSource::Managed;
        self.findings.push(SettingsFinding {
            weight: Weight::Error,
            file: path.map(Into::into),
            line,
            column,
            key: None,
            text: format!("{why}; the file is left out"),
        });
    }

    fn take(&mut self, source: SettingsSource, path: Option<&Path>, bytes: &[u8]) {
        let json = match Json::parse(bytes) {
            Ok(json) => json,
            Err(not) => return self.broken(source, path, (not.line, not.column), &format!("not JSON: {}", not.why)),
        };
        if !json.value().is_object() {
            return self.broken(source, path, json.place(&[]), "settings must be a JSON object");
        }
        self.findings.extend(finding::names(&json, path));
        let file = File { source, path: path.map(Into::into), json };
        self.objects(&file);
        for key in KEYS {
            self.key(key, &file);
        }
        self.files.push(file);
    }

    /// Reports a non-object where nested keys of ours belong: they would be missed silently.
    fn objects(&mut self, file: &File) {
        let mut checked: Vec<&str> = Vec::new();
        for key in KEYS {
            for (dot, _) in key.name.match_indices('.') {
                let object = &key.name[..dot];
                if checked.contains(&object) {
                    continue;
                }
                checked.push(object);
                let found = object.split('.').try_fold(file.json.value(), |value, part| value.get(part));
                if found.is_some_and(|value| !value.is_object()) {
                    self.wrong(file, object, &ValuePart::Whole, "an object");
                }
            }
        }
    }

    fn key(&mut self, key: &'static SettingKey, file: &File) {
        let Some((name, value)) = key.find(file.json.value()) else { return };
        let stand_in = stand_in(key, value);
        let used = stand_in.map(|stand_in| Value::from(stand_in.value));
        if let Some(stand_in) = stand_in {
            let text = format!("{name}: {value} {}; {:?} is used instead", stand_in.why, stand_in.value);
            self.found(Weight::Warning, file, name, &ValuePart::Whole, text);
        }
        let value = used.as_ref().unwrap_or(value);
        let Some(parts) = key.kind.parts(value) else {
            return self.wrong(file, name, &ValuePart::Whole, &key.kind.words());
        };
        for (part, fits) in parts {
            if !fits {
                self.wrong(file, name, &part, &key.kind.part_words());
                continue;
            }
            let value = part.of(value);
            let (line, column) = file.json.place(&steps(name, &part));
            let origin = ValueOrigin { source: file.source, file: file.path.clone(), line, column };
            let value = value.unwrap_or_default();
            self.sets.push(SetValue { key, part, value, origin, standing: ValueStatus::Counts });
        }
    }

    fn wrong(&mut self, file: &File, name: &str, part: &ValuePart, expected: &str) {
        let shown = match part {
            ValuePart::Whole => name.to_owned(),
            ValuePart::Element(_) | ValuePart::Hook(..) => format!("an element of {name}"),
            ValuePart::Entry(entry) => format!("{name}.{entry}"),
        };
        self.found(Weight::Error, file, name, part, format!("{shown} should be {expected}; it is left out"));
    }

    fn found(&mut self, weight: Weight, file: &File, name: &str, part: &ValuePart, text: String) {
        let (line, column) = file.json.place(&steps(name, part));
        let (file, key) = (file.path.clone(), Some(name.to_owned()));
        self.findings.push(SettingsFinding { weight, file, line, column, key, text });
    }

    /// Marks values that project files may never set, trusted or not.
    fn forbid(&mut self) {
        let entry = |set: &SetValue| match &set.part {
            ValuePart::Entry(name) if *set.key == keys::PROVIDERS => Some(name.clone()),
            _ => None,
        };
        let own = self.sets.iter().filter(|set| !set.origin.source.is_below_project());
        let providers: Vec<String> = own.filter_map(entry).collect();
        for set in self.sets.iter_mut().filter(|set| set.origin.source.is_below_project()) {
            let Some(why) = never(set, &providers) else { continue };
            set.standing = ValueStatus::Never(why);
            let text = format!("{} has no effect here: {why}", set.name());
            self.findings.push(SettingsFinding::at(&set.origin, Weight::Warning, set.name(), text));
        }
    }
}

/// The reason why a project's file may never set a value; none if it may. `providers` are the names of the user's own.
fn never(set: &SetValue, providers: &[String]) -> Option<&'static str> {
    let key = set.key;
    if key.reach == keys::MaySet::Own {
        return Some("only your own settings may set this, not a project's");
    }
    if *key == keys::MODE && set.value == "bypassPermissions" {
        return Some("a project's settings cannot stop Cairn from asking you");
    }
    if *key == keys::MODEL || *key == keys::SMALL_MODEL {
        let name = set.value.as_str().unwrap_or_default();
        let server = name.split_once('/').map_or(name, |(server, _)| server);
        return providers
            .iter()
            .any(|known| known == server)
            .then_some("it names a server, which only your own settings may choose");
    }
    match &set.part {
        ValuePart::Entry(name) if *key == keys::ENV => variables::refusal(name, &text(&set.value)),
        _ => None,
    }
}

/// A variable's value as text.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn steps(name: &str, part: &ValuePart) -> Vec<PathStep> {
    let mut steps: Vec<PathStep> = name.split('.').map(|part| PathStep::Name(part.to_owned())).collect();
    match part {
        ValuePart::Whole => {}
        ValuePart::Element(index) => steps.push(PathStep::Element(*index)),
        ValuePart::Entry(entry) => steps.push(PathStep::Name(entry.clone())),
        ValuePart::Hook(group, hook) => {
            steps.extend([PathStep::Element(*group), PathStep::Name("hooks".to_owned()), PathStep::Element(*hook)]);
        }
    }
    steps
}
