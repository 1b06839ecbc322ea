//! Learning: after turns, an agent writes down what a later session should know.
//!
//! It runs beside the conversation and never holds it up: one run at a time, and while one runs only the newest request
//! waits. It stays within a share of what the session costs; what had to wait for that is learnt with a later turn, or by a
//! later session. The log says of each turn whether it is covered ([`turns`]); a session that leaves some stays in a
//! [`queue`] that every session looks at.
//!
//! The agent gets what was said in the new turns and the two before, and no more. Where the conversation is short and the
//! provider still has it, a fork of it is cheaper; then nothing in it may have been private, excluded or summarised.
//! Nothing is learnt from turns in which the main agent saved memories itself, from private ones, or from those that
//! touched what is excluded. Failures are told as events; a turn is tried again, and left to the user after three runs in
//! which the model came to no end.

mod author;
mod backlog;
mod job;
pub(crate) mod note;
mod queue;
pub(crate) mod render;
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
use queue::{Claim, Queue};
use turns::{LoggedTurn, Turns};
use work::Learner;

pub use author::{ConversationAuthor, conversation_author};
pub use work::{ExtractionFailure, FailureKind, KIND, Outcome};

/// At the end of a session, so long is waited for what is being learnt.
pub const CLOSING: Duration = Duration::from_secs(60);
/// A run that is stopped has so long to write down what it used.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many rounds a run has: most save nothing, and are over after one.
const USUAL_ROUNDS: f64 = 1.4;
/// What it is expected to write, in tokens.
const USUAL_OUTPUT: f64 = 300.0;
/// What its own words have where the rules for memory were given before, in tokens.
const WORDS_OF_FORK: f64 = 1_500.0;
/// What they have with the rules, the tools and the memories that are shown.
const WORDS_ALONE: f64 = 5_000.0;
/// Characters that are a token, of what was said.
const CHARACTERS_PER_TOKEN: f64 = 4.0;

/// Hears what came of a run.
pub type RunListener = Arc<dyn Fn(&Outcome) + Send + Sync>;

/// The conversation that is learnt from, and what it is held with.
pub struct LearningSource<'a> {
    /// Its session.
    pub session: &'a Session,
    /// The request that a fork of it begins with.
    pub parent: &'a dyn Fn() -> Option<Request>,
    /// The model.
    pub model: &'a Arc<dyn Model>,
    /// Its name.
    pub name: &'a str,
    /// What it can call.
    pub tools: &'a [Arc<dyn Tool>],
    /// Where they run.
    pub scope: &'a Scope,
    /// What may be read.
    pub rules: &'a Rules,
    /// What was spent.
    pub ledger: &'a Arc<Ledger>,
    /// What the model costs.
    pub rates: Rates,
    /// How long the provider keeps what was sent.
    pub ttl: Ttl,
    /// Where the memories are.
    pub memory: &'a Path,
    /// Hears what came of a run.
    pub heard: RunListener,
}

/// Why a session would learn now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// A turn begins: what other sessions left can be looked at beside it.
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
    claim: Option<Arc<Claim>>,
    /// The work under way.
    task: Option<AbortOnDropHandle<()>>,
    cancel: CancellationToken,
}

/// What the work shares with the session.
#[derive(Default)]
struct ExtractionShared {
    state: Mutex<State>,
    /// Whether work is under way.
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
    /// Whether the queue holds nothing that could be taken.
    queue_is_empty: bool,
}

impl Extraction {
    /// Learns in this way.
    pub fn new(learning: Learning) -> Self {
        let (turns, shared, cancel) = (Turns::default(), Arc::default(), CancellationToken::new());
        Self { learning, turns, shared, claim: None, task: None, cancel }
    }

    /// How it learns.
    pub fn learning(&self) -> &Learning {
        &self.learning
    }

    /// Learns in another way from now on.
    pub fn set_learning(&mut self, learning: Learning) {
        self.learning = learning;
    }

