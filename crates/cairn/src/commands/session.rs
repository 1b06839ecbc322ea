//! `cairn session`: looking at sessions, whoever wrote them.

mod expand_session;
mod replay;
mod replay_price;
mod subagent_transcripts;
mod text;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use engine::configuration::MAX_OUTPUT_TOKENS;
use provider::anthropic::envelope;
use serde_json::{Value, json};
use session::home::SessionFile;
use session::record::{self, Record};
use session::stats::{Stats, saved_text};
use session::{Fork, Session, World};
use transcript::line::Body;
use transcript::mark::{Ttl, mark};
use transcript::window::{AutoCompact, Window, WindowHints};
use transcript::{Log, Prediction, Prologue, Request, predictions};

use crate::exit::Code;
use crate::out::{self, data, talk};
use crate::program_paths::ProgramPaths;
use crate::session_markdown::markdown;
use crate::styled_text::{cyan, dim};
use crate::{env, event_text, session_kind, trusted_settings};
use text::show;

/// Inspect sessions, Cairn's and Claude Code's.
#[derive(Debug, clap::Args)]
#[command(after_help = "FILE is a session file, or the id of a session of this project, or the beginning of one.")]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    /// List the sessions of this project, newest first.
    List {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show a session's conversation.
    Show {
        /// The session.
        file: String,
        /// One JSON array of messages, as the model sees them.
        #[arg(long)]
        json: bool,
        /// As of the Nth request, before anything was cleared or summarised since.
        #[arg(long, value_name = "ROUND")]
        at: Option<usize>,
        /// The conversation of a subagent, by its id or the beginning of it.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Print the conversation as Markdown, or the file's lines unchanged.
    Export {
        /// The session.
        file: String,
        /// The lines of the file, as JSONL.
        #[arg(long)]
        jsonl: bool,
    },
    /// Undo a commit: the newest, or the one named. Undoing an undo redoes it.
    Undo {
        /// The session.
        file: String,
        /// The commit's uuid.
        commit: Option<String>,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Bring back what a compaction, a snip or a collapse covers: the newest, or the one named.
    Expand {
        /// The session.
        file: String,
        /// The commit's uuid.
        commit: Option<String>,
        /// Only list what each commit covers, and change nothing.
        #[arg(long)]
        list: bool,
        /// JSON.
        #[arg(long)]
        json: bool,
    },
    /// Replay a session through the layers, without a model: show what each would do, and check the invariants.
    Replay(replay::ReplayArgs),
    /// Copy a session under a new id; both can be continued.
    Fork {
        /// The session.
        file: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Remove a session and its folder. This cannot be undone.
    Rm {
        /// The session.
        file: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Print the request that would be sent now, as JSON.
    View {
        /// The session.
        file: String,
        /// On one line.
        #[arg(long)]
        json: bool,
    },
    /// Compare for every reply the estimated tokens with those that the API reported.
    Tokens {
        /// The session.
        file: String,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show figures: messages, tokens, cache, cost.
    Stats {
        /// The session.
        file: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Runs a session command.
pub(crate) fn run(args: &SessionArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    match &args.command {
        SessionCommand::List { json } => list(&place, *json)?,
        SessionCommand::Show { file, json, at, agent } => {
            let session = find(&place, file)?;
            let path = match agent {
                Some(id) => subagent_transcripts::file(&session, id)?,
                None => session,
            };
            match at {
                Some(round) => show(&at_round(&path, *round)?, *json)?,
                None => show(&read_file(&path)?.log, *json)?,
            }
            if agent.is_none() && at.is_none() && !json {
                subagent_transcripts::list(&path)?;
            }
        }
        SessionCommand::Export { file, jsonl } => export(&place, file, *jsonl)?,
        SessionCommand::Undo { file, commit, json } => undo(&place, file, commit.as_deref(), *json)?,
        SessionCommand::Expand { file, commit, list, json } => {
            expand_session::expand(&place, &find(&place, file)?, commit.as_deref(), *list, *json)?;
        }
        SessionCommand::Replay(args) => return replay::run(&place, args),
        SessionCommand::Fork { file, json } => fork(&place, file, *json)?,
        SessionCommand::Rm { file, yes } => remove(&find(&place, file)?, *yes)?,
        SessionCommand::View { file, json } => view(&read(&place, file)?.log, *json)?,
        SessionCommand::Tokens { file, json } => tokens(&find(&place, file)?, *json)?,
        SessionCommand::Stats { file, json } => stats(&place, &read(&place, file)?, *json)?,
    }
    Ok(Code::Success)
}

/// A file, or a session of this project by id.
pub(crate) fn find(place: &ProgramPaths, name: &str) -> anyhow::Result<PathBuf> {
    let path = place.directory.join(name);
    if path.is_file() || name.contains('/') || name.ends_with(".jsonl") {
        return Ok(path);
    }
    Ok(place.home.find(&place.directory, name)?.path)
}

fn read(place: &ProgramPaths, name: &str) -> anyhow::Result<Record> {
    read_file(&find(place, name)?)
}

fn read_file(path: &Path) -> anyhow::Result<Record> {
    let record = record::read(path)?;
    for line in &record.skipped {
        out::warn(&format!("line {} was skipped: {}", line.number, line.why));
    }
    Ok(record)
}

fn list(place: &ProgramPaths, as_json: bool) -> anyhow::Result<()> {
    let sessions = place.home.sessions(&place.directory)?;
    if as_json {
        let row = |session: &SessionFile| {
            let modified = event_text::written(session).map(|time| format!("{time:.0}")).unwrap_or_default();
            let (whose, title) = session_kind::look(&session.path);
            let (kind, name, team) = whose.parts();
            let mut row = json!({
                "id": session.id, "modified": modified, "bytes": session.len, "title": title, "kind": kind,
            });
            if let (Some(name), Some(team)) = (name, team) {
                (row["name"], row["team"]) = (json!(name), json!(team));
            }
            row
        };
        data!("{}", sessions.iter().map(row).collect::<Value>())?;
    } else if sessions.is_empty() {
        talk!("No sessions in {} yet.", place.directory.display());
    }
    for session in sessions.iter().filter(|_| !as_json) {
        let (whose, title) = session_kind::look(&session.path);
        let mark = whose.mark().map(|mark| format!("[{mark}] ")).unwrap_or_default();
        let size = format!("  {:>7}  ", size(session.len));
        data!([cyan(&session.id), "  ", dim(&event_text::when(session)), size, dim(&mark), title])?;
    }
    Ok(())
}

/// The session as it was when the model was asked for the `round`th time.
fn at_round(path: &Path, round: usize) -> anyhow::Result<Log> {
    let (mut lines, _) = record::lines(path)?;
    let mut replies: Vec<&transcript::Id> = Vec::new();
    let mut asked = None;
    for (at, line) in lines.iter().enumerate() {
        if let Body::Assistant { id, .. } = &line.body
            && !replies.contains(&id)
        {
            replies.push(id);
            if replies.len() == round {
                asked = Some(at);
            }
        }
    }
    let total = replies.len();
    let asked = asked.ok_or_else(|| anyhow::anyhow!("there is no round {round}: the session has {total}"))?;
    lines.truncate(asked);
    Ok(Log::load(lines))
}

fn export(place: &ProgramPaths, name: &str, jsonl: bool) -> anyhow::Result<()> {
    if !jsonl {
        data!("{}", markdown(&read(place, name)?.log).trim_end())?;
        return Ok(());
    }
    let mut lines = files::Lines::open(find(place, name)?)?;
    while let Some(line) = lines.next()? {
        if let files::Text::Whole(text) = line.text {
            data!("{}", String::from_utf8_lossy(text))?;
        }
    }
    Ok(())
}

fn fork(place: &ProgramPaths, name: &str, as_json: bool) -> anyhow::Result<()> {
    let path = files::real(find(place, name)?)?;
    let (session, _) = Session::resume_file(&place.home, &place.directory, &path, Fork::Yes, World::real())?;
    let (id, file) = (session.id(), session.path().display());
    if as_json {
        data!("{}", json!({"id": id, "file": session.path()}))?;
    } else {
        data!("{id}  {file}")?;
    }
    Ok(())
}

fn undo(place: &ProgramPaths, name: &str, commit: Option<&str>, as_json: bool) -> anyhow::Result<()> {
    let path = files::real(find(place, name)?)?;
    let (mut session, _) = Session::resume_file(&place.home, &place.directory, &path, Fork::No, World::real())?;
    let commit = commit.map(transcript::Id::from).or_else(|| session.newest_commit());
    let commit = commit.ok_or_else(|| anyhow::anyhow!("there is nothing to undo: the session has no commits"))?;
    let before = session.log().view().tally().count();
    let model = models(session.log()).next_back().unwrap_or_default();
    session.undo(&commit, &window(session.log(), &model)?)?;
    let after = session.log().view().tally().count();
    if as_json {
        data!("{}", json!({"undone": commit, "tokensBefore": before, "tokensAfter": after, "session": session.id()}))?;
    } else {
        data!("undid {commit}: the view had {before} tokens and now has {after}")?;
    }
    Ok(())
}

fn window(log: &Log, model: &str) -> anyhow::Result<Window> {
    Ok(Window::of(&WindowHints {
        model,
        max_context_tokens: env::MAX_CONTEXT.number()?,
        auto_compact_window: env::COMPACT_WINDOW.number()?,
        max_output: log.view().prologue().map_or(MAX_OUTPUT_TOKENS, |known| known.max_tokens),
        ..WindowHints::default()
    }))
}

fn remove(path: &Path, yes: bool) -> anyhow::Result<()> {
    files::stamp(path)?;
    let log = files::Log::open(path, "cairn session rm")?; // nobody may be writing to it
    if !yes {
        anyhow::ensure!(
            std::io::stdin().is_terminal(),
            "rm asks before it removes: add --yes to remove without asking"
        );
        talk!("Remove {} and what was kept for it? This cannot be undone. [y/N]", path.display());
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        if !line.trim().eq_ignore_ascii_case("y") {
            talk!("Nothing was removed.");
            return Ok(());
        }
    }
    files::remove_tree(session::folder_of(path))?;
    files::remove(path)?;
    drop(log);
    Ok(())
}

fn view(log: &Log, as_json: bool) -> anyhow::Result<()> {
    let view = log.view();
    let prologue = view.prologue().cloned().unwrap_or_else(|| {
        // Other programs do not write down what stands before the messages.
        let model = models(log).next_back().unwrap_or_default();
        Prologue { model, max_tokens: 1, ..Prologue::default() }.into()
    });
    let messages = view.messages();
    let marks = mark(&prologue, &messages, &view.seams(), Ttl::default());
    let body = envelope::messages(&Request { prologue, messages, marks });
    if as_json {
        data!("{}", String::from_utf8_lossy(&body))?;
    } else {
        let value: Value = serde_json::from_slice(&body)?;
        data!("{}", serde_json::to_string_pretty(&value)?)?;
    }
    Ok(())
}

fn tokens(path: &Path, as_json: bool) -> anyhow::Result<()> {
    let (lines, _) = record::lines(path)?;
    let made = predictions(lines);
    if as_json {
        data!("{}", serde_json::to_string(&made)?)?;
        return Ok(());
    }
    data!("{:>10}  {:>10}  {:>7}  reply", "estimated", "reported", "off")?;
    for one in &made {
        data!("{:>10}  {:>10}  {:>6.2}%  {}", one.estimated, one.reported, one.error() * 100.0, one.reply)?;
    }
    let mut errors: Vec<f64> = made.iter().map(Prediction::error).collect();
    errors.sort_by(f64::total_cmp);
    if let (Some(median), Some(high)) = (errors.get(errors.len() / 2), errors.get(errors.len() * 95 / 100)) {
        data!("\n{} replies, median {:.2}%, 95th percentile {:.2}%", errors.len(), median * 100.0, high * 100.0)?;
    }
    Ok(())
}

fn models(log: &Log) -> impl DoubleEndedIterator<Item = String> {
    log.lines().iter().filter_map(|line| match &line.body {
        Body::Assistant { model, .. } => Some(model.clone()),
        _ => None,
    })
}

fn stats(place: &ProgramPaths, record: &Record, as_json: bool) -> anyhow::Result<()> {
    let log = &record.log;
    let stats = Stats::of(log, &trusted_settings::settings(place, None)?.prices);
    let window = window(log, &stats.model)?;
    let fill = window.fill(stats.context_tokens, AutoCompact::On);
    if as_json {
        let mut facts = serde_json::to_value(&stats)?;
        facts["skippedLines"] = json!(record.skipped.len());
        facts["windowTokens"] = json!(window.size);
        facts["percentLeft"] = json!(fill.percent_left);
        data!("{facts}")?;
        return Ok(());
    }
    let Stats { lines, replies, tool_calls, commits, .. } = &stats;
    let skipped = record.skipped.len();
    data!("lines        {lines} ({skipped} skipped), {replies} replies, {tool_calls} tool calls, {commits} commits")?;
    data!("model        {}", stats.model)?;
    data!("context      {} tokens of {} ({} % left)", stats.context_tokens, window.size, fill.percent_left)?;
    let (uncached, written, read) = (stats.uncached_tokens, stats.cache_write_tokens, stats.cache_read_tokens);
    data!("input        {uncached} uncached, {written} written to the cache, {read} read from it")?;
    data!("output       {}", stats.output_tokens)?;
    let saved = saved_text(stats.cache_saved_usd);
    data!("cache        {:.1} % read, re-write factor {:.2}, {saved}", stats.hit_ratio * 100.0, stats.rewrite_factor)?;
    match stats.cost_usd {
        Some(cost) => data!("cost         ${cost:.4}")?,
        None => data!("cost         unknown: no price for this model")?,
    }
    if !stats.beside.is_empty() {
        data!("background   {}", event_text::side_work_text(&stats.beside))?;
    }
    Ok(())
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
