//! A model in this process: what it says follows from the request and the seed; what it bills is noted.
//!
//! It checks what it is sent as the real one does: every call is answered once, right after it. It lets the conversation send
//! agents out, write to them, and save memories, and breaks replies off now and then.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use provider::{Error, Event, Model};
use serde_json::{Value, json};
use transcript::block::Kind;
use transcript::message::{Remarks, Role};
use transcript::{Block, Reply, Request, StopReason, Usage};

use crate::it::chance::{Chance, is_replay};
use crate::it::disk::StormDisk;

pub(crate) const NAME: &str = "claude-sonnet-5";
/// What a learning agent is told first.
pub(crate) const LEARNING: &str = "Beside the conversation, write down";
/// No agent makes more requests than this for one thing that was said to it.
const ROUNDS: usize = 6;

/// Who asks: the conversation, an agent by its task, or the one that learns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asker {
    Conversation,
    Agent(String),
    Learning,
    Other,
}

/// What was billed for a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bill {
    pub(crate) usage: Usage,
    pub(crate) is_whole: bool,
    /// Whether whoever asked has surely written it down: it went on, or ended in order.
    pub(crate) is_certain: bool,
}

/// A message that an agent was told is sent.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub(crate) token: String,
    pub(crate) to: String,
}

pub(crate) struct Minutes {
    chance: Chance,
    pub(crate) disk: Arc<Mutex<StormDisk>>,
    pub(crate) is_calm: bool,
    /// Counts requests, tasks, letters and memories.
    next: usize,
    pub(crate) bills: BTreeMap<usize, (Asker, Bill)>,
    /// The last request of each whose end was read.
    last: BTreeMap<Asker, usize>,
    /// Letters and memories by the call that made them, until it is answered.
    calls: BTreeMap<String, Letter>,
    saves: BTreeMap<String, String>,
    pub(crate) letters: Vec<Letter>,
    /// Whom the model ever wrote to, whether or not that was acknowledged.
    pub(crate) written: Vec<String>,
    pub(crate) memories: BTreeSet<String>,
    /// What the user said, as the model saw it.
    pub(crate) heard: BTreeSet<String>,
    /// Names of agents that were sent out.
    names: Vec<String>,
    pub(crate) broken: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct StormModel(Arc<Mutex<Minutes>>);

impl StormModel {
    pub(crate) fn new(chance: Chance, disk: Arc<Mutex<StormDisk>>) -> Self {
        Self(Arc::new(Mutex::new(Minutes {
            chance,
            disk,
            is_calm: false,
            next: 0,
            bills: BTreeMap::new(),
            last: BTreeMap::new(),
            calls: BTreeMap::new(),
            saves: BTreeMap::new(),
            letters: Vec::new(),
            written: Vec::new(),
            memories: BTreeSet::new(),
            heard: BTreeSet::new(),
            names: Vec::new(),
            broken: Vec::new(),
        })))
    }

    pub(crate) fn minutes(&self) -> MutexGuard<'_, Minutes> {
        self.0.lock()
    }
}

impl Model for StormModel {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let model = self.clone();
        stream::unfold((model, Some(request), VecDeque::new()), step).boxed()
    }

    fn count_tokens(&self, _: Request) -> BoxFuture<'static, Result<u64, Error>> {
        Box::pin(async { Err(Error::Unsupported { host: "storm".to_owned(), what: "counting" }) })
    }
}

/// Something that comes after a while.
type Later = (Duration, Event, Option<Sent>);
type Streaming = (StormModel, Option<Request>, VecDeque<Later>);

/// What it means that an event was read.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Begun(usize),
    Whole(usize),
}

async fn step((model, request, mut waiting): Streaming) -> Option<(Event, Streaming)> {
    if let Some(request) = &request {
        if model.minutes().is_dead() {
            std::future::pending::<()>().await;
        }
        waiting = model.minutes().answer(request);
    }
    let (after, event, sent) = waiting.pop_front()?;
    tokio::time::sleep(after).await;
    if model.minutes().is_dead() {
        std::future::pending::<()>().await;
    }
    if let Some(sent) = sent {
        model.minutes().was_read(sent);
    }
    Some((event, (model, None, waiting)))
}

impl Minutes {
    fn note(&mut self, broken: String) {
        self.tell(&format!("BROKEN: {broken}"));
        self.broken.push(broken);
    }

    /// What happens, for who looks into a seed.
    pub(crate) fn tell(&self, what: &str) {
        if is_replay() {
            eprintln!("{what}");
        }
    }

    pub(crate) fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn is_dead(&self) -> bool {
        self.disk.lock().is_dead()
    }

