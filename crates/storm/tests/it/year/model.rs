//! A model that believes all it is told: whatever the user says of a gauge in what it is shown, it writes down, over
//! anything that stands there. It knows no dates and no reasons, so that what keeps the memories right is the program.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use provider::{Error, Event, Model};
use serde_json::json;
use transcript::message::{Remarks, Role};
use transcript::{Block, Reply, Request, StopReason, Usage};

use crate::it::chance::{Chance, is_replay};
use crate::it::disk::StormDisk;
use crate::it::session::model::{LEARNING, NAME, call_id, result_id};

/// What a dream is told first.
const DREAMING: &str = "- session ";
/// One request in so many fails.
const FAILS: usize = 10;

pub(crate) struct Mind {
    chance: Chance,
    disk: Arc<Mutex<StormDisk>>,
    pub(crate) memories: PathBuf,
    pub(crate) is_calm: bool,
    next: usize,
    /// Words that no request may hold but those of the conversation that has the other words, too.
    pub(crate) apart: BTreeMap<String, String>,
    pub(crate) broken: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct YearModel(Arc<Mutex<Mind>>);

impl YearModel {
    pub(crate) fn new(chance: Chance, disk: Arc<Mutex<StormDisk>>, memories: PathBuf) -> Self {
        let (apart, broken) = (BTreeMap::new(), Vec::new());
        Self(Arc::new(Mutex::new(Mind { chance, disk, memories, is_calm: false, next: 0, apart, broken })))
    }

    pub(crate) fn mind(&self) -> MutexGuard<'_, Mind> {
        self.0.lock()
    }
}

type Later = (Duration, Event);

impl Model for YearModel {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        stream::unfold((self.clone(), Some(request), VecDeque::new()), step).boxed()
    }

    fn count_tokens(&self, _: Request) -> BoxFuture<'static, Result<u64, Error>> {
        Box::pin(async { Err(Error::Unsupported { host: "storm".to_owned(), what: "counting" }) })
    }
}

type Streaming = (YearModel, Option<Request>, VecDeque<Later>);

async fn step((model, request, mut waiting): Streaming) -> Option<(Event, Streaming)> {
    if let Some(request) = &request {
        waiting = model.mind().answer(request);
    }
    let (after, event) = waiting.pop_front()?;
    tokio::time::sleep(after).await;
    if model.mind().disk.lock().is_dead() {
        std::future::pending::<()>().await;
    }
    Some((event, (model, None, waiting)))
}

/// What somebody said of a gauge: its name and what it shows.
pub(crate) fn statements(text: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let stated =
        words.windows(3).filter(|part| part[0].starts_with("gauge") && part[1] == "shows" && is_value(part[2]));
    stated.map(|part| (part[0].to_owned(), part[2].to_owned())).collect()
}

fn is_value(word: &str) -> bool {
    ["value", "hand", "secret"].iter().any(|kind| word.starts_with(kind))
}

/// A memory of what a gauge shows.
pub(crate) fn memory(gauge: &str, value: &str) -> String {
    format!(
        "---\nname: {gauge}\ndescription: The reading of {gauge}\ntype: project\n---\n\n{gauge} shows {value}.\n\n\
         > \"{gauge} shows {value} now\"\n"
    )
}

impl Mind {
    /// What happens, for who looks into a seed.
    pub(crate) fn tell(&self, what: &str) {
        if is_replay() {
            eprintln!("{what}");
        }
    }

    pub(crate) fn breaks(&mut self, law: String) {
        self.tell(&format!("BROKEN: {law}"));
        self.broken.push(law);
    }

    fn answer(&mut self, request: &Request) -> VecDeque<Later> {
        self.next += 1;
        let number = self.next;
        let texts: Vec<String> = request.messages.iter().flat_map(|message| &message.blocks).map(text_of).collect();
        self.keep_apart(&texts.join("\n"));
        let blocks = if texts.iter().any(|text| text.contains(LEARNING)) {
            self.learn(request, &texts)
        } else if request.prologue.tools.iter().any(|tool| tool.name == "Sessions") {
            self.dream(request, &texts)
        } else {
            self.talk(request)
        };
        let pause = |mind: &mut Self| Duration::from_millis(1 + mind.chance.below(300) as u64);
        if !self.is_calm && self.chance.one_in(FAILS) {
            self.tell(&format!("request {number} fails"));
            let cut = Error::Cut { host: "storm".to_owned(), cause: "cut".to_owned() };
            return [(pause(self), Event::Failed(cut))].into();
        }
        let is_cut = !self.is_calm && self.chance.one_in(FAILS * 2);
        let is_call = blocks.iter().any(|block| call_id(block).is_some());
        let stop = match () {
            () if is_cut => StopReason::MaxTokens,
            () if is_call => StopReason::ToolUse,
            () => StopReason::EndTurn,
        };
        let blocks = if is_cut { vec![Block::text("I would")] } else { blocks };
        let (id, model) = (format!("msg_{number}"), NAME.to_owned());
        let usage = Usage { input_tokens: 1_000, output_tokens: 10, ..Usage::default() };
        let mut events: VecDeque<Later> =
            [(pause(self), Event::Started { id: id.clone(), model: model.clone(), usage })].into();
        events.extend(blocks.iter().map(|block| (pause(self), Event::Block(block.clone()))));
        let reply = Reply { id, model, blocks, stop, usage, remarks: Remarks::default() };
        events.push_back((pause(self), Event::Done(reply)));
        events
    }

