//! A dream, from its lock to its line in the log.
//!
//! It needs no session: it has a prompt of its own, and sends nothing of a conversation. It runs under the policy of
//! unattended agents ([`crate::unattended`]), asks the ledger before each round, and stops when the lock is no longer
//! its own. However it ends, the lock is given back, also if the dream is dropped.

use std::sync::Arc;
use std::time::Duration;

use files::Root;
use jiff::Timestamp;
use memory::changes::Changes;
use memory::echo_check::InjectedWords;
use memory::quoted_sentences::TypedMessages;
use memory::scan;
use memory::store::{IndexUpkeep, Store};
use memory::tombstones::Tombstone;
use parking_lot::Mutex;
use provider::Model;
use session::home::SessionFile;
use settings::permission::readable;
use tokio_util::sync::CancellationToken;
use tools::permission::Rules;
use tools::sandbox::SandboxStatus;
use tools::{Scope, Tool};
use transcript::mark::{Seams, Ttl, mark};
use transcript::{Block, Prologue, Request, tool_names};

use super::disk::{DreamLock, DreamLockPlace};
use super::dream_log::{DreamFinish, DreamOutcome, DreamStart};
use super::lock::{DreamEnd, LockAttempt};
use super::progress::{DreamFigures, DreamPhase, DreamProgress};
use super::remove_tool::Remove;
use super::room::DreamRoom;
use super::session_tool::Sessions;
use super::site::DreamSite;
use super::sources::{DreamSources, SourcePurpose};
use super::watch::{DreamWatch, WatchedModel};
use super::{prompt, read_budget, recent, rehearsal, remove_tool, session_tool};
use crate::fork::{Fork, ForkError, Judge, ToolPolicy};
use crate::ledger::{self, Ledger};
use crate::protection::Protection;
use crate::saver::{Author, Saver, SavingLimits, SavingPlace};
use crate::unattended::{UnattendedContext, UnattendedPolicy, UserShelfAccess};

/// Limit on rounds.
const ROUNDS: u32 = 40;
/// Time limit of a dream.
pub const PATIENCE: Duration = Duration::from_secs(20 * 60);
/// Limits on the bytes a dream may write, and on the memories it may create or change.
const BYTES: usize = 512 * 1024;
const FILES: usize = 100;
/// Number of memories that it may remove in any case; beyond that, a third of what there is.
const REMOVED: usize = 5;
/// The tools it has.
const TOOLS: [&str; 5] = [tool_names::READ, tool_names::GREP, tool_names::GLOB, tool_names::WRITE, tool_names::EDIT];

/// Listener for progress.
pub type Listener = Arc<dyn Fn(&DreamProgress) + Send + Sync>;

/// Time of the last dream, the sessions since then, and their content.
pub(super) type SinceLastDream = (Option<Timestamp>, Vec<SessionFile>, Arc<DreamSources>);

/// Everything a dream needs.
#[derive(Clone)]
pub struct Dream {
    /// Its memory directory and project.
    pub site: DreamSite,
    /// Upkeep of the index.
    pub indexing: IndexUpkeep,
    /// The model.
    pub model: Arc<dyn Model>,
    /// Its name at the provider.
    pub name: String,
    /// Its window, in tokens.
    pub window: u64,
    /// Scope of its tools: the project.
    pub scope: Scope,
    /// The user's rules.
    pub rules: Rules,
    /// Files and directories that nothing is learnt from: rules for Read that deny.
    pub excluded: Rules,
    /// Purpose: with learning from sessions, or without.
    pub purpose: SourcePurpose,
    /// Ledger for its costs.
    pub ledger: Arc<Ledger>,
    /// Listener for progress.
    pub listener: Listener,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// Reason there was no dream.
#[derive(Debug, thiserror::Error)]
pub enum NoDreamReason {
    /// Another process dreams.
    #[error("another process is dreaming{}", .0.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Busy(Option<u32>),
    /// Another process has dreamt since this one began.
    #[error("another process has just dreamt")]
    Overtaken,
    /// There are no memories, and no sessions since the last dream.
    #[error("there are no memories here, and no sessions to learn from")]
    Nothing,
    /// The memory directory, or the log, cannot be read or written.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The memories cannot be read.
    #[error(transparent)]
    Memory(#[from] memory::Error),
}

impl Dream {
    /// Dreams now. The caller has checked that it is time, or it does not matter.
    pub async fn run(self) -> Result<DreamFinish, NoDreamReason> {
        rehearsal::tidy(&self.site.home);
        let store = Store::create(&self.site.memory, self.indexing)?;
        let (last, mark) = self.site.last()?;
        let changes = self.site.changes();
        let lock = HeldDreamLock::take(&store, mark.dreamt, self.site.world.now())?;
        changes.settle(&store)?;
        let now = self.site.world.now();
        let sources = self.sources();
        let touched = self.something(&store, &sources, last)?;
        let id = format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), std::process::id());
        let (pid, model) = (std::process::id(), self.name.clone());
        let log = self.site.dream_log();
        log.begin(&DreamStart { id: id.clone(), at: now, pid, model, sessions: touched.len(), before: lock.before() })?;
        let (over, told) = self.work(id, store, changes, (last, touched, sources), Some(lock.clone())).await;
        lock.give(if over.how == DreamOutcome::Completed { DreamEnd::Dreamt } else { DreamEnd::Failed });
        log.end(&over)?;
        // Only now: whoever hears of its end may ask for the next.
        (self.listener)(&told);
        Ok(over)
    }

