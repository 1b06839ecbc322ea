//! What a session knows beside the conversation: instruction files and memory.
//!
//! Both enter as attachments, rendered once and frozen in the log; a resumed session reads off the log what it has seen
//! and attaches nothing twice. Instructions and the memory index come before the user's first words. Memories come by
//! recall: the local ranker answers at once, from memory, if it is sure; a small model is asked beside the main request
//! and what it chooses joins the next one. Nothing here is waited for, and nothing here can fail a turn.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use files::Root;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use memory::instructions::{Instructions, Loaded, Note, Reason, Sources, What, first_message, nested};
use memory::rank::{Doing, Question};
use memory::recall::{self, Attachment, Need, State};
use memory::{Header, Ranker, scan};
use provider::Model;
use tokio_util::task::AbortOnDropHandle;
use tools::Scope;
use transcript::mark::Marks;
use transcript::{Block, Message, Prologue, Request, Role};

use crate::session::{Beside, Session, SurfacedMemory};
use crate::world::World;

/// How long a selector may think before the ranker's word stands alone.
const SELECTOR_PATIENCE: Duration = Duration::from_secs(20);

/// A small model for side questions.
#[derive(Clone)]
pub struct Selector {
    /// The client.
    pub model: Arc<dyn Model>,
    /// The model's name.
    pub name: String,
}

/// Instruction files and memory of one session.
pub struct Knowledge {
    instructions: Instructions,
    /// Instruction files the model has seen.
    attached: HashSet<PathBuf>,
    /// What the user was told of those that were left out.
    told: HashSet<String>,
    memory: Option<Memory>,
    /// Where agents keep memories of their own, one folder an agent: a directory that is not left, and the way inside it.
    agents: Vec<(PathBuf, PathBuf)>,
    selector: Option<Selector>,
    state: State,
    asked: Option<AbortOnDropHandle<Vec<String>>>,
    world: World,
}

/// An opened memory directory.
#[derive(Clone)]
struct Memory {
    directory: PathBuf,
    root: Arc<Root>,
    ranker: Arc<Mutex<Option<Ranker>>>,
}

impl Memory {
    /// Whether the model has read a memory by itself.
    fn was_read(&self, path: &str, scope: &Scope) -> bool {
        scope.seen(&self.directory.join(path)).is_some()
    }
}

/// Something to attach, with what the log is to remember of it.
#[derive(Debug)]
pub struct Attached {
    /// What the model sees.
    pub block: Block,
    /// What a later session has to know.
    pub beside: Beside,
}

impl Knowledge {
    /// Loads instructions, opens the memory directory if there is one, and reads off the log what was seen before.
    pub fn new(
        sources: Sources,
        memory_directory: Option<&Path>,
        selector: Option<Selector>,
        session: &Session,
    ) -> Self {
        let memory = memory_directory.and_then(|directory| {
            let root = Arc::new(Root::open(directory).ok()?);
            Some(Memory { directory: directory.to_owned(), root, ranker: Arc::default() })
        });
        let mut knowledge = Self {
            instructions: Instructions::load(sources, Reason::SessionStart),
            attached: HashSet::new(),
            told: HashSet::new(),
            memory,
            agents: Vec::new(),
            selector,
            state: State::default(),
            asked: None,
            world: session.world().clone(),
        };
        knowledge.remember(session);
        knowledge.warm();
        knowledge
    }

    /// Reads off the log what the model has seen and still sees: what went with a summary, or was taken back, may come
    /// again.
    pub(crate) fn remember(&mut self, session: &Session) {
        let known = std::mem::take(&mut self.attached);
        self.state = State::default();
        for beside in session.beside_in_view() {
            self.attached.extend(beside.instructions);
            if let Some(seen) = beside.memory {
                let (path, bytes) = (seen.path, seen.bytes);
                self.state.count(&[Attachment { path, text: String::new(), bytes }]);
            }
        }
        if !known.is_subset(&self.attached) {
            self.instructions.reload(Reason::SessionStart);
        }
    }

    /// Names the folders where agents keep memories of their own: each a directory that is not left, whatever links are
    /// in it, and the way inside it.
    #[must_use]
    pub fn with_agents(mut self, folders: Vec<(PathBuf, PathBuf)>) -> Self {
        self.agents = folders;
        self
    }

    /// Files that were loaded, and what was wrong with others.
    pub fn instructions(&self) -> &Instructions {
        &self.instructions
    }

    /// Where memories lie, if memory is on.
    pub fn memory_directory(&self) -> Option<&Path> {
        self.memory.as_ref().map(|memory| memory.directory.as_path())
    }

    /// Whether a path lies in the memory directory.
    pub fn is_memory(&self, path: &Path) -> bool {
        self.memory.as_ref().is_some_and(|memory| path.starts_with(&memory.directory))
    }

