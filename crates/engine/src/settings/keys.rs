//! The keys of ours, in one table. Reading, its warnings, the reference and the JSON Schema all come from it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A key that is read.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name; a dot stands between an object and what is in it.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// What it does.
    pub about: &'static str,
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A string.
    Text,
    /// True or false.
    Switch,
    /// A whole number, not negative.
    Count,
    /// A number.
    Amount,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A list of strings.
    Texts,
    /// An object with these keys.
    Entry(Entry),
    /// An object that has such an entry under each name.
    Entries(Entry),
}

/// What an entry is made of.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its keys.
    pub keys: &'static [Key],
    /// Those that must be there.
    pub required: &'static [&'static str],
}

const PRICE: Entry = Entry {
    keys: &[
        Key { name: "input", kind: Kind::Amount, about: "Input that was not cached." },
        Key { name: "output", kind: Kind::Amount, about: "Output." },
        Key { name: "cacheWrite5m", kind: Kind::Amount, about: "Written to the cache for five minutes." },
        Key { name: "cacheWrite1h", kind: Kind::Amount, about: "Written to the cache for an hour." },
        Key { name: "cacheRead", kind: Kind::Amount, about: "Read from the cache." },
    ],
    required: &["input", "output", "cacheWrite5m", "cacheWrite1h", "cacheRead"],
};

const PROVIDER: Entry = Entry {
    keys: &[
        Key {
            name: "type",
            kind: Kind::OneOf(&["openai", "anthropic"]),
            about: "The protocol: chat completions (`openai`, also when nothing is said) or the Messages API.",
        },
        Key { name: "baseUrl", kind: Kind::Text, about: "The server's address." },
        Key { name: "keyEnv", kind: Kind::Text, about: "The environment variable that holds its key." },
        Key { name: "model", kind: Kind::Text, about: "The model, when only the entry is named." },
        Key { name: "window", kind: Kind::Count, about: "Its window, in tokens." },
        Key { name: "price", kind: Kind::Entry(PRICE), about: "What it costs: dollars for a million tokens." },
    ],
    required: &["baseUrl"],
};

