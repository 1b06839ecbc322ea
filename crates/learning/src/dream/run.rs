//! A dream, from its lock to its line in the book.
//!
//! It needs no session: it has a prompt of its own, and sends nothing of a conversation. It runs under the policy of agents
//! that nobody watches ([`crate::restricted`]), asks the ledger before each round, and stops when the lock is no longer its
//! own. However it ends, the lock is given back; of a dream that was dropped, too.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use files::Root;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use memory::changes::{Change, Changes};
use memory::echo::Injected;
use memory::scan;
use memory::store::{Indexing, Store};
use parking_lot::Mutex;
use provider::Model;
use session::home::SessionFile;
use settings::permission::readable;
use tokio_util::sync::CancellationToken;
use tools::permission::Rules;
use tools::sandbox::Standing;
use tools::{Scope, Tool};
use transcript::block::Kind;
use transcript::mark::{Seams, Ttl, mark};
use transcript::{Block, Prologue, Reply, Request, Usage, tool_names};

use super::book::{Began, How, Over};
use super::disk::{Lock, Place};
use super::lock::{Ended, Taken};
use super::progress::{DreamFigures, Phase, Progress};
use super::site::Site;
use super::{brief, rations};
use crate::fork::{Fork, ForkError};
use crate::ledger::{self, Ledger};
use crate::restricted::{Ground, Limits, Restricted};

/// The most rounds.
const ROUNDS: u32 = 40;
/// The most time a dream takes.
pub const PATIENCE: Duration = Duration::from_secs(20 * 60);
/// The most a reply may be, in tokens: several whole memories.
const MAX_TOKENS: u64 = 32_000;
/// How much a dream may write, and how many memories it may make or change.
const BYTES: usize = 512 * 1024;
const FILES: usize = 100;
/// It may remove a third of what there is, and a few in any case.
const REMOVED: usize = 5;
/// The tools it has.
const TOOLS: [&str; 5] = [tool_names::READ, tool_names::GREP, tool_names::GLOB, tool_names::WRITE, tool_names::EDIT];
/// A file larger than this is no memory that a rehearsal needs.
const COPIED: u64 = 4 * 1024 * 1024;

/// Who hears of progress.
pub type Listener = Arc<dyn Fn(&Progress) + Send + Sync>;

/// What a dream needs.
#[derive(Clone)]
pub struct Dream {
    /// Where.
    pub site: Site,
    /// Whether its index is kept.
    pub indexing: Indexing,
    /// The model.
    pub model: Arc<dyn Model>,
    /// Its name, as the provider knows it.
    pub name: String,
    /// Where its tools run: the project.
    pub scope: Scope,
    /// The user's rules.
    pub rules: Rules,
    /// Files and directories that nothing is learnt from: rules for Read that deny.
    pub excluded: Rules,
    /// Where what it spends is written down.
    pub ledger: Arc<Ledger>,
    /// Who hears of progress.
    pub listener: Listener,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// Why there was no dream.
#[derive(Debug, thiserror::Error)]
pub enum NotDreamt {
    /// Another process dreams.
    #[error("another process is dreaming{}", .0.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Busy(Option<u32>),
    /// Another process has dreamt since this one began.
    #[error("another process has just dreamt")]
    Overtaken,
    /// There are no memories, and no sessions since.
    #[error("there are no memories here, and no sessions to learn from")]
    Nothing,
    /// The memory directory, or the book, cannot be read or written.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The memories cannot be read.
    #[error(transparent)]
    Memory(#[from] memory::Error),
}

impl Dream {
    /// Dreams now. Whether it is time was asked before, or does not matter.
    pub async fn run(self) -> Result<Over, NotDreamt> {
        let store = Store::create(&self.site.memory, self.indexing)?;
        let (last, mark) = self.site.last()?;
        let changes = self.site.changes();
        let lock = Held::take(&store, mark.dreamt, self.site.world.now())?;
        changes.settle(&store)?;
        let now = self.site.world.now();
        let touched = self.something(&store, last)?;
        let id = format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), std::process::id());
        let (pid, model) = (std::process::id(), self.name.clone());
        let book = self.site.book();
        book.begin(&Began { id: id.clone(), at: now, pid, model, sessions: touched.len(), before: lock.before() })?;
        let over = self.work(id, store, changes, last, touched, Some(lock.clone())).await;
        lock.give(if over.how == How::Completed { Ended::Dreamt } else { Ended::Failed });
        book.end(&over)?;
        Ok(over)
    }