    /// The process has gone. What nobody went on from after its end was read may not have been written down.
    pub(crate) fn killed(&mut self) {
        self.last.clear();
    }

    /// The process ended in order.
    pub(crate) fn ended(&mut self) {
        for number in std::mem::take(&mut self.last).into_values() {
            self.make_certain(number);
        }
    }

    fn make_certain(&mut self, number: usize) {
        if let Some((_, bill)) = self.bills.get_mut(&number) {
            bill.is_certain = true;
        }
    }

    fn was_read(&mut self, sent: Sent) {
        let (number, is_whole) = match sent {
            Sent::Begun(number) => (number, false),
            Sent::Whole(number) => (number, true),
        };
        let Some((asker, bill)) = self.bills.get_mut(&number) else { return };
        bill.is_whole = is_whole;
        bill.usage = usage(number, is_whole);
        let asker = asker.clone();
        self.last.insert(asker, number);
    }

    /// Looks at a request, and decides what comes back.
    fn answer(&mut self, request: &Request) -> VecDeque<Later> {
        let number = self.number();
        let asker = asker(request);
        self.tell(&format!("request {number} of {asker:?}: {}", summary(request)));
        if let Some(before) = self.last.remove(&asker) {
            self.make_certain(before);
        }
        self.check(request);
        self.look_at_results(request, &asker);
        let blocks = self.reply(request, &asker, number);
        let bill = Bill { usage: Usage::default(), is_whole: false, is_certain: false };
        self.bills.insert(number, (asker, bill));
        let pause = |minutes: &mut Self| Duration::from_millis(1 + minutes.chance.below(400) as u64);
        let mut events = VecDeque::new();
        let cut = || Event::Failed(Error::Cut { host: "storm".to_owned(), cause: "cut".to_owned() });
        if !self.is_calm && self.chance.one_in(25) {
            events.push_back((pause(self), cut(), None));
            return events;
        }
        let (id, model) = (format!("msg_{number}"), NAME.to_owned());
        let started = Event::Started { id: id.clone(), model: model.clone(), usage: usage(number, false) };
        events.push_back((pause(self), started, Some(Sent::Begun(number))));
        if !self.is_calm && self.chance.one_in(20) {
            events.push_back((pause(self), Event::Text("I was about to".to_owned()), None));
            events.push_back((pause(self), cut(), None));
            return events;
        }
        let is_call = blocks.iter().any(|block| matches!(block.kind(), Kind::ToolUse { .. }));
        let stop = if is_call { StopReason::ToolUse } else { StopReason::EndTurn };
        for block in &blocks {
            events.push_back((pause(self), Event::Block(block.clone()), None));
        }
        let reply = Reply { id, model, blocks, stop, usage: usage(number, true), remarks: Remarks::default() };
        events.push_back((pause(self), Event::Done(reply), Some(Sent::Whole(number))));
        events
    }

    /// Every call is answered once, in the message after it.
    fn check(&mut self, request: &Request) {
        let mut open: Vec<String> = Vec::new();
        let mut problems = Vec::new();
        for message in &request.messages {
            let results: Vec<String> = message.blocks.iter().filter_map(result_id).collect();
            match message.role {
                Role::Assistant => {
                    if !open.is_empty() {
                        problems.push(format!("calls without an answer: {open:?}"));
                    }
                    open = message.blocks.iter().filter_map(call_id).collect();
                }
                Role::User => {
                    let (mut wanted, mut given) = (std::mem::take(&mut open), results);
                    wanted.sort();
                    given.sort();
                    if wanted != given {
                        problems.push(format!("calls {wanted:?} are answered by {given:?}"));
                    }
                }
            }
        }
        problems.into_iter().for_each(|problem| self.note(problem));
    }

    /// What the results say is acknowledged; what the user said is heard.
    fn look_at_results(&mut self, request: &Request, asker: &Asker) {
        for block in request.messages.iter().flat_map(|message| &message.blocks) {
            if let Some(id) = result_id(block) {
                let text = block.result_text();
                if let Some(letter) = self.calls.remove(&id)
                    && text.starts_with("Sent to ")
                {
                    self.tell(&format!("acknowledged: {letter:?}"));
                    self.letters.push(letter);
                }
                if let Some(memory) = self.saves.remove(&id)
                    && text.contains("Saved")
                {
                    self.memories.insert(memory);
                }
            }
            if *asker == Asker::Conversation
                && let Some(text) = block.as_text().filter(|text| text.starts_with("say-"))
            {
                self.heard.insert(text);
            }
        }
    }