    /// Whether a path is an instruction file that was loaded.
    pub fn is_instruction(&self, path: &Path) -> bool {
        self.attached.contains(path) || self.instructions.files.iter().any(|file| file.path == path)
    }

    /// What a project's files would have brought in and did not, because it lies outside or is another user's. Each is said
    /// once.
    pub fn left_out(&mut self) -> Vec<String> {
        let notes = self.instructions.notes.iter();
        let refused = notes.filter(|note| matches!(note.what, What::Outside(_) | What::OfAnother)).map(Note::to_string);
        refused.filter(|text| self.told.insert(text.clone())).collect()
    }

    /// What was attached is behind a summary: instructions are read again, and memories may come up again.
    pub(crate) fn compacted(&mut self) {
        self.instructions.reload(Reason::Compact);
        self.attached.clear();
        self.state = State::default();
    }

    /// What comes before the user's first words; nothing if it was said already.
    pub(crate) fn beginning(&mut self) -> Option<Attached> {
        if !self.attached.is_empty() {
            return None;
        }
        let today = self.world.now().to_zoned(jiff::tz::TimeZone::system()).date();
        let block = Block::text(first_message(&self.instructions.files, today));
        let mut paths: Vec<PathBuf> = self.instructions.files.iter().map(|file| file.path.clone()).collect();
        if paths.is_empty() {
            paths.push(PathBuf::new()); // said, though there was nothing but the date to say
        }
        self.attached.extend(paths.iter().cloned());
        Some(Attached { block, beside: Beside { instructions: paths, ..Beside::default() } })
    }

    /// What a file that was touched brings with it.
    pub(crate) fn touched(&mut self, path: &Path) -> Option<(Vec<Loaded>, Attached)> {
        let loaded: Vec<Loaded> = self
            .instructions
            .touched(path)
            .into_iter()
            .filter(|file| self.attached.insert(file.path.clone()))
            .collect();
        if loaded.is_empty() {
            return None;
        }
        let paths = loaded.iter().map(|file| file.path.clone()).collect();
        let beside = Beside { instructions: paths, ..Beside::default() };
        let block = Block::text(nested(&loaded));
        Some((loaded, Attached { block, beside }))
    }

    /// The user said something: what the ranker is sure of comes back at once, and the selector is asked.
    pub(crate) fn said(&mut self, message: &str, doing: &Doing, scope: &Scope) -> Vec<Attached> {
        self.asked = None;
        if self.state.gate(message, true).is_err() {
            return Vec::new();
        }
        let named = recall::agents(message);
        if !named.is_empty() {
            let found = self.of_agents(&named, message, doing);
            return self.surface(found);
        }
        let Some(memory) = &self.memory else { return Vec::new() };
        let (now, ranker) = (self.world.now(), memory.ranker.clone());
        let ranked = {
            let ranker = ranker.lock().unwrap_or_else(PoisonError::into_inner);
            let question = Question { text: message, doing, now };
            let unknown = |path: &str| !self.state.has(path) && !memory.was_read(path, scope);
            ranker.as_ref().map(|ranker| ranker.choose(&question, unknown)).unwrap_or_default()
        };
        let mut found = Vec::new();
        for hit in &ranked {
            if let Ok(attachment) = recall::surface_over(&memory.root, &hit.path, &hit.older, now) {
                found.push(attachment);
            }
        }
        if let Some(selector) = self.selector.clone() {
            let asking = Asking {
                selector,
                memory: memory.clone(),
                scope: scope.clone(),
                state: self.state.clone(),
                message: message.to_owned(),
                doing: doing.clone(),
                now,
            };
            let asking = async move { asking.select().await };
            self.asked = Some(AbortOnDropHandle::new(tokio::spawn(asking)));
        }
        self.surface(found)
    }

    /// What the memories of agents that a message names (`@agent-NAME`) have to say to it, in place of the session's own.
    fn of_agents(&self, named: &[String], message: &str, doing: &Doing) -> Vec<Attachment> {
        let now = self.world.now();
        // The name says where to look, not what for.
        let words: Vec<&str> = message.split_whitespace().filter(|word| !word.starts_with("@agent-")).collect();
        let (message, mut found) = (words.join(" "), Vec::new());
        for name in named {
            let folder = name.replace(':', "-");
            let open = |(base, way): &(PathBuf, PathBuf)| Root::open(base).ok()?.sub(way.join(&folder)).ok();
            for root in self.agents.iter().filter_map(open) {
                let Ok(ranker) = Ranker::load(&root) else { continue };
                let key = |path: &str| root.path().join(path).display().to_string();
                let question = Question { text: &message, doing, now };
                for hit in ranker.choose(&question, |path| !self.state.has(&key(path))) {
                    let surfaced = recall::surface_over(&root, &hit.path, &hit.older, now);
                    found.extend(surfaced.ok().map(|one| Attachment { path: key(&hit.path), ..one }));
                }
            }
        }
        found
    }

