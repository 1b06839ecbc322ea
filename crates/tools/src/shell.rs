//! What a shell command would do, judged by its text alone.
//!
//! Three answers: it only looks, it writes, or that is not known; each with the reason. The text is cut into words by
//! [`scan`], put into a tree by a grammar, and gone through by [`walk`] in the order in which the shell would. Each simple
//! command is judged by a table of what is known to be harmless, option by option ([`known`]). Whatever is not in
//! the table, or not understood, is unknown: this is about what may run unasked, and nothing is let through by doubt.
//!
//! No disk, no environment: what the names lead to is for the one who asks (`permission`).

mod awk;
mod field;
mod find;
mod finding;
mod git;
mod known;
mod options;
mod scan;
mod sed;
mod simple;
mod tree;
mod variables;
mod walk;
mod word;
mod wrap;

pub(crate) use field::{Field, PROCESS, Source};
pub(crate) use finding::How;
pub use finding::Verdict;
pub(crate) use walk::Found;

/// What is found out about a command.
#[derive(Debug)]
pub struct Judgement {
    /// What it does.
    pub verdict: Verdict,
    /// Why it is thought so, in words.
    pub reason: String,
    /// The simple commands in it, wherever they stand.
    pub(crate) found: Vec<Found>,
}

/// Judges a command by its text.
pub fn judge(command: &str) -> Judgement {
    let mut walk = walk::Walk::default();
    walk.all(command);
    let found = walk.found;
    // The worst decides; the first of its kind gives the reason.
    let worst = found.iter().map(|one| one.finding.verdict).max();
    let of_worst = || found.iter().filter(|one| Some(one.finding.verdict) == worst);
    // A variable that is looked up is no command, and says least.
    let is_lookup = |one: &&Found| one.words.is_empty() && one.finding.private.is_some();
    let reason = of_worst().find(|one| !is_lookup(one)).or_else(|| of_worst().next());
    let reason = reason.map(|one| one.finding.reason.clone());
    Judgement {
        verdict: worst.unwrap_or(Verdict::ReadOnly),
        reason: reason.unwrap_or_else(|| "nothing is run".to_owned()),
        found,
    }
}
