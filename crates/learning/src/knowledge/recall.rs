//! Memories that come by themselves.
//!
//! The local ranker answers at once, from what it holds, if it is sure; a small model is asked beside the main request, and
//! what it chooses joins the next one. What the turn does brings up instructions, once for each thing done. All of them
//! together are at most five a turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use jiff::Timestamp;
use memory::rank::{Doing, Question};
use memory::recall::{self, Attachment, MOST, State};
use memory::remember::Origin;
use memory::shelf::{self, Found, Scope as Whose, Shelf};
use memory::store::{Indexing, Store};
use session::{Beside, SurfacedMemory};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tools::Scope;
use transcript::{Injected, Purpose};

use super::Attached;
use super::selector::{Asking, Selector};

/// Whether memories are brought up by themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Recalling {
    /// They are.
    #[default]
    On,
    /// Only the index is shown, and what the model reads by itself.
    Off,
}

/// Who wrote a memory that is shared, by its path below the memory directory.
pub type Authors = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a session recalls.
pub(super) struct Recall {
    pub(super) recalling: Recalling,
    /// Whether the index is kept.
    pub(super) indexing: Indexing,
    pub(super) authors: Option<Authors>,
    /// Where agents keep memories of their own, one folder an agent: a directory that is not left, and the way inside it.
    pub(super) agents: Vec<(PathBuf, PathBuf)>,
    shelf: Option<Arc<Shelf>>,
    pub(super) selector: Option<Selector>,
    state: State,
    /// How many memories this turn has seen.
    this_turn: usize,
    asked: Option<AbortOnDropHandle<Vec<String>>>,
    /// What the turn did when instructions were last looked for.
    done: Doing,
    /// Memories the model wrote in this turn.
    written: Vec<PathBuf>,
    /// Whether the memories have been read, or could not be.
    settled: watch::Sender<bool>,
}

impl Recall {
    pub(super) fn new(shelf: Option<Shelf>, selector: Option<Selector>) -> Self {
        Self {
            recalling: Recalling::On,
            indexing: Indexing::Kept,
            authors: None,
            agents: Vec::new(),
            shelf: shelf.map(Arc::new),
            selector,
            state: State::default(),
            this_turn: 0,
            asked: None,
            done: Doing::default(),
            written: Vec::new(),
            settled: watch::Sender::new(false),
        }
    }

    /// Recalls from other memories from now on, or from none.
    pub(super) fn turn_to(&mut self, shelf: Option<Shelf>) {
        (self.shelf, self.asked) = (shelf.map(Arc::new), None);
        self.state = State::default();
        self.settled = watch::Sender::new(false);
        self.warm();
    }

    pub(super) fn directory(&self) -> Option<&Path> {
        self.shelf.as_ref().map(|shelf| shelf.root().path())
    }

    /// All that was surfaced is out of sight.
    pub(super) fn forget(&mut self) {
        self.state = State::default();
    }

    /// This was surfaced, and is in sight.
    pub(super) fn was_surfaced(&mut self, path: String, bytes: u64) {
        self.state.count(&[Attachment { path, text: String::new(), bytes }]);
    }

    /// The user said something.
    pub(super) fn said(&mut self, message: &str, doing: &Doing, scope: &Scope, now: Timestamp) -> Vec<Attached> {
        self.asked = None;
        self.this_turn = 0;
        self.done = Doing::default();
        if self.state.gate(message, self.recalling == Recalling::On).is_err() {
            return Vec::new();
        }
        let named = recall::agents(message);
        if !named.is_empty() {
            return self.of_agents(&named, message, doing, now);
        }
        let Some(shelf) = self.shelf.clone() else { return Vec::new() };
        if let Some(selector) = self.selector.clone() {
            let (shelf, scope, state) = (shelf.clone(), scope.clone(), self.state.clone());
            let (message, doing) = (message.to_owned(), doing.clone());
            let asking = Asking { selector, shelf, scope, state, message, doing, now };
            self.asked = Some(AbortOnDropHandle::new(tokio::spawn(async move { asking.select().await })));
        }
        let admit = |shelf: &Shelf, path: &str| !self.state.has(path) && scope.seen(&shelf.file(path)).is_none();
        let found = shelf::choose(&[shelf], &Question { text: message, doing, now }, admit);
        self.surface(found, now)
    }

    /// The turn touched files or used tools: instructions that apply to that, if it is something new.
    pub(super) fn does(&mut self, doing: &Doing, scope: &Scope, now: Timestamp) -> Vec<Attached> {
        let is_on = self.state.gate("what it does", self.recalling == Recalling::On).is_ok();
        let (true, Some(shelf)) = (is_on && self.done != *doing, self.shelf.clone()) else { return Vec::new() };
        self.done = doing.clone();
        let Some(ranker) = shelf.ranker() else { return Vec::new() };
        let admit = |path: &str| !self.state.has(path) && scope.seen(&shelf.file(path)).is_none();
        let hits = ranker.applying(doing, now, admit);
        let found = hits.into_iter().map(|hit| Found { shelf: shelf.clone(), hit }).collect();
        self.surface(found, now)
    }

