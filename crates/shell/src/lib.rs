//! Effect of a shell command, predicted from its text alone.
//!
//! Four answers, each with the reason: it only reads, it consists of programs that read, it writes, or it is unknown.
//! The text is cut into words by `lexer`, parsed by a grammar, and searched by `walk` for the simple commands in
//! it. Each is classified by its name (`readers`), which is enough if the kernel confines it to reading, and by all
//! its words (`plain`), for systems where it does not.
//!
//! No disk, no environment: callers resolve the names (`tools::permission`).

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

/// Classification of a command.
#[derive(Debug)]
pub struct Judgement {
    /// Its effect.
    pub verdict: CommandEffect,
    /// The reason in words.
    pub reason: String,
    /// The simple commands in it, at any depth.
    pub found: Vec<SimpleCommand>,
}

/// Classifies a command by its text.
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
