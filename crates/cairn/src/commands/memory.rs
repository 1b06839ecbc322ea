//! `cairn memory`: the files a project's memory is made of.

mod importing;
mod mending;
mod past;
mod saving;

mod showing;

use std::path::PathBuf;

use crate::exit::Code;
use crate::memory_shelves::CommandShelves;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;

/// Manage memories: of this project, and yours across projects.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cairn memory list
  cairn memory add 'Deploys need two approvals' --type project --body 'Since March: two people sign off.'
  cairn memory search deploy
  cairn memory show deploys                         a name is enough
  cairn memory forget 'the old staging host'        and no agent saves it again
  cairn memory move tabs --user                     for every project
  cairn memory doctor --fix
  cairn memory import --from ../old/memory          what would be imported
  cairn memory import --from ../old/memory --apply  import it")]
pub(crate) struct MemoryArgs {
    /// Use another memory directory than this project's.
    #[arg(long, value_name = "DIR", global = true)]
    dir: Option<PathBuf>,
    /// Use your memories across projects, instead of this project's.
    #[arg(long, global = true, conflicts_with = "dir")]
    user: bool,
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Debug, clap::Subcommand)]
enum MemoryCommand {
    /// List all memories, newest first.
    List {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show a memory in full, with its origin.
    Show {
        /// Its name or its file, or a part of one.
        name: String,
        /// Also print the messages that it comes from.
        #[arg(long)]
        open: bool,
    },
    /// Save a new memory, with its line in the index.
    Add {
        /// Its name.
        name: String,
        /// A description in one line; the first sentence of the text if it is not given.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// A few short questions that it answers, in other words than its own, so that it is found by them.
        #[arg(long, value_name = "QUESTIONS")]
        asked: Option<String>,
        /// user, feedback, project or reference.
        #[arg(long = "type", value_name = "TYPE", default_value = "project")]
        kind: String,
        /// Files, languages, tools or activities that it applies to.
        #[arg(long, value_name = "WORDS", num_args = 1..)]
        applies_to: Vec<String>,
        /// The text; read from stdin if it is not given.
        #[arg(long, value_name = "TEXT")]
        body: Option<String>,
        /// The file, instead of one made from the name.
        #[arg(long, value_name = "FILE")]
        file: Option<String>,
    },
    /// Change a memory; what is not given stays as it is, byte for byte.
    Edit {
        /// Its name or its file, or a part of one.
        file: String,
        /// Another name.
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Another description.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Other questions that it answers.
        #[arg(long, value_name = "QUESTIONS")]
        asked: Option<String>,
        /// Another type.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// Another text; `-` reads it from stdin.
        #[arg(long, value_name = "TEXT")]
        body: Option<String>,
    },
    /// Remove a memory and its line. No agent will save it again.
    Rm {
        /// Its name or its file, or a part of one.
        name: String,
    },
    /// Remove the memory that a name or words refer to. No agent will save it again.
    Forget {
        /// A name, or words of it.
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Rename a memory's file, in the index too.
    Mv {
        /// Its name or its file, or a part of one.
        from: String,
        /// The new file.
        to: String,
    },
    /// Move a memory to your memories across projects, or from there to this project's.
    Move {
        /// Its name or its file, or a part of one.
        name: String,
        /// To this project's.
        #[arg(long, conflicts_with = "user", required_unless_present = "user")]
        project: bool,
    },
    /// Find memories that contain words, best first.
    Search {
        /// The words.
        words: Vec<String>,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Find problems: orphans, dead links, duplicates, overlong lines, bad frontmatter.
    Doctor {
        /// Fix what can be fixed.
        #[arg(long)]
        fix: bool,
        /// List what memories name that is gone or has changed since they were saved.
        #[arg(long, conflicts_with = "fix")]
        drift: bool,
    },
    /// List the changes that agents made in the background and you made by commands, newest first.
    Log {
        /// With diffs.
        #[arg(long)]
        diff: bool,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Undo what a run changed. What was edited since is kept, and shown.
    Undo {
        /// The run, as the log names it, or the beginning of it.
        run: String,
        /// One memory of it, by its file; all if none is named.
        file: Option<String>,
    },
    /// Print the path of the memory directory.
    Path,
    /// Import other memories: shows what would change; --apply does it.
    Import {
        /// A memory directory, a CLAUDE.md or AGENTS.md, or a folder of Cursor rules.
        #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
        from: Vec<PathBuf>,
        /// Do it.
        #[arg(long)]
        apply: bool,
    },
}

/// Runs a memory command.
pub(crate) fn run(args: &MemoryArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let shelves = CommandShelves::of(&place, args.dir.as_deref(), args.user)?;
    let reads = matches!(
        args.command,
        MemoryCommand::List { .. } | MemoryCommand::Search { .. } | MemoryCommand::Doctor { fix: false, .. }
    );
    let as_json = matches!(args.command, MemoryCommand::List { json: true } | MemoryCommand::Search { json: true, .. });
    if reads && !as_json && shelves.are_missing() {
        talk!("There are no memories in {} yet.", shelves.main().display());
        return Ok(Code::Success);
    }
    match &args.command {
        MemoryCommand::Path => data!("{}", shelves.main().display())?,
        MemoryCommand::List { json } => showing::list(&shelves, *json)?,
        MemoryCommand::Show { name, open } => showing::show(&shelves, name, *open)?,
        MemoryCommand::Search { words, json } => showing::search(&shelves, &words.join(" "), *json)?,
        MemoryCommand::Add { name, description, asked, kind, applies_to, body, file } => {
            let given = saving::MemoryDraft {
                name,
                description: description.as_deref(),
                asked: asked.as_deref(),
                kind,
                applies_to,
                body: body.as_deref(),
                file: file.as_deref(),
            };
            saving::add(&shelves, &given)?;
        }
        MemoryCommand::Edit { file, name, description, asked, kind, body } => {
            let body = if body.as_deref() == Some("-") { saving::text(None)? } else { body.clone() };
            let (name, description, asked) = (name.clone(), description.clone(), asked.clone());
            let kind = kind.as_deref().map(saving::kind_of).transpose()?;
            let at = Some(shelves.now());
            let change = memory::store::MemoryEdit { name, description, asked, kind, body, at };
            saving::edit(&shelves, file, change)?;
        }
        MemoryCommand::Rm { name } => saving::remove(&shelves, &shelves.find(name)?)?,
        MemoryCommand::Forget { words } => saving::forget(&shelves, &words.join(" "))?,
        MemoryCommand::Mv { from, to } => saving::rename(&shelves, from, to)?,
        MemoryCommand::Move { name, project } => saving::relocate(&shelves, name, *project)?,
        MemoryCommand::Doctor { drift: true, .. } => return mending::drifted(&shelves),
        MemoryCommand::Doctor { fix, .. } => return mending::examine(&shelves, *fix),
        MemoryCommand::Import { from, apply } => importing::import(&shelves, from, *apply)?,
        MemoryCommand::Log { diff, json } => past::log(&shelves.changes(), *diff, *json)?,
        MemoryCommand::Undo { run, file } => {
            let store = shelves.store(shelves.main())?;
            past::undo(&shelves.changes(), &store, run, file.as_deref(), shelves.now())?;
        }
    }
    Ok(Code::Success)
}