    /// Dreams over a copy, and says what it would have changed.
    pub async fn rehearse(self) -> Result<(Over, Vec<Change>), NotDreamt> {
        let folder = self.site.home.path().join("cairn/rehearsals").join(self.site.world.fresh_id().to_string());
        let removed = Removed(folder.clone());
        let (last, _) = self.site.last()?;
        copy(&self.site.memory, &folder.join("memory"))?;
        let store = Store::create(folder.join("memory"), self.indexing)?;
        let touched = self.something(&store, last)?;
        let changes = Changes::at(folder.join("changes"));
        let over = self.work("rehearsal".to_owned(), store, changes.clone(), last, touched, None).await;
        let net = over.run.as_ref().and_then(|run| changes.run(run).ok()).map(|run| run.net()).unwrap_or_default();
        drop(removed);
        Ok((over, net))
    }

    /// The sessions since the last dream; an error where there is nothing at all a model could be paid for.
    fn something(&self, store: &Store, last: Option<Timestamp>) -> Result<Vec<SessionFile>, NotDreamt> {
        let touched = self.site.sessions(last);
        let is_text = |path: &std::path::Path| path.extension().is_some_and(|extension| extension == "md");
        let any = !touched.is_empty() || store.root().walk(|_| true)?.iter().any(|found| is_text(&found.path));
        any.then_some(touched).ok_or(NotDreamt::Nothing)
    }

    async fn work(
        &self,
        id: String,
        store: Store,
        changes: Changes,
        last: Option<Timestamp>,
        touched: Vec<SessionFile>,
        lock: Option<Held>,
    ) -> Over {
        let mut over = Over {
            id,
            at: self.site.world.now(),
            how: How::Completed,
            text: String::new(),
            run: None,
            saved: Vec::new(),
            removed: Vec::new(),
            denied: 0,
            rounds: 0,
            usage: Usage::default(),
        };
        let (restricted, scope, task) = match self.told(store, changes, last, touched).await {
            Ok(told) => told,
            Err(error) => {
                (over.how, over.text) = (How::Failed, error.to_string());
                let (phase, said) = (Phase::Failed, [over.text.clone()].into());
                (self.listener)(&Progress { phase, said, ..Progress::default() });
                return over;
            }
        };
        let watch = Arc::new(Watch {
            restricted: restricted.clone(),
            lock,
            progress: Mutex::default(),
            listener: self.listener.clone(),
            cancel: self.cancel.clone(),
        });
        watch.tell(|_| {});
        let tools = rations::rationed(offered());
        let model: Arc<dyn Model> = Arc::new(Watched { model: self.model.clone(), watch: watch.clone() });
        let fork = Fork {
            tools: restricted.policy(&tools, &scope),
            rounds: ROUNDS,
            patience: PATIENCE,
            cancel: self.cancel.clone(),
            ..Fork::new(ledger::DREAM, &model, self.request(&tools), task, &self.ledger)
        };
        let (forked, usage) = fork.run().await;
        over.usage = usage;
        match forked {
            Ok(forked) => (over.text, over.rounds) = (forked.text, forked.rounds),
            Err(error) => {
                over.how = if error == ForkError::Cancelled { How::Killed } else { How::Failed };
                (over.text, over.rounds) = (error.to_string(), watch.rounds());
            }
        }
        let tally = restricted.tally();
        let began = std::mem::replace(&mut over.at, self.site.world.now());
        let (saved, saved_team) = tally.counted();
        let figures = DreamFigures {
            usage: over.usage,
            saved,
            saved_team,
            removed: tally.removed.len(),
            denied: tally.denied,
            denied_writes: tally.denied_writes,
            took: Duration::try_from(over.at.duration_since(began)).unwrap_or_default(),
        };
        (over.saved, over.removed, over.denied) = (tally.saved, tally.removed, tally.denied);
        over.run = restricted.end();
        watch.tell(|progress| {
            progress.figures = Some(figures);
            if over.how != How::Killed {
                progress.said.push_back(over.text.clone());
            }
            progress.phase = match over.how {
                How::Completed => Phase::Completed,
                How::Failed => Phase::Failed,
                How::Killed => Phase::Killed,
            }
        });
        over
    }