    /// The line that says that a session learns, where it is not there yet.
    pub fn begins(&mut self, session: &Session) -> Option<serde_json::Value> {
        self.turns.follow(session.log());
        (!self.turns.learns()).then(|| Note::Learns.value())
    }

    /// Whether something is under way, or was not learnt from yet.
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

    /// Takes runs that are over and not in the log yet, and lines for the log of this session.
    pub fn take_ended(&self) -> (Vec<Outcome>, Vec<serde_json::Value>) {
        let mut state = self.shared.state.lock();
        let notes = std::mem::take(&mut state.notes);
        (std::mem::take(&mut state.ended), notes.iter().map(Note::value).collect())
    }

    /// Whether work is under way.
    pub fn is_busy(&self) -> bool {
        *self.shared.busy.borrow()
    }

    /// Stops what is under way, and waits until it has written down what it used.
    pub async fn stop(&mut self) {
        self.cancel.cancel();
        if let Some(task) = self.task.take() {
            let _ = tokio::time::timeout(LAST_WORDS, task).await; // one that hangs is aborted
        }
        self.shared.busy.send_replace(false);
    }

    /// The session is over. Where nothing is left in it, it leaves the queue; another session may take the rest.
    pub fn leave(&mut self, session: &Session) {
        self.turns.follow(session.log());
        let is_done = self.turns.waiting(session.log()).is_empty();
        if let Some(claim) = self.claim.take().filter(|_| is_done).and_then(Arc::into_inner) {
            claim.done();
        }
    }

    /// Waits until nothing is under way any more, or time is over, or `stop` says so.
    pub async fn wait(&mut self, patience: Duration, stop: &CancellationToken) {
        let mut busy = self.shared.busy.subscribe();
        tokio::select! {
            () = stop.cancelled() => {}
            _ = tokio::time::timeout(patience, busy.wait_for(|busy| !busy)) => {}
        }
    }

    /// Learns from what is new, if that is due, and from what other sessions left.
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
        let is_claimed = self.claims(on);
        let new = self.left(on.session);
        if new.is_empty() || occasion == Occasion::Begins || !is_claimed {
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

    /// Enters the session into the queue, and takes in what others have learnt from it meanwhile. Says whether this process
    /// may learn from it.
    fn claims(&mut self, on: &LearningSource<'_>) -> bool {
        if self.claim.as_ref().is_some_and(|claim| claim.holds()) {
            return true;
        }
        let queue = queue(&self.learning, on.memory);
        let Ok(Some(claim)) = queue.enter(on.session.id(), on.session.path(), on.session.directory()) else {
            return false; // it is tried again with the next turn
        };
        let mut state = self.shared.state.lock();
        for note in claim.notes() {
            if let Note::Extracted { turns, .. } = &note {
                state.taken.extend(turns.iter().cloned());
            }
            state.notes.push(note);
        }
        self.claim = Some(Arc::new(claim));
        true
    }

    fn start(&mut self, learner: Learner, on: &LearningSource<'_>, job: Option<Job>) {
        let (shared, cancel, heard) = (self.shared.clone(), self.cancel.clone(), on.heard.clone());
        let (queue, current) = (queue(&self.learning, on.memory), on.session.id().to_owned());
        // The right to learn lasts for as long as somebody does.
        let claim = self.claim.clone();
        shared.busy.send_replace(true);
        let work = async move {
            let _claim = claim;
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
            gate: self.learning.gate,
            indexing: self.learning.indexing,
            ledger: on.ledger.clone(),
            world: on.session.world().clone(),
            zone: TimeZone::system(),
        }
    }

    /// What a fork of the conversation would cost; none where it would show what may not be shown, or the provider has
    /// forgotten it.
    fn cost_of_fork(&self, on: &LearningSource<'_>, new: &[LoggedTurn]) -> Option<f64> {
        let view = on.session.log().view();
        let is_summary = |stands: ItemState| matches!(stands, ItemState::Covered(_));
        let may_be_shown = self.turns.all_usable()
            && self.learning.excluded.deny.is_empty()
            && self.turns.last().map(|turn| &turn.id) == new.last().map(|turn| &turn.id)
            && !view.visible().any(|entry| is_summary(entry.stands()))
            && !on.session.log().lines().iter().any(|line| Note::of(line) == Some(Note::Continued));
        let can_write =
            view.prologue().is_some_and(|known| known.tools.iter().any(|tool| tool.name == tool_names::WRITE));
        let is_warm = on.session.idle() < on.ttl.duration();
        let tokens = view.tally().count() as f64;
        let Rates { read, write, output } = on.rates;
        let cost = tokens * read * USUAL_ROUNDS + WORDS_OF_FORK * write + USUAL_OUTPUT * output;
        (may_be_shown && can_write && is_warm).then_some(cost)
    }

    /// Whether a run stays within its share of what the session has cost otherwise.
    fn can_pay(&self, on: &LearningSource<'_>, next: f64) -> bool {
        let Some(share) = self.learning.share else { return true };
        let state = on.session.state();
        let spent = on.rates.cost(&state.used_by_extract);
        let others = on.rates.cost(&state.used) - spent;
        spent + next <= others * share
    }
}

/// What a run about what was said alone costs.
fn cost_alone(job: &Job, rates: &Rates) -> f64 {
    let tokens = WORDS_ALONE + job.characters() as f64 / CHARACTERS_PER_TOKEN;
    tokens * (rates.write + rates.read * (USUAL_ROUNDS - 1.0)) + USUAL_OUTPUT * rates.output
}

impl ExtractionShared {
    /// Runs a job of this session, as far as anything may be learnt from its turns, and tells of it.
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

