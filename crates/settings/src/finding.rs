//! Findings in settings files: values that are broken, mistyped, unknown, or not allowed in their file.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;

use super::json_positions::{Json, PathStep};
use super::keys::KEYS;
use super::source::{ValueOrigin, shown};

/// A finding in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFinding {
    /// Its severity.
    pub weight: Weight,
    /// The file; none for settings given as text.
    pub file: Option<PathBuf>,
    /// The line, from one.
    pub line: usize,
    /// The column, from one.
    pub column: usize,
    /// The key it is about, if any.
    pub key: Option<String>,
    /// The message.
    pub text: String,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Nothing is wrong: a key that another program reads.
    Note,
    /// The value has no effect where it is.
    Warning,
    /// The value is invalid and is ignored.
    Error,
}

impl SettingsFinding {
    /// A finding about a value, at its place.
    pub(super) fn at(origin: &ValueOrigin, weight: Weight, key: impl Into<String>, text: String) -> Self {
        let ValueOrigin { file, line, column, .. } = origin.clone();
        Self { weight, file, line, column, key: Some(key.into()), text }
    }
}

impl fmt::Display for SettingsFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", shown(self.file.as_deref()), self.line, self.column, self.text)
    }
}

/// Names of Claude Code's keys: not typing errors, even if they are not read here.
static OTHERS: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| include_str!("names.txt").lines().collect());

/// The most letters by which a mistyped name may differ.
const MOST_DIFFERENT: usize = 3;

/// Findings about the names in a file: unknown ones, and those that another program reads.
pub(super) fn names(json: &Json, file: Option<&Path>) -> Vec<SettingsFinding> {
    let mut findings = Vec::new();
    inside(json, file, json.value(), &mut Vec::new(), &mut findings);
    findings
}

fn inside(
    json: &Json,
    file: Option<&Path>,
    value: &Value,
    path: &mut Vec<String>,
    findings: &mut Vec<SettingsFinding>,
) {
    let Some(object) = value.as_object() else { return };
    for (name, value) in object {
        path.push(name.clone());
        let full = path.join(".");
        let steps: Vec<PathStep> = path.iter().cloned().map(PathStep::Name).collect();
        let mut found = |weight, text| {
            let (line, column) = json.place(&steps);
            let (file, key) = (file.map(Path::to_owned), Some(full.clone()));
            findings.push(SettingsFinding { weight, file, line, column, key, text });
        };
        let ours = known().any(|known| known == full);
        let holds = |known: &str| known.strip_prefix(full.as_str()).is_some_and(|rest| rest.starts_with('.'));
        if !ours && known().any(holds) {
            inside(json, file, value, path, findings);
        } else if ours || full == "$schema" {
            // Nothing is to be said of it.
        } else if OTHERS.contains(full.as_str()) {
            found(Weight::Note, format!("{full} is a setting of Claude Code that Cairn ignores"));
        } else {
            // One that is like no other may be newer than this program.
            match nearest(&full) {
                Some(name) => found(Weight::Error, format!("unknown key {full}; did you mean {name}?")),
                None => found(Weight::Warning, format!("unknown key {full}; it is ignored")),
            }
        }
        path.pop();
    }
}

/// The names that are read, older ones included.
fn known() -> impl Iterator<Item = &'static str> {
    KEYS.iter().flat_map(|key| std::iter::once(key.name).chain(key.older))
}

/// The known name in the same object that a mistyped one probably means.
pub fn nearest(name: &str) -> Option<&'static str> {
    let (object, last) = name.rsplit_once('.').unwrap_or(("", name));
    let beside = |known: &&'static str| {
        let (known_object, _) = known.rsplit_once('.').unwrap_or(("", known));
        known_object == object
    };
    let distance = |known: &'static str| {
        let (_, known_last) = known.rsplit_once('.').unwrap_or(("", known));
        (differences(&last.to_lowercase(), &known_last.to_lowercase()), known)
    };
    let all = known().chain(OTHERS.iter().copied()).filter(beside).map(distance);
    // Of names equally near, the first of ours.
    let (letters, nearest) = all.min_by_key(|(letters, _)| *letters)?;
    (letters <= MOST_DIFFERENT.min(last.chars().count() / 3)).then_some(nearest)
}

/// The number of letters to insert, delete, change or swap with the next.
fn differences(one: &str, other: &str) -> usize {
    /// No mistyped name is as long as this.
    const LONGEST: usize = 100;
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len() > LONGEST {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut least = (row[j + 1] + 1).min(next[j] + 1).min(row[j] + usize::from(a != b));
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        (before, row) = (row, next);
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let json = Json::parse(text.as_bytes()).unwrap();
        names(&json, None).iter().map(|finding| format!("{:?} {finding}", finding.weight)).collect()
    }

    /// CONF-1: typing errors are found, with the line and the nearest name, also inside of objects.
    #[test]
    fn a_mistyped_name_is_told_with_its_place_and_the_nearest() {
        let told =
            found("{\n \"modle\": 1,\n \"permissions\": {\n  \"alow\": []},\n \"xyzzy\": 1,\n \"outputstyle\": 2}");
        assert_eq!(
            told,
            [
                "Error --settings:2:2: unknown key modle; did you mean model?",
                "Error --settings:4:3: unknown key permissions.alow; did you mean permissions.allow?",
                "Warning --settings:5:2: unknown key xyzzy; it is ignored",
                "Error --settings:6:2: unknown key outputstyle; did you mean outputStyle?",
            ]
        );
    }

    /// CONF-1: Claude Code's other keys are no typing errors.
    #[test]
    fn keys_of_claude_code_are_left_alone_without_a_warning() {
        let told = found(
            r#"{"$schema": "x", "spinnerTipsEnabled": true, "sandbox": {"ripgrep": {"what": 1}}, "hooks": {"WorktreeCreate": []}}"#,
        );
        assert!(told.len() == 3 && told.iter().all(|told| told.starts_with("Note")), "{told:?}");
        let told = found(r#"{"hooks": {"PreToolUze": [], "Stop": []}}"#);
        assert_eq!(told, ["Error --settings:1:12: unknown key hooks.PreToolUze; did you mean hooks.PreToolUse?"]);
        assert_eq!(
            found(r#"{"env": {"ANY": "1"}, "providers": {"x": {"baseUrl": "y"}}, "autoCompact": true}"#),
            [""; 0]
        );
    }
}
