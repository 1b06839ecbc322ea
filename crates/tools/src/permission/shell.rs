//! Decisions on a shell command: from the rules, from what it does, and from where its paths lead.
//!
//! A read-only command runs unasked where a Read would: inside the working directories. If the kernel can confine it,
//! it is enough that it consists of read-only programs, and it gets the right to read and no other. If not, or beside
//! commands that a rule allows, every word of it has to be known. The rules for Read and Edit apply to paths in
//! commands, both as they are named and where they lead; paths that a rule denies by name are hidden from read-only
//! commands.

use std::path::PathBuf;

use super::command::JudgedCommand;
use super::mode::{ConfinementLevel, Decision, Mode, ReadOnlyView, Rights, Situation, Wall, inside};
use super::operands::{Operand, operands, places};
use super::repository::{around, runs_programs};
use super::{Rule, RuleVerdict};
use crate::confinement::SandboxExit;
use crate::subject::Subject;
use shell::{CommandEffect, FilesRead, SimpleCommand};
use transcript::tool_names;

/// A simple command, and the paths in its words.
type CommandPart<'a> = (&'a SimpleCommand, Vec<Operand>);

/// Decides on a command.
pub(super) fn decide(situation: &Situation<'_>, tool: &str, text: &str) -> Decision {
    let command = JudgedCommand::new(text);
    let parts: Vec<CommandPart<'_>> = command.parts().map(|found| (found, operands(found, situation))).collect();
    let denied = |rule: String| Decision::Deny { why: format!("{tool} is denied here by the permission rule {rule}.") };
    let asked = |rule: String| Decision::Ask { why: format!("the permission rule {rule} says to ask") };
    if let Some(rule) = touched(&situation.rules.deny, &parts) {
        return denied(rule.cited());
    }
    let surely = |found: &SimpleCommand| {
        let mut parts = parts.iter().filter(|(part, _)| std::ptr::eq(*part, found));
        parts.all(|part| doubt(part, situation).is_none())
    };
    let by_rules = situation.rules.decide_command(tool, &command, &surely);
    if let RuleVerdict::Deny(rule) = by_rules {
        return denied(rule);
    }
    let judgement = &command.judgement;
    let held = situation.wall == Wall::Whole && situation.leaves == SandboxExit::No;
    let looks = judgement.verdict == CommandEffect::ReadOnly || held && judgement.verdict == CommandEffect::Confined;
    if situation.mode == Mode::Plan && !looks {
        let why =
            format!("{tool} may make changes ({}), and plan mode only reads. Look, and make a plan.", judgement.reason);
        return Decision::Deny { why };
    }
    if let RuleVerdict::Ask(rule) = by_rules {
        return asked(rule);
    }
    if let Some(rule) = touched(&situation.rules.ask, &parts) {
        return asked(rule.cited());
    }
    let let_run = match situation.mode {
        Mode::BypassPermissions => true,
        // What a rule or the sandbox lets do, it may in other modes.
        Mode::Plan => false,
        Mode::Default | Mode::AcceptEdits => {
            let by_rule = by_rules == RuleVerdict::Allow
                && (!parts.iter().all(|(part, _)| surely(part)) || situation.rules.allow_all(tool));
            by_rule || situation.confined == ConfinementLevel::Wholly
        }
    };
    let hidden =
        match reached(situation, &parts, if let_run || !held { HidingPower::None } else { HidingPower::ByKernel }) {
            Ok(hidden) => hidden,
            Err(rule) => {
                return asked(format!("{rule}, since it cannot be told whether the command reads what it names,"));
            }
        };
    if let_run {
        return Decision::Allow(Rights::Full);
    }
    if !looks {
        return Decision::Ask { why: format!("{tool} may make changes: {}", judgement.reason) };
    }
    let trouble = |part: &CommandPart<'_>| if held { trouble(part, situation) } else { doubt(part, situation) };
    if let Some(why) = parts.iter().find_map(trouble) {
        return Decision::Ask { why };
    }
    if situation.leaves == SandboxExit::Yes {
        return Decision::Ask { why: "it asks to run without its confinement".to_owned() };
    }
    Decision::Allow(Rights::ReadOnly(ReadOnlyView { hidden, readable: readable(situation, &parts) }))
}

/// Returns whether a part of a command runs unasked beside what a rule allows, because it surely only reads.
pub(super) fn is_harmless(part: &SimpleCommand, situation: &Situation<'_>) -> bool {
    doubt(&(part, operands(part, situation)), situation).is_none()
}

/// Reason why a confined read-only part does not run unasked.
fn trouble((part, operands): &CommandPart<'_>, situation: &Situation<'_>) -> Option<String> {
    if let Some(what) = &part.finding.private {
        return Some(format!("it shows {what}, which may contain keys"));
    }
    let outside = operands.iter().find(|path| path.surely && !may_be_read(path, situation))?;
    Some(format!("{} is outside the working directories", outside.real.display()))
}

