//! `cairn memory`: the files a project's memory is made of.

mod past;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use memory::import::{Source, apply, plan};
use memory::remember::Origin;
use memory::store::{Change, Indexing, New, Saved, Store};
use memory::{Kind, Memory, doctor, scan};
use serde_json::json;

use crate::exit::Code;
use crate::knowledge;
use crate::out::{data, talk};
use crate::place::Place;
use crate::span::{cyan, dim};

/// The most that is read as the text of a memory.
const BODY_LIMIT: u64 = 1_000_000;

/// Memory files of this project.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cairn memory list
  cairn memory add 'Deploys need two approvals' --type project --body 'Since March: two people sign off.'
  cairn memory search deploy
  cairn memory doctor --fix
  cairn memory import --from ../old/memory          what would be imported
  cairn memory import --from ../old/memory --apply  import it")]
pub(crate) struct MemoryArgs {
    /// Another memory directory than this project's.
    #[arg(long, value_name = "DIR", global = true)]
    dir: Option<PathBuf>,
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
    /// One memory, whole.
    Show {
        /// Its file, relative to the memory directory.
        file: String,
    },
    /// Save a new memory, and its line in the index.
    Add {
        /// What it is called.
        name: String,
        /// One line on what it is about; the name, where it is not given.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// A few short questions that it answers, in other words than its own: it is found by them.
        #[arg(long, value_name = "QUESTIONS")]
        asked: Option<String>,
        /// user, feedback, project or reference.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
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
        /// Its file.
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
    /// Remove a memory and its line.
    Rm {
        /// Its file.
        file: String,
    },
    /// Rename a memory's file, and its line.
    Mv {
        /// Its file.
        from: String,
        /// The new one.
        to: String,
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
        /// List what memories name that is gone, or not found in this project.
        #[arg(long, conflicts_with = "fix")]
        drift: bool,
    },
    /// What agents changed in the background, newest first.
    Log {
        /// With what changed.
        #[arg(long)]
        diff: bool,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Take back what an agent changed. What was edited since stays, and is shown.
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
    let place = Place::from_env()?;
    let directory = knowledge::directory(&place, args.dir.as_deref())?;
    if let MemoryCommand::Path = args.command {
        data!("{}", directory.display())?;
        return Ok(Code::Success);
    }
    let reads = matches!(
        args.command,
        MemoryCommand::List { .. } | MemoryCommand::Search { .. } | MemoryCommand::Doctor { fix: false, .. }
    );
    if reads && !directory.is_dir() {
        talk!("There are no memories in {} yet.", directory.display());
        return Ok(Code::Success);
    }
    let store = Store::create(&directory, Indexing::Kept)?;
    match &args.command {
        MemoryCommand::List { json } => list(&store, *json)?,
        MemoryCommand::Show { file } => {
            Memory::read(store.root(), file)?;
            data!("{}", String::from_utf8_lossy(&store.root().read(file, BODY_LIMIT)?.bytes).trim_end())?;
        }
        MemoryCommand::Add { name, description, asked, kind, applies_to, body, file } => {
            let new = New {
                path: file.clone(),
                name: name.clone(),
                description: description.clone().unwrap_or_else(|| name.clone()),
                asked: asked.clone(),
                kind: kind_of(kind.as_deref())?,
                applies_to: applies_to.clone(),
                body: text(body.as_deref())?.unwrap_or_default(),
            };
            let origin = Origin { at: Some(session::World::real().now()), ..Origin::default() };
            report("saved", &store.remember(&new, &origin, Some(&place.directory))?);
        }
        MemoryCommand::Edit { file, name, description, asked, kind, body } => {
            let body = if body.as_deref() == Some("-") { text(None)? } else { body.clone() };
            let (name, description, asked) = (name.clone(), description.clone(), asked.clone());
            let kind = kind_of(kind.as_deref())?;
            report("changed", &store.edit(file, &Change { name, description, asked, kind, body })?);
        }
        MemoryCommand::Rm { file } => report("removed", &store.remove(file)?),
        MemoryCommand::Mv { from, to } => report("renamed to", &store.rename(from, to)?),
        MemoryCommand::Search { words, json } => search(&store, &words.join(" "), *json)?,
        MemoryCommand::Doctor { drift: true, .. } => return drifted(&store, &place),
        MemoryCommand::Doctor { fix, .. } => return examine(&store, *fix),
        MemoryCommand::Import { from, apply } => import(&store, &place, from, *apply)?,
        MemoryCommand::Log { diff, json } => past::log(&place.home.changes(&directory), *diff, *json)?,
        MemoryCommand::Undo { run, file } => {
            past::undo(&place.home.changes(&directory), &store, run, file.as_deref())?;
        }
        MemoryCommand::Path => {}
    }
    Ok(Code::Success)
}

fn list(store: &Store, as_json: bool) -> anyhow::Result<()> {
    let headers = scan::headers(store.root())?;
    if as_json {
        let rows = headers.iter().map(|header| {
            json!({
                "path": header.path, "type": header.kind.map(Kind::name), "description": header.description,
                "modified": header.modified.map(|time| format!("{time:.0}")),
            })
        });
        data!("{}", rows.collect::<serde_json::Value>())?;
        return Ok(());
    }
    if headers.is_empty() {
        talk!("There are no memories in {} yet.", store.root().path().display());
    }
    for header in headers {
        let kind = header.kind.map_or("", Kind::name);
        data!([format!("{kind:<10} "), cyan(&header.path), "  ", dim(&header.description.unwrap_or_default())])?;
    }
    Ok(())
}

fn search(store: &Store, words: &str, as_json: bool) -> anyhow::Result<()> {
    let ranker = memory::Ranker::load(store.root())?;
    let (doing, now) = (memory::rank::Doing::default(), session::World::real().now());
    let hits = ranker.rank(&memory::rank::Question { text: words, doing: &doing, now });
    if as_json {
        let rows = hits.iter().map(|hit| json!({"path": hit.path, "score": hit.confidence}));
        data!("{}", rows.collect::<serde_json::Value>())?;
        return Ok(());
    }
    if hits.is_empty() {
        talk!("No memory contains any of these words.");
    }
    for hit in hits.iter().take(20) {
        data!("{:.2}  {}", hit.confidence, hit.path)?;
    }
    Ok(())
}

fn examine(store: &Store, fix: bool) -> anyhow::Result<Code> {
    if fix {
        let mended = doctor::mend(store)?;
        for one in &mended {
            data!("{}", one.done)?;
        }
        if mended.is_empty() {
            talk!("Nothing had to be mended.");
        }
        return Ok(Code::Success);
    }
    let findings = doctor::examine(store)?;
    for finding in &findings {
        data!("{finding}")?;
    }
    if findings.is_empty() {
        talk!("Everything is in order.");
        return Ok(Code::Success);
    }
    talk!("\nhint: cairn memory doctor --fix mends what can be mended");
    Ok(Code::Failure)
}

/// What memories name that is not there.
fn drifted(store: &Store, place: &Place) -> anyhow::Result<Code> {
    let mut drifted = 0;
    for path in scan::paths(store.root())? {
        let Ok(memory) = Memory::read(store.root(), &path) else { continue };
        for gone in memory::drift::check(&memory, &place.directory) {
            data!("{path}: {gone}")?;
            drifted += 1;
        }
    }
    if drifted == 0 {
        talk!("Everything that memories name is there.");
        return Ok(Code::Success);
    }
    Ok(Code::Failure)
}

fn import(store: &Store, place: &Place, from: &[PathBuf], do_it: bool) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for path in from {
        found.extend(Found::at(&place.directory.join(path))?);
    }
    let sources: Vec<Source<'_>> = found.iter().map(Found::source).collect();
    let plan = plan(store, &sources)?;
    for skipped in &plan.skipped {
        talk!("not imported: {skipped}");
    }
    if !do_it {
        data!("{}", plan.diff())?;
        talk!("{} memories would be added; --apply adds them.", plan.additions());
        return Ok(());
    }
    for saved in apply(store, &plan)? {
        report("saved", &saved);
    }
    Ok(())
}

/// Something to import, read.
enum Found {
    Directory(files::Root),
    Document { path: PathBuf, text: String },
    CursorRule { path: PathBuf, text: String },
}

impl Found {
    /// What a path holds: Cursor rules by their ending, other folders as memories, other files as documents.
    fn at(path: &Path) -> anyhow::Result<Vec<Self>> {
        let is_rule = |path: &Path| path.extension().is_some_and(|extension| extension == "mdc");
        if !path.is_dir() {
            let text = String::from_utf8_lossy(&files::read(path, BODY_LIMIT)?.bytes).into_owned();
            let path = path.to_owned();
            return Ok(vec![if is_rule(&path) {
                Self::CursorRule { path, text }
            } else {
                Self::Document { path, text }
            }]);
        }
        let rules: Vec<PathBuf> =
            files::list(path)?.iter().map(|entry| path.join(&entry.name)).filter(|path| is_rule(path)).collect();
        if rules.is_empty() {
            return Ok(vec![Self::Directory(files::Root::open(path)?)]);
        }
        let mut found = Vec::new();
        for rule in rules {
            found.extend(Self::at(&rule)?);
        }
        Ok(found)
    }

    fn source(&self) -> Source<'_> {
        match self {
            Self::Directory(root) => Source::Directory(root),
            Self::Document { path, text } => Source::Document { path, text },
            Self::CursorRule { path, text } => Source::CursorRule { path, text },
        }
    }
}

fn report(what: &str, saved: &Saved) {
    talk!("{what} {}", saved.path);
    for warning in &saved.warnings {
        crate::out::warn(&warning.to_string());
    }
}

fn kind_of(word: Option<&str>) -> anyhow::Result<Option<Kind>> {
    let kind = |word: &str| {
        Kind::of(word)
            .ok_or_else(|| anyhow::anyhow!("{word} is no type of memory: user, feedback, project or reference"))
    };
    word.map(kind).transpose()
}

/// A text that was given, or comes from a pipe.
fn text(given: Option<&str>) -> anyhow::Result<Option<String>> {
    if let Some(given) = given {
        return Ok(Some(given.to_owned()));
    }
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(BODY_LIMIT).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
