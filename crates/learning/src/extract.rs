//! Learning: after a turn, a fork of the conversation writes down what a later session should know.
//!
//! It runs beside the conversation and never holds it up: one run at a time, and while one runs only the newest request
//! waits. It stays within a share of what the session costs; what had to wait for that, or for its number of turns, is
//! learnt when the session ends. The log holds how far learning came. Nothing is learnt from turns in which the main agent
//! saved memories itself, from private ones, or from those that touched what is excluded.
//!
//! Failures are told as events and recorded; the next run begins where the last one that succeeded ended.

mod left;
mod span;
mod work;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use context::worth::Rates;
use parking_lot::Mutex;
use provider::Model;
use session::Session;
use settings::{Gate, Learning};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tools::permission::Rules;
use tools::{Scope, Tool};
use transcript::{Block, Id, Request, tool_names};

use crate::apart::{self, Apart};
use crate::ledger::Ledger;
use span::{Note, Span, is_private, learns, span, texts};
use work::{Job, Tools};

pub use span::{Since, learnt};
pub use work::KIND;
pub use work::Outcome;

/// At the end of a session, so long is waited for what is being learnt.
pub const CLOSING: Duration = Duration::from_secs(60);
/// A run that is stopped has so long to write down what it used.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// A run that saves something has two rounds: one that writes, and one that ends.
const USUAL_ROUNDS: f64 = 2.0;
/// What it is expected to write, in tokens.
const USUAL_OUTPUT: f64 = 400.0;
/// What its own words have, in tokens.
const USUAL_WORDS: f64 = 1_500.0;

/// Why nothing is learnt from these turns, whatever was said in them.
fn passed_over(learning: &Learning, session: &Path, new: &Span, scope: &Scope, memory: &Path) -> Option<String> {
    let memory = files::real(memory).unwrap_or_else(|_| memory.to_owned());
    let mut written =
        new.calls.iter().filter(|(tool, _)| matches!(tool.as_str(), tool_names::WRITE | tool_names::EDIT));
    let place = |input: &serde_json::Value| Some(scope.place(input["file_path"].as_str()?).1);
    if written.any(|(_, input)| place(input).is_some_and(|real| real.starts_with(&memory))) {
        return Some("memories were saved in the conversation itself".to_owned());
    }
    let inside = scope.project().join("any").to_string_lossy().into_owned();
    let mut inputs = new.calls.iter().map(|(_, input)| input);
    let excluded = &learning.excluded;
    if apart::is_excluded(excluded, scope, &inside)
        || inputs.any(|input| apart::touches(excluded, scope, &scope.directory(), input))
        || Apart::new(Vec::new(), excluded.clone(), scope.clone()).sent_out_to_it(session)
    {
        return Some("it touched what nothing is learnt from".to_owned());
    }
    (!looks_worth_it(learning, new)).then(|| "nothing in it looked worth it".to_owned())
}

/// Whether a model is to be asked about these turns.
fn looks_worth_it(learning: &Learning, new: &Span) -> bool {
    let mut said = new.said.iter().filter_map(Block::as_text);
    learning.gate == Gate::Open || said.any(|text| memory::extract::signals(&text))
}

/// Hears what came of a run.
pub type Heard = Arc<dyn Fn(&Outcome) + Send + Sync>;

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
    /// Where the memories are.
    pub memory: &'a Path,
    /// Hears what came of a run.
    pub heard: Heard,
}

/// Why a session would learn now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// A turn has ended.
    Turn,
    /// The session ends.
    End,
}

/// The learning of one session.
pub struct Extraction {
    learning: Learning,
    shared: Arc<Shared>,
    /// The work under way.
    task: Option<AbortOnDropHandle<()>>,
    cancel: CancellationToken,
    /// Whether earlier sessions were looked at.
    looked_back: bool,
}

