//! The keys of a skill, by type. What has the wrong type counts for nothing and is told of.

use std::path::Path;

use memory::frontmatter::Frontmatter;
use serde_json::Value;

use crate::trouble::ExtensionTrouble;

/// The keys of one file.
pub(super) struct Fields<'a> {
    top: &'a Frontmatter,
    text: &'a str,
    file: &'a Path,
    pub(super) troubles: Vec<ExtensionTrouble>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(top: &'a Frontmatter, text: &'a str, file: &'a Path) -> Self {
        let odd = top.diagnostics.iter();
        let troubles = odd.map(|odd| ExtensionTrouble::warning(file, odd.line, odd.problem.to_string())).collect();
        Self { top, text, file, troubles }
    }

    /// Tells of a value that counts for nothing.
    pub(super) fn doubt(&mut self, key: &str, what: String) {
        let names =
            |line: &str| line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
        let line = self.text.lines().position(names).map_or(1, |line| line + 1);
        self.troubles.push(ExtensionTrouble::warning(self.file, line, what));
    }

    fn value(&self, key: &str) -> Option<&'a Value> {
        self.top.fields.get(key).filter(|value| !value.is_null())
    }

    /// A text, a number or a truth, as it is written.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.value(key)?;
        let text = self.top.text(key);
        if text.is_none() {
            self.doubt(key, format!("{key} must be a string; it is ignored"));
        }
        text
    }

    /// A hint: `[file] [line]` is a list to YAML, and meant as it is written.
    pub(super) fn hint(&mut self, key: &str) -> Option<String> {
        match self.value(key)? {
            Value::Array(items) => {
                let items = items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
                Some(format!("[{}]", items.collect::<Vec<_>>().join(", ")))
            }
            Value::Object(_) => self.written(key),
            _ => self.text(key).filter(|text| !text.is_empty()),
        }
    }

    /// The text after a key on its line.
    fn written(&self, key: &str) -> Option<String> {
        let rest = |line: &'a str| line.strip_prefix(key)?.trim_start().strip_prefix(':');
        self.text.lines().find_map(rest).map(|rest| rest.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A truth, in the words that YAML has had for it.
    pub(super) fn switch(&mut self, key: &str) -> Option<bool> {
        let word = self.text(key)?.to_ascii_lowercase();
        match word.as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => {
                self.doubt(key, format!("{key} must be true or false, not {word:?}; it is ignored"));
                None
            }
        }
    }

    /// A list: of YAML, or a text with commas or blanks outside of parentheses.
    pub(super) fn list(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.value(key) else { return Vec::new() };
        match value {
            Value::Array(items) => {
                let texts = items.iter().filter_map(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
                let list: Vec<String> = texts.map(str::to_owned).collect();
                if items.iter().any(|item| !item.is_string()) {
                    self.doubt(key, format!("{key} must be a list of strings; other entries are ignored"));
                }
                list
            }
            Value::Object(_) => {
                self.doubt(key, format!("{key} must be a list; it is ignored"));
                Vec::new()
            }
            _ => {
                let text = self.top.text(key).unwrap_or_default().replace(['\n', '\r', '\t'], " ");
                settings::split_rules(&text).into_iter().map(str::to_owned).collect()
            }
        }
    }

    /// An object, as it is written.
    pub(super) fn object(&mut self, key: &str) -> Option<Value> {
        let value = self.value(key)?;
        if !value.is_object() {
            self.doubt(key, format!("{key} must be an object; it is ignored"));
            return None;
        }
        Some(value.clone())
    }
}
