//! Recall: memories that are attached to a message.
//!
//! The local ranker answers at once, from what it holds: a memory that has nearly all that is asked joins the first
//! request, and if nothing speaks for any, no model is asked. Between the two a small model reads the likeliest beside
//! the main request, and those it chooses join the next one; if the turn is over by then, the first of the next turn,
//! if that is about the same. If no model can be asked, memories that the ranker is sure of join the first request, and
//! if it does not answer, the next. The work of a turn makes instructions relevant, once for each file or tool. All of
//! them together are at most five a turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use jiff::Timestamp;
use memory::rank::{OlderMemory, RankQuestion, WorkAtHand};
use memory::recall::{self, Attachment, MOST, State};
use memory::remember::MemoryOrigin;
use memory::shelf::{Shelf, ShelfHit, ShelfScope};
use memory::store::{IndexUpkeep, Store};
use memory::verdict::{RecallCandidate, RecallVerdict, verdict};
use session::{LineMeta, SurfacedMemory};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tools::Scope;
use transcript::{Injected, Purpose};

use super::AttachedText;
use super::selector::{Choices, Selector, SelectorQuestion};

/// Switch of recall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecallSwitch {
    /// Memories are recalled.
    #[default]
    On,
    /// Only the index is shown, and what the model reads by itself.
    Off,
}

/// A message of the user, with the work around it.
#[derive(Clone, Copy)]
pub struct UserMessage<'a> {
    /// Its text.
    pub message: &'a str,
    /// Work of the turn.
    pub doing: &'a WorkAtHand,
    /// The tools used in the previous turn.
    pub recent_tools: &'a [String],
}

/// Lookup of the author of a shared memory, by its path below the memory directory.
pub type Authors = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Recall of a session.
pub(super) struct Recall {
    pub(super) recalling: RecallSwitch,
    /// Upkeep of the index.
    pub(super) indexing: IndexUpkeep,
    pub(super) authors: Option<Authors>,
    /// Memories of agents, one folder an agent: a root directory that no path leads out of, and the path inside it.
    pub(super) agents: Vec<(PathBuf, PathBuf)>,
    /// The project's memories; none if memory is off.
    shelf: Option<Arc<Shelf>>,
    /// The user's, across projects.
    user: Option<Arc<Shelf>>,
    pub(super) selector: Option<Selector>,
    choices: Choices,
    state: State,
    /// Number of memories attached in this turn.
    this_turn: usize,
    /// The selector's pending answer.
    selection: Option<AbortOnDropHandle<Vec<RecallCandidate>>>,
    /// Work of the turn when instructions were last looked for.
    done: WorkAtHand,
    /// True once the memories have been read, or could not be.
    settled: watch::Sender<bool>,
}

impl Recall {
    pub(super) fn new(shelf: Option<Shelf>, selector: Option<Selector>) -> Self {
        Self {
            recalling: RecallSwitch::On,
            indexing: IndexUpkeep::Kept,
            authors: None,
            agents: Vec::new(),
            shelf: shelf.map(Arc::new),
            user: None,
            selector,
            choices: Choices::default(),
            state: State::default(),
            this_turn: 0,
            selection: None,
            done: WorkAtHand::default(),
            settled: watch::Sender::new(false),
        }
    }

    /// Changes to other memories, or to none.
    pub(super) fn turn_to(&mut self, shelf: Option<Shelf>) {
        (self.shelf, self.selection) = (shelf.map(Arc::new), None);
        self.state = State::default();
        self.settled = watch::Sender::new(false);
        self.warm();
    }

    pub(super) fn directory(&self) -> Option<&Path> {
        self.shelf.as_ref().map(|shelf| shelf.root().path())
    }

    /// Forgets what was attached, because it is out of view.
    pub(super) fn forget(&mut self) {
        self.state = State::default();
    }

    /// Records a memory that was attached and is in view.
    pub(super) fn was_surfaced(&mut self, path: String, bytes: u64) {
        self.state.count(&[Attachment { path, text: String::new(), bytes }]);
    }

    /// With the user's memories across projects.
    pub(super) fn with_user(&mut self, shelf: Shelf) {
        self.user = Some(Arc::new(shelf));
        self.settled = watch::Sender::new(false);
        self.warm();
    }

