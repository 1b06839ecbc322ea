//! Dreams alongside a session: one begins when a turn has ended and it is time, or when the user asks for it. One at a
//! time, and nothing waits for it but the session's end, for a while.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use memory::store::IndexUpkeep;
use settings::Rhythm;
use tokio_util::sync::CancellationToken;
use tools::permission::Rules;

use super::dream_log::DreamFinish;
use super::progress::{DreamPhase, DreamProgress};
use super::run::{Dream, NoDreamReason};
use super::schedule::{DreamSchedule, ScheduleDecision};
use super::site::DreamSite;
use super::sources::SourcePurpose;
use crate::background::Background;

/// Kind of background work.
const KIND: &str = crate::ledger::DREAM;
/// Time without automatic dreams after one that could not even begin; the dream log knows of all others.
const REST: SignedDuration = SignedDuration::from_hours(1);
/// Deadline, longer than any dream: an older one is stuck.
const DEADLINE: Duration = Duration::from_secs(30 * 60);

/// The dreams of one session.
pub struct SessionDreams {
    dream: Dream,
    rhythm: Rhythm,
    schedule: DreamSchedule,
    running: Background<Result<DreamFinish, NoDreamReason>>,
    cancel: CancellationToken,
    /// Time of the last one that could not begin: it is not retried at once.
    failed: Option<Timestamp>,
}

/// Origin of a dream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DreamRequester {
    /// The schedule. If another process was faster, that is not reported.
    ByNobody,
    /// A user who is waiting for an answer.
    ByUser,
}

impl SessionDreams {
    /// With the parts of each dream, and their schedule.
    pub fn new(dream: Dream, rhythm: Rhythm) -> Self {
        let (schedule, running, cancel) = (DreamSchedule::default(), Background::default(), CancellationToken::new());
        Self { dream, rhythm, schedule, running, cancel, failed: None }
    }

    /// Changes the schedule.
    pub fn set_rhythm(&mut self, rhythm: Rhythm) {
        self.rhythm = rhythm;
    }

    /// Changes the model and its window.
    pub fn follow_model(&mut self, model: String, window: u64) {
        (self.dream.name, self.dream.window) = (model, window);
    }

    /// Changes the rules, the purpose and the exclusions.
    pub fn follow(&mut self, rules: Rules, purpose: SourcePurpose, excluded: Rules) {
        (self.dream.rules, self.dream.purpose, self.dream.excluded) = (rules, purpose, excluded);
    }

    /// Purpose of the dreams.
    pub fn purpose(&self) -> SourcePurpose {
        self.dream.purpose
    }

    /// Exclusions from learning.
    pub fn excluded(&self) -> &Rules {
        &self.dream.excluded
    }

    /// The schedule.
    pub fn rhythm(&self) -> Rhythm {
        self.rhythm
    }

    /// Begins a dream after a turn, if it is time.
    pub fn turn_ended(&mut self) {
        let now = self.dream.site.world.now();
        let rests = self.failed.is_some_and(|failed| now.duration_since(failed).abs() < REST);
        if self.is_running() || rests || self.dream.ledger.allows(KIND).is_err() {
            return;
        }
        if matches!(self.dream.site.due(&mut self.schedule, &self.rhythm), Ok(ScheduleDecision::Due)) {
            self.begin(DreamRequester::ByNobody);
        }
    }

    /// Begins a dream now, for a user who asks for it, unless one is under way. Returns whether it did.
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
                    texts: [why.to_string()].into(),
                    ..DreamProgress::default()
                });
            }
            ended
        };
        self.running.start(KIND, DEADLINE, now, work);
    }

    /// True if one is under way.
    pub fn is_running(&self) -> bool {
        self.running.is_running(KIND)
    }

    /// Stops the one under way. Its result is taken like that of any other.
    pub fn stop(&self) {
        self.cancel.cancel();
    }

    /// The model that dreams.
    pub fn model(&self) -> &str {
        &self.dream.name
    }

    /// Upkeep of the memories' index.
    pub fn indexing(&self) -> IndexUpkeep {
        self.dream.indexing
    }

    /// Its window, in tokens.
    pub fn window(&self) -> u64 {
        self.dream.window
    }

    /// Memory directory and project of the dreams.
    pub fn site(&self) -> &DreamSite {
        &self.dream.site
    }

    /// Takes the results of finished dreams.
    pub async fn take_ended(&mut self) -> Vec<DreamFinish> {
        let ended = self.running.take_ended().await;
        self.noted(ended)
    }

    /// Waits for the one under way; stops it when the time is over, or on request.
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
