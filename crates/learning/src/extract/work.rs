//! A run of the agent that writes down what was learnt: its words, its policy, its request, what came of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use memory::extract::{Directive, directive, has_rules};
use memory::store::Indexing;
use provider::Model;
use session::{Home, World};
use tokio_util::sync::CancellationToken;
use tools::permission::Rules;
use tools::sandbox::Standing;
use tools::{Scope, Tool};
use transcript::{Block, Id, Request, Usage};

use super::span::Texts;
use crate::fork::Fork;
use crate::ledger::{self, Ledger};
use crate::restricted::{Ground, Limits, Restricted, Tally};

/// This kind of work in the background.
pub const KIND: &str = ledger::EXTRACT;

/// The most requests of a run.
const ROUNDS: u32 = 5;
/// The most time for one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Where a reply is cut off, in tokens.
const OUTPUT: u64 = 8_000;
/// What a run may write and remove.
const LIMITS: Limits = Limits { bytes: 48_000, files: 10, removed: 3 };

/// What all runs of a session have in common.
#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) model: Arc<dyn Model>,
    /// Its name.
    pub(crate) name: String,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) scope: Scope,
    pub(crate) rules: Rules,
    pub(crate) home: Home,
    pub(crate) memory: PathBuf,
    pub(crate) team: Option<PathBuf>,
    pub(crate) excluded: Rules,
    pub(crate) indexing: Indexing,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) world: World,
}

/// One run: about what.
pub(crate) struct Job {
    /// The session it is about.
    pub(crate) session: String,
    /// Whether that is the one under way.
    pub(crate) own: bool,
    /// What its fork begins with.
    pub(crate) parent: Request,
    /// The messages that are new, in order.
    pub(crate) messages: Vec<Id>,
    /// Whether all that is visible counts.
    pub(crate) all: bool,
    /// What no memory may be made from.
    pub(crate) texts: Texts,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The session it was about.
    pub session: String,
    /// The newest message it was about.
    pub covers: Option<Id>,
    /// How many messages were new.
    pub messages: usize,
    /// The model.
    pub model: String,
    /// What it used.
    pub usage: Usage,
    /// What its first request used: it should have read the parent's cache.
    pub first: Usage,
    /// How many requests it made.
    pub rounds: u32,
    /// What it did.
    pub tally: Tally,
    /// Under which run its changes are kept.
    pub run: Option<String>,
    /// How long it took.
    pub took: Duration,
    /// Why it did not come to its end.
    pub failed: Option<String>,
}

impl Tools {
    /// Runs a job to its end.
    pub(crate) async fn run(&self, job: Job, cancel: CancellationToken) -> Outcome {
        let began = self.world.now();
        let model = job.parent.prologue.model.clone();
        let mut outcome = Outcome {
            session: job.session.clone(),
            covers: job.messages.last().cloned(),
            messages: job.messages.len(),
            model: model.clone(),
            usage: Usage::default(),
            first: Usage::default(),
            rounds: 0,
            tally: Tally::default(),
            run: None,
            took: Duration::ZERO,
            failed: None,
        };
        let standing = match self.scope.sandbox() {
            Some(sandbox) => sandbox.standing().clone(),
            None => Standing::find_out(self.scope.guard()).await,
        };
        let restricted = match self.policy(&job, &model, standing).await {
            Ok(restricted) => restricted,
            Err(error) => return Outcome { failed: Some(error.to_string()), ..outcome },
        };
        let words = self.words(&job);
        let fork = Fork {
            tools: restricted.policy(&self.tools, &self.scope),
            rounds: ROUNDS,
            patience: PATIENCE,
            most_output: Some(OUTPUT),
            cancel,
            ..Fork::new(KIND, &self.model, job.parent, words, &self.ledger)
        };
        let (forked, usage) = fork.run().await;
        outcome.usage = usage;
        match forked {
            Ok(forked) => (outcome.first, outcome.rounds) = (forked.first, forked.rounds),
            Err(error) => outcome.failed = Some(error.to_string()),
        }
        outcome.run = restricted.end();
        outcome.tally = restricted.tally();
        outcome.took = Duration::try_from(self.world.now().duration_since(began)).unwrap_or_default();
        outcome
    }

    /// What it may do. What no memory may be made from is counted where it holds up nobody.
    async fn policy(&self, job: &Job, model: &str, standing: Standing) -> Result<Arc<Restricted>, memory::Error> {
        let texts = job.texts.clone();
        let injected = tokio::task::spawn_blocking(move || texts.injected()).await.unwrap_or_default();
        let ground = Ground {
            agent: KIND,
            memory: self.memory.clone(),
            indexing: self.indexing,
            sessions: vec![self.home.project(self.scope.project())],
            excluded: self.excluded.clone(),
            config: self.home.path().to_owned(),
            changes: self.home.changes(&self.memory),
            rules: self.rules.clone(),
            standing,
            limits: LIMITS,
            injected,
            session: Some(job.session.clone()),
            message: job.messages.last().map(ToString::to_string),
            model: model.to_owned(),
            world: self.world.clone(),
        };
        Restricted::new(ground, &self.scope)
    }

    fn words(&self, job: &Job) -> String {
        let system: Vec<String> = job.parent.prologue.system.iter().filter_map(Block::as_text).collect();
        let known = files::Root::open(&self.memory).ok().and_then(|root| memory::scan::headers(&root).ok());
        directive(&Directive {
            messages: (!job.all).then_some(job.messages.len()),
            directory: &self.memory,
            team: self.team.as_deref(),
            rules: !system.iter().any(|text| has_rules(text)),
            index: self.indexing == Indexing::Kept,
            known: &known.unwrap_or_default(),
        })
    }
}
