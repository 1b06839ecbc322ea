//! Memories that come by themselves.
//!
//! The local ranker answers at once, from what it holds: a memory that has nearly all that is asked joins the first request,
//! and where nothing speaks for any, nothing is asked. Between the two a small model reads the likeliest beside the main request,
//! and what it chooses joins the next one; if the turn is over by then, the first of the next turn, if that is about the same.
//! Where no model can be asked, what the ranker is sure of joins the first request, and where it does not answer, the next.
//! What the turn does brings up instructions, once for each thing done. All of them together are at most five a turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use jiff::Timestamp;
use memory::rank::{OlderMemory, RankQuestion, WorkAtHand};
use memory::recall::{self, Attachment, MOST, State};
use memory::remember::MemoryOrigin;
use memory::shelf::{Scope as Whose, Shelf, ShelfHit};
use memory::store::{IndexUpkeep, Store};
use memory::verdict::{RecallCandidate, RecallVerdict, verdict};
use session::{LineMeta, SurfacedMemory};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tools::Scope;
use transcript::{Injected, Purpose};

use super::AttachedText;
use super::selector::{Choices, Selector, SelectorQuestion};

/// Whether memories are brought up by themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecallSwitch {
    /// They are.
    #[default]
    On,
    /// Only the index is shown, and what the model reads by itself.
    Off,
}

/// Something the user said, and what goes on around it.
#[derive(Clone, Copy)]
pub struct UserMessage<'a> {
    /// The words.
    pub message: &'a str,
    /// What the turn is doing.
    pub doing: &'a WorkAtHand,
    /// The tools that the turn before used.
    pub recent_tools: &'a [String],
}

/// Who wrote a memory that is shared, by its path below the memory directory.
pub type Authors = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a session recalls.
pub(super) struct Recall {
    pub(super) recalling: RecallSwitch,
    /// Whether the index is kept.
    pub(super) indexing: IndexUpkeep,
    pub(super) authors: Option<Authors>,
    /// Where agents keep memories of their own, one folder an agent: a directory that is not left, and the way inside it.
    pub(super) agents: Vec<(PathBuf, PathBuf)>,
    /// The project's memories; none if memory is off.
    shelf: Option<Arc<Shelf>>,
    /// The user's, across projects.
    user: Option<Arc<Shelf>>,
    pub(super) selector: Option<Selector>,
    choices: Choices,
    state: State,
    /// How many memories this turn has seen.
    this_turn: usize,
    /// What the selector was asked.
    asked: Option<AbortOnDropHandle<Vec<RecallCandidate>>>,
    /// What the turn did when instructions were last looked for.
    done: WorkAtHand,
    /// Whether the memories have been read, or could not be.
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
            asked: None,
            done: WorkAtHand::default(),
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

    /// Recalls the user's memories across projects as well.
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

    /// The user said something.
    pub(super) fn said(&mut self, said: &UserMessage<'_>, scope: &Scope, now: Timestamp) -> Vec<AttachedText> {
        let late = self.asked.take();
        self.this_turn = 0;
        self.done = WorkAtHand::default();
        if self.state.gate(said.message, self.recalling == RecallSwitch::On).is_err() {
            return Vec::new();
        }
        let named = recall::agents(said.message);
        if !named.is_empty() {
            // The name says where to look, not what for.
            let words: Vec<&str> =
                said.message.split_whitespace().filter(|word| !word.starts_with("@agent-")).collect();
            let message = words.join(" ");
            let shelves = self.of_agents(&named);
            return self.bring_up(&shelves, &UserMessage { message: &message, ..*said }, scope, now);
        }
        let shelves = self.shelves();
        // What others have saved since the last turn counts; until memories are read for the first time nobody waits.
        for shelf in shelves.iter().filter(|shelf| shelf.ranker().is_some()) {
            let _ = shelf.refresh(); // what cannot be read is not recalled
        }
        let mut attached = self.late(late, said, now);
        attached.extend(self.bring_up(&shelves, said, scope, now));
        attached
    }

