//! Recorded answers of a capable model, put through the real path: engine, learning, memory, files on the disk.
//!
//! A recording has a session, the memories that were there, and what a model answered that was shown the request which this
//! program makes of them. Only the model is scripted. The answers were written once, each to its own rendered request
//! (`RENDER_ANSWERS=folder` writes them out); the hash in a recording is of that request.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use engine::agent::Parts;
use engine::provider::anthropic::{Anthropic, Auth, Config};
use engine::tools::permission::Mode;
use engine::{Agent, Event};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use learning::knowledge::{Knowledge, Selector};
use memory::Memory;
use memory::instructions::InstructionSources;
use memory::quoted_sentences::Register;
use memory::taxonomy::{TaxonomyContext, Variant, rules};
use serde::Deserialize;
use serde_json::{Value, json};
use session::{Home, Session, World};
use settings::Learning;
use simulator::{Options, Script, ScriptRule, Simulator};
use tempfile::TempDir;
use transcript::Id;

use super::in_turn::InTurn;

/// Whatever went wrong.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a learning agent sees of its task.
const TASK: &str = "Beside the conversation, write down";
const MODEL: &str = "claude-sonnet-5";
const SMALL: &str = "claude-haiku-4-5";
/// Nothing, in the user's words: it keeps what looks like a secret from being one in this repository.
const BREAK: &str = "‹›";
/// What the folder is called that everything lies in, in requests that are compared.
const HOME: &str = "/home/user";
/// How the name of a memory of the user, across projects, begins.
const OF_USER: &str = "user: ";
/// Between two turns, where nothing else is said, in minutes.
const PAUSE: i64 = 2;
/// After so many minutes a provider has forgotten a conversation.
const FORGOTTEN: i64 = 10;

/// A session that was learnt from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// What it is an example of.
    pub about: String,
    /// The hash of the request that was answered.
    pub shown: String,
    /// When it began, on the user's clock.
    began: String,
    /// Whether the provider still knew the conversation, so that a fork of it was asked.
    #[serde(default)]
    warm: bool,
    /// Files of the project.
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    known: Vec<Known>,
    turn: Vec<Turn>,
    /// What the model answered, round by round.
    #[serde(default)]
    round: Vec<Round>,
    /// What became of it, as a strict reader judges it: one entry for each memory that was saved.
    #[serde(default)]
    pub judged: Vec<Judgement>,
}

impl Recording {
    /// What was written, by file.
    pub fn written(&self) -> Vec<(String, String)> {
        let calls = self.round.iter().flat_map(|round| &round.calls);
        let text = |call: &Call| {
            Some((call.input["file_path"].as_str()?.to_owned(), call.input["content"].as_str()?.to_owned()))
        };
        calls.filter_map(text).collect()
    }
}

/// Questions of users, and which memories a model chose for them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choosing {
    began: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    known: Vec<Known>,
    /// The questions, each in a session of its own.
    pub question: Vec<Question>,
}

/// A question, and what a model chose.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The hash of the request that was answered.
    pub shown: String,
    pub user: String,
    /// What the turn before did.
    #[serde(default)]
    before: Option<Turn>,
    /// What the model answered, word for word.
    pub answer: String,
    /// What helps, as a strict reader judges it.
    pub helps: Vec<String>,
}

/// A memory that was there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    path: String,
    /// Whether it is the user's, across projects.
    #[serde(default)]
    user: bool,
    /// How old it was, in days.
    days: u64,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    /// Minutes since the turn before.
    #[serde(default)]
    after: Option<i64>,
    user: String,
    /// What the model called before it answered.
    #[serde(default)]
    calls: Vec<Call>,
    says: String,
    /// Whether it was learnt from before the others were said, and nothing was saved.
    #[serde(default)]
    learnt: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Round {
    #[serde(default)]
    says: Option<String>,
    #[serde(default)]
    calls: Vec<Call>,
}

/// A call; `M/` and `U/` stand for the memory directories of the project and of the user, `P/` for the project.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    input: Value,
}

/// What a memory is, judged by a strict reader.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    pub path: String,
    /// `good`, or what it should not be: `duplicate`, `derivable`, `passing`, `nobody's word`.
    pub verdict: String,
    pub why: String,
}

/// What came of an answer.
pub struct Replayed {
    /// The request that was answered.
    pub request: Value,
    /// Each call, and what the path said to it.
    pub results: Vec<(String, String)>,
    /// The memories that were saved or changed, with their text; empty where one was removed.
    pub changed: BTreeMap<String, String>,
    /// Those of them that are shown as the user's word.
    pub spoken: Vec<String>,
    /// Why the run did not come to its end.
    pub failed: Option<String>,
    /// What was surfaced.
    pub surfaced: Vec<String>,
}