    /// The user's memories across projects.
    pub(super) fn user_directory(&self) -> Option<&Path> {
        self.user.as_ref().map(|shelf| shelf.root().path())
    }

    fn shelves(&self) -> Vec<Arc<Shelf>> {
        let own = self.shelf.iter();
        own.chain(self.user.as_ref().filter(|_| self.shelf.is_some())).cloned().collect()
    }

    /// Recall for a message of the user.
    pub(super) fn recall_for(&mut self, message: &UserMessage<'_>, scope: &Scope, now: Timestamp) -> Vec<AttachedText> {
        let late = self.selection.take();
        self.this_turn = 0;
        self.done = WorkAtHand::default();
        if self.state.check(message.message, self.recalling == RecallSwitch::On).is_err() {
            return Vec::new();
        }
        let named = recall::agents(message.message);
        if !named.is_empty() {
            // The name says where to look, not what for.
            let words: Vec<&str> =
                message.message.split_whitespace().filter(|word| !word.starts_with("@agent-")).collect();
            let text = words.join(" ");
            let shelves = self.of_agents(&named);
            return self.bring_up(&shelves, &UserMessage { message: &text, ..*message }, scope, now);
        }
        let shelves = self.shelves();
        // What others have saved since the last turn counts; until memories are read for the first time nobody waits.
        for shelf in shelves.iter().filter(|shelf| shelf.ranker().is_some()) {
            let _ = shelf.refresh(); // what cannot be read is not recalled
        }
        let mut attached = self.late(late, message, now);
        attached.extend(self.bring_up(&shelves, message, scope, now));
        attached
    }

    /// Attaches memories that the ranker is sure of; otherwise asks the selector.
    fn bring_up(
        &mut self,
        shelves: &[Arc<Shelf>],
        message: &UserMessage<'_>,
        scope: &Scope,
        now: Timestamp,
    ) -> Vec<AttachedText> {
        let admit =
            |shelf: &Shelf, path: &str| !self.state.has(&shelf.key(path)) && scope.seen(&shelf.file(path)).is_none();
        let question = RankQuestion { text: message.message, doing: message.doing, now };
        match verdict(shelves, &question, admit) {
            RecallVerdict::Silent => Vec::new(),
            RecallVerdict::Sure(found) => self.surface(&found, now),
            RecallVerdict::Unsure { instructions, without_model, candidates } => {
                let Some(selector) = self.selector.clone().filter(Selector::has_budget) else {
                    return self.surface(&without_model, now);
                };
                let recent_tools = message.recent_tools.to_vec();
                let (choices, message) = (self.choices.clone(), message.message.to_owned());
                let sure = without_model.iter().map(|found| found.shelf.key(&found.hit.path)).collect();
                let asking = SelectorQuestion { selector, choices, message, candidates, sure, recent_tools, now };
                self.selection = Some(AbortOnDropHandle::new(tokio::spawn(asking.select())));
                self.surface(&instructions, now)
            }
        }
    }

    /// Memories that the selector chose too late for the previous turn, as far as they fit the current message.
    fn late(
        &mut self,
        selection: Option<AbortOnDropHandle<Vec<RecallCandidate>>>,
        message: &UserMessage<'_>,
        now: Timestamp,
    ) -> Vec<AttachedText> {
        use futures_util::FutureExt;
        let finished = selection.filter(AbortOnDropHandle::is_finished);
        let chosen = finished.and_then(|selection| selection.now_or_never()).and_then(Result::ok).unwrap_or_default();
        let question = RankQuestion { text: message.message, doing: message.doing, now };
        let fits = |one: &RecallCandidate| {
            let ranked = one.shelf.ranker().map(|ranker| ranker.rank(&question)).unwrap_or_default();
            ranked.iter().any(|hit| hit.path == one.path && hit.has_evidence())
        };
        let chosen = chosen.into_iter().filter(fits).collect();
        self.surface_candidates(chosen, now)
    }

    /// Instructions that apply to the files and tools of the turn, if there is something new.
    pub(super) fn does(&mut self, doing: &WorkAtHand, scope: &Scope, now: Timestamp) -> Vec<AttachedText> {
        let is_on = self.state.check("what it does", self.recalling == RecallSwitch::On).is_ok();
        if !is_on || self.done == *doing {
            return Vec::new();
        }
        self.done = doing.clone();
        let mut found = Vec::new();
        for shelf in self.shelves() {
            let Some(ranker) = shelf.ranker() else { continue };
            let admit = |path: &str| !self.state.has(&shelf.key(path)) && scope.seen(&shelf.file(path)).is_none();
            let hits = ranker.applying(doing, now, admit);
            found.extend(hits.into_iter().map(|hit| ShelfHit { shelf: shelf.clone(), hit }));
        }
        self.surface(&found, now)
    }

