//! Learning: after turns, an agent writes down what a later session should know.
//!
//! It runs outside the conversation and never holds it up: one run at a time, and while one runs only the newest request
//! waits. It stays within a share of the session's cost; turns that had to wait for that are learnt from with a later
//! turn, or by a later session. The log says of each turn whether it is covered (`turns`); a session that leaves some
//! stays in a queue (`queue`) that every session looks at.
//!
//! The agent gets what was said in the new turns and the two before, and no more. If the conversation is short and the
//! provider still has it, a fork of it is cheaper; then nothing in it may have been private, excluded or summarised.
//! Nothing is learnt from turns in which the main agent saved memories itself, from private ones, or from those that
//! touched what is excluded. Failures are reported as events; a turn is tried again, and left to the user after three
//! runs in which the model did not finish.

mod author;
mod backlog;
mod job;
pub(crate) mod note;
mod queue;
pub(crate) mod turn_text;
mod turns;
mod work;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use context::cache_economics::Rates;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use provider::Model;
use session::Session;
use settings::Learning;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tools::permission::Rules;
use tools::{Scope, Tool};
use transcript::line::{Body, Line, TextSource};
use transcript::mark::Ttl;
use transcript::view::ItemState;
use transcript::{Id, Log, Request, tool_names};

use crate::ledger::Ledger;
use job::Job;
use note::Note;
use queue::{Queue, SessionLease};
use turns::{LoggedTurn, Turns};
use work::Learner;

pub use author::{ConversationAuthor, conversation_author};
pub use work::{ExtractionFailure, FailureKind, KIND, Outcome};

/// Time to wait for learning at the end of a session.
pub const CLOSING: Duration = Duration::from_secs(60);
/// Time for a stopped run to record its usage.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Expected rounds of a run: most save nothing, and are over after one.
const USUAL_ROUNDS: f64 = 1.4;
/// Expected output, in tokens.
const USUAL_OUTPUT: f64 = 300.0;
/// Tokens of a fork's own words, with the rules for memory already in the conversation.
const WORDS_OF_FORK: f64 = 1_500.0;
/// Tokens of its words with the rules, the tools and the memories that are shown.
const WORDS_ALONE: f64 = 5_000.0;
/// Characters per token in what was said.
const CHARACTERS_PER_TOKEN: f64 = 4.0;

/// Listener for the outcome of a run.
pub type RunListener = Arc<dyn Fn(&Outcome) + Send + Sync>;

/// The conversation that is learnt from, with its parts.
pub struct LearningSource<'a> {
    /// Its session.
    pub session: &'a Session,
    /// The request that a fork of it begins with.
    pub parent: &'a dyn Fn() -> Option<Request>,
    /// The model.
    pub model: &'a Arc<dyn Model>,
    /// Its name.
    pub name: &'a str,
    /// Its tools.
    pub tools: &'a [Arc<dyn Tool>],
    /// Scope of the tools.
    pub scope: &'a Scope,
    /// Permission rules.
    pub rules: &'a Rules,
    /// Ledger for the costs.
    pub ledger: &'a Arc<Ledger>,
    /// Prices of the model.
    pub rates: Rates,
    /// Lifetime of the provider's cache.
    pub ttl: Ttl,
    /// The memory directory.
    pub memory: &'a Path,
    /// Listener for the outcome of a run.
    pub heard: RunListener,
}

/// Occasion for learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// A turn begins: turns that other sessions left can be looked at meanwhile.
    Begins,
    /// A turn has ended.
    Turn,
    /// The session ends.
    End,
}

/// The learning of one session.
pub struct Extraction {
    learning: Learning,
    turns: Turns,
    shared: Arc<ExtractionShared>,
    /// The right to learn from this session.
    lease: Option<Arc<SessionLease>>,
    /// The work under way.
    task: Option<AbortOnDropHandle<()>>,
    cancel: CancellationToken,
}

/// State shared between the session and its background work.
#[derive(Default)]
struct ExtractionShared {
    state: Mutex<State>,
    /// True while work is under way.
    busy: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// Turns of this session that the run under way is about, or that are covered and not in the log yet.
    taken: HashSet<Id>,
    /// The newest request, while another runs.
    waiting: Option<Job>,
    /// Runs that are over and not in the log yet.
    ended: Vec<Outcome>,
    /// Lines for this session's log.
    notes: Vec<Note>,
    /// Turns of this session whose newest run failed: they are tried again with a later turn.
    failed: HashSet<Id>,
    /// True if the queue has nothing that could be taken.
    queue_is_empty: bool,
}