    fn reply(&mut self, request: &Request, asker: &Asker, number: usize) -> Vec<Block> {
        let rounds = request.messages.iter().rev().take_while(|message| !is_spoken_to(message)).count() / 2;
        if rounds >= ROUNDS {
            return vec![Block::text("Enough.")];
        }
        match asker {
            Asker::Conversation => match self.chance.below(6) {
                0 | 1 if self.names.len() < 5 && !self.is_calm => {
                    let calls = 1 + self.chance.below(3);
                    (0..calls).map(|_| self.send_out()).collect()
                }
                2 if !self.names.is_empty() && !self.is_calm => {
                    let to = self.chance.one_of(&self.names).clone();
                    vec![self.write_to(&to)]
                }
                _ => vec![Block::text(format!("answer-{number}"))],
            },
            Asker::Agent(_) => match self.chance.below(4) {
                0 if !self.is_calm => vec![self.write_to("team-lead")],
                1 if !self.is_calm && self.names.len() > 1 => {
                    let to = self.chance.one_of(&self.names).clone();
                    vec![self.write_to(&to)]
                }
                _ => vec![Block::text(format!("report-{number}"))],
            },
            Asker::Learning if rounds == 0 && !self.chance.one_in(3) => self.save(request).into_iter().collect(),
            Asker::Learning => vec![Block::text("Saved.")],
            Asker::Other => vec![Block::text("Well.")],
        }
    }

    fn send_out(&mut self) -> Block {
        let number = self.number();
        let name = format!("worker-{number}");
        let background = !self.chance.one_in(4);
        self.names.push(name.clone());
        let input = json!({
            "description": "some work", "prompt": format!("Task {name}: look."), "subagent_type": "worker",
            "name": name, "run_in_background": background,
        });
        Block::tool_use(&format!("toolu_{number}"), "Agent", &input)
    }

    fn write_to(&mut self, to: &str) -> Block {
        let number = self.number();
        let (token, id) = (format!("mail-{number}."), format!("toolu_{number}"));
        let input = json!({"to": to, "message": token, "summary": "a word"});
        self.written.push(to.to_owned());
        self.calls.insert(id.clone(), Letter { token, to: to.to_owned() });
        Block::tool_use(&id, "SendMessage", &input)
    }

    fn save(&mut self, request: &Request) -> Option<Block> {
        let mut texts = request.messages.iter().flat_map(|message| &message.blocks).filter_map(Block::as_text);
        let task = texts.rfind(|text| text.contains(LEARNING))?;
        let folder = task.split("The directory is `").nth(1)?.split('`').next()?.to_owned();
        let number = self.number();
        let (id, file) = (format!("toolu_{number}"), format!("memory_{number}.md"));
        let text = format!(
            "---\nname: Number {number}\ndescription: What was said for the {number}th time\ntype: project\n---\n\n\
             The user said number {number}.\n\n**Why:** it was said.\n"
        );
        self.saves.insert(id.clone(), file.clone());
        let input: Value = json!({"file_path": format!("{folder}/{file}"), "content": text});
        Some(Block::tool_use(&id, "Write", &input))
    }
}

/// Each request costs something else, so that none is taken for another.
fn usage(number: usize, is_whole: bool) -> Usage {
    let output_tokens = if is_whole { 10 + number as u64 % 7 } else { 1 };
    Usage { input_tokens: 1_000 + 13 * number as u64, output_tokens, ..Usage::default() }
}

fn asker(request: &Request) -> Asker {
    let texts = |message: &transcript::Message| message.blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>();
    let all: Vec<String> =
        request.messages.iter().filter(|message| message.role == Role::User).flat_map(texts).collect();
    if all.iter().any(|text| text.contains(LEARNING)) {
        return Asker::Learning;
    }
    let task = all.iter().find_map(|text| text.split("Task ").nth(1)?.split(':').next().map(str::to_owned));
    let is_conversation = all.iter().any(|text| text.starts_with("say-"));
    match task {
        _ if is_conversation => Asker::Conversation,
        Some(task) => Asker::Agent(task),
        None => Asker::Other,
    }
}

/// Whether somebody says something new in a message, and not only a tool.
fn is_spoken_to(message: &transcript::Message) -> bool {
    message.role == Role::User && !message.blocks.iter().any(|block| result_id(block).is_some())
}

pub(crate) fn call_id(block: &Block) -> Option<String> {
    match block.kind() {
        Kind::ToolUse { id, .. } => Some(id.to_string()),
        _ => None,
    }
}

pub(crate) fn result_id(block: &Block) -> Option<String> {
    match block.kind() {
        Kind::ToolResult { id, .. } => Some(id.to_string()),
        _ => None,
    }
}

fn summary(request: &Request) -> String {
    let last = request.messages.last().map(|message| serde_json::to_string(&message.blocks).unwrap_or_default());
    last.unwrap_or_default().chars().take(400).collect()
}