    /// The memories of agents that a message names (`@agent-NAME`), in place of the session's own.
    fn of_agents(&self, named: &[String]) -> Vec<Arc<Shelf>> {
        let mut shelves = Vec::new();
        for name in named {
            let folder = name.replace(':', "-");
            let open = |(base, way): &(PathBuf, PathBuf)| Root::open(base).ok()?.sub(way.join(&folder)).ok();
            for root in self.agents.iter().filter_map(open) {
                let shelf = Shelf::new(root, ShelfScope::Agent(name.clone()));
                if shelf.refresh().is_ok() {
                    shelves.push(Arc::new(shelf));
                }
            }
        }
        shelves
    }

    /// Memories that the selector has chosen by now; none while it runs.
    pub(super) async fn chosen(&mut self, now: Timestamp) -> Vec<AttachedText> {
        if !self.selection.as_ref().is_some_and(AbortOnDropHandle::is_finished) {
            return Vec::new();
        }
        let Some(asked) = self.selection.take() else { return Vec::new() };
        let chosen = asked.await.unwrap_or_default();
        self.surface_candidates(chosen, now)
    }

    fn surface_candidates(&mut self, chosen: Vec<RecallCandidate>, now: Timestamp) -> Vec<AttachedText> {
        let fresh: Vec<RecallCandidate> = chosen.into_iter().filter(|one| !self.state.has(&one.key())).collect();
        let found = fresh.iter().filter_map(|one| self.render(&one.shelf, &one.path, &one.older, now)).collect();
        self.attach(found)
    }

    fn surface(&mut self, found: &[ShelfHit], now: Timestamp) -> Vec<AttachedText> {
        let render = |found: &ShelfHit| self.render(&found.shelf, &found.hit.path, &found.hit.older, now);
        let found = found.iter().filter_map(render).collect();
        self.attach(found)
    }

    fn render(&self, shelf: &Shelf, path: &str, older: &[OlderMemory], now: Timestamp) -> Option<Attachment> {
        let attachment = shelf.surface(path, older, self.author(path).as_deref(), now).ok()?;
        Some(Attachment { path: shelf.key(path), ..attachment })
    }

    fn author(&self, path: &str) -> Option<String> {
        self.authors.as_ref().and_then(|authors| authors(path))
    }

    fn attach(&mut self, mut found: Vec<Attachment>) -> Vec<AttachedText> {
        found.truncate(MOST.saturating_sub(self.this_turn));
        self.this_turn += found.len();
        self.state.count(&found);
        let attach = |attachment: Attachment| {
            let memory = Some(SurfacedMemory { path: attachment.path, bytes: attachment.bytes });
            let text = Injected::new(Purpose::Memory, &attachment.text);
            AttachedText { text, meta: LineMeta { memory, ..LineMeta::default() } }
        };
        found.into_iter().map(attach).collect()
    }

    /// Ends the turn: a pending choice of the selector may join the next one.
    pub(super) fn turn_ended(&mut self) {
        self.warm();
    }

    /// Completes a memory that the user changed by hand: its mode, its line in the index, and today's date.
    pub(super) fn edited(&self, file: &Path, tree: &Path, now: Timestamp) {
        let Some(shelf) = &self.shelf else { return };
        let below = file.strip_prefix(shelf.root().path()).ok().and_then(Path::to_str);
        if let (Some(path), Ok(store)) = (below, Store::open(shelf.root().path(), self.indexing)) {
            let origin = MemoryOrigin { at: Some(now), ..MemoryOrigin::default() };
            let _ = store.settle(path, &origin, Some(tree)); // what cannot be written stays as the user left it
        }
        self.warm();
    }

    /// Reads memories again in the background.
    pub(super) fn warm(&self) {
        let (shelves, settled) = (self.shelves(), self.settled.clone());
        let read = move || {
            shelves.iter().for_each(|shelf| drop(shelf.refresh())); // what cannot be read is not recalled
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