impl Extraction {
    /// Learning with these settings.
    pub fn new(learning: Learning) -> Self {
        let (turns, shared, cancel) = (Turns::default(), Arc::default(), CancellationToken::new());
        Self { learning, turns, shared, lease: None, task: None, cancel }
    }

    /// Settings of learning.
    pub fn learning(&self) -> &Learning {
        &self.learning
    }

    /// Changes the settings of learning.
    pub fn set_learning(&mut self, learning: Learning) {
        self.learning = learning;
    }

    /// The line that says that a session learns, if it is not there yet.
    pub fn begins(&mut self, session: &Session) -> Option<serde_json::Value> {
        self.turns.follow(session.log());
        (!self.turns.learns()).then(|| Note::Learns.value())
    }

    /// True if work is under way, or turns wait to be learnt from.
    pub fn has_left(&self, session: &Session) -> bool {
        self.is_busy() || !self.left(session).is_empty()
    }

    /// The turns of a session that wait to be learnt from.
    fn left(&self, session: &Session) -> Vec<LoggedTurn> {
        let mut turns = self.turns.clone();
        turns.follow(session.log());
        let taken = self.shared.state.lock().taken.clone();
        turns.waiting(session.log()).into_iter().filter(|turn| !taken.contains(&turn.id)).collect()
    }

    /// Takes the outcomes of finished runs that are not in the log yet, and lines for the log of this session.
    pub fn take_ended(&self) -> (Vec<Outcome>, Vec<serde_json::Value>) {
        let mut state = self.shared.state.lock();
        let notes = std::mem::take(&mut state.notes);
        (std::mem::take(&mut state.ended), notes.iter().map(Note::value).collect())
    }

    /// True if work is under way.
    pub fn is_busy(&self) -> bool {
        *self.shared.busy.borrow()
    }

    /// Stops the work under way, and waits until it has recorded its usage.
    pub async fn stop(&mut self) {
        self.cancel.cancel();
        if let Some(task) = self.task.take() {
            let _ = tokio::time::timeout(LAST_WORDS, task).await; // one that hangs is aborted
        }
        self.shared.busy.send_replace(false);
    }

    /// Ends the session's learning. If nothing is left in it, it leaves the queue; otherwise another session may take
    /// the rest.
    pub fn leave(&mut self, session: &Session) {
        self.turns.follow(session.log());
        let is_done = self.turns.waiting(session.log()).is_empty();
        if let Some(lease) = self.lease.take().filter(|_| is_done).and_then(Arc::into_inner) {
            lease.done();
        }
    }

    /// Waits until no work is under way, or time is over, or `stop` is cancelled.
    pub async fn wait(&mut self, patience: Duration, stop: &CancellationToken) {
        let mut busy = self.shared.busy.subscribe();
        tokio::select! {
            () = stop.cancelled() => {}
            _ = tokio::time::timeout(patience, busy.wait_for(|busy| !busy)) => {}
        }
    }

    /// Learns from new turns, if that is due, and from those that other sessions left.
    pub fn learn(&mut self, on: &LearningSource<'_>, occasion: Occasion) {
        self.turns.follow(on.session.log());
        let job = self.next_job(on, occasion);
        if self.is_busy() {
            if job.is_some() {
                self.shared.state.lock().waiting = job;
            }
            return;
        }
        self.shared.state.lock().taken.extend(job.iter().flat_map(Job::ids));
        if job.is_some() || occasion != Occasion::End && !self.shared.state.lock().queue_is_empty {
            self.start(self.learner(on), on, job);
        }
    }

