//! Choice of the rule that applies to what is visible.

use minijinja::Environment;

use super::{Script, ScriptRule, render};
use crate::Error;
use crate::request_view::RequestView;
use crate::when::{Conditions, Names};

/// Name in templates for all text of the messages.
const MESSAGES: &str = "messages";

/// A script made ready, with a count of how often each rule spoke.
#[derive(Debug)]
pub(crate) struct Chooser {
    rules: Vec<(Conditions, ScriptRule)>,
    used: Vec<u64>,
    vars: Names,
}

/// The rule that applies, and what its templates may use.
#[derive(Debug)]
pub(crate) struct RuleChoice {
    pub(crate) rule: ScriptRule,
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
    pub(crate) fn choose(&mut self, view: &RequestView) -> Option<RuleChoice> {
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
            return Some(RuleChoice { rule: rule.clone(), names });
        }
        None
    }

    /// The names of all rules, for the reply when none applies.
    pub(crate) fn rule_names(&self) -> String {
        self.rules.iter().map(|(_, rule)| format!("\"{}\"", rule.name)).collect::<Vec<_>>().join(", ")
    }
}