    /// The request that waits, about what is new by now.
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

/// Without Write there is nothing it could do.
fn can_write(tools: &[Arc<dyn Tool>]) -> bool {
    tools.iter().any(|tool| tool.name() == tool_names::WRITE)
}

/// From where on memories are looked for that were saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedSince {
    /// From the beginning.
    Beginning,
    /// From what the user said last.
    Said,
}

/// Memories that were saved in the session itself: the run their changes are kept under and their paths, the oldest first.
/// With `Since::Said`, only those that the model was not told of, since the user has said nothing after them.
pub fn learnt(log: &Log, since: SavedSince) -> Vec<(String, Vec<String>)> {
    let is_said = |line: &Line| matches!(line.body, Body::User { source: TextSource::Said, .. });
    let from = log.lines().iter().rposition(|line| match since {
        SavedSince::Said => is_said(line) || Note::of(line) == Some(Note::Continued),
        SavedSince::Beginning => Note::of(line) == Some(Note::Continued),
    });
    let notes = log.lines().iter().skip(from.map_or(0, |at| at + 1)).filter_map(Note::of);
    let saved = notes.filter_map(|note| match note {
        Note::Extracted { saved, run: Some(run), .. } if !saved.is_empty() => Some((run, saved)),
        _ => None,
    });
    saved.collect()
}

/// Memories that were saved in a session by learning, the newest first: the run their changes are kept under, and where each
/// lies below the memory directory.
pub fn saved(session: &Session) -> Vec<(String, String)> {
    let runs = learnt(session.log(), SavedSince::Beginning).into_iter().rev();
    runs.flat_map(|(run, paths)| paths.into_iter().map(move |path| (run.clone(), path))).collect()
}

/// Whether nothing is learnt from a session now.
pub fn private(session: &Session) -> bool {
    Turns::of(session.log()).is_private()
}

/// From here on nothing is learnt from a session, or again.
pub fn set_private(session: &mut Session, on: bool) -> Result<(), session::Error> {
    session.note(&Note::Private { on }.value())
}