    /// The run that is due about this session.
    fn next_job(&mut self, on: &LearningSource<'_>, occasion: Occasion) -> Option<Job> {
        // Before anything is said that could be left.
        let is_leased = self.lease_session(on);
        let new = self.left(on.session);
        if new.is_empty() || occasion == Occasion::Begins || !is_leased {
            return None;
        }
        let (log, session) = (on.session.log(), on.session);
        let has_new = !new.iter().all(|turn| self.shared.state.lock().failed.contains(&turn.id));
        let due = has_new && (occasion == Occasion::End || new.len() >= self.learning.every as usize);
        if !due || !can_write(on.tools) || on.ledger.allows(KIND).is_err() {
            return None;
        }
        let zone = TimeZone::system();
        let place = (session.id(), session.path());
        let mut job = Job::new(place, session.directory(), log, &self.turns, &new, &zone)?;
        let (alone, fork) = (cost_alone(&job, &on.rates), self.cost_of_fork(on, &new));
        if occasion == Occasion::Turn && !self.can_pay(on, fork.map_or(alone, |fork| fork.min(alone))) {
            return None;
        }
        if fork.is_some_and(|fork| fork < alone) && job.turns.len() == new.len() {
            job.fork = (on.parent)();
        }
        Some(job)
    }

    /// Enters the session into the queue, and takes in what others have learnt from it meanwhile. Returns whether this
    /// process may learn from it.
    fn lease_session(&mut self, on: &LearningSource<'_>) -> bool {
        if self.lease.as_ref().is_some_and(|lease| lease.holds()) {
            return true;
        }
        let queue = queue(&self.learning, on.memory);
        let Ok(Some(lease)) = queue.enter(on.session.id(), on.session.path(), on.session.directory()) else {
            return false; // it is tried again with the next turn
        };
        let mut state = self.shared.state.lock();
        for note in lease.notes() {
            if let Note::Extracted { turns, .. } = &note {
                state.taken.extend(turns.iter().cloned());
            }
            state.notes.push(note);
        }
        self.lease = Some(Arc::new(lease));
        true
    }

    fn start(&mut self, learner: Learner, on: &LearningSource<'_>, job: Option<Job>) {
        let (shared, cancel, heard) = (self.shared.clone(), self.cancel.clone(), on.heard.clone());
        let (queue, current) = (queue(&self.learning, on.memory), on.session.id().to_owned());
        // The right to learn lasts for as long as somebody does.
        let lease = self.lease.clone();
        shared.busy.send_replace(true);
        let work = async move {
            let _lease = lease;
            let mut next = job;
            while let Some(job) = next.take() {
                shared.run(&learner, job, &heard, &cancel).await;
                next = shared.next();
            }
            shared.take_from(&queue, &current, &learner, &heard, &cancel).await;
            while let Some(job) = shared.next() {
                shared.run(&learner, job, &heard, &cancel).await;
            }
            shared.busy.send_replace(false);
        };
        self.task = Some(AbortOnDropHandle::new(tokio::spawn(work)));
    }

    fn learner(&self, on: &LearningSource<'_>) -> Learner {
        Learner {
            model: on.model.clone(),
            name: on.name.to_owned(),
            tools: on.tools.to_vec(),
            scope: on.scope.clone(),
            rules: on.rules.clone(),
            home: self.learning.home.clone(),
            memory: on.memory.to_owned(),
            team: self.learning.team.clone(),
            excluded: self.learning.excluded.clone(),
            filter: self.learning.filter,
            indexing: self.learning.indexing,
            ledger: on.ledger.clone(),
            world: on.session.world().clone(),
            zone: TimeZone::system(),
        }
    }

    /// Cost of a fork of the conversation; none if it would show what may not be shown, or the provider's cache is
    /// cold.
    fn cost_of_fork(&self, on: &LearningSource<'_>, new: &[LoggedTurn]) -> Option<f64> {
        let view = on.session.log().view();
        let is_summary = |stands: ItemState| matches!(stands, ItemState::Covered(_));
        let may_be_shown = self.turns.all_usable()
            && self.learning.excluded.deny.is_empty()
            && self.turns.last().map(|turn| &turn.id) == new.last().map(|turn| &turn.id)
            && !view.visible().any(|entry| is_summary(entry.state()))
            && !on.session.log().lines().iter().any(|line| Note::of(line) == Some(Note::Continued));
        let can_write =
            view.prologue().is_some_and(|known| known.tools.iter().any(|tool| tool.name == tool_names::WRITE));
        let is_warm = on.session.idle() < on.ttl.duration();
        let tokens = view.tally().count() as f64;
        let Rates { read, write, output } = on.rates;
        let cost = tokens * read * USUAL_ROUNDS + WORDS_OF_FORK * write + USUAL_OUTPUT * output;
        (may_be_shown && can_write && is_warm).then_some(cost)
    }