impl Recording {
    /// How many of the memories that were saved should not have been; one that nobody judged is one of them.
    pub fn polluted(&self, replayed: &Replayed) -> usize {
        let is_good =
            |path: &str| self.judged.iter().any(|one| one.path == path && one.verdict == "good" && !one.why.is_empty());
        replayed.saved().filter(|path| !is_good(path)).count()
    }
}

impl Replayed {
    /// The memories that were saved or changed.
    pub fn saved(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().filter(|(_, text)| !text.is_empty()).map(|(path, _)| path.as_str())
    }
}

/// The recordings in a folder, by name.
pub fn read<T: serde::de::DeserializeOwned>(folder: &Path) -> Result<Vec<(PathBuf, T)>, Failure> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let parse = |path: PathBuf| {
        let text = std::fs::read_to_string(&path)?;
        let recording = toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((path, recording))
    };
    paths.into_iter().map(parse).collect()
}

/// Learns from a session as it was recorded, with the answer that was recorded.
pub async fn replay(recording: &Recording) -> Result<Replayed, Failure> {
    let world = SystemFacts::new(&recording.began, &recording.files, &recording.known)?;
    let nothing = Round { says: Some("Nothing to save.".into()), calls: Vec::new() };
    let before = recording.turn.iter().filter(|turn| turn.learnt).count();
    let mut script = Script::default();
    for round in std::iter::repeat_n(&nothing, before).chain(&recording.round).chain([&nothing]) {
        let mut rule = world.rule(round.says.as_deref(), &round.calls);
        rule.when.visible.push(TASK.to_owned());
        script.rules.push(rule);
    }
    recording.turn.iter().for_each(|turn| world.say(&mut script, turn));
    let (mut agent, simulator) = world.agent(script, None).await?;
    agent = agent.with_learning(Learning { share: None, every: 1_000, ..Learning::new(world.home()) });
    for turn in &recording.turn {
        world.wait(&simulator, turn.after.unwrap_or(PAUSE));
        agent.say(&turn.user.replace(BREAK, "")).await;
        if turn.learnt {
            agent.finish_learning(&Default::default()).await?;
        }
    }
    if !recording.warm {
        world.wait(&simulator, FORGOTTEN);
    }
    agent.finish_learning(&Default::default()).await?;
    let mut requests = simulator.requests();
    requests.retain(|request| request["messages"].to_string().contains(TASK));
    let request = requests.get(before).cloned().ok_or("no request was made")?;
    let results = requests.last().map(|last| results(&last["messages"], &request["messages"])).unwrap_or_default();
    Ok(world.replayed(&request, &results))
}

/// Asks a question as it was recorded, with the choice that was recorded.
pub async fn choose(choosing: &Choosing, question: &Question) -> Result<Replayed, Failure> {
    let world = SystemFacts::new(&choosing.began, &choosing.files, &choosing.known)?;
    let mut script = Script::default();
    let mut answer = ScriptRule { json: Some(raw(&world.placed(&question.answer)).into()), ..ScriptRule::default() };
    answer.when.model = Some(SMALL.to_owned());
    script.rules.push(answer);
    question.before.iter().for_each(|turn| world.say(&mut script, turn));
    let look = Call { tool: "Glob".into(), input: json!({ "pattern": "*.none" }) };
    script.rules.extend([world.rule(None, &[look]), world.rule(Some("Done."), &[])]);
    let (mut agent, simulator) = world.agent(script, Some(SMALL)).await?;
    if let Some(turn) = &question.before {
        agent.say(&turn.user).await;
        world.recalled.lock().map_err(|_| "broken")?.clear();
    }
    agent.say(&question.user).await;
    let requests = simulator.requests();
    let request = requests.into_iter().rfind(|request| request["model"] == SMALL).unwrap_or_default();
    Ok(world.replayed(&request, &[]))
}