    /// The policy, the scope, and what is said first. Reading it all may take a moment.
    async fn told(
        &self,
        store: Store,
        changes: Changes,
        last: Option<Timestamp>,
        touched: Vec<SessionFile>,
    ) -> Result<(Arc<Restricted>, Scope, String), memory::Error> {
        let memory = store.root().path().to_owned();
        let scope = self.scope.fork().with_cancel(self.cancel.clone()).with_readable(readable(&self.rules));
        let memories = scan::paths(store.root())?.len();
        let ground = Ground {
            agent: ledger::DREAM,
            memory,
            indexing: self.indexing,
            sessions: self.site.folders(),
            excluded: self.excluded.clone(),
            config: self.site.home.path().to_owned(),
            changes,
            rules: self.rules.clone(),
            standing: Standing::No { why: "a dream runs no commands".to_owned() },
            limits: Limits { bytes: BYTES, files: FILES, removed: REMOVED.max(memories / 3) },
            injected: Injected::default(),
            session: self.site.session.clone(),
            message: None,
            model: self.name.clone(),
            world: self.site.world.clone(),
        };
        let restricted = Restricted::new(ground, &scope)?;
        let (now, reading) = (self.site.world.now(), scope.clone());
        let judge = restricted.clone();
        let task = tokio::task::spawn_blocking(move || {
            let told: Vec<SessionFile> = touched.into_iter().filter(|one| !judge.is_apart(&one.path)).collect();
            brief::task(&store, &reading, last, now, &told)
        });
        let task = task.await.unwrap_or_else(|_| Ok(String::new()))?;
        Ok((restricted, scope, task))
    }

    /// What stands before what is said: the dream's own prompt, and its tools.
    fn request(&self, tools: &[Arc<dyn Tool>]) -> Request {
        let prologue = Prologue {
            model: self.name.clone(),
            max_tokens: MAX_TOKENS,
            system: vec![Block::text(brief::system())],
            static_blocks: 1,
            tools: tools.iter().map(|tool| tool.definition()).collect(),
            ..Prologue::default()
        };
        let marks = mark(&prologue, &[], &Seams::default(), Ttl::default());
        Request { prologue: Arc::new(prologue), messages: Vec::new(), marks }
    }
}

/// The tools a dream has.
fn offered() -> Vec<Arc<dyn Tool>> {
    tools::standard().into_iter().filter(|tool| TOOLS.contains(&tool.name())).collect()
}

/// The lock, for as long as the dream lasts. Whoever drops the last of it without giving it back has failed.
#[derive(Clone)]
struct Held(Arc<Mutex<Option<(Place, Lock)>>>);

impl Held {
    fn take(store: &Store, seen: Option<Timestamp>, now: Timestamp) -> Result<Self, NotDreamt> {
        let mut place = Place::new(Root::open(store.root().path())?, now);
        match place.take(seen)? {
            Taken::Ours(lock) => Ok(Self(Arc::new(Mutex::new(Some((place, lock)))))),
            Taken::Busy(pid) => Err(NotDreamt::Busy(pid)),
            Taken::Overtaken => Err(NotDreamt::Overtaken),
        }
    }