macro_rules! keys {
    ($($constant:ident = $name:literal, $kind:expr, $about:literal;)*) => {
        $(#[doc = $about] pub const $constant: Key = Key { name: $name, kind: $kind, about: $about };)*
        /// All keys that are read.
        pub const KEYS: &[Key] = &[$($constant),*];
    };
}

keys! {
    MODEL = "model", Kind::Text, "The model, unless `--model` or a resumed session names one.";
    MAX_OUTPUT_TOKENS = "maxOutputTokens", Kind::Count, "The most tokens a reply may have.";
    CACHE_TTL = "cacheTtl", Kind::OneOf(&["5m", "1h"]), "How long the provider keeps the cached prefix.";
    PRICES = "prices", Kind::Entries(PRICE), "Prices by model: dollars for a million tokens.";
    PROVIDERS = "providers", Kind::Entries(PROVIDER), "Other servers by name; `NAME/MODEL` as the model talks to one.";
    SMALL_MODEL = "smallModel", Kind::Text, "The model for side questions, such as which memories matter.";
    RECALL = "recall", Kind::Switch, "Whether memories are brought up by themselves.";
    AUTO_MEMORY = "autoMemoryEnabled", Kind::Switch, "Whether there is memory.";
    MEMORY_DIRECTORY = "autoMemoryDirectory", Kind::Text, "Where memory lies. The project's committed settings have no say in it.";
    AUTO_COMPACT = "autoCompact", Kind::Switch, "Whether a full window is compacted by itself.";
    COMPACT_WHEN = "compactWhen", Kind::OneOf(&["window", "economy"]), "When context is made shorter: when the window is full, or as soon as that is cheaper than carrying it.";
    MICROCOMPACT = "microcompact", Kind::Switch, "Whether old tool results are cleared to make room.";
    TIME_MICROCOMPACT = "timeMicrocompact", Kind::Switch, "Whether old tool results are cleared when a session wakes up after an hour.";
    MICROCOMPACT_KEEP = "microcompactKeep", Kind::Count, "How many of the newest results then stay; at least one does.";
    NOTES = "notes", Kind::Switch, "Whether notes of the session are kept, for compaction.";
    NOTES_COMPACT = "notesCompact", Kind::Switch, "Whether notes take the place of a summary.";
    NOTES_SHARE = "notesShare", Kind::Count, "The share of a session's cost that notes may have, in percent; 0 is no limit.";
    REACTIVE = "reactive", Kind::Switch, "Whether a request that the provider finds too long is made shorter and sent again.";
    RESTORE_FILES = "restoreFiles", Kind::Count, "How many files that were read last are shown again after a compaction.";
    API_CONTEXT_MANAGEMENT = "apiContextManagement", Kind::Switch, "Whether the provider is asked to leave out old tool results by itself, where it can (Messages API).";
    CACHE_DIAGNOSIS = "cacheDiagnosis", Kind::Switch, "Whether the provider is asked why its cache did not hold, where it says so (Messages API).";
    EXCLUDES = "claudeMdExcludes", Kind::Texts, "Patterns of instruction files that are not loaded.";
    MODE = "permissions.defaultMode", Kind::OneOf(&["default", "acceptEdits", "plan", "bypassPermissions"]), "How much may happen without asking.";
    ALLOW = "permissions.allow", Kind::Texts, "Rules for calls that run without asking.";
    ASK = "permissions.ask", Kind::Texts, "Rules for calls that are always asked about.";
    DENY = "permissions.deny", Kind::Texts, "Rules for calls that never run; stronger than all others.";
    DIRECTORIES = "permissions.additionalDirectories", Kind::Texts, "More directories to work in.";
}

/// Says that a key should be something else.
pub(super) type Wrong<'a> = dyn FnMut(&str, &str) + 'a;

/// Reports what should hold keys of ours and is no object: they would be missed without a word.
pub(super) fn check_objects(settings: &Value, wrong: &mut Wrong<'_>) {
    let mut checked = Vec::new();
    for (object, _) in KEYS.iter().filter_map(|key| key.name.split_once('.')) {
        if !checked.contains(&object) && settings.get(object).is_some_and(|value| !value.is_object()) {
            wrong(object, "an object");
        }
        checked.push(object);
    }
}

impl Key {
    fn find<'a>(&self, settings: &'a Value) -> Option<&'a Value> {
        self.name.split('.').try_fold(settings, |value, part| value.get(part))
    }

    /// Its value, if it is there and right.
    pub(super) fn read<T: DeserializeOwned>(&self, settings: &Value, wrong: &mut Wrong<'_>) -> Option<T> {
        let value = self.find(settings)?;
        let read = serde_json::from_value(value.clone()).ok();
        if read.is_none() {
            wrong(self.name, &self.kind.words());
        }
        read
    }

    /// The strings of a list, without what is none.
    pub(super) fn texts(&self, settings: &Value, wrong: &mut Wrong<'_>) -> Vec<String> {
        let values: Vec<Value> = self.read(settings, wrong).unwrap_or_default();
        let text = |value: &Value| {
            let text = value.as_str().map(str::to_owned);
            if text.is_none() {
                wrong(self.name, &self.kind.words());
            }
            text
        };
        values.iter().filter_map(text).collect()
    }

    /// The entries of an object, without those that are wrong.
    pub(super) fn entries<T: DeserializeOwned>(&self, settings: &Value, wrong: &mut Wrong<'_>) -> Vec<(String, T)> {
        let entries: Map<String, Value> = self.read(settings, wrong).unwrap_or_default();
        let entry = |(name, value): (String, Value)| match serde_json::from_value(value) {
            Ok(entry) => Some((name, entry)),
            Err(error) => {
                wrong(&format!("{}.{name}", self.name), &format!("{} ({error})", self.kind.entry_words()));
                None
            }
        };
        entries.into_iter().filter_map(entry).collect()
    }
}

impl Kind {
    /// What it is, in words.
    pub fn words(&self) -> String {
        match self {
            Self::Text => "a string".into(),
            Self::Switch => "true or false".into(),
            Self::Count => "a whole number".into(),
            Self::Amount => "a number".into(),
            Self::OneOf(values) => {
                let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
                quoted.join(" or ")
            }
            Self::Texts => "a list of strings".into(),
            Self::Entry(_) => self.entry_words(),
            Self::Entries(_) => format!("an object that has, by name, {}", self.entry_words()),
        }
    }

