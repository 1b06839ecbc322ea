//! Which rule, or which fault, applies to what is visible.

use std::collections::BTreeMap;

use minijinja::Environment;
use regex::{Regex, RegexBuilder};

use super::view::View;
use super::{Rule, Script, When};
use crate::Error;
use crate::script::render;

/// Compiled expressions may take this much memory, so that a script cannot take all of it.
const EXPRESSION_BYTES: usize = 4 * 1024 * 1024;

/// What a template calls all text of the messages.
const MESSAGES: &str = "messages";

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
    pub(crate) fn hold(&self, view: &View) -> Option<Names> {
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

/// A script made ready, with a count of how often each rule spoke.
#[derive(Debug)]
pub(crate) struct Chooser {
    rules: Vec<(Conditions, Rule)>,
    used: Vec<u64>,
    vars: Names,
}

/// The rule that applies, and what its templates may use.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) rule: Rule,
    pub(crate) names: Names,
}

impl Chooser {
    pub(crate) fn new(script: &Script) -> Result<Self, Error> {
        let environment = Environment::new();
        let rules = script
            .rules
            .iter()
            .map(|rule| {
                render::check_templates(&environment, rule)?;
                Ok((Conditions::new(&rule.when, &rule.name)?, rule.clone()))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        for fault in &script.faults {
            Conditions::new(&fault.when, &fault.label())?;
        }
        Ok(Self { used: vec![0; rules.len()], rules, vars: script.vars.clone() })
    }

    /// The first rule whose conditions hold and that has not spoken too often.
    pub(crate) fn choose(&mut self, view: &View) -> Option<Choice> {
        for ((conditions, rule), used) in self.rules.iter().zip(&mut self.used) {
            if rule.times.is_some_and(|times| *used >= times) {
                continue;
            }
            let Some(captured) = conditions.hold(view) else {
                continue;
            };
            *used += 1;
            let mut names = Names::new();
            names.insert("user".to_owned(), view.user.clone());
            names.insert("result".to_owned(), view.result.clone().unwrap_or_default());
            if render::mentions(rule, MESSAGES) {
                names.insert(MESSAGES.to_owned(), view.messages.clone());
            }
            names.extend(self.vars.clone());
            names.extend(captured);
            return Some(Choice { rule: rule.clone(), names });
        }
        None
    }

    /// The names of all rules, for the reply when none applies.
    pub(crate) fn rule_names(&self) -> String {
        self.rules.iter().map(|(_, rule)| format!("\"{}\"", rule.name)).collect::<Vec<_>>().join(", ")
    }
}
