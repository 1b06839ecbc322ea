//! `cairn instructions`: which instruction files a session here would load.

use std::path::PathBuf;

use learning::knowledge::outside;
use memory::instructions::{Instructions, Reason};
use serde_json::json;
use transcript::tokens::rough;

use crate::exit::Code;
use crate::memory_setup::MemorySetup;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{cyan, dim};
use crate::trusted_settings::{self, RunTrust};

/// List instruction files: which are loaded, from where, why, and their tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct InstructionsArgs {
    #[command(subcommand)]
    command: InstructionsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum InstructionsCommand {
    /// Show what a session here would load.
    Show {
        /// Also what touching this file would load.
        #[arg(long, value_name = "FILE")]
        touch: Vec<PathBuf>,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
}

/// Shows them.
pub(crate) fn run(args: &InstructionsArgs) -> anyhow::Result<Code> {
    let InstructionsCommand::Show { touch, json: as_json } = &args.command;
    let place = ProgramPaths::from_env()?;
    let judged = trusted_settings::judge(&place, None, RunTrust::No)?;
    let plan = MemorySetup::new(&place, &judged.settings);
    let mut loaded = Instructions::load(plan.sources, Reason::SessionStart);
    outside::settle(&mut loaded, &judged.trust);
    for file in touch {
        loaded.touched(&place.directory.join(file));
        outside::settle(&mut loaded, &judged.trust);
    }
    let tokens = |text: &str| rough(&transcript::Block::text(text));
    if *as_json {
        let files = loaded.files.iter().map(|file| {
            json!({
                "path": file.path, "memoryType": file.owner.name(), "loadReason": file.reason.name(),
                "parent": file.parent, "globs": file.globs, "bytes": file.size, "tokens": tokens(&file.text),
            })
        });
        data!("{}", files.collect::<serde_json::Value>())?;
        return Ok(Code::Success);
    }
    if loaded.files.is_empty() {
        talk!("No instruction files are loaded in {}.", place.directory.display());
    }
    for file in &loaded.files {
        let parent = file.parent.as_ref().map(|parent| format!(" (by {})", parent.display())).unwrap_or_default();
        let why = format!("{}, {}{parent}", file.owner.name(), file.reason.name());
        let tokens = format!("{:>7} tokens  ", tokens(&file.text));
        data!([tokens, cyan(&file.path.display().to_string()), "  ", dim(&why)])?;
    }
    for note in &loaded.notes {
        talk!([cyan("note: "), note.to_string()]);
    }
    Ok(Code::Success)
}
