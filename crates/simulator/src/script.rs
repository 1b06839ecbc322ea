//! The scripted model: its format, how a rule is chosen, and how a reply is made.
//!
//! A script is a list of rules. The first rule whose conditions hold for a request makes the reply. Conditions look only
//! at what is visible in the request, never at how many requests came before, so an agent whose context lost
//! something asks the model again, and the report shows the rework.
//!
//! The README of this crate documents the TOML form with examples; the types here are the same thing for tests that
//! build a script in Rust.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::faults::Fault;
use crate::when::When;

pub(crate) mod choose;
pub(crate) mod render;

/// A scripted model with its faults.
///
/// ```
/// let script = simulator::Script::parse(r#"
///     [[rule]]
///     name = "greet"
///     when = { user = "my name is (?P<name>\\w+)" }
///     say = "Hello, {{ name }}."
/// "#)?;
/// assert_eq!(script.rules.len(), 1);
/// # Ok::<(), simulator::Error>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Defaults that [`Options`](crate::Options) can override.
    pub model: Defaults,
    /// Variables that every template sees.
    pub vars: BTreeMap<String, String>,
    /// Rules, tried in order.
    #[serde(rename = "rule")]
    pub rules: Vec<ScriptRule>,
    /// Faults, tried in order before any rule.
    #[serde(rename = "fault")]
    pub faults: Vec<Fault>,
}

impl Script {
    /// Reads a script from TOML and checks its regular expressions and templates.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let script: Self = toml::from_str(text).map_err(|problem| Error::Format(Box::new(problem)))?;
        choose::Chooser::new(&script)?;
        Ok(script)
    }

    /// A script that always says the same.
    pub fn saying(text: impl Into<String>) -> Self {
        Self {
            rules: vec![ScriptRule { name: "say".into(), say: Some(text.into()), ..ScriptRule::default() }],
            ..Self::default()
        }
    }
}

/// Properties of the provider, unless [`Options`](crate::Options) set others.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// Context window in tokens, instead of the model's own.
    pub window: Option<u64>,
    /// Fixes ids and signatures.
    pub seed: Option<u64>,
    /// Thinking for rules that have none, when the request enables thinking.
    pub thinking: Option<String>,
    /// Scales every token count.
    pub count_factor: Option<f64>,
}

/// One thing the model does.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptRule {
    /// Named in reports and errors.
    pub name: String,
    /// Conditions.
    pub when: When,
    /// Thinking (a template), sent only when the request enables thinking.
    pub think: Option<String>,
    /// Text (a template).
    pub say: Option<String>,
    /// Pads the text with filler to this many bytes.
    pub say_bytes: Option<usize>,
    /// Searches of the web that the provider makes before the text, in order.
    pub search: Vec<ScriptedSearch>,
    /// Tool calls, in order.
    pub call: Vec<ScriptedCall>,
    /// The reply to a structured-output request; strings inside are templates. A string is a template of the JSON text.
    pub json: Option<Value>,
    /// The stop reason, instead of the one that follows from the content.
    pub stop: Option<String>,
    /// Billed output tokens; then the content is sent whole even beyond `max_tokens`.
    pub output_tokens: Option<u64>,
    /// The rule applies at most so often.
    pub times: Option<u64>,
}

/// One tool call; strings inside `input` are templates.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub tool: String,
    /// Its input: a table.
    #[serde(default = "empty_object")]
    pub input: Value,
}

/// One search by the provider; strings are templates.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedSearch {
    /// The query.
    pub query: String,
    /// What it finds: objects with `url` and `title`. An error's code instead is the answer of a search that failed.
    pub results: Value,
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_is_named_with_its_line() {
        let problem = Script::parse("[[rule]]\nname = \"x\"\nsey = \"hello\"").unwrap_err().to_string();
        assert!(problem.contains("sey") && problem.contains("line 3"), "{problem}");
    }

    #[test]
    fn a_bad_expression_or_template_is_named_with_its_rule() {
        let bad = |body: &str| Script::parse(&format!("[[rule]]\nname = \"r1\"\n{body}")).unwrap_err().to_string();
        assert!(bad(r#"when = { user = "(" }"#).contains("r1"));
        assert!(bad(r#"say = "{{ oops""#).contains("r1"));
        assert!(bad(r#"call = [{ tool = "T", input = { a = ["{% if %}"] } }]"#).contains("r1"));
    }
}
