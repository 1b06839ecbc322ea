//! Dreams beside a session: one begins when a turn has ended and it is time, or when the user asks for it. One at a time,
//! and nothing waits for it but the session's end, for a while.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use memory::store::IndexUpkeep;
use settings::Rhythm;
use tokio_util::sync::CancellationToken;
use tools::permission::Rules;

use super::book::DreamFinish;
use super::gate::{DreamGate, GateDecision};
use super::progress::{DreamPhase, DreamProgress};
use super::run::{Dream, NoDreamReason};
use super::site::DreamSite;
use super::sources::SourcePurpose;
use crate::background::Background;

/// This kind of work in the background.
const KIND: &str = crate::ledger::DREAM;
/// After one that could not even begin none comes by itself for so long; of all others the book knows.
const REST: SignedDuration = SignedDuration::from_hours(1);
/// Longer than any dream: one that is older is stuck.
const DEADLINE: Duration = Duration::from_secs(30 * 60);

/// The dreams of one session.
pub struct SessionDreams {
    dream: Dream,
    rhythm: Rhythm,
    gate: DreamGate,
    running: Background<Result<DreamFinish, NoDreamReason>>,
    cancel: CancellationToken,
    /// When one could not begin: it is not tried again at once.
    failed: Option<Timestamp>,
}

/// Who wants a dream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DreamRequester {
    /// It is time. That another process was faster is nothing to tell then.
    ByNobody,
    /// Somebody who is waiting for an answer.
    ByUser,
}

impl SessionDreams {
    /// With what each dream needs, and when they come by themselves.
    pub fn new(dream: Dream, rhythm: Rhythm) -> Self {
        let (gate, running, cancel) = (DreamGate::default(), Background::default(), CancellationToken::new());
        Self { dream, rhythm, gate, running, cancel, failed: None }
    }

    /// When they come by themselves, from now on.
    pub fn set_rhythm(&mut self, rhythm: Rhythm) {
        self.rhythm = rhythm;
    }

    /// Which model dreams from now on, and how large its window is.
    pub fn follow_model(&mut self, model: String, window: u64) {
        (self.dream.name, self.dream.window) = (model, window);
    }

    /// By which rules they look around from now on, what for, and what they learn nothing from.
    pub fn follow(&mut self, rules: Rules, purpose: SourcePurpose, excluded: Rules) {
        (self.dream.rules, self.dream.purpose, self.dream.excluded) = (rules, purpose, excluded);
    }

    /// What they are for.
    pub fn purpose(&self) -> SourcePurpose {
        self.dream.purpose
    }

    /// What they learn nothing from.
    pub fn excluded(&self) -> &Rules {
        &self.dream.excluded
    }

    /// When they come by themselves.
    pub fn rhythm(&self) -> Rhythm {
        self.rhythm
    }

    /// A turn has ended: a dream begins, if it is time.
    pub fn turn_ended(&mut self) {
        let now = self.dream.site.world.now();
        let rests = self.failed.is_some_and(|failed| now.duration_since(failed).abs() < REST);
        if self.is_running() || rests || self.dream.ledger.allows(KIND).is_err() {
            return;
        }
        if matches!(self.dream.site.due(&mut self.gate, &self.rhythm), Ok(GateDecision::Due)) {
            self.begin(DreamRequester::ByNobody);
        }
    }

    /// A dream begins now, for a user who asks for it, unless one is under way. Says whether it did.
    pub fn start(&mut self) -> bool {
        !self.is_running() && {
            self.begin(DreamRequester::ByUser);
            true
        }
    }

    fn begin(&mut self, asked: DreamRequester) {
        self.cancel = CancellationToken::new();
        let dream = Dream { cancel: self.cancel.clone(), ..self.dream.clone() };
        let (now, listener) = (dream.site.world.now(), dream.listener.clone());
        let work = async move {
            let ended = dream.run().await;
            if let (DreamRequester::ByUser, Err(why)) = (asked, &ended) {
                listener(&DreamProgress {
                    phase: DreamPhase::Failed,
                    said: [why.to_string()].into(),
                    ..DreamProgress::default()
                });
            }
            ended
        };
        self.running.start(KIND, DEADLINE, now, work);
    }

    /// Whether one is under way.
    pub fn is_running(&self) -> bool {
        self.running.is_running(KIND)
    }

    /// Ends the one under way. What comes of it is taken in as of any other.
    pub fn stop(&self) {
        self.cancel.cancel();
    }

    /// The model that dreams.
    pub fn model(&self) -> &str {
        &self.dream.name
    }

    /// Whether the index of the memories is kept.
    pub fn indexing(&self) -> IndexUpkeep {
        self.dream.indexing
    }

    /// Its window, in tokens.
    pub fn window(&self) -> u64 {
        self.dream.window
    }

    /// Where it dreams.
    pub fn site(&self) -> &DreamSite {
        &self.dream.site
    }

    /// Takes what is over by now.
    pub async fn take_ended(&mut self) -> Vec<DreamFinish> {
        let ended = self.running.take_ended().await;
        self.noted(ended)
    }

    /// Waits for the one under way; ends it when the time is over, or somebody says so.
    pub async fn wait(&mut self, patience: Duration, stop: &CancellationToken) -> Vec<DreamFinish> {
        let now = self.dream.site.world.now();
        let ended = tokio::select! {
            ended = self.running.wait_for(KIND, patience, now) => ended,
            () = stop.cancelled() => None,
        };
        if ended.is_some() {
            return self.noted(ended.into_iter().collect());
        }
        // Stopped, it sets the date back and writes down how it ended, which takes a moment.
        self.stop();
        let ended = self.running.close(Duration::from_secs(1)).await;
        self.noted(ended)
    }

    fn noted(&mut self, ended: Vec<Result<DreamFinish, NoDreamReason>>) -> Vec<DreamFinish> {
        if ended.iter().any(|ended| matches!(ended, Err(NoDreamReason::Files(_) | NoDreamReason::Memory(_)))) {
            self.failed = Some(self.dream.site.world.now());
        }
        ended.into_iter().filter_map(Result::ok).collect()
    }
}
