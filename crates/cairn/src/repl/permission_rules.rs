//! Writing a permission rule down, where the project's own settings for this user are.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use settings::trust::{Claim, Kind};

use crate::program_paths::ProgramPaths;

/// The largest settings file that is changed.
const SETTINGS_LIMIT: u64 = 1_000_000;

/// Adds an allow rule to `.claude/settings.local.json`, and to what the user trusts that file with. Everything else in it
/// stays; says where it was written. In the home directory, where nothing is trusted, the rule holds for this session alone
/// and is not written.
pub(crate) fn allow(place: &ProgramPaths, rule: &str) -> anyhow::Result<PathBuf> {
    let mut trust = place.trust();
    let claim = Claim::new(Kind::Rule, rule, rule, "", trust.site());
    // Before the file: a turn that runs takes the file in as soon as it changes.
    trust.remember(&[claim])?;
    written(&place.directory, rule)
}

fn written(project: &Path, rule: &str) -> anyhow::Result<PathBuf> {
    let path = project.join(".claude/settings.local.json");
    let (mut settings, stamp) = match files::read(&path, SETTINGS_LIMIT) {
        Ok(file) => {
            let settings: Value = serde_json::from_slice(&file.bytes)
                .map_err(|error| anyhow::anyhow!("{} is not JSON: {error}", path.display()))?;
            (settings, Some(file.stamp))
        }
        Err(files::Error::NotFound { .. }) => (json!({}), None),
        Err(error) => return Err(error.into()),
    };
    anyhow::ensure!(settings.is_object(), "{} is not a JSON object", path.display());
    if !settings["permissions"].is_object() {
        settings["permissions"] = json!({});
    }
    if !settings["permissions"]["allow"].is_array() {
        settings["permissions"]["allow"] = json!([]);
    }
    if let Some(rules) = settings["permissions"]["allow"].as_array_mut()
        && !rules.iter().any(|known| known == rule)
    {
        rules.push(json!(rule));
    }
    let text = format!("{}\n", serde_json::to_string_pretty(&settings)?);
    match stamp {
        Some(stamp) => files::replace_unchanged(&path, text.as_bytes(), &stamp)?,
        None => files::create_new(&path, text.as_bytes())?,
    };
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_added_once_and_the_rest_stays() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".claude/settings.local.json");
        files::replace(&path, br#"{"theirs": {"b": 1, "a": 2}, "permissions": {"deny": ["Read(.env)"]}}"#).unwrap();
        written(root.path(), "Bash(cargo test:*)").unwrap();
        written(root.path(), "Bash(cargo test:*)").unwrap();
        let settings: Value = serde_json::from_slice(&files::read(&path, 10_000).unwrap().bytes).unwrap();
        assert_eq!(settings["permissions"]["allow"], json!(["Bash(cargo test:*)"]));
        assert_eq!(settings["permissions"]["deny"], json!(["Read(.env)"]));
        assert_eq!(settings["theirs"].to_string(), r#"{"b":1,"a":2}"#);
    }
}
