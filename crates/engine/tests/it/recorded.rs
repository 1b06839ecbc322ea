//! Recorded answers of a capable model to our own requests, put through the real path.
//!
//! A fixture in `tests/answers` is a situation with runs: what the model answered, round by round, to exactly the request
//! that the situation gives. Of each request it was shown a hash stands with the run, so that a changed prompt shows.
//! `REFRESH_ANSWERS=1` writes the hashes anew, after somebody has looked whether the answers still fit; `RENDER_ANSWERS=DIR` puts
//! the requests there to be read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use jiff::tz::TimeZone;
use provider::{Event, Model};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use transcript::block::Kind;
use transcript::{Block, Remarks, Reply, Request, Role, StopReason, Usage};

/// What one model answered in one situation.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Hashes of the requests it was shown.
    pub shown: Vec<String>,
    #[serde(default)]
    pub round: Vec<Round>,
}

/// One reply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    #[serde(default)]
    pub says: String,
    #[serde(default)]
    pub calls: Vec<RecordedCall>,
    /// Whether it was cut off where it had come to its limit.
    #[serde(default)]
    pub cut: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct RecordedCall {
    pub tool: String,
    #[serde(flatten)]
    pub input: Map<String, Value>,
}

/// A model that answers as recorded. What is no request of learning it answers with "I see."
pub struct Recorded {
    rounds: Vec<Round>,
    /// What stands for what in texts: a name in braces, and what it means here.
    places: Vec<(&'static str, String)>,
    is_asked: fn(&Request) -> bool,
    pub seen: Mutex<Vec<Request>>,
}

impl Recorded {
    pub fn new(run: &Run, places: &[(&'static str, &Path)], is_asked: fn(&Request) -> bool) -> Arc<Self> {
        let places = places.iter().map(|(name, path)| (*name, path.display().to_string())).collect();
        Arc::new(Self { rounds: run.round.clone(), places, is_asked, seen: Mutex::default() })
    }

    /// A text without the paths of this machine.
    pub fn plain(&self, text: &str) -> String {
        self.places.iter().fold(text.to_owned(), |text, (name, path)| text.replace(path, name))
    }

    fn here(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                self.places.iter().fold(text.clone(), |text, (name, path)| text.replace(name, path)).into()
            }
            Value::Array(all) => all.iter().map(|one| self.here(one)).collect(),
            Value::Object(all) => all.iter().map(|(key, one)| (key.clone(), self.here(one))).collect(),
            other => other.clone(),
        }
    }

    fn blocks(&self, at: usize, round: &Round) -> Vec<Block> {
        let said = (!round.says.is_empty()).then(|| Block::text(&round.says));
        let call = |(n, call): (usize, &RecordedCall)| {
            Block::tool_use(&format!("call_{at}_{n}"), &call.tool, &self.here(&Value::Object(call.input.clone())))
        };
        said.into_iter().chain(round.calls.iter().enumerate().map(call)).collect()
    }

    /// What became of the calls, one line each; of those that look only that they did.
    pub fn became(&self) -> String {
        let mut lines = String::new();
        for message in self.seen.lock().unwrap().last().map(|request| request.messages.clone()).unwrap_or_default() {
            for block in &message.blocks {
                let Kind::ToolResult { id, failed } = block.kind() else { continue };
                let Some(call) = self.call(id) else { continue };
                let said = self.plain(&block.result_text());
                let looked = !failed && matches!(call.tool.as_str(), "Read" | "Grep" | "Glob" | "Sessions");
                let said = if looked { format!("{} lines", said.lines().count()) } else { said.replace('\n', " / ") };
                let about = call.input.get("file_path").or_else(|| call.input.get("words")).and_then(Value::as_str);
                let failed = if *failed { "refused: " } else { "" };
                lines.push_str(&format!("{} {}: {failed}{said}\n", call.tool, about.unwrap_or("…")));
            }
        }
        lines
    }

    fn call(&self, id: &str) -> Option<&RecordedCall> {
        let (round, call) = id.strip_prefix("call_")?.split_once('_')?;
        self.rounds.get(round.parse::<usize>().ok()?)?.calls.get(call.parse::<usize>().ok()?)
    }

    /// The requests as the model was shown them.
    fn rendered(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|request| self.plain(&rendered(request))).collect()
    }
}

