//! `cairn policy`: what would a shell command do?
//!
//! The text alone is judged: no file is looked at, nothing is run.

use std::io::{BufRead, BufReader};

use serde_json::json;
use shell::{CommandEffect, judge};

use crate::exit::Code;
use crate::out::data;

/// Show how shell commands are classified.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PolicyCommand {
    /// Classify commands by their text (read_only, confined, writes, unknown), and say why.
    #[command(after_help = "\
  read_only  it certainly only reads
  confined   its programs only read: it runs unasked only if the kernel can enforce that
  writes     it changes something
  unknown    none of these is certain

Only the text is classified. Whether a command then runs unasked also depends on where its paths lead, on rules and on
the mode.

Examples:
  cairn policy check 'git log | head'
  cairn policy check --stdin --json < commands.txt")]
    Check {
        /// The commands.
        #[arg(value_name = "COMMAND", required_unless_present = "stdin", allow_hyphen_values = true)]
        commands: Vec<String>,
        /// One command a line on stdin.
        #[arg(long, conflicts_with = "commands")]
        stdin: bool,
        /// One JSON object a line: command, verdict, reason.
        #[arg(long)]
        json: bool,
    },
}

/// Judges and prints.
pub(crate) fn run(args: &PolicyArgs) -> anyhow::Result<Code> {
    let PolicyCommand::Check { commands, stdin, json } = &args.command;
    if *stdin {
        for line in BufReader::new(std::io::stdin().lock()).split(b'\n') {
            let line = line?;
            print(&String::from_utf8_lossy(&line), *json)?;
        }
    }
    for command in commands {
        print(command, *json)?;
    }
    Ok(Code::Success)
}

fn print(command: &str, as_json: bool) -> anyhow::Result<()> {
    let judgement = judge(command);
    if as_json {
        data!("{}", json!({"command": command, "verdict": judgement.verdict, "reason": judgement.reason}))?;
        return Ok(());
    }
    let verdict = match judgement.verdict {
        CommandEffect::ReadOnly => "read only",
        CommandEffect::Confined => "confined",
        CommandEffect::Writes => "writes",
        CommandEffect::Unknown => "unknown",
    };
    data!("{verdict:<9}  {command}  ({})", judgement.reason)?;
    Ok(())
}