    fn before(&self) -> Option<Timestamp> {
        self.0.lock().as_ref().and_then(|(_, lock)| lock.before)
    }

    fn is_ours(&self) -> bool {
        let mut held = self.0.lock();
        held.as_mut().is_some_and(|(place, lock)| place.is_ours(lock))
    }

    fn give(&self, ended: Ended) {
        if let Some((mut place, lock)) = self.0.lock().take() {
            let _ = place.give(lock, ended); // the next finds a lock whose holder is gone
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) == 1 {
            self.give(Ended::Failed);
        }
    }
}

/// Looks on while a dream runs: tells of it, and stops it when the lock is another's.
struct Watch {
    restricted: Arc<Restricted>,
    lock: Option<Held>,
    progress: Mutex<Progress>,
    listener: Listener,
    cancel: CancellationToken,
}

impl Watch {
    fn tell(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.lock();
        let tally = self.restricted.tally();
        progress.touches(tally.saved.into_iter().chain(tally.removed).collect());
        change(&mut progress);
        (self.listener)(&progress);
    }

    fn round_begins(&self) {
        if self.lock.as_ref().is_some_and(|lock| !lock.is_ours()) {
            self.cancel.cancel();
        }
        self.tell(|_| {});
    }

    fn replied(&self, reply: &Reply) {
        let texts: Vec<String> = reply.blocks.iter().filter_map(Block::as_text).collect();
        let call = |block: &Block| match block.kind() {
            Kind::ToolUse { name, .. } => Some((name.to_string(), about(&block.input().unwrap_or_default()))),
            _ => None,
        };
        let calls = reply.blocks.iter().filter_map(call).collect();
        self.tell(|progress| progress.replied(texts.join("\n"), calls));
    }

    fn rounds(&self) -> u32 {
        self.progress.lock().rounds
    }
}

/// What a call is about.
fn about(input: &serde_json::Value) -> String {
    let keys = ["file_path", "pattern", "path"];
    keys.iter().find_map(|key| input[*key].as_str()).unwrap_or_default().to_owned()
}

/// A model that is looked at while it works.
struct Watched {
    model: Arc<dyn Model>,
    watch: Arc<Watch>,
}

impl Model for Watched {
    fn stream(&self, request: Request) -> BoxStream<'static, provider::Event> {
        self.watch.round_begins();
        let watch = self.watch.clone();
        let seen = move |event: &provider::Event| match event {
            provider::Event::Done(reply) => watch.replied(reply),
            provider::Event::Retrying { after, why, .. } => {
                let waits = format!("{why}, again in {} s", after.as_secs_f64().ceil());
                watch.tell(|progress| progress.waits = Some(waits));
            }
            _ => {}
        };
        self.model.stream(request).inspect(seen).boxed()
    }

    fn count_tokens(&self, request: Request) -> BoxFuture<'static, Result<u64, provider::Error>> {
        self.model.count_tokens(request)
    }
}

/// A folder that goes when this does.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = files::remove_tree(&self.0); // nobody is left to tell
    }
}

/// Copies a memory directory, with the dates of its files.
fn copy(from: &std::path::Path, to: &std::path::Path) -> Result<(), NotDreamt> {
    let to = Root::create(to)?;
    let from = match Root::open(from) {
        Ok(from) => from,
        Err(files::Error::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for found in from.walk(|_| true)? {
        let is_text = found.path.extension().is_some_and(|extension| extension == "md");
        let Ok(file) = from.read(&found.path, COPIED) else { continue };
        if is_text {
            to.create_new(&found.path, &file.bytes, 0o600)?;
            if let Some(modified) = file.stamp.modified {
                to.date(&found.path, modified)?;
            }
        }
    }
    Ok(())
}