/// Each call of the rounds after the first request, with its result.
fn results(all: &Value, first: &Value) -> Vec<(String, String)> {
    let messages = all.as_array().into_iter().flatten().skip(first.as_array().map_or(0, Vec::len));
    let blocks: Vec<&Value> =
        messages.flat_map(|message| message["content"].as_array().into_iter().flatten()).collect();
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
    let result = |call: &&&Value| {
        let found = blocks.iter().find(|block| block["tool_use_id"] == call["id"])?;
        let texts = found["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
        let said = found["content"].as_str().map_or_else(|| texts.collect::<String>(), str::to_owned);
        let input = call["input"]["file_path"].as_str().map_or_else(|| call["input"].to_string(), str::to_owned);
        Some((format!("{} {input}", call["name"].as_str()?), said))
    };
    calls.filter_map(|call| result(&call)).collect()
}

/// A text that no template changes.
fn raw(text: &str) -> String {
    format!("{{% raw %}}{text}{{% endraw %}}")
}

/// A project, a home and a clock.
struct SystemFacts {
    _folder: TempDir,
    root: PathBuf,
    began: jiff::Timestamp,
    moved: Arc<AtomicI64>,
    /// What was there before, as the paths are shown.
    before: BTreeMap<String, String>,
    failed: Arc<Mutex<Option<String>>>,
    recalled: Arc<Mutex<Vec<String>>>,
}

impl SystemFacts {
    fn new(began: &str, files: &BTreeMap<String, String>, known: &[Known]) -> Result<Self, Failure> {
        // In memory, where there is such a place: every line of a session is brought to the disk.
        let shared = Path::new("/dev/shm");
        let folder = match shared.is_dir() {
            true => tempfile::tempdir_in(shared)?,
            false => tempfile::tempdir()?,
        };
        let root = std::fs::canonicalize(folder.path())?;
        // The same words on every machine, wherever it stands.
        let began = began.parse::<DateTime>()?.to_zoned(TimeZone::system())?.timestamp();
        let mut system_facts = Self {
            _folder: folder,
            root,
            began,
            moved: Arc::default(),
            before: BTreeMap::new(),
            failed: Arc::default(),
            recalled: Arc::default(),
        };
        for place in [system_facts.project(), system_facts.memory(), system_facts.user()] {
            std::fs::create_dir_all(place)?;
        }
        for (path, text) in files {
            let path = system_facts.project().join(path);
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(path, text)?;
        }
        for one in known {
            let place = if one.user { system_facts.user() } else { system_facts.memory() };
            let path = place.join(&one.path);
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(&path, &one.text)?;
            let at = Duration::from_secs(began.as_second().unsigned_abs()) - Duration::from_secs(86_400 * one.days);
            std::fs::File::options().append(true).open(&path)?.set_modified(SystemTime::UNIX_EPOCH + at)?;
        }
        system_facts.before = system_facts.memories();
        Ok(system_facts)
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn memory(&self) -> PathBuf {
        self.root.join("memory")
    }

    fn home(&self) -> Home {
        Home::at(self.root.join(".config"))
    }

    fn user(&self) -> PathBuf {
        memory::place::user_directory(self.home().path())
    }

    /// A text with the real directories in the place of `M/`, `U/` and `P/`.
    fn placed(&self, text: &str) -> String {
        let places = [("M/", self.memory()), ("U/", self.user()), ("P/", self.project())];
        let put = |text: String, (letter, place): (&str, PathBuf)| {
            let real = format!("{}/", place.display());
            let at_start = text.strip_prefix(letter).map(|rest| format!("{real}{rest}"));
            at_start.unwrap_or_else(|| text.replace(&format!("\"{letter}"), &format!("\"{real}")))
        };
        places.into_iter().fold(text.to_owned(), put)
    }

    fn rule(&self, says: Option<&str>, calls: &[Call]) -> ScriptRule {
        let input = |value: &Value| match value {
            Value::Object(fields) => {
                let field = |(key, value): (&String, &Value)| match value.as_str() {
                    Some(text) if key == "file_path" || key == "path" => (key.clone(), raw(&self.placed(text)).into()),
                    Some(text) => (key.clone(), raw(text).into()),
                    None => (key.clone(), value.clone()),
                };
                fields.iter().map(field).collect()
            }
            other => other.clone(),
        };
        let call = |call: &Call| simulator::ScriptedCall { tool: call.tool.clone(), input: input(&call.input) };
        let call = calls.iter().map(call).collect();
        ScriptRule { say: says.map(raw), call, times: Some(1), ..ScriptRule::default() }
    }

    /// What the model does and says in a turn.
    fn say(&self, script: &mut Script, turn: &Turn) {
        let looks = (!turn.calls.is_empty()).then(|| self.rule(None, &turn.calls));
        script.rules.extend(looks.into_iter().chain([self.rule(Some(&turn.says), &[])]));
    }

    fn wait(&self, simulator: &Simulator, minutes: i64) {
        self.moved.fetch_add(60_000 * minutes, Ordering::Relaxed);
        simulator.advance(Duration::from_secs(60 * minutes.unsigned_abs()));
    }

    /// A clock that ticks at every look, and names that count.
    fn world(&self) -> World {
        let (began, moved, names) = (self.began.as_millisecond(), self.moved.clone(), AtomicI64::new(0));
        World::new(
            move || {
                let at = began + moved.fetch_add(1, Ordering::Relaxed);
                jiff::Timestamp::from_millisecond(at).unwrap_or_default()
            },
            move |_| Id::from(format!("id-{}", names.fetch_add(1, Ordering::Relaxed))),
        )
    }

    async fn agent(&self, script: Script, small: Option<&str>) -> Result<(Agent, Simulator), Failure> {
        let simulator = Simulator::start(script, Options::default()).await?;
        let client = Anthropic::new(Config::new(simulator.url(), Auth::ApiKey("k".into())))?;
        let model = Arc::new(InTurn::new(client, small));
        let session = Session::create(&self.home(), &self.project(), None, self.world())?;
        let mut parts = Parts::new(model.clone(), MODEL);
        parts.consent.policy.mode = Mode::BypassPermissions.into();
        parts.work.scratchpad = Some(self.root.join("scratch"));
        let memory = self.memory();
        parts.prompt.sections = vec![rules(&TaxonomyContext {
            variant: Variant::Private,
            directory: &memory,
            skip_index: false,
            extra_guidelines: None,
            search_past: None,
        })];
        let (failed, recalled) = (self.failed.clone(), self.recalled.clone());
        parts.out.listener = Arc::new(move |event| match event {
            Event::Extracted(outcome) => {
                if let Ok(mut failed) = failed.lock() {
                    *failed = outcome.failed.as_ref().map(|failure| failure.why.clone());
                }
            }
            Event::Recalled { memories } => {
                if let Ok(mut recalled) = recalled.lock() {
                    recalled.extend(memories.iter().map(|one| one.path.clone()));
                }
            }
            _ => {}
        });
        let agent = Agent::new(session, parts)?;
        let sources = InstructionSources {
            config_home: self.home().path().to_owned(),
            working_directory: self.project(),
            ..InstructionSources::default()
        };
        let ledger = agent.ledger().clone();
        let selector = small.map(|name| Selector { model, name: name.to_owned(), ledger });
        let knowledge = Knowledge::new(sources, Some(&self.memory()), selector, agent.session());
        let knowledge = knowledge.with_user_memories(&self.user());
        knowledge.ready().await;
        Ok((agent.with_knowledge(knowledge), simulator))
    }

    /// A text as it is compared: the same wherever the folder lies.
    fn shown(&self, text: &str) -> String {
        text.replace(&self.root.display().to_string(), HOME)
    }

    /// All memories, by their path.
    fn memories(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for (place, letter) in [(self.memory(), ""), (self.user(), OF_USER)] {
            let Ok(root) = files::Root::open(&place) else { continue };
            for path in memory::scan::paths(&root).unwrap_or_default() {
                let text = std::fs::read_to_string(place.join(&path)).unwrap_or_default();
                found.insert(format!("{letter}{path}"), self.shown(&text));
            }
        }
        found
    }

    fn replayed(&self, request: &Value, results: &[(String, String)]) -> Replayed {
        let mut changed = self.memories();
        changed.retain(|path, text| self.before.get(path) != Some(text));
        let removed: Vec<String> =
            self.before.keys().filter(|path| !self.memories().contains_key(*path)).cloned().collect();
        changed.extend(removed.into_iter().map(|path| (path, String::new())));
        let is_spoken = |path: &str, text: &str| {
            let place = if path.starts_with(OF_USER) { self.user() } else { self.memory() };
            let quotations = Register::in_folder(self.home().changes(&place).folder()).read();
            quotations.of(&Memory::parse(path, text.as_bytes(), None, 0).body).is_some()
        };
        let spoken =
            changed.iter().filter(|(path, text)| is_spoken(path, text)).map(|(path, _)| path.clone()).collect();
        let request = serde_json::from_str(&self.shown(&request.to_string())).unwrap_or_default();
        let results = results.iter().map(|(call, said)| (self.shown(call), self.shown(said))).collect();
        let failed = self.failed.lock().ok().and_then(|failed| failed.clone());
        let user = format!("{}/", self.user().display());
        let surfaced =
            self.recalled.lock().map(|recalled| recalled.iter().map(|path| path.replace(&user, "U/")).collect());
        Replayed { request, results, changed, spoken, failed, surfaced: surfaced.unwrap_or_default() }
    }
}
