//! Changes of rules and modes that come with an approval, in Claude Code's format.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::permission::Mode;

/// A change of the permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate {
    /// Sets the mode.
    SetMode {
        /// The mode.
        mode: Mode,
        /// The place where it is kept.
        destination: &'static str,
    },
    /// Adds rules.
    AddRules {
        /// The rules.
        rules: Vec<RuleText>,
        /// Their effect.
        behavior: RuleBehavior,
        /// The place where they are kept.
        destination: &'static str,
    },
}

/// A rule, split into tool and pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleText {
    /// The tool.
    pub tool_name: String,
    /// The pattern; none covers all calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

/// The effect of a rule on the calls it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleBehavior {
    /// They run.
    Allow,
    /// They are asked about.
    Ask,
    /// They do not run.
    Deny,
}

/// A change that lasts for the session only.
pub(super) const SESSION: &str = "session";
/// The user's own settings file in a project.
pub(super) const LOCAL_SETTINGS: &str = "localSettings";

impl RuleText {
    /// The parts of a rule's text.
    pub(super) fn of(text: &str) -> Self {
        match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((tool, content)) => Self { tool_name: tool.to_owned(), rule_content: Some(content.to_owned()) },
            None => Self { tool_name: text.to_owned(), rule_content: None },
        }
    }
}

impl std::fmt::Display for RuleText {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.rule_content {
            Some(content) => write!(to, "{}({content})", self.tool_name),
            None => to.write_str(&self.tool_name),
        }
    }
}

impl PermissionUpdate {
    /// Parses an update; the error is the type it names. Rules without a tool are dropped. No program and no hook can
    /// set the mode `bypassPermissions`.
    pub fn of(written: &Value) -> Result<Self, String> {
        let part = |key: &str| written[key].clone();
        let update = match written["type"].as_str() {
            Some("setMode") => serde_json::from_value(part("mode"))
                .ok()
                .filter(|mode| *mode != Mode::BypassPermissions)
                .map(|mode| Self::SetMode { mode, destination: SESSION }),
            Some("addRules") => serde_json::from_value(part("behavior")).ok().map(|behavior| {
                let rules = written["rules"].as_array().into_iter().flatten();
                let rules = rules.filter_map(|rule| serde_json::from_value(rule.clone()).ok()).collect();
                Self::AddRules { rules, behavior, destination: SESSION }
            }),
            _ => None,
        };
        update.ok_or_else(|| written["type"].as_str().unwrap_or("a change without a type").to_owned())
    }
}