/// Reason why an unconfined part does not run unasked.
fn doubt(whole: &CommandPart<'_>, situation: &Situation<'_>) -> Option<String> {
    let (part, operands) = whole;
    if part.finding.verdict != CommandEffect::ReadOnly || part.changed {
        return Some(part.finding.reason.clone());
    }
    if let Some(why) = trouble(whole, situation) {
        return Some(why);
    }
    let Some(places) = places(part, situation) else {
        return Some("the directory it runs in is not known".to_owned());
    };
    if places.iter().any(|place| !inside(place, situation.directories) || !place.is_dir()) {
        return Some("its directory does not exist or is outside the working directories".to_owned());
    }
    // A link may lead elsewhere when it is followed, and `/proc/self` does.
    if let Some(path) =
        operands.iter().find(|path| path.named != path.real && inside(&path.named, situation.directories))
    {
        return Some(format!("{} is a symlink that leads elsewhere", path.named.display()));
    }
    if part.finding.reads == FilesRead::Files
        && let Some(path) = operands.iter().find(|path| path.real.is_dir())
    {
        return Some(format!("{} is a directory", path.named.display()));
    }
    if part.name() == Some("git") {
        return places.iter().find_map(|place| runs_programs(place, situation.home));
    }
    None
}

fn may_be_read(path: &Operand, situation: &Situation<'_>) -> bool {
    let subject = Subject::Path { named: path.named.clone(), real: path.real.clone() };
    inside(&path.real, situation.directories)
        || situation.rules.decide(tool_names::READ, &subject) == RuleVerdict::Allow
}

/// Paths that a read-only command needs besides the working directories: those that a rule lets it read, and for git
/// the repository around a working directory.
fn readable(situation: &Situation<'_>, parts: &[CommandPart<'_>]) -> Vec<PathBuf> {
    let paths =
        parts.iter().flat_map(|(_, operands)| operands).filter(|path| path.surely).map(|path| path.real.clone());
    let mut readable: Vec<PathBuf> = paths.filter(|path| !inside(path, situation.directories)).collect();
    for (part, _) in parts.iter().filter(|(part, _)| part.name() == Some("git")) {
        readable
            .extend(places(part, situation).unwrap_or_default().iter().flat_map(|place| around(place, situation.home)));
    }
    readable.retain(|path| !inside(path, situation.directories));
    readable.sort();
    readable.dedup();
    readable
}

/// The first rule for files that matches a path the command touches.
fn touched<'a>(rules: &'a [Rule], parts: &[CommandPart<'_>]) -> Option<&'a Rule> {
    rules.iter().find(|rule| {
        let (reads, edits) = (rule.covers(tool_names::READ), rule.covers(tool_names::EDIT));
        parts.iter().any(|(part, operands)| {
            let writes = part.words.first().and_then(|field| field.text()) == Some(">");
            let looks = part.finding.verdict <= CommandEffect::Confined;
            let meant = if writes { edits } else { reads || edits && !looks };
            let mut operands = operands.iter().filter(|path| path.surely || looks);
            meant && operands.any(|path| rule.touches_path(&path.named, &path.real))
        })
    })
}

/// Ability to hide paths that a rule names from the command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HidingPower {
    ByKernel,
    None,
}

/// Paths to hide from a command so that it reads nothing that a rule denies or asks about; the error is a rule for
/// which that is impossible.
fn reached(situation: &Situation<'_>, parts: &[CommandPart<'_>], hiding: HidingPower) -> Result<Vec<PathBuf>, String> {
    let could_read = |(part, operands): &CommandPart<'_>| match part.finding.reads {
        _ if part.words.is_empty() || part.finding.verdict > CommandEffect::Confined => false,
        FilesRead::Nothing | FilesRead::Names => false,
        FilesRead::Files => operands.iter().any(|path| path.real.is_dir()),
        FilesRead::Trees | FilesRead::Anything => true,
    };
    let mut hidden = Vec::new();
    let about_reading = |rule: &&Rule| rule.covers(tool_names::READ);
    for rule in situation.rules.deny.iter().chain(&situation.rules.ask).filter(about_reading) {
        match rule.hides().filter(|_| hiding == HidingPower::ByKernel) {
            // What git has kept of a file is not hidden with it.
            Some(paths) if !parts.iter().any(|part| could_read(part) && part.0.name() == Some("git")) => {
                hidden.extend(paths);
            }
            _ if parts.iter().any(could_read) => return Err(rule.cited()),
            paths => hidden.extend(paths.unwrap_or_default()),
        }
    }
    Ok(hidden)
}