impl Model for Recorded {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let (mut blocks, mut stop) = (vec![Block::text("I see.")], StopReason::EndTurn);
        if (self.is_asked)(&request) {
            let mut seen = self.seen.lock().unwrap();
            blocks = self.rounds.get(seen.len()).map(|round| self.blocks(seen.len(), round)).unwrap_or_default();
            if self.rounds.get(seen.len()).is_some_and(|round| round.cut) {
                stop = StopReason::MaxTokens;
            }
            seen.push(request.clone());
        }
        let reply = Reply {
            id: "reply".into(),
            model: request.prologue.model.clone(),
            blocks,
            stop,
            usage: Usage { input_tokens: 1_000, output_tokens: 100, ..Usage::default() },
            remarks: Remarks::default(),
        };
        stream::iter([Event::Done(reply)]).boxed()
    }

    fn count_tokens(&self, _: Request) -> BoxFuture<'static, Result<u64, provider::Error>> {
        Box::pin(async { Ok(1_000) })
    }
}

/// A request as a person reads it. What stands before a conversation is another matter than the prompts of learning, and
/// tells of the machine: of a fork only its messages count.
fn rendered(request: &Request) -> String {
    let mut text = String::new();
    let is_fork = request.prologue.system.len() > 1;
    if !is_fork {
        for block in &request.prologue.system {
            text.push_str(&format!("# SYSTEM\n{}\n", block.as_text().unwrap_or_default()));
        }
        for tool in &request.prologue.tools {
            text.push_str(&format!("# TOOL {}\n{}\n{}\n", tool.name, tool.description, tool.input_schema));
        }
    }
    for message in &request.messages {
        text.push_str(if message.role == Role::User { "# USER\n" } else { "# MODEL\n" });
        for block in &message.blocks {
            let shown = match block.kind() {
                Kind::ToolUse { name, .. } => format!("[{name} {}]", block.input().unwrap_or_default()),
                Kind::ToolResult { failed, .. } => {
                    format!("[{}]\n{}", if *failed { "failed" } else { "result" }, block.result_text())
                }
                _ => block.as_text().unwrap_or_default(),
            };
            text.push_str(&format!("{shown}\n"));
        }
    }
    text
}

/// The fixtures of a folder, by name.
pub fn fixtures<T: DeserializeOwned>(folder: &str) -> BTreeMap<PathBuf, T> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers").join(folder);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let fixture = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, fixture)
    };
    files.filter(|path| path.extension().is_some_and(|one| one == "toml")).map(read).collect()
}

/// Holds what was shown against the hashes of a fixture, run by run, or writes them anew.
pub fn compare(path: &Path, runs: &[(&Run, Arc<Recorded>)]) -> Vec<String> {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let mut wrong = Vec::new();
    let mut hashes = Vec::new();
    for (number, (run, model)) in runs.iter().enumerate() {
        let shown = model.rendered();
        if let Ok(folder) = std::env::var("RENDER_ANSWERS") {
            for (round, text) in shown.iter().enumerate() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(format!("{folder}/{name}-{}-{}.txt", number + 1, round + 1), text).unwrap();
            }
        }
        if shown.len() != run.round.len() {
            wrong.push(format!("{name}, run {}: {} answers, {} requests", number + 1, run.round.len(), shown.len()));
        }
        let new: Vec<String> =
            shown.iter().map(|text| blake3::hash(text.as_bytes()).to_hex()[..12].to_owned()).collect();
        // Dreams are told local times, and the hashes are of those in UTC.
        let is_utc = TimeZone::system().to_offset(jiff::Timestamp::UNIX_EPOCH) == jiff::tz::Offset::UTC;
        if new != run.shown && is_utc {
            wrong.push(format!("{name}, run {}: the model was shown another request", number + 1));
        }
        hashes.push(new);
    }
    if std::env::var_os("REFRESH_ANSWERS").is_some() {
        let mut hashes = hashes.iter();
        let text = std::fs::read_to_string(path).unwrap();
        let line = |line: &str| match line.starts_with("shown = ") {
            true => format!("shown = {:?}\n", hashes.next().unwrap()),
            false => format!("{line}\n"),
        };
        std::fs::write(path, text.lines().map(line).collect::<String>()).unwrap();
        wrong.retain(|text| !text.ends_with("another request"));
    }
    wrong
}

/// The lines that differ between two texts.
pub fn difference(before: &str, after: &str) -> String {
    let (was, is): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let gone = was.iter().filter(|line| !is.contains(line)).map(|line| format!("  - {line}\n"));
    let new = is.iter().filter(|line| !was.contains(line)).map(|line| format!("  + {line}\n"));
    gone.chain(new).collect()
}

/// Holds what became of a fixture's answers against the snapshot that stands beside it.
pub fn snapshot(path: &Path, report: &str) {
    insta::with_settings!({snapshot_path => path.parent().unwrap(), prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!(path.file_stem().unwrap().to_string_lossy().as_ref(), report);
    });
}
