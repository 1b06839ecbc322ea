//! `cairn memory`: the files a project's memory is made of.

mod importing;
mod mending;
mod past;
mod saving;
mod shelves;
mod showing;

use std::path::PathBuf;

use crate::exit::Code;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use shelves::CommandShelves;

/// Memory files: of this project, and of yours across projects.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cairn memory list
  cairn memory add 'Deploys need two approvals' --type project --body 'Since March: two people sign off.'
  cairn memory search deploy
  cairn memory show deploys                         a name is enough
  cairn memory forget 'the old staging host'        and no agent brings it back
  cairn memory move tabs --user                     for every project
  cairn memory doctor --fix
  cairn memory import --from ../old/memory          what would be imported
  cairn memory import --from ../old/memory --apply  import it")]
pub(crate) struct MemoryArgs {
    /// Another memory directory than this project's.
    #[arg(long, value_name = "DIR", global = true)]
    dir: Option<PathBuf>,
    /// Your memories across projects, instead of this project's.
    #[arg(long, global = true, conflicts_with = "dir")]
    user: bool,
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Debug, clap::Subcommand)]
enum MemoryCommand {
    /// All memories, newest first.
    List {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// One memory, whole, and where it comes from.
    Show {
        /// Its name or its file, or a part of one.
        name: String,
        /// Print what was said in the session it comes from.
        #[arg(long)]
        open: bool,
    },
    /// Save a new memory, and its line in the index.
    Add {
        /// What it is called.
        name: String,
        /// One line on what it is about; the first sentence of the text, where it is not given.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// A few short questions that it answers, in other words than its own: it is found by them.
        #[arg(long, value_name = "QUESTIONS")]
        asked: Option<String>,
        /// user, feedback, project or reference.
        #[arg(long = "type", value_name = "TYPE", default_value = "project")]
        kind: String,
        /// What it applies to: files, languages, tools, activities.
        #[arg(long, value_name = "WORDS", num_args = 1..)]
        applies_to: Vec<String>,
        /// The text; from stdin where it is not given.
        #[arg(long, value_name = "TEXT")]
        body: Option<String>,
        /// The file, instead of one made from the name.
        #[arg(long, value_name = "FILE")]
        file: Option<String>,
    },
    /// Change a memory; what is not given stays byte for byte.
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
        /// Another text; `-` takes it from stdin.
        #[arg(long, value_name = "TEXT")]
        body: Option<String>,
    },
    /// Remove a memory and its line. No agent brings it back.
    Rm {
        /// Its name or its file, or a part of one.
        name: String,
    },
    /// Remove the memory that a name or words mean. No agent brings it back.
    Forget {
        /// A name, or words of it.
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Rename a memory's file, and its line.
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
    /// Memories that contain words, best first.
    Search {
        /// The words.
        words: Vec<String>,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Find what is out of order: orphans, dead links, duplicates, overlong lines, bad frontmatter.
    Doctor {
        /// Mend what can be mended.
        #[arg(long)]
        fix: bool,
        /// List what memories name that is gone or has changed since they were saved.
        #[arg(long, conflicts_with = "fix")]
        drift: bool,
    },
    /// What agents changed in the background and you by commands, newest first.
    Log {
        /// With what changed.
        #[arg(long)]
        diff: bool,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Take back what a run changed. What was edited since stays, and is shown.
    Undo {
        /// The run, as the log names it, or the beginning of it.
        run: String,
        /// One memory of it, by its file; all where none is named.
        file: Option<String>,
    },
    /// Where the memory directory is.
    Path,
    /// Bring in other memories: shows what would change; --apply does it.
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
    if reads && shelves.are_missing() {
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
            saving::edit(&shelves, file, &change)?;
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
            past::undo(&shelves.changes(), &shelves.store(shelves.main())?, run, file.as_deref())?;
        }
    }
    Ok(Code::Success)
}
