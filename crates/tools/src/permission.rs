//! Whether a call may run: rules from settings, matched against what the call is about.
//!
//! Everything here is a pure function of its arguments; asking the user is the engine's. Two questions are kept apart:
//! what the rules say ([`Rules::decide`]: deny before ask before allow), and what follows from it in the current mode
//! ([`decide`]).
//!
//! The matching leans to the safe side, and the safe side differs. A rule that **allows** must match all of a call: every
//! part of a compound command, and a path both as it is named and where it leads. A rule that **denies or asks** matches
//! if any part of the call does, even one that only looks like it. What is not understood is never allowed by a pattern.

mod command;
mod guard;
mod mode;
mod rule;

pub use guard::{GUARDED, guarded, is_guarded_name};
pub use mode::{Confined, Decision, Mode, Situation, decide};
pub use rule::{BadRule, Places, Rule};

use std::path::Path;

use crate::tool::Subject;

/// The rules that hold, from all settings.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// What may run without asking.
    pub allow: Vec<Rule>,
    /// What is asked about, even if it would be allowed.
    pub ask: Vec<Rule>,
    /// What may not run.
    pub deny: Vec<Rule>,
}

/// What the rules say of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// Ask, because of this rule, with the file it stands in.
    Ask(String),
    /// It may not run, because of this rule, with the file it stands in.
    Deny(String),
    /// No rule matches.
    NoRule,
}

impl Rules {
    /// What the rules say of a call of `tool` about `subject`: deny before ask before allow.
    pub fn decide(&self, tool: &str, subject: &Subject) -> Verdict {
        let touching = |rules: &[Rule]| {
            let mut rules = rules.iter().filter(|rule| rule.covers(tool));
            rules.find(|rule| rule.touches(subject)).map(Rule::cited)
        };
        if let Some(rule) = touching(&self.deny) {
            return Verdict::Deny(rule);
        }
        if let Some(rule) = touching(&self.ask) {
            return Verdict::Ask(rule);
        }
        let allow: Vec<&Rule> = self.allow.iter().filter(|rule| rule.covers(tool)).collect();
        if rule::allowed(&allow, subject) { Verdict::Allow } else { Verdict::NoRule }
    }

    /// Whether a guarded path is allowed by name, as it is named and where it leads.
    fn name_guarded(&self, tool: &str, named: &Path, real: &Path) -> bool {
        let mut paths = [named, real].into_iter();
        paths.all(|path| self.allow.iter().any(|rule| rule.covers(tool) && rule.names(path)))
    }

    /// Whether no call of `tool` may ever run, so that there is no use in offering it.
    pub fn forbid(&self, tool: &str) -> bool {
        self.deny.iter().any(|rule| rule.covers(tool) && rule.is_about_every_call())
    }
}
