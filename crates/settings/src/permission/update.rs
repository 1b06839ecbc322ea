//! Changes of rules and modes that come along with a yes, as Claude Code writes them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::permission::Mode;

/// A change of what may happen unasked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate {
    /// Another mode.
    SetMode {
        /// Which.
        mode: Mode,
        /// Where it is to be kept.
        destination: &'static str,
    },
    /// More rules.
    AddRules {
        /// The rules.
        rules: Vec<RuleText>,
        /// What they say.
        behavior: RuleBehavior,
        /// Where they are to be kept.
        destination: &'static str,
    },
}

/// The text of a rule, in its two parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleText {
    /// The tool.
    pub tool_name: String,
    /// What of it; all where this is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

/// What a rule says of the calls it covers.
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

/// Where a change holds that nobody keeps.
pub(super) const SESSION: &str = "session";
/// The settings file of the user's own in a project.
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
    /// What was written; else what it calls itself. Rules that have no tool are left out. No program and no hook sets the
    /// mode that asks nothing.
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
