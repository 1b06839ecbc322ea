//! What a shell command would do, judged by its text alone.
//!
//! Four answers, each with the reason: it only looks, it is made of programs that look, it writes, or none of that is known.
//! The text is cut into words by [`lexer`], put into a tree by a grammar, and gone through by [`walk`] for the simple commands
//! in it. Each is judged by its name ([`readers`]), which is enough where the kernel keeps it to looking; and by all its words
//! ([`plain`]), where that has to hold without.
//!
//! No disk, no environment: what the names lead to is for the one who asks (`tools::permission`).

mod field;
mod finding;
mod lexer;
mod plain;
mod readers;
mod tree;
mod variables;
mod walk;
mod wrap;

pub use field::{Field, PROCESS};
pub use finding::{CommandEffect, CommandFinding, FilesRead};
pub use variables::ordinary_name as is_ordinary_variable;
pub use walk::SimpleCommand;

/// What is found out about a command.
#[derive(Debug)]
pub struct Judgement {
    /// What it does.
    pub verdict: CommandEffect,
    /// Why it is thought so, in words.
    pub reason: String,
    /// The simple commands in it, wherever they stand.
    pub found: Vec<SimpleCommand>,
}

/// Judges a command by its text.
pub fn judge(command: &str) -> Judgement {
    let mut walk = walk::CommandWalk::default();
    walk.all(command);
    let found = walk.found;
    // The worst decides; the first of its kind gives the reason.
    let worst = found.iter().map(|one| one.finding.verdict).max();
    let of_worst = || found.iter().filter(|one| Some(one.finding.verdict) == worst);
    // A variable that is looked up is no command, and says least.
    let is_lookup = |one: &&SimpleCommand| one.words.is_empty() && one.finding.private.is_some();
    let reason = of_worst().find(|one| !is_lookup(one)).or_else(|| of_worst().next());
    let reason = reason.map(|one| one.finding.reason.clone());
    Judgement {
        verdict: worst.unwrap_or(CommandEffect::ReadOnly),
        reason: reason.unwrap_or_else(|| "nothing is run".to_owned()),
        found,
    }
}
