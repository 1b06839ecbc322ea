//! What follows for a shell command: from the rules, from what it does, and from where its paths lead.
//!
//! A command that only looks runs unasked where a Read would: inside the working directories. Its paths obey the rules
//! for Read and Edit, as they are named and where they lead; where they cannot be resolved and such rules exist, it is
//! asked. Git only looks where nothing but git is run by it.

use std::path::Path;

use super::command::Command;
use super::mode::{Confined, Decision, Mode, Situation, inside};
use super::operands::{Operand, Operands, lexical, operands, places};
use super::repository::runs_programs;
use super::{Rule, Verdict};
use crate::shell::{Found, How, Verdict as Does};
use crate::tool::Subject;

/// Decides on a command.
pub(super) fn decide(situation: &Situation<'_>, tool: &str, text: &str) -> Decision {
    let command = Command::new(text);
    let parts: Vec<(&Found, Operands)> = command.parts().map(|found| (found, operands(found, situation))).collect();
    let paths = path_rules(situation, &parts);
    if let Some(PathRule::Denies(rule)) = &paths {
        return Decision::Deny { why: format!("{tool} is denied here by the permission rule {rule}.") };
    }
    let harmless = |found: &Found| {
        let mut parts = parts.iter().filter(|(part, _)| std::ptr::eq(*part, found));
        parts.all(|(part, operands)| trouble(part, operands, situation).is_none())
    };
    let verdict = situation.rules.decide_command(tool, &command, &harmless);
    if let Verdict::Deny(rule) = verdict {
        return Decision::Deny { why: format!("{tool} is denied here by the permission rule {rule}.") };
    }
    let judgement = &command.judgement;
    let looks = judgement.verdict == Does::ReadOnly;
    if situation.mode == Mode::Plan && !looks {
        let why = format!(
            "{tool} could change something ({}), and in plan mode nothing is changed. Look, and make a plan.",
            judgement.reason
        );
        return Decision::Deny { why };
    }
    if let Verdict::Ask(rule) = verdict {
        return Decision::Ask { why: format!("the permission rule {rule} says to ask") };
    }
    if let Some(PathRule::Asks(rule)) = paths {
        return Decision::Ask { why: format!("the permission rule {rule} says to ask") };
    }
    let confined = situation.confined == Confined::Wholly;
    if situation.mode == Mode::BypassPermissions || verdict == Verdict::Allow || confined {
        return Decision::Allow;
    }
    if !looks {
        return Decision::Ask { why: format!("{tool} could change something: {}", judgement.reason) };
    }
    match parts.iter().find_map(|(part, operands)| trouble(part, operands, situation)) {
        Some(why) => Decision::Ask { why },
        None => Decision::Allow,
    }
}

/// Whether a part of a command runs unasked by itself, because it only looks.
pub(super) fn is_harmless(part: &Found, situation: &Situation<'_>) -> bool {
    trouble(part, &operands(part, situation), situation).is_none()
}

/// Why a part does not run unasked, though it may only look.
fn trouble(part: &Found, operands: &Operands, situation: &Situation<'_>) -> Option<String> {
    if part.finding.verdict != Does::ReadOnly || part.changed && !part.words.is_empty() {
        return Some(part.finding.reason.clone());
    }
    if let Some(what) = &part.finding.private {
        return Some(format!("it shows {what}, which may hold keys"));
    }
    if let Some(path) = &operands.unresolved {
        return Some(format!("where {path} leads is not known"));
    }
    let may_be_read = |path: &Operand| {
        let subject = Subject::Path { named: path.named.clone(), real: path.real.clone() };
        inside(&path.real, situation.directories) || situation.rules.decide("Read", &subject) == Verdict::Allow
    };
    if let Some(outside) = operands.paths.iter().find(|path| !may_be_read(path)) {
        return Some(format!("{} lies outside the working directories", outside.real.display()));
    }
    if part.finding.repository {
        let Some(places) = places(part, situation) else {
            return Some("which repository is meant is not known".to_owned());
        };
        return places.iter().find_map(|place| runs_programs(place, situation.home));
    }
    None
}

/// What the rules for files say of a command.
enum PathRule {
    Denies(String),
    Asks(String),
}

fn path_rules(situation: &Situation<'_>, parts: &[(&Found, Operands)]) -> Option<PathRule> {
    let rules = situation.rules;
    let of = |list: &'_ [Rule], test: &dyn Fn(&Rule) -> bool| list.iter().find(|rule| test(rule)).map(Rule::cited);
    let touched = |rule: &Rule| {
        let (reads, edits) = (rule.covers("Read"), rule.covers("Edit"));
        parts.iter().any(|(part, operands)| {
            let by_operand = operands.paths.iter().any(|path| {
                let meant = if path.how == How::Written { edits } else { reads };
                meant && rule.touches_path(&path.named, &path.real)
            });
            by_operand || (part.finding.verdict != Does::ReadOnly && (reads || edits) && named(part, situation, rule))
        })
    };
    if let Some(rule) = of(&rules.deny, &touched) {
        return Some(PathRule::Denies(rule));
    }
    if let Some(rule) = of(&rules.ask, &touched) {
        return Some(PathRule::Asks(rule));
    }
    // Whatever lies below a directory may be what a rule is about, and so may what cannot be resolved.
    let unclear = parts.iter().any(|(_, operands)| {
        let reads = operands.paths.iter().any(|path| matches!(path.how, How::Tree | How::Followed));
        operands.unresolved.is_some() || reads
    });
    let about_files = |rule: &Rule| rule.covers("Read") || rule.covers("Edit");
    let unclear_rule = || of(&rules.deny, &about_files).or_else(|| of(&rules.ask, &about_files));
    let asks = |rule: String| {
        PathRule::Asks(format!("{rule}, since it cannot be told whether the command reads what it names,"))
    };
    unclear.then(unclear_rule).flatten().map(asks)
}

/// Whether a word of a command that is not understood names a file that a rule is about.
fn named(part: &Found, situation: &Situation<'_>, rule: &Rule) -> bool {
    let Some(places) = places(part, situation) else { return false };
    let mut texts = part.words.iter().skip(1).filter_map(|field| field.text());
    texts.any(|text| {
        // `if=x`, `@x` and `--file=x` name a file too.
        let tail = text.rsplit(['=', '@', ':']).next().unwrap_or(text);
        [text, tail].iter().filter(|text| !text.is_empty()).any(|text| {
            places.iter().any(|place| {
                let path = place.join(text);
                exists(&path) && files::real(&path).is_ok_and(|real| rule.touches_path(&lexical(&path), &real))
            })
        })
    })
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