    /// What the memories of agents that a message names (`@agent-NAME`) have to say to it, in place of the session's own.
    fn of_agents(&mut self, named: &[String], message: &str, doing: &Doing, now: Timestamp) -> Vec<Attached> {
        // The name says where to look, not what for.
        let words: Vec<&str> = message.split_whitespace().filter(|word| !word.starts_with("@agent-")).collect();
        let text = words.join(" ");
        let mut shelves = Vec::new();
        for name in named {
            let folder = name.replace(':', "-");
            let open = |(base, way): &(PathBuf, PathBuf)| Root::open(base).ok()?.sub(way.join(&folder)).ok();
            for root in self.agents.iter().filter_map(open) {
                let shelf = Shelf::new(root, Whose::Agent(name.clone()));
                if shelf.refresh().is_ok() {
                    shelves.push(Arc::new(shelf));
                }
            }
        }
        let key = |shelf: &Shelf, path: &str| shelf.file(path).display().to_string();
        let admit = |shelf: &Shelf, path: &str| !self.state.has(&key(shelf, path));
        let found = shelf::choose(&shelves, &Question { text: &text, doing, now }, admit);
        self.surface(found, now)
    }

    /// What the selector has chosen by now; nothing while it thinks.
    pub(super) async fn chosen(&mut self, now: Timestamp) -> Vec<Attached> {
        if !self.asked.as_ref().is_some_and(AbortOnDropHandle::is_finished) {
            return Vec::new();
        }
        let Some(asked) = self.asked.take() else { return Vec::new() };
        let paths = asked.await.unwrap_or_default();
        let Some(shelf) = &self.shelf else { return Vec::new() };
        let fresh = paths.iter().filter(|path| !self.state.has(path));
        let found = fresh.filter_map(|path| shelf.surface(path, &[], self.author(path).as_deref(), now).ok()).collect();
        self.attach(found)
    }

    fn surface(&mut self, found: Vec<Found>, now: Timestamp) -> Vec<Attached> {
        let render = |found: Found| {
            let (path, older) = (&found.hit.path, &found.hit.older);
            let attachment = found.shelf.surface(path, older, self.author(path).as_deref(), now).ok()?;
            // A session's own memories are known by their path below it, an agent's by the whole one.
            let path = match found.shelf.scope() {
                Whose::Agent(_) => found.shelf.file(&found.hit.path).display().to_string(),
                _ => attachment.path.clone(),
            };
            Some(Attachment { path, ..attachment })
        };
        let found = found.into_iter().filter_map(render).collect();
        self.attach(found)
    }

    fn author(&self, path: &str) -> Option<String> {
        self.authors.as_ref().and_then(|authors| authors(path))
    }

    fn attach(&mut self, mut found: Vec<Attachment>) -> Vec<Attached> {
        found.truncate(MOST.saturating_sub(self.this_turn));
        self.this_turn += found.len();
        self.state.count(&found);
        let attach = |attachment: Attachment| {
            let memory = Some(SurfacedMemory { path: attachment.path, bytes: attachment.bytes });
            let text = Injected::new(Purpose::Memory, &attachment.text);
            Attached { text, beside: Beside { memory, ..Beside::default() } }
        };
        found.into_iter().map(attach).collect()
    }

    /// The model wrote a file in the memory directory.
    pub(super) fn wrote(&mut self, path: &Path) {
        self.written.push(path.to_owned());
    }

    pub(super) fn turn_ended(&mut self, scope: &Scope, origin: &Origin) {
        self.asked = None;
        self.put_in_order(scope, origin);
        self.warm();
    }

    /// What the model wrote gets the mode of a memory, and a line in the index where it has none.
    fn put_in_order(&mut self, scope: &Scope, origin: &Origin) {
        let written = std::mem::take(&mut self.written);
        let Some(shelf) = self.shelf.as_ref().filter(|_| !written.is_empty()) else { return };
        let Ok(store) = Store::open(shelf.root().path(), self.indexing) else { return };
        for file in written {
            let relative = file.strip_prefix(shelf.root().path()).map(|path| path.to_string_lossy().into_owned());
            let known = |stamp: &files::Stamp| scope.seen(&file).is_some_and(|seen| seen.same_content(stamp));
            let is_known = files::stamp(&file).is_ok_and(|stamp| known(&stamp));
            if let Ok(relative) = relative
                && store.settle(&relative, origin, Some(scope.project())).is_ok()
                && let Ok(stamp) = files::stamp(&file)
                && is_known
            {
                scope.note(&file, stamp); // only what stands beside its text has changed: the model may go on editing it
            }
        }
    }

    /// Reads memories again where it holds up nobody.
    pub(super) fn warm(&self) {
        let Some(shelf) = self.shelf.clone() else {
            self.settled.send_replace(true);
            return;
        };
        let settled = self.settled.clone();
        let read = move || {
            let _ = shelf.refresh(); // what cannot be read is not recalled
            settled.send_replace(true);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(read)),
            Err(_) => read(),
        }
    }

    pub(super) async fn ready(&self) {
        let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
    }
}