    /// Surfaces what the ranker is sure of, and asks the selector where it is not.
    fn bring_up(
        &mut self,
        shelves: &[Arc<Shelf>],
        said: &UserMessage<'_>,
        scope: &Scope,
        now: Timestamp,
    ) -> Vec<AttachedText> {
        let admit =
            |shelf: &Shelf, path: &str| !self.state.has(&shelf.key(path)) && scope.seen(&shelf.file(path)).is_none();
        let question = RankQuestion { text: said.message, doing: said.doing, now };
        match verdict(shelves, &question, admit) {
            RecallVerdict::Silent => Vec::new(),
            RecallVerdict::Sure(found) => self.surface(&found, now),
            RecallVerdict::Unsure { instructions, without_model, candidates } => {
                let Some(selector) = self.selector.clone().filter(Selector::may_be_asked) else {
                    return self.surface(&without_model, now);
                };
                let (choices, message) = (self.choices.clone(), said.message.to_owned());
                let recent_tools = said.recent_tools.to_vec();
                let sure = without_model.iter().map(|found| found.shelf.key(&found.hit.path)).collect();
                let asking = SelectorQuestion { selector, choices, message, candidates, sure, recent_tools, now };
                self.asked = Some(AbortOnDropHandle::new(tokio::spawn(asking.select())));
                self.surface(&instructions, now)
            }
        }
    }

    /// What the selector chose for the turn before, too late for it, as far as it bears on what is said now.
    fn late(
        &mut self,
        asked: Option<AbortOnDropHandle<Vec<RecallCandidate>>>,
        said: &UserMessage<'_>,
        now: Timestamp,
    ) -> Vec<AttachedText> {
        use futures_util::FutureExt;
        let finished = asked.filter(AbortOnDropHandle::is_finished);
        let chosen = finished.and_then(|asked| asked.now_or_never()).and_then(Result::ok).unwrap_or_default();
        let question = RankQuestion { text: said.message, doing: said.doing, now };
        let fits = |one: &RecallCandidate| {
            let ranked = one.shelf.ranker().map(|ranker| ranker.rank(&question)).unwrap_or_default();
            ranked.iter().any(|hit| hit.path == one.path && hit.has_evidence())
        };
        let chosen = chosen.into_iter().filter(fits).collect();
        self.surface_candidates(chosen, now)
    }

    /// The turn touched files or used tools: instructions that apply to that, if it is something new.
    pub(super) fn does(&mut self, doing: &WorkAtHand, scope: &Scope, now: Timestamp) -> Vec<AttachedText> {
        let is_on = self.state.gate("what it does", self.recalling == RecallSwitch::On).is_ok();
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
                let shelf = Shelf::new(root, Whose::Agent(name.clone()));
                if shelf.refresh().is_ok() {
                    shelves.push(Arc::new(shelf));
                }
            }
        }
        shelves
    }

    /// What the selector has chosen by now; nothing while it thinks.
    pub(super) async fn chosen(&mut self, now: Timestamp) -> Vec<AttachedText> {
        if !self.asked.as_ref().is_some_and(AbortOnDropHandle::is_finished) {
            return Vec::new();
        }
        let Some(asked) = self.asked.take() else { return Vec::new() };
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
            AttachedText { text, beside: LineMeta { memory, ..LineMeta::default() } }
        };
        found.into_iter().map(attach).collect()
    }

    /// The turn is over: what the selector has not chosen by now may join the next one.
    pub(super) fn turn_ended(&mut self) {
        self.warm();
    }

    /// The user has changed a memory by hand: it has the mode of one, a line in the index, and the date of today.
    pub(super) fn edited(&self, file: &Path, tree: &Path, now: Timestamp) {
        let Some(shelf) = &self.shelf else { return };
        let below = file.strip_prefix(shelf.root().path()).ok().and_then(Path::to_str);
        if let (Some(path), Ok(store)) = (below, Store::open(shelf.root().path(), self.indexing)) {
            let origin = MemoryOrigin { at: Some(now), ..MemoryOrigin::default() };
            let _ = store.settle(path, &origin, Some(tree)); // what cannot be written stays as the user left it
        }
        self.warm();
    }

    /// Reads memories again where it holds up nobody.
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
