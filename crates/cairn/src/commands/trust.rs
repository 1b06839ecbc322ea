//! `cairn trust`: what directories are trusted with.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde_json::json;
use settings::trust::{self, TrustSite};

use crate::exit::Code;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{bold, dim};

/// List and revoke the trust in directories' files.
///
/// A session in a terminal asks before it lets a directory's files allow anything. Your answer is stored in your home, by
/// repository, with a fingerprint of each thing that was named, so what a later pull adds is asked about separately. A no
/// is stored too; revoking forgets both.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    command: TrustCommand,
}

const EXAMPLES: &str = "\
Examples:
  cairn trust list                  directories, and what is trusted in them
  cairn trust revoke                forget it for this directory
  cairn trust revoke ~/src/other    and for another
  cairn -p 'run the tests' --trust  trust this directory for one run";

#[derive(Debug, Subcommand)]
enum TrustCommand {
    /// Print what is trusted in each directory, and what was declined.
    List {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Forget your answers about a directory, so that you are asked again.
    Revoke {
        /// The directory; this one if none is named.
        #[arg(value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
}

/// Lists or forgets.
pub(crate) fn run(args: &TrustArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    match &args.command {
        TrustCommand::List { json } => list(&place, *json),
        TrustCommand::Revoke { dir } => {
            let named = dir.as_ref().map_or_else(|| place.directory.clone(), |dir| place.directory.join(dir));
            // One that is gone is found by the name it was kept under.
            let root = TrustSite::of(&named, place.user_home.as_deref()).root.unwrap_or_else(|| named.clone());
            if trust::revoke(place.home.path(), &root)? {
                talk!("{} is no longer trusted.", root.display());
                return Ok(Code::Success);
            }
            talk!("You were never asked about {}.", root.display());
            Ok(Code::Failure)
        }
    }
}

fn list(place: &ProgramPaths, as_json: bool) -> anyhow::Result<Code> {
    let trusted = trust::list(place.home.path())?;
    if as_json {
        let entries =
            trusted.iter().map(|one| json!({"directory": one.root, "claims": one.claims, "declined": one.declined}));
        data!("{}", entries.collect::<serde_json::Value>())?;
        return Ok(Code::Success);
    }
    if trusted.is_empty() {
        talk!("No directory is trusted.");
    }
    for one in &trusted {
        data!([bold(&one.root.display().to_string())])?;
        for claim in &one.claims {
            data!(["  ", claim.as_str()])?;
        }
        for claim in &one.declined {
            data!(["  ", claim.as_str(), dim(" (declined)")])?;
        }
    }
    Ok(Code::Success)
}
