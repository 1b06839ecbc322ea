//! An agent in a temporary project, with a clock and names that repeat.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use context::Layers;
use engine::agent::{Parts, Turn};
use engine::agents::Subagents;
use engine::{Agent, Event};
use learning::extract::Outcome;
use learning::knowledge::{Knowledge, Selector};
use memory::instructions::InstructionSources;
use provider::anthropic::{Anthropic, Auth, Config};
use session::{Fork, Home, Session, World};
use settings::permission::{Approver, CallQuestion, NoApprover, Question, SharedMode};
use settings::{BasePaths, Files, Flag, Learning, LoadedSettings, Settings};
use simulator::{Options, Script, Simulator};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use transcript::window::{Window, WindowHints};
use transcript::{Block, Id};

pub struct Stage {
    pub simulator: Simulator,
    root: TempDir,
    pub events: Arc<Mutex<Vec<Event>>>,
    pub mode: SharedMode,
    pub approver: Arc<dyn Approver>,
    pub layers: Layers,
    /// Agents that can be sent out.
    pub agents: Option<Arc<Subagents>>,
    /// Settings: hooks and rules.
    pub settings: serde_json::Value,
    /// Who hears of events besides.
    pub heard: Arc<dyn Fn(&Event) + Send + Sync>,
    /// What the clock has been moved by, in seconds.
    pub moved: Arc<AtomicI64>,
}

impl Stage {
    pub async fn new(script: &str) -> Self {
        Self::with(script, Options::default()).await
    }

    /// With a provider of its own kind.
    pub async fn with(script: &str, options: Options) -> Self {
        // In memory, where there is such a place: every line of a session is brought to the disk.
        let shared = std::path::Path::new("/dev/shm");
        let place = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        // One that was killed may have left a folder of the same name.
        let name = std::iter::repeat_with(letters).find(|name| !place.join(name).exists()).unwrap();
        let root = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(place).unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        let mut script = Script::parse(script).unwrap();
        let project = std::fs::canonicalize(root.path().join("project")).unwrap();
        script.vars.insert("project".into(), project.display().to_string());
        let simulator = Simulator::start(script, options).await.unwrap();
        let approver = Arc::new(NoApprover);
        let (events, moved, layers) = (Arc::default(), Arc::default(), Layers::default());
        let heard: Arc<dyn Fn(&Event) + Send + Sync> = Arc::new(|_| {});
        let (mode, agents, settings) = (Mode::BypassPermissions.into(), None, serde_json::Value::Null);
        Self { simulator, root, events, mode, approver, layers, agents, settings, heard, moved }
    }

    pub fn project(&self) -> PathBuf {
        std::fs::canonicalize(self.root.path().join("project")).unwrap()
    }

    pub fn home(&self) -> Home {
        Home::at(self.root.path().join("config"))
    }

    /// The memory directory.
    pub fn memories(&self) -> PathBuf {
        self.root.path().join("memories")
    }

    /// Saves a memory.
    pub fn remember(&self, file: &str, description: &str, body: &str) {
        std::fs::create_dir_all(self.memories()).unwrap();
        let text = format!("---\nname: {file}\ndescription: {description}\ntype: project\n---\n\n{body}\n");
        std::fs::write(self.memories().join(file), text).unwrap();
    }

    /// An agent that has instruction files and memory; with a selector, a small model is asked as well.
    pub async fn knowing_agent(&self, resume: Option<&str>, selector: bool) -> Agent {
        self.knowing(self.agent(resume), selector).await
    }