    fn entry_words(&self) -> String {
        match self {
            Self::Entry(entry) | Self::Entries(entry) => {
                let names: Vec<&str> = entry.keys.iter().map(|key| key.name).collect();
                format!("{{{}}}", names.join(", "))
            }
            _ => self.words(),
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Switch => json!({"type": "boolean"}),
            Self::Count => json!({"type": "integer", "minimum": 0}),
            Self::Amount => json!({"type": "number"}),
            Self::OneOf(values) => json!({"enum": values}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Entry(entry) => object(entry.keys, entry.required),
            Self::Entries(entry) => {
                json!({"type": "object", "additionalProperties": object(entry.keys, entry.required)})
            }
        }
    }
}

/// The JSON Schema of a settings file. Keys that are not ours may hold anything.
pub fn schema() -> Value {
    let mut schema = object(KEYS, &[]);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Settings that Cairn reads".into();
    schema
}

fn object(keys: &[Key], required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": {}});
    for key in keys {
        let mut inside = &mut schema;
        let (path, name) = key.name.rsplit_once('.').map_or(("", key.name), |(path, name)| (path, name));
        for part in path.split('.').filter(|part| !part.is_empty()) {
            inside = &mut inside["properties"][part];
            inside["type"] = "object".into();
        }
        let mut value = key.kind.schema();
        value["description"] = key.about.into();
        inside["properties"][name] = value;
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Ground, Settings};
    use std::path::Path;

    fn example(kind: &Kind) -> Value {
        match kind {
            Kind::Text => json!("a"),
            Kind::Switch => json!(true),
            Kind::Count => json!(1),
            Kind::Amount => json!(1.5),
            Kind::OneOf(values) => json!(values[0]),
            Kind::Texts => json!(["Read(/a)"]),
            Kind::Entry(entry) => entry.keys.iter().map(|key| (key.name, example(&key.kind))).collect(),
            Kind::Entries(entry) => json!({"a": example(&Kind::Entry(*entry))}),
        }
    }

    /// A settings file with one value in it.
    fn warnings(name: &str, value: &Value) -> Vec<String> {
        let settings = name.rsplit('.').fold(value.clone(), |inside, part| json!({part: inside}));
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("settings.json");
        files::replace(&path, settings.to_string().as_bytes()).unwrap();
        Settings::load(&[path], &Ground { directory: Path::new("/"), home: None }).unwrap().warnings
    }

    #[test]
    fn every_key_of_the_table_is_read_and_a_wrong_value_is_reported() {
        for key in KEYS {
            assert_eq!(warnings(key.name, &example(&key.kind)), [""; 0], "{}", key.name);
            if let Kind::OneOf(values) = key.kind {
                for value in values {
                    assert_eq!(warnings(key.name, &json!(value)), [""; 0], "{}", key.name);
                }
            }
            let wrong = warnings(key.name, &json!(-1));
            assert!(wrong.len() == 1 && wrong[0].contains(&key.kind.words()), "{}: {wrong:?}", key.name);
        }
    }

    #[test]
    fn every_key_of_an_entry_is_read_and_those_required_must_be_there() {
        for key in KEYS {
            let Kind::Entries(entry) = key.kind else { continue };
            let whole = example(&Kind::Entry(entry));
            for part in entry.keys {
                let mut without = whole.clone();
                without.as_object_mut().unwrap().remove(part.name);
                let missing = warnings(key.name, &json!({"a": without}));
                assert_eq!(missing.is_empty(), !entry.required.contains(&part.name), "{} {}", key.name, part.name);
                let mut wrong = whole.clone();
                wrong[part.name] = json!([]);
                let wrong = warnings(key.name, &json!({"a": wrong}));
                assert!(wrong.len() == 1 && wrong[0].contains("a should be {"), "{} {wrong:?}", part.name);
            }
        }
    }

    #[test]
    fn what_is_right_beside_what_is_wrong_counts() {
        let rules = json!({"allow": ["Read(/a)", 7], "deny": "Bash"});
        let told = warnings("permissions", &rules);
        assert_eq!(told.len(), 2, "{told:?}");
    }

    /// CONF-1: an ill-typed key gets a warning with its file, also one that holds others.
    #[test]
    fn what_should_be_an_object_and_is_none_is_reported_once() {
        for value in [json!("x"), json!([]), json!(7), json!(null)] {
            let told = warnings("permissions", &value);
            assert!(told.len() == 1 && told[0].contains("permissions should be an object"), "{value}: {told:?}");
        }
    }
}
