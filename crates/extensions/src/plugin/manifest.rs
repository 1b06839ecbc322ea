//! `plugin.json`: a plugin's description of itself, and where its parts are.
//!
//! Unknown keys are ignored. A known key of the wrong type, or a path that does not begin with `./`, stops the plugin: what it
//! meant cannot be guessed. The same keys stand in the entry of a marketplace.

use std::path::Path;

use serde_json::{Map, Value};
use settings::{Json, PathStep};

use crate::trouble::ExtensionTrouble;

/// The types of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ManifestForm {
    Text,
    Switch,
    Texts,
    List,
    Object,
    /// A path below the plugin, or a list of such.
    Paths,
    /// The same, or the parts themselves.
    Parts,
}

/// The keys that have a type. `metadata` and `experimental` may be anything.
const KEYS: &[(&str, ManifestForm)] = &[
    ("$schema", ManifestForm::Text),
    ("name", ManifestForm::Text),
    ("displayName", ManifestForm::Text),
    ("version", ManifestForm::Text),
    ("description", ManifestForm::Text),
    ("author", ManifestForm::Object),
    ("homepage", ManifestForm::Text),
    ("repository", ManifestForm::Text),
    ("license", ManifestForm::Text),
    ("keywords", ManifestForm::Texts),
    ("defaultEnabled", ManifestForm::Switch),
    ("skills", ManifestForm::Paths),
    ("commands", ManifestForm::Parts),
    ("agents", ManifestForm::Paths),
    ("workflows", ManifestForm::Paths),
    ("outputStyles", ManifestForm::Paths),
    ("hooks", ManifestForm::Parts),
    ("mcpServers", ManifestForm::Parts),
    ("lspServers", ManifestForm::Parts),
    ("userConfig", ManifestForm::Object),
    ("channels", ManifestForm::List),
    ("dependencies", ManifestForm::List),
    ("settings", ManifestForm::Object),
];

/// Keys that say where parts are.
const PARTS: [&str; 6] = ["skills", "commands", "agents", "outputStyles", "hooks", "mcpServers"];

impl ManifestForm {
    fn fits(self, value: &Value) -> bool {
        let all = |fits: &dyn Fn(&Value) -> bool| value.as_array().is_some_and(|items| items.iter().all(fits));
        match self {
            Self::Text => value.is_string(),
            Self::Switch => value.is_boolean(),
            Self::Texts => all(&Value::is_string),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::Paths => is_path(value) || all(&is_path),
            Self::Parts => is_path(value) || value.is_object() || all(&|item| is_path(item) || item.is_object()),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Switch => "true or false",
            Self::Texts => "a list of strings",
            Self::List => "a list",
            Self::Object => "an object",
            Self::Paths => "a path that begins with `./`, or a list of such",
            Self::Parts => "a path that begins with `./`, an object, or a list of these",
        }
    }
}

/// A path as it has to be written. What it leads to is decided when it is opened, below the plugin's folder.
fn is_path(value: &Value) -> bool {
    value.as_str().is_some_and(|path| path == "." || path.starts_with("./") || path.starts_with(DOWNLOAD))
}

/// The beginning of what would have to be downloaded first; such parts are not used.
const DOWNLOAD: &str = "https://";

/// A plugin's description of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PluginManifest(Map<String, Value>);

impl PluginManifest {
    /// Reads the text of a `plugin.json`.
    pub(super) fn parse(text: &[u8], file: &Path) -> Result<Self, ExtensionTrouble> {
        let stop = |line, what: String| ExtensionTrouble::error(file, line, format!("{what}; the plugin is left out"));
        let json = Json::parse(text).map_err(|not| stop(not.line, format!("this is not JSON: {}", not.why)))?;
        let Some(fields) = json.value().as_object() else {
            return Err(stop(1, "this is not a JSON object".to_owned()));
        };
        if let Some((key, form)) = Self::wrong(fields) {
            let line = json.place(&[PathStep::Name(key.to_owned())]).0;
            return Err(stop(line, format!("{key} should be {}", form.words())));
        }
        match fields.get("name").and_then(Value::as_str) {
            None => Err(stop(1, "it has no name".to_owned())),
            Some(name) if !is_name(name) => {
                Err(stop(1, format!("{name:?} cannot be a name: use letters, digits and -")))
            }
            Some(_) => Ok(Self(fields.clone())),
        }
    }

    /// The keys of a marketplace's entry.
    pub(super) fn of_entry(fields: &Map<String, Value>, file: &Path) -> Result<Self, ExtensionTrouble> {
        match Self::wrong(fields) {
            None => Ok(Self(fields.clone())),
            Some((key, form)) => {
                let what = format!("{key} should be {}; the plugin is left out", form.words());
                Err(ExtensionTrouble::error(file, 1, what))
            }
        }
    }

    fn wrong(fields: &Map<String, Value>) -> Option<(&'static str, ManifestForm)> {
        KEYS.iter().copied().find(|(key, form)| fields.get(*key).is_some_and(|value| !form.fits(value)))
    }

    /// The same, with the parts of another next to its own.
    pub(super) fn joined(mut self, other: &Self) -> Self {
        for key in PARTS {
            let more = other.parts(key).unwrap_or_default();
            if !more.is_empty() {
                let all = self.parts(key).unwrap_or_default().into_iter().chain(more).cloned().collect();
                self.0.insert(key.to_owned(), Value::Array(all));
            }
        }
        for (key, value) in &other.0 {
            self.0.entry(key.clone()).or_insert_with(|| value.clone());
        }
        self
    }

    /// A text.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        Some(self.0.get(key)?.as_str()?.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The values of a key that says where parts are; none if it is not there.
    pub(super) fn parts(&self, key: &str) -> Option<Vec<&Value>> {
        Some(match self.0.get(key)? {
            Value::Array(items) => items.iter().collect(),
            one => vec![one],
        })
    }

    /// The paths of a key, without those to download; none if the key is not there.
    pub(super) fn paths(&self, key: &str) -> Option<Vec<&str>> {
        let paths = self.parts(key)?.into_iter().filter_map(Value::as_str);
        Some(paths.filter(|path| !path.starts_with(DOWNLOAD)).collect())
    }

    /// The objects of a key.
    pub(super) fn objects(&self, key: &str) -> impl Iterator<Item = &Map<String, Value>> {
        self.parts(key).unwrap_or_default().into_iter().filter_map(Value::as_object)
    }

    /// True if it says where any parts are.
    pub(super) fn has_parts(&self) -> bool {
        PARTS.iter().any(|key| self.0.contains_key(*key))
    }
}

/// A name that can stand before the colon of `/plugin:skill`.
pub(super) fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(fine)
}