    async fn knowing(&self, agent: Agent, selector: bool) -> Agent {
        let sources = InstructionSources {
            config_home: self.root.path().join("config"),
            working_directory: self.project(),
            ..InstructionSources::default()
        };
        let model = || Arc::new(Anthropic::new(Config::new(self.simulator.url(), Auth::ApiKey("k".into()))).unwrap());
        let selector = selector.then(|| Selector {
            model: model(),
            name: "claude-haiku-4-5".into(),
            ledger: agent.ledger().clone(),
        });
        let user = memory::place::user_directory(&sources.config_home);
        let knowledge = Knowledge::new(sources, Some(&self.memories()), selector, agent.session());
        let knowledge = knowledge.with_user_memories(&user);
        knowledge.ready().await;
        agent.with_knowledge(knowledge)
    }

    /// An agent that learns, after every turn, whatever it costs.
    pub async fn learning_agent(&self, resume: Option<&str>) -> Agent {
        std::fs::create_dir_all(self.memories()).unwrap();
        let learning = Learning { share: None, ..Learning::new(self.home()) };
        self.knowing_agent(resume, false).await.with_learning(learning)
    }

    /// The same, with parts that are changed first.
    pub async fn learning_agent_with(&self, change: impl FnOnce(&mut Parts)) -> Agent {
        std::fs::create_dir_all(self.memories()).unwrap();
        let learning = Learning { share: None, ..Learning::new(self.home()) };
        self.knowing(self.agent_with(None, change), false).await.with_learning(learning)
    }

    /// One in another session, whose names begin at a number.
    pub async fn another_learning_agent(&self, names: i64) -> Agent {
        let agent = self.knowing(self.another_agent(names), false).await;
        agent.with_learning(Learning { share: None, ..Learning::new(self.home()) })
    }

    /// An agent in another session, whose names begin at a number.
    pub fn another_agent(&self, names: i64) -> Agent {
        self.agent_of(Session::create(&self.home(), &self.project(), None, self.world(names)).unwrap(), |_| {})
    }

    /// What was learnt so far.
    pub fn learnt(&self) -> Vec<Outcome> {
        let events = self.events.lock().unwrap();
        let outcome = |event: &Event| if let Event::Extracted(one) = event { Some((**one).clone()) } else { None };
        events.iter().filter_map(outcome).collect()
    }

    /// The memories that were recalled so far, as the user is told of them.
    pub fn recalled(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let recalled = events.iter().filter_map(|event| match event {
            Event::Recalled { memories } => Some(memories.iter().map(|one| one.path.clone()).collect::<Vec<_>>()),
            _ => None,
        });
        recalled.flatten().collect()
    }

    pub fn agent(&self, resume: Option<&str>) -> Agent {
        self.agent_with(resume, |_| {})
    }

    /// An agent whose parts are changed first.
    pub fn agent_with(&self, resume: Option<&str>, change: impl FnOnce(&mut Parts)) -> Agent {
        let project = self.project();
        let session = match resume {
            Some(id) => Session::resume(&self.home(), &project, id, Fork::No, self.world(1_000)).unwrap().0,
            None => Session::create(&self.home(), &project, None, self.world(0)).unwrap(),
        };
        self.agent_of(session, change)
    }

    /// An agent on a session that is open already.
    pub fn agent_on(&self, session: Session) -> Agent {
        self.agent_of(session, |_| {})
    }

    fn agent_of(&self, session: Session, change: impl FnOnce(&mut Parts)) -> Agent {
        let events = self.events.clone();
        let model = Anthropic::new(Config::new(self.simulator.url(), Auth::ApiKey("k".into()))).unwrap();
        let mut parts = Parts::new(Arc::new(model), "claude-sonnet-5");
        if self.settings.is_object() {
            let flag = Some(Flag::Text(self.settings.to_string()));
            let loaded = LoadedSettings::read(&Files { flag, ..Files::default() });
            let settings = Settings::of(&loaded, &BasePaths { directory: &self.project(), home: None }, &|_| true);
            parts = parts.with_settings(&settings);
        }
        parts.talk.max_tokens = 16_000;
        parts.consent.policy.mode = self.mode.clone();
        parts.consent.approver = self.approver.clone();
        parts.talk.layers = self.layers.clone();
        parts.contacts.agents = self.agents.clone();
        let heard = self.heard.clone();
        parts.out.listener = Arc::new(move |event| {
            heard(&event);
            events.lock().unwrap().push(event);
        });
        change(&mut parts);
        Agent::new(session, parts).unwrap()
    }

