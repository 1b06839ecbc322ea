//! When a rule or a fault applies: conditions on what is visible in a request.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer};

use crate::Error;
use crate::request_view::RequestView;

/// Compiled expressions may take this much memory, so that a script cannot take all of it.
const EXPRESSION_BYTES: usize = 4 * 1024 * 1024;

/// When a rule or a fault applies. Every given condition must hold; regular expressions match anywhere.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// On the newest text the user typed: no tool results, no `<system-reminder>` text.
    pub user: Option<String>,
    /// All must match somewhere in the text of the messages.
    #[serde(deserialize_with = "one_or_many")]
    pub visible: Vec<String>,
    /// None may match in the text of the messages.
    #[serde(deserialize_with = "one_or_many")]
    pub missing: Vec<String>,
    /// On the tool results that the last turn brings; fails when it brings none.
    pub result: Option<String>,
    /// The last turn brings a result of this tool (its exact name).
    pub tool: Option<String>,
    /// The request offers all these tools (exact names).
    #[serde(deserialize_with = "one_or_many")]
    pub offered: Vec<String>,
    /// On the system prompt.
    pub system: Option<String>,
    /// On the model's name.
    pub model: Option<String>,
}

/// Named captures and variables, for templates.
pub(crate) type Names = BTreeMap<String, String>;

/// Compiled conditions.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    user: Option<Regex>,
    result: Option<Regex>,
    system: Option<Regex>,
    model: Option<Regex>,
    visible: Vec<Regex>,
    missing: Vec<Regex>,
    tool: Option<String>,
    offered: Vec<String>,
}

impl Conditions {
    pub(crate) fn new(when: &When, owner: &str) -> Result<Self, Error> {
        let compile = |text: &String| {
            RegexBuilder::new(text)
                .size_limit(EXPRESSION_BYTES)
                .build()
                .map_err(|problem| Error::Rule { rule: owner.to_owned(), problem: problem.to_string() })
        };
        let optional = |text: &Option<String>| text.as_ref().map(compile).transpose();
        Ok(Self {
            user: optional(&when.user)?,
            result: optional(&when.result)?,
            system: optional(&when.system)?,
            model: optional(&when.model)?,
            visible: when.visible.iter().map(compile).collect::<Result<_, _>>()?,
            missing: when.missing.iter().map(compile).collect::<Result<_, _>>()?,
            tool: when.tool.clone(),
            offered: when.offered.clone(),
        })
    }

    /// The named captures when every condition holds.
    pub(crate) fn hold(&self, view: &RequestView) -> Option<Names> {
        let mut names = Names::new();
        let answered = self.tool.as_ref().is_none_or(|tool| view.answered.contains(tool));
        let offered = self.offered.iter().all(|tool| view.offered.contains(tool));
        if !answered || !offered || self.missing.iter().any(|regex| regex.is_match(&view.messages)) {
            return None;
        }
        matches(&self.system, Some(&view.system), &mut names)?;
        matches(&self.model, Some(&view.model), &mut names)?;
        for regex in &self.visible {
            capture(regex, &view.messages, &mut names)?;
        }
        matches(&self.user, Some(&view.user), &mut names)?;
        matches(&self.result, view.result.as_ref(), &mut names)?;
        Some(names)
    }
}

fn matches(regex: &Option<Regex>, text: Option<&String>, names: &mut Names) -> Option<()> {
    match regex {
        Some(regex) => capture(regex, text?, names),
        None => Some(()),
    }
}

fn capture(regex: &Regex, text: &str, names: &mut Names) -> Option<()> {
    let captures = regex.captures(text)?;
    for name in regex.capture_names().flatten() {
        let found = captures.name(name).map_or("", |capture| capture.as_str());
        names.insert(name.to_owned(), found.to_owned());
    }
    Some(())
}

/// `"x"` is the same as `["x"]`.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}