    fn room(&self) -> DreamRoom {
        DreamRoom::in_window(self.window)
    }

    pub(super) fn sources(&self) -> Arc<DreamSources> {
        Arc::new(DreamSources::new(&self.site, self.purpose, self.excluded.clone(), &self.scope))
    }

    /// The sessions since the last dream; an error if there is nothing at all to pay a model for.
    pub(super) fn something(
        &self,
        store: &Store,
        sources: &DreamSources,
        last: Option<Timestamp>,
    ) -> Result<Vec<SessionFile>, NoDreamReason> {
        let touched = sources.touched(last);
        let is_text = |path: &std::path::Path| path.extension().is_some_and(|extension| extension == "md");
        let any = store.root().walk(|_| true)?.iter().any(|found| is_text(&found.path))
            || touched.iter().any(|session| sources.messages_of(session).is_some());
        any.then_some(touched).ok_or(NoDreamReason::Nothing)
    }

    /// The dream itself: its outcome and its report.
    pub(super) async fn work(
        &self,
        id: String,
        store: Store,
        changes: Changes,
        since: SinceLastDream,
        lock: Option<HeldDreamLock>,
    ) -> (DreamFinish, DreamProgress) {
        let mut over = DreamFinish::of(id, self.site.world.now());
        let sources = since.2.clone();
        let (restricted, scope, task) = match self.prepare(store, changes, since).await {
            Ok(told) => told,
            Err(error) => {
                (over.how, over.text) = (DreamOutcome::Failed, error.to_string());
                let (phase, said) = (DreamPhase::Failed, [over.text.clone()].into());
                return (over, DreamProgress { phase, texts: said, ..DreamProgress::default() });
            }
        };
        let watch = Arc::new(DreamWatch {
            restricted: restricted.clone(),
            lock,
            progress: Mutex::default(),
            listener: self.listener.clone(),
            cancel: self.cancel.clone(),
        });
        watch.tell(|_| {});
        let tools = read_budget::rationed(offered(&sources, restricted.saver()), &self.room());
        let model: Arc<dyn Model> = Arc::new(WatchedModel { model: self.model.clone(), watch: watch.clone() });
        let fork = Fork {
            tools: judged(&restricted, &tools, &scope),
            rounds: ROUNDS,
            patience: PATIENCE,
            cancel: self.cancel.clone(),
            ..Fork::new(ledger::DREAM, &model, self.request(&tools), task, &self.ledger)
        };
        let (forked, usage) = fork.run().await;
        over.usage = usage;
        match forked {
            Ok(forked) => {
                (over.text, over.rounds) = (forked.text, forked.rounds);
                // What it changed stays; the next begins where this one did.
                if let Some(why) = forked.unfinished {
                    (over.how, over.text) = (DreamOutcome::Failed, why.to_owned());
                }
            }
            Err(error) => {
                over.how = if error == ForkError::Cancelled { DreamOutcome::Killed } else { DreamOutcome::Failed };
                (over.text, over.rounds) = (error.to_string(), watch.rounds());
            }
        }
        if over.how != DreamOutcome::Completed {
            restricted.saver().put_back_unreplaced();
        }
        let tally = restricted.saver().tally();
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
        (over.saved, over.removed, over.removals) = (tally.saved, tally.removed, tally.removals);
        over.denied = tally.denied;
        over.run = restricted.saver().end();
        let told = watch.now(|progress| {
            progress.figures = Some(figures);
            if over.how != DreamOutcome::Killed {
                progress.texts.push_back(over.text.clone());
            }
            progress.phase = match over.how {
                DreamOutcome::Completed => DreamPhase::Completed,
                DreamOutcome::Failed => DreamPhase::Failed,
                DreamOutcome::Killed => DreamPhase::Killed,
            }
        });
        (over, told)
    }

