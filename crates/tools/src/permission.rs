//! Permission of calls: rules from settings, matched against a call's subject.
//!
//! Nothing here asks or runs anything; asking the user is up to the engine. The disk is read to resolve the paths in a
//! command, and for git's configuration. Two questions are kept apart: what the rules say ([`Rules::decide`]: deny
//! before ask before allow), and what follows from it in the current mode ([`decide`]).
//!
//! Matching errs on the safe side, which differs. A rule that **allows** must match all of a call: every part of a
//! compound command, and a path both as it is named and where it leads. A rule that **denies or asks** matches if any
//! part of the call does, even one that only looks like it. A pattern never allows what is not understood.

mod always;
mod command;
mod mode;
mod operands;
mod protected_paths;
mod repository;
mod rule;
mod shell;

pub use always::{always, runs_others};
pub use mode::{ConfinementLevel, Decision, Mode, ReadOnlyView, Rights, Situation, Wall, decide};
pub use protected_paths::{GUARDED, guarded, is_guarded_name};
pub use repository::runs_programs as git_runs_programs;
pub(crate) use repository::{repository, repository_elsewhere};
pub use rule::{BadRule, Places, Rule, fits};

use std::path::Path;

use self::command::{JudgedCommand, allowable};
use crate::subject::Subject;
use ::shell::SimpleCommand;

/// The rules in force, from all settings.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Calls that may run without asking.
    pub allow: Vec<Rule>,
    /// Calls to ask about, even if they would be allowed.
    pub ask: Vec<Rule>,
    /// Calls that may not run.
    pub deny: Vec<Rule>,
}

/// Compares without regard to order and duplicates.
impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        let all_in = |some: &[Rule], of: &[Rule]| some.iter().all(|rule| of.contains(rule));
        let alike = |some: &[Rule], others: &[Rule]| all_in(some, others) && all_in(others, some);
        alike(&self.allow, &other.allow) && alike(&self.ask, &other.ask) && alike(&self.deny, &other.deny)
    }
}

/// Verdict of the rules on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleVerdict {
    /// It may run.
    Allow,
    /// Ask, because of this rule, with its settings file.
    Ask(String),
    /// It may not run, because of this rule, with its settings file.
    Deny(String),
    /// No rule matches.
    NoRule,
}

impl Rules {
    /// Applies the rules for a folder to its copy too, such as a worktree.
    pub fn hold_in_copy(&mut self, at: &Path, of: &Path) {
        let real = files::real(at).ok().filter(|real| real != at);
        let places: Vec<&Path> = [at].into_iter().chain(real.as_deref()).collect();
        for rules in [&mut self.allow, &mut self.ask, &mut self.deny] {
            let copies = places.iter().flat_map(|at| rules.iter().filter_map(|rule| rule.in_copy(at, of)));
            let copies: Vec<Rule> = copies.collect();
            rules.extend(copies);
        }
    }

    /// Verdict on a call of `tool` on `subject`: deny before ask before allow.
    pub fn decide(&self, tool: &str, subject: &Subject) -> RuleVerdict {
        match subject {
            // By rules alone: what else could make a part harmless is not looked at.
            Subject::Command(text) => self.decide_command(tool, &JudgedCommand::new(text), &|_| false),
            Subject::Path { named, real } => {
                let touches = |rule: &Rule| rule.touches_path(named, real);
                let covering = |path: &Path| self.allow.iter().any(|rule| rule.covers(tool) && rule.matches_path(path));
                self.verdict(tool, touches, || covering(named) && covering(real))
            }
            Subject::Name(name) => {
                let names = |rule: &Rule| rule.matches_name(name);
                self.verdict(tool, names, || self.allow.iter().any(|rule| rule.covers(tool) && names(rule)))
            }
            Subject::Whole => {
                let about_all = |rule: &Rule| rule.is_about_every_call();
                self.verdict(tool, about_all, || self.allow.iter().any(|rule| rule.covers(tool) && about_all(rule)))
            }
        }
    }

    /// Verdict on a command. A part is allowed by a rule, or because `harmless` returns true.
    fn decide_command(
        &self,
        tool: &str,
        command: &JudgedCommand,
        harmless: &dyn Fn(&SimpleCommand) -> bool,
    ) -> RuleVerdict {
        let allow: Vec<&Rule> = self.allow.iter().filter(|rule| rule.covers(tool)).collect();
        let allowed = |part: &SimpleCommand| {
            harmless(part) || allowable(part).is_some_and(|text| allow.iter().any(|rule| rule.matches_part(&text)))
        };
        let all_allowed = || self.allow_all(tool) || (command.parts().next().is_some() && command.parts().all(allowed));
        let verdict = self.verdict(tool, |rule| rule.touches_command(command), all_allowed);
        match (verdict, command.opaque()) {
            (verdict @ (RuleVerdict::Deny(_) | RuleVerdict::Ask(_)), _) | (verdict, None) => verdict,
            // What cannot be named may be what a rule is about.
            (verdict, Some(why)) => {
                let mut rules = self.deny.iter().chain(&self.ask).filter(|rule| rule.covers(tool));
                match rules.next() {
                    Some(rule) => RuleVerdict::Ask(format!(
                        "{}, since it cannot be told whether it is meant ({why}),",
                        rule.cited()
                    )),
                    None => verdict,
                }
            }
        }
    }

    /// Returns whether a rule allows every call of a tool.
    fn allow_all(&self, tool: &str) -> bool {
        self.allow.iter().any(|rule| rule.covers(tool) && rule.is_about_every_call())
    }

    fn verdict(&self, tool: &str, touches: impl Fn(&Rule) -> bool, allowed: impl FnOnce() -> bool) -> RuleVerdict {
        let touching = |rules: &[Rule]| {
            let mut rules = rules.iter().filter(|rule| rule.covers(tool));
            rules.find(|rule| touches(rule)).map(Rule::cited)
        };
        if let Some(rule) = touching(&self.deny) {
            return RuleVerdict::Deny(rule);
        }
        if let Some(rule) = touching(&self.ask) {
            return RuleVerdict::Ask(rule);
        }
        if allowed() { RuleVerdict::Allow } else { RuleVerdict::NoRule }
    }

    /// Returns whether a guarded path is allowed by name, both as it is named and where it leads.
    fn name_guarded(&self, tool: &str, named: &Path, real: &Path) -> bool {
        let mut paths = [named, real].into_iter();
        paths.all(|path| self.allow.iter().any(|rule| rule.covers(tool) && rule.names(path)))
    }

    /// Returns whether no call of `tool` may ever run, so that it need not be offered.
    pub fn forbid(&self, tool: &str) -> bool {
        self.deny.iter().any(|rule| rule.covers(tool) && rule.is_about_every_call())
    }
}