    /// What the selector has chosen by now; nothing while it thinks.
    pub(crate) async fn chosen(&mut self) -> Vec<Attached> {
        if !self.asked.as_ref().is_some_and(AbortOnDropHandle::is_finished) {
            return Vec::new();
        }
        let Some(asked) = self.asked.take() else { return Vec::new() };
        let paths = asked.await.unwrap_or_default();
        let Some(memory) = &self.memory else { return Vec::new() };
        let fresh: Vec<String> = paths.into_iter().filter(|path| !self.state.has(path)).collect();
        let found = recall::surface(&memory.root, &fresh, self.world.now());
        self.surface(found)
    }

    /// The turn is over: what was not chosen by now is dropped, and changed memories are read again.
    pub(crate) fn turn_ended(&mut self) {
        self.asked = None;
        self.warm();
    }

    fn surface(&mut self, found: Vec<Attachment>) -> Vec<Attached> {
        self.state.count(&found);
        let attach = |attachment: Attachment| {
            let memory = Some(SurfacedMemory { path: attachment.path, bytes: attachment.bytes });
            Attached { block: Block::text(attachment.text), beside: Beside { memory, ..Beside::default() } }
        };
        found.into_iter().map(attach).collect()
    }

    /// Brings the ranker up to date where it holds up nobody.
    fn warm(&self) {
        let Some(memory) = &self.memory else { return };
        let (root, ranker) = (memory.root.clone(), memory.ranker.clone());
        let read = move || {
            let known = ranker.lock().unwrap_or_else(PoisonError::into_inner).take();
            let ready = match known {
                Some(mut known) => known.reload(&root).ok().map(|_| known),
                None => Ranker::load(&root).ok(),
            };
            *ranker.lock().unwrap_or_else(PoisonError::into_inner) = ready;
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(read)),
            Err(_) => read(),
        }
    }

    /// Waits until the ranker is ready, for those who have to know what it would say.
    pub async fn ready(&self) {
        while self
            .memory
            .as_ref()
            .is_some_and(|memory| memory.ranker.lock().unwrap_or_else(PoisonError::into_inner).is_none())
        {
            tokio::task::yield_now().await;
        }
    }
}

impl std::fmt::Debug for Knowledge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Knowledge").field("files", &self.instructions.files.len()).finish_non_exhaustive()
    }
}

/// A question to a small model: which memories matter?
struct Asking {
    selector: Selector,
    memory: Memory,
    scope: Scope,
    state: State,
    message: String,
    doing: Doing,
    now: jiff::Timestamp,
}

impl Asking {
    /// Asks. On any failure nothing is chosen: the ranker's word, which is in the request already, stands.
    async fn select(&self) -> Vec<String> {
        let candidates = self.candidates();
        let Some(Need::Select { system, prompt, schema, max_tokens }) =
            recall::select(&self.message, &candidates, &self.doing.tools)
        else {
            return Vec::new();
        };
        let prologue = Prologue {
            model: self.selector.name.clone(),
            max_tokens,
            system: vec![Block::text(system)],
            format: Some(schema),
            ..Prologue::default()
        };
        let messages = vec![Message { role: Role::User, blocks: vec![Block::text(prompt)] }];
        let request = Request { prologue: Arc::new(prologue), messages, marks: Marks::default() };
        let answer = tokio::time::timeout(SELECTOR_PATIENCE, text_of(self.selector.model.stream(request))).await;
        let answer = answer.ok().flatten().unwrap_or_default();
        recall::chosen(&answer, &candidates).unwrap_or_default()
    }

    /// The memories to choose from: not surfaced, not read, and of very many the likeliest.
    fn candidates(&self) -> Vec<Header> {
        let headers = scan::headers(&self.memory.root).unwrap_or_default();
        let was_read = |path: &str| self.memory.was_read(path, &self.scope);
        let mut candidates = recall::candidates(&headers, &self.state, was_read);
        if candidates.len() > recall::MANIFEST {
            let ranker = self.memory.ranker.lock().unwrap_or_else(PoisonError::into_inner);
            let question = Question { text: &self.message, doing: &self.doing, now: self.now };
            let best = ranker.as_ref().map(|ranker| ranker.likeliest(&question, recall::MANIFEST));
            let best = best.unwrap_or_default();
            candidates.retain(|header| best.contains(&header.path));
        }
        candidates
    }
}

/// The text of a reply, if one comes.
async fn text_of(mut events: BoxStream<'static, provider::Event>) -> Option<String> {
    while let Some(event) = events.next().await {
        match event {
            provider::Event::Done(reply) => return reply.blocks.iter().find_map(Block::as_text),
            provider::Event::Failed(_) => return None,
            _ => {}
        }
    }
    None
}