    /// The policy, the scope, and the first message. Reading it all may take a moment.
    async fn prepare(
        &self,
        store: Store,
        changes: Changes,
        (last, touched, sources): SinceLastDream,
    ) -> Result<(Arc<UnattendedPolicy>, Scope, String), memory::Error> {
        let memory = store.root().path().to_owned();
        let scope = self.scope.fork().with_cancel(self.cancel.clone()).with_readable(readable(&self.rules));
        let memories = scan::paths(store.root())?.len();
        let user = self.site.user_place(self.indexing);
        let context = UnattendedContext {
            place: SavingPlace { directory: memory, indexing: self.indexing, changes },
            user: user.clone().map_or(UserShelfAccess::None, UserShelfAccess::Reads),
            author: Author {
                agent: ledger::DREAM,
                session: self.site.session.clone(),
                message: None,
                model: self.name.clone(),
                injected: InjectedWords::default(),
                typed: TypedMessages::default(),
                newest_source: None,
                world: self.site.world.clone(),
            },
            limits: SavingLimits { bytes: BYTES, files: FILES, removed: REMOVED.max(memories / 3) },
            excluded: self.excluded.clone(),
            config: self.site.home.path().to_owned(),
            rules: self.rules.clone(),
            standing: SandboxStatus::No { why: "a dream runs no commands".to_owned() },
        };
        let restricted = UnattendedPolicy::new(context, &scope)?;
        restricted.saver().protect(Protection::of(&self.site.changes()));
        let (now, reading, room) = (self.site.world.now(), scope.clone(), self.room());
        let (judge, own) = (restricted.clone(), self.site.changes().tombstones());
        let removed = user.iter().map(|user| user.changes.tombstones()).chain([own]);
        let removed: Vec<Tombstone> = removed.flat_map(|tombstones| tombstones.all()).collect();
        let user = user.map(|user| user.directory);
        let task = tokio::task::spawn_blocking(move || {
            let sessions = recent::recent_text(&sources, &touched, judge.saver(), room.part(prompt::SESSIONS_SHARE));
            let brief = prompt::DreamBrief {
                store: &store,
                user: user.as_deref(),
                saver: judge.saver(),
                last,
                now,
                room: &room,
            };
            brief.task(&reading, &sessions, &removed)
        });
        let task = task.await.unwrap_or_else(|_| Ok(String::new()))?;
        Ok((restricted, scope, task))
    }

    /// The part of the request before the messages: the dream's own prompt, and its tools.
    fn request(&self, tools: &[Arc<dyn Tool>]) -> Request {
        let prologue = Prologue {
            model: self.name.clone(),
            max_tokens: self.room().output,
            system: vec![Block::text(prompt::system(self.purpose))],
            static_blocks: 1,
            tools: tools.iter().map(|tool| tool.definition()).collect(),
            ..Prologue::default()
        };
        let marks = mark(&prologue, &[], &Seams::default(), Ttl::default());
        Request { prologue: Arc::new(prologue), messages: Vec::new(), marks }
    }
}

/// The tools a dream has.
fn offered(sources: &Arc<DreamSources>, saver: &Arc<Saver>) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> =
        tools::standard().into_iter().filter(|tool| TOOLS.contains(&tool.name())).collect();
    if sources.purpose() == SourcePurpose::Learn {
        tools.push(Arc::new(Sessions { sources: sources.clone(), saver: saver.clone() }));
    }
    tools.push(Arc::new(Remove(saver.clone())));
    tools
}

/// The policy of unattended agents, with the tools that only dreams have.
fn judged(restricted: &Arc<UnattendedPolicy>, tools: &[Arc<dyn Tool>], scope: &Scope) -> ToolPolicy {
    let judge = restricted.clone();
    let own = move |tool: &dyn Tool, input: &serde_json::Value, scope: &Scope| match tool.name() {
        session_tool::NAME | remove_tool::NAME => Ok(()), // they judge for themselves
        _ => judge.judge(tool, input, scope),
    };
    match restricted.policy(tools, scope) {
        ToolPolicy::Tools { tools, scope, .. } => ToolPolicy::Tools { tools, scope, judge: Arc::new(own) },
        other => other,
    }
}

/// The lock, for as long as the dream lasts. Dropping the last clone without giving it back counts as a failure.
#[derive(Clone)]
pub(super) struct HeldDreamLock(Arc<Mutex<Option<(DreamLockPlace, DreamLock)>>>);

impl HeldDreamLock {
    pub(super) fn take(store: &Store, seen: Option<Timestamp>, now: Timestamp) -> Result<Self, NoDreamReason> {
        let mut place = DreamLockPlace::new(Root::open(store.root().path())?, now);
        match place.take(seen)? {
            LockAttempt::Ours(lock) => Ok(Self(Arc::new(Mutex::new(Some((place, lock)))))),
            LockAttempt::Busy(pid) => Err(NoDreamReason::Busy(pid)),
            LockAttempt::Overtaken => Err(NoDreamReason::Overtaken),
        }
    }

    pub(super) fn before(&self) -> Option<Timestamp> {
        self.0.lock().as_ref().and_then(|(_, lock)| lock.before)
    }

    pub(super) fn is_ours(&self) -> bool {
        let mut held = self.0.lock();
        held.as_mut().is_some_and(|(place, lock)| place.is_ours(lock))
    }

    pub(super) fn give(&self, ended: DreamEnd) {
        if let Some((mut place, lock)) = self.0.lock().take() {
            let _ = place.give(lock, ended); // the next finds a lock whose holder is gone
        }
    }
}

impl Drop for HeldDreamLock {
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) == 1 {
            self.give(DreamEnd::Failed);
        }
    }
}