    /// True if a run stays within its share of the session's other costs.
    fn can_pay(&self, on: &LearningSource<'_>, next: f64) -> bool {
        let Some(share) = self.learning.share else { return true };
        let state = on.session.state();
        let spent = on.rates.cost(&state.used_by_extract);
        let others = on.rates.cost(&state.used) - spent;
        spent + next <= others * share
    }
}

/// Cost of a run that is not a fork.
fn cost_alone(job: &Job, rates: &Rates) -> f64 {
    let tokens = WORDS_ALONE + job.characters() as f64 / CHARACTERS_PER_TOKEN;
    tokens * (rates.write + rates.read * (USUAL_ROUNDS - 1.0)) + USUAL_OUTPUT * rates.output
}

impl ExtractionShared {
    /// Runs a job of this session, as far as its turns may be learnt from, and reports the outcome.
    async fn run(&self, learner: &Learner, job: Job, heard: &RunListener, cancel: &CancellationToken) {
        self.state.lock().taken.extend(job.ids());
        let Some((job, notes)) = judged(learner, job).await else { return };
        self.state.lock().notes.extend(notes);
        if job.turns.is_empty() {
            return;
        }
        let outcome = learner.run(job, cancel.clone()).await;
        let mut state = self.state.lock();
        if outcome.failed.is_some() {
            state.taken.retain(|turn| !outcome.turns.contains(turn));
            state.failed.extend(outcome.turns.iter().cloned());
        }
        state.notes.extend(outcome.note());
        state.ended.push(outcome.clone());
        drop(state);
        heard(&outcome);
    }

    /// The waiting job, reduced to what is new by now.
    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        let job = state.waiting.take()?;
        job.without(&state.taken)
    }
}

/// A job without the turns that nothing is learnt from, and the lines that say so.
async fn judged(learner: &Learner, mut job: Job) -> Option<(Job, Vec<Note>)> {
    let learner = learner.clone();
    let judge = move || {
        let notes = learner.judge(&mut job);
        (job, notes)
    };
    tokio::task::spawn_blocking(judge).await.ok()
}

/// The queue of a memory directory.
fn queue(learning: &Learning, memory: &Path) -> Queue {
    Queue::at(learning.home.learning(memory))
}

/// True if there is a tool Write, without which it could do nothing.
fn can_write(tools: &[Arc<dyn Tool>]) -> bool {
    tools.iter().any(|tool| tool.name() == tool_names::WRITE)
}

/// Point from which on saved memories are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedSince {
    /// From the beginning.
    Beginning,
    /// The user's last words.
    UserMessage,
}

/// Memories that were saved in the session itself: the run with their changes and their paths, the oldest first. With
/// [`SavedSince::UserMessage`], only those that the model was not told of, since the user has said nothing after them.
pub fn learnt(log: &Log, since: SavedSince) -> Vec<(String, Vec<String>)> {
    let is_said = |line: &Line| matches!(line.body, Body::User { source: TextSource::Direct, .. });
    let from = log.lines().iter().rposition(|line| match since {
        SavedSince::UserMessage => is_said(line) || Note::of(line) == Some(Note::Continued),
        SavedSince::Beginning => Note::of(line) == Some(Note::Continued),
    });
    let notes = log.lines().iter().skip(from.map_or(0, |at| at + 1)).filter_map(Note::of);
    let saved = notes.filter_map(|note| match note {
        Note::Extracted { saved, run: Some(run), .. } if !saved.is_empty() => Some((run, saved)),
        _ => None,
    });
    saved.collect()
}

/// Memories that learning saved in a session, the newest first: the run with their changes, and the path of each below
/// the memory directory.
pub fn saved(session: &Session) -> Vec<(String, String)> {
    let runs = learnt(session.log(), SavedSince::Beginning).into_iter().rev();
    runs.flat_map(|(run, paths)| paths.into_iter().map(move |path| (run.clone(), path))).collect()
}

/// True if the session is private now.
pub fn private(session: &Session) -> bool {
    Turns::of(session.log()).is_private()
}

/// Makes a session private from here on, or no longer.
pub fn set_private(session: &mut Session, on: bool) -> Result<(), session::Error> {
    session.note(&Note::Private { on }.value())
}