    /// A clock that ticks a millisecond at every look, and ids that count.
    fn world(&self, offset: i64) -> World {
        let (ticks, moved, names) = (AtomicI64::new(0), self.moved.clone(), AtomicI64::new(offset));
        World::new(
            move || {
                let moved = moved.load(Ordering::Relaxed) * 1_000;
                jiff::Timestamp::from_millisecond(1_800_000_000_000 + moved + ticks.fetch_add(1, Ordering::Relaxed))
                    .unwrap()
            },
            move |_| Id::from(format!("id-{}", names.fetch_add(1, Ordering::Relaxed))),
        )
    }

    /// Time goes by, for the session and for the provider.
    pub fn wait(&self, seconds: i64) {
        self.moved.fetch_add(seconds, Ordering::Relaxed);
        self.simulator.advance(std::time::Duration::from_secs(seconds.unsigned_abs()));
    }

    /// The shape of what the model saw last: one line a block, breakpoints as `*`.
    pub fn shape(&self) -> String {
        let request = self.simulator.requests().pop().unwrap();
        let mut lines = vec![format!("tools: {}", request["tools"].as_array().unwrap().len())];
        let project = self.project().display().to_string();
        let sessions = self.home().project(&self.project()).display().to_string();
        let mut block = |place: String, block: &serde_json::Value| {
            let mark = if block["cache_control"].is_object() { "*" } else { " " };
            let mut plain = block.clone();
            plain.as_object_mut().unwrap().remove("cache_control");
            let text: String = plain
                .to_string()
                .replace(&sessions, "<sessions>")
                .replace(&project, "<project>")
                .chars()
                .take(140)
                .collect();
            lines.push(format!("{mark} {place} {text}"));
        };
        for part in request["system"].as_array().unwrap() {
            block("system".into(), part);
        }
        for message in request["messages"].as_array().unwrap() {
            for part in message["content"].as_array().unwrap() {
                block(message["role"].as_str().unwrap().to_owned(), part);
            }
        }
        number_calls(&lines.join("\n"))
    }
}

/// A name of its own for a folder, of so many letters: the model is told where it works, and a digit weighs more than a
/// letter, so that with names of chance a session would come to other counts each time. There is no vowel in it, so no
/// word that a script looks for.
fn letters() -> String {
    static NEXT: AtomicI64 = AtomicI64::new(0);
    let number = u64::from(std::process::id()) * 1_000 + NEXT.fetch_add(1, Ordering::Relaxed).unsigned_abs();
    let letter = |place: u32| char::from(b"bcdfghjkmnpqrtvw"[(number >> (4 * place) & 15) as usize]);
    format!("cairn-{}", (0..8).map(letter).collect::<String>())
}

/// Call ids depend on the temporary folder; here they count from 1.
fn number_calls(text: &str) -> String {
    let mut ids: Vec<&str> = Vec::new();
    for found in text.split("toolu_").skip(1) {
        let id = &found[..found.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(found.len())];
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let number =
        |text: String, (n, id): (usize, &&str)| text.replace(&format!("toolu_{id}"), &format!("call_{}", n + 1));
    ids.iter().enumerate().fold(text.to_owned(), number)
}

/// A model's window of so many tokens.
pub fn window(size: u64) -> Window {
    Window::of(&WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() })
}

pub async fn say(agent: &mut Agent, text: &str) -> Turn {
    agent.turn(vec![Block::text(text)], &CancellationToken::new()).await
}

/// The call that a question is about.
pub fn call(question: Question) -> CallQuestion {
    match question {
        Question::Call(call) => *call,
        other => panic!("{other:?} is about no call"),
    }
}