/// What the work shares with the session.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Whether work is under way.
    busy: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// The cursor, as soon as it is known.
    cursor: Option<Id>,
    /// What the run under way covers.
    running: Option<Id>,
    /// The newest request, while another runs.
    waiting: Option<Job>,
    /// What is over and not in the log yet.
    ended: Vec<Outcome>,
}

impl Extraction {
    /// Learns in this way.
    pub fn new(learning: Learning) -> Self {
        Self { learning, shared: Arc::default(), task: None, cancel: CancellationToken::new(), looked_back: false }
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
    pub fn begins(&self, session: &Session) -> Option<serde_json::Value> {
        (!learns(session.log())).then(|| serde_json::to_value(Note::Learns).unwrap_or_default())
    }

    /// Whether something is under way, or was not learnt from yet.
    pub fn has_left(&self, session: &Session) -> bool {
        let cursor = self.shared.state.lock().cursor.clone();
        self.is_busy() || span(session.log(), cursor.as_ref()).is_some_and(|new| new.turns > 0)
    }

    /// Takes what is over and not in the log yet.
    pub fn take_ended(&self) -> Vec<Outcome> {
        std::mem::take(&mut self.shared.state.lock().ended)
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

    /// Waits until nothing is under way any more, or time is over, or `stop` says so.
    pub async fn wait(&mut self, patience: Duration, stop: &CancellationToken) {
        let mut busy = self.shared.busy.subscribe();
        tokio::select! {
            () = stop.cancelled() => {}
            _ = tokio::time::timeout(patience, busy.wait_for(|busy| !busy)) => {}
        }
    }

    /// Learns from what is new, if that is due. What no run is needed for is returned, to be written down.
    pub fn learn(&mut self, on: &LearningSource<'_>, occasion: Occasion) -> Option<Passed> {
        let log = on.session.log();
        let cursor = self.shared.state.lock().cursor.clone();
        let new = span(log, cursor.as_ref()).filter(|new| new.turns > 0)?;
        let covers = new.covers()?.clone();
        if let Some(why) = passed_over(&self.learning, on.session.path(), &new, on.scope, on.memory) {
            self.shared.state.lock().cursor = Some(covers.clone());
            return Some(Passed { covers, why });
        }
        let due = occasion == Occasion::End || new.turns >= self.learning.every && self.can_pay(on);
        if !due || !can_write(on.session) || on.ledger.allows(KIND).is_err() {
            return None;
        }
        let parent = (on.parent)()?;
        let session = on.session.id().to_owned();
        let job = Job { session, own: true, parent, messages: new.messages, all: new.all, texts: texts(log) };
        if self.is_busy() {
            let running = self.shared.state.lock().running.clone();
            let beyond = span(log, running.as_ref().or(cursor.as_ref()));
            // What is passed over is looked at again when it is known how far the run under way came.
            if beyond.is_some_and(|beyond| looks_worth_it(&self.learning, &beyond)) {
                self.shared.state.lock().waiting = Some(job);
            }
            return None;
        }
        let tools = self.tools(on);
        let left = (!std::mem::replace(&mut self.looked_back, true)).then(|| on.session.id().to_owned());
        self.start(tools, job, left, on.heard.clone());
        None
    }

    fn start(&mut self, tools: Tools, job: Job, left: Option<String>, heard: Heard) {
        let (shared, cancel, learning) = (self.shared.clone(), self.cancel.clone(), self.learning.clone());
        shared.busy.send_replace(true);
        let work = async move {
            let mut next = Some(job);
            while let Some(job) = next.take() {
                shared.run(&tools, job, &heard, &cancel).await;
                next = shared.next();
            }
            if let Some(current) = left {
                for left in left::over(&tools, learning, current).await {
                    shared.run(&tools, left.job, &heard, &cancel).await;
                    left.file.covered(&tools, &shared);
                    while let Some(job) = shared.next() {
                        shared.run(&tools, job, &heard, &cancel).await;
                    }
                }
            }
            shared.busy.send_replace(false);
        };
        self.task = Some(AbortOnDropHandle::new(tokio::spawn(work)));
    }

    fn tools(&self, on: &LearningSource<'_>) -> Tools {
        Tools {
            model: on.model.clone(),
            name: on.name.to_owned(),
            tools: on.tools.to_vec(),
            scope: on.scope.clone(),
            rules: on.rules.clone(),
            home: self.learning.home.clone(),
            memory: on.memory.to_owned(),
            team: self.learning.team.clone(),
            excluded: self.learning.excluded.clone(),
            indexing: self.learning.indexing,
            ledger: on.ledger.clone(),
            world: on.session.world().clone(),
        }
    }

    /// Whether a run stays within its share of what the session has cost otherwise.
    fn can_pay(&self, on: &LearningSource<'_>) -> bool {
        let Some(share) = self.learning.share else { return true };
        let rates = &on.rates;
        let state = on.session.state();
        let spent = rates.cost(&state.used_by_extract);
        let others = rates.cost(&state.used) - spent;
        let tokens = on.session.log().view().tally().count() as f64;
        let next = tokens * rates.read * USUAL_ROUNDS + USUAL_WORDS * rates.write + USUAL_OUTPUT * rates.output;
        spent + next <= others * share
    }
}

impl Shared {
    /// Runs a job, and tells of it.
    async fn run(&self, tools: &Tools, job: Job, heard: &Heard, cancel: &CancellationToken) {
        let own = job.own;
        self.state.lock().running = job.messages.last().filter(|_| own).cloned();
        let outcome = tools.run(job, cancel.clone()).await;
        let mut state = self.state.lock();
        if outcome.failed.is_none() && own {
            state.cursor.clone_from(&outcome.covers);
        }
        state.ended.push(outcome.clone());
        drop(state);
        heard(&outcome);
    }

    /// The request that waits, about what is new by now.
    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        let mut job = state.waiting.take()?;
        let known = state.cursor.as_ref().and_then(|cursor| job.messages.iter().position(|line| line == cursor));
        job.messages.drain(..known.map_or(0, |at| at + 1));
        (!job.messages.is_empty()).then_some(job)
    }
}

/// What no run was needed for.
pub struct Passed {
    covers: Id,
    why: String,
}

impl Passed {
    /// The line for it.
    pub fn note(self) -> serde_json::Value {
        let note = Note::Extracted { covers: self.covers, saved: Vec::new(), run: None, skipped: Some(self.why) };
        serde_json::to_value(note).unwrap_or_default()
    }
}

impl Outcome {
    /// The line for it: how far learning came. None where it failed.
    pub fn note(&self) -> Option<serde_json::Value> {
        let (covers, saved, run) = (self.covers.clone()?, self.tally.saved.clone(), self.run.clone());
        let note = Note::Extracted { covers, saved, run, skipped: None };
        self.failed.is_none().then(|| serde_json::to_value(note).unwrap_or_default())
    }
}

/// Memories that were saved in a session by learning, the newest first: the run their changes are kept under, and where each
/// lies below the memory directory.
pub fn saved(session: &Session) -> Vec<(String, String)> {
    let runs = learnt(session.log(), Since::Beginning).into_iter().rev();
    runs.flat_map(|(run, paths)| paths.into_iter().map(move |path| (run.clone(), path))).collect()
}

/// Whether nothing is learnt from a session now.
pub fn private(session: &Session) -> bool {
    is_private(session.log())
}

/// From here on nothing is learnt from a session, or again.
pub fn set_private(session: &mut Session, on: bool) -> Result<(), session::Error> {
    session.note(&serde_json::to_value(Note::Private { on }).unwrap_or_default())
}

/// Without Write there is nothing it could do.
fn can_write(session: &Session) -> bool {
    let prologue = session.log().view().prologue();
    prologue.is_some_and(|known| known.tools.iter().any(|tool| tool.name == tool_names::WRITE))
}