    /// What was said in private or stands in an excluded file is in requests of its own conversation alone.
    fn keep_apart(&mut self, text: &str) {
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let of_learning = text.contains(LEARNING) || !text.contains("say-");
        let held = self.apart.iter().filter(|(word, _)| words.contains(word.as_str()));
        let wrong: Vec<String> = held
            .filter(|(_, own)| of_learning || !text.contains(own.as_str()))
            .map(|(word, _)| format!("{word} is in a request: {}", text.chars().take(3_000).collect::<String>()))
            .collect();
        wrong.into_iter().for_each(|law| self.breaks(law));
    }

    /// Learning: all that is new is written down, once for each gauge.
    fn learn(&mut self, request: &Request, texts: &[String]) -> Vec<Block> {
        let Some(task) = texts.iter().find(|text| text.contains(LEARNING)) else { return Vec::new() };
        let said = match task.split_once("<new>") {
            Some((_, new)) => new.split("</new>").next().unwrap_or_default().to_owned(),
            None => {
                let beginning = task.split("message that begins \"").nth(1).and_then(|rest| rest.split('"').next());
                let from = texts.iter().rposition(|text| text.starts_with(beginning.unwrap_or_default()));
                texts[from.unwrap_or(0)..].iter().filter(|text| text.starts_with("say-")).cloned().collect()
            }
        };
        self.tell(&format!("learning of: {said}"));
        self.write_down(request, &said, |gauge| {
            let shown = task.split(&format!("<memory path=\"{gauge}.md\">")).nth(1);
            shown.and_then(|rest| rest.split("</memory>").next()).map(str::to_owned)
        })
    }

    /// A dream: all that was ever said of gauges that are not known is written down.
    fn dream(&mut self, request: &Request, texts: &[String]) -> Vec<Block> {
        let said = texts.first().and_then(|task| task.split_once(DREAMING)).map_or("", |(_, said)| said);
        let is_known = |gauge: &str| self.memories.join(format!("{gauge}.md")).exists();
        let unknown = statements(said).into_iter().filter(|(gauge, _)| !is_known(gauge));
        let unknown: String = unknown.map(|(gauge, value)| format!("{gauge} shows {value}. ")).collect();
        self.write_down(request, &unknown, |_| None)
    }

    /// Writes the newest of each gauge that stands otherwise, or is not there; what was not shown is read first.
    fn write_down(&mut self, request: &Request, said: &str, known: impl Fn(&str) -> Option<String>) -> Vec<Block> {
        let is_task = |block: &Block| block.as_text().is_some_and(|text| text.contains(LEARNING));
        let task = request.messages.iter().position(|message| message.blocks.iter().any(is_task)).unwrap_or(0);
        let since = request.messages[task..].iter().skip(1).flat_map(|message| &message.blocks);
        let results: Vec<String> = since.filter(|block| result_id(block).is_some()).map(Block::result_text).collect();
        self.tell(&format!("results: {results:?}"));
        let answered = results.len();
        let newest: BTreeMap<String, String> = statements(said).into_iter().collect();
        let news = |(gauge, value): &(String, String)| {
            let stands = known(gauge).is_some_and(|text| statements(&text).iter().any(|(_, is)| is == value));
            !stands
        };
        let news: Vec<(String, String)> = newest.into_iter().filter(news).collect();
        match answered {
            _ if news.is_empty() => vec![Block::text("Nothing to save.")],
            0 => news.iter().map(|(gauge, _)| self.call("Read", gauge, None)).collect(),
            n if n == news.len() => {
                news.iter().map(|(gauge, value)| self.call("Write", gauge, Some(memory(gauge, value)))).collect()
            }
            _ => vec![Block::text("Saved.")],
        }
    }

    fn call(&mut self, tool: &str, gauge: &str, content: Option<String>) -> Block {
        self.next += 1;
        let path = self.memories.join(format!("{gauge}.md"));
        let input = match content {
            Some(content) => json!({"file_path": path, "content": content}),
            None => json!({"file_path": path}),
        };
        Block::tool_use(&format!("toolu_{}", self.next), tool, &input)
    }

    /// The conversation: it looks where it is told to, and saves what it is told to remember.
    fn talk(&mut self, request: &Request) -> Vec<Block> {
        let is_said = |block: &Block| block.as_text().is_some_and(|text| text.starts_with("say-"));
        let at = request
            .messages
            .iter()
            .rposition(|message| message.role == Role::User && message.blocks.iter().any(is_said));
        let Some(at) = at else { return vec![Block::text("Well.")] };
        let texts: Vec<String> = request.messages[at].blocks.iter().filter_map(Block::as_text).collect();
        let said = texts.iter().rfind(|text| text.starts_with("say-")).cloned().unwrap_or_default();
        let results = request.messages[at..].iter().flat_map(|message| &message.blocks).filter_map(result_id).count();
        let gauge = statements(&said).pop();
        match (gauge, results) {
            (Some((gauge, _)), 0) if said.contains("Remember") => vec![self.call("Read", &gauge, None)],
            (Some((gauge, value)), 1) if said.contains("Remember") => {
                vec![self.call("Write", &gauge, Some(memory(&gauge, &value)))]
            }
            (_, 0) if said.contains("vault") => {
                let name = said.split("vault/").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or("x");
                self.next += 1;
                let id = format!("toolu_{}", self.next);
                match self.chance.one_in(2) {
                    true => vec![Block::tool_use(&id, "Read", &json!({"file_path": format!("vault/{name}")}))],
                    false => {
                        let input = json!({"pattern": "cargo", "output_mode": "content"});
                        vec![Block::tool_use(&id, "Grep", &input)]
                    }
                }
            }
            _ => vec![Block::text("Understood.")],
        }
    }
}

/// The text of a block, also of a tool's result.
fn text_of(block: &Block) -> String {
    block.as_text().unwrap_or_else(|| block.result_text())
}
