//! One subagent: its identity, progress and result.
//!
//! It runs in its own task. Its parent waits, or goes on and hears of its end later; that can change while it works. In
//! the background only the subagent itself waits for answers to its permission requests.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use mail::Mail;
use parking_lot::Mutex;
use settings::permission::{CallQuestion, PermissionAnswer};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use transcript::Usage;

/// A running or ended subagent.
#[derive(Debug)]
pub struct Subagent {
    /// Its id, which names its file.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// Name given by its parent.
    pub name: Option<String>,
    /// Its task in a few words.
    pub description: String,
    /// Its colour on the screen, as its definition names it.
    pub color: Option<String>,
    /// The requested model, if it differs from its own.
    pub(crate) model: Option<String>,
    /// The call that started it.
    pub call: Option<String>,
    /// Its transcript.
    pub file: PathBuf,
    /// Time of its start.
    pub since: Timestamp,
    /// Messages from other agents.
    pub mail: Mail,
    pub(crate) stop: CancellationToken,
    phase: watch::Sender<SubagentPhase>,
    now: Mutex<SubagentActivity>,
}

/// Identity of a subagent, as it knows itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentIdentity {
    /// Its id, which names its file.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// The file of the session that a person or a program talks to.
    pub session: PathBuf,
    /// Id of the user's prompt that it works for.
    pub prompt: Option<String>,
}

/// Phase of a subagent.
#[derive(Debug, Clone)]
pub enum SubagentPhase {
    /// It is running, and its parent waits.
    Foreground,
    /// It is running, and its parent goes on.
    Background,
    /// It has ended.
    Ended(SubagentResult),
}

/// Result of a subagent.
#[derive(Debug, Clone, PartialEq)]
pub struct SubagentResult {
    /// Its outcome.
    pub how: SubagentOutcome,
    /// Its final message, as data.
    pub report: String,
    /// Its usage.
    pub usage: Usage,
    /// Tokens used by its own subagents, at every depth.
    pub subagent_tokens: u64,
    /// Side questions: purpose, model and usage.
    pub side_questions: Vec<(String, String, Usage)>,
    /// Its model.
    pub model: String,
    /// Length of its transcript at its end, in bytes.
    pub bytes: u64,
}

/// Outcome of a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubagentOutcome {
    /// With a report.
    Done,
    /// It failed, for this reason.
    Failed(String),
    /// Somebody stopped it.
    Stopped,
}

impl SubagentOutcome {
    /// Its status in Claude Code's words.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Done => "completed",
            Self::Failed(_) => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// Progress of a subagent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubagentProgress {
    /// Its label: three to five words on its activity.
    pub label: Option<String>,
    /// The last tool it called.
    pub tool: Option<String>,
    /// Number of calls.
    pub calls: u64,
    /// Number of requests.
    pub requests: u64,
    /// Tokens they read and wrote.
    pub tokens: u64,
    /// Their cost in dollars, as far as prices are known.
    pub cost_usd: f64,
    /// Time at work.
    pub took: Duration,
}

#[derive(Debug, Default)]
struct SubagentActivity {
    progress: SubagentProgress,
    /// Unanswered permission requests of it and its own subagents, in order.
    questions: VecDeque<(CallQuestion, oneshot::Sender<PermissionAnswer>)>,
    asks: QuestionRoute,
    /// True if it ended in the background.
    ended_behind: bool,
}

impl SubagentActivity {
    /// Drops questions of subagents that were stopped.
    fn forget_stopped(&mut self) {
        self.questions.retain(|(_, reply)| !reply.is_closed());
    }
}

/// Destination of a background subagent's permission requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum QuestionRoute {
    /// It waits until somebody looks.
    #[default]
    Waits,
    /// The parent's approver: somebody is looking at it.
    AtOnce,
}

/// Description of a subagent before it starts.
pub(crate) struct SubagentCard {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    pub(crate) description: String,
    pub(crate) color: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) call: Option<String>,
    pub(crate) file: PathBuf,
    pub(crate) mail: Mail,
}

impl Subagent {
    pub(crate) fn new(card: SubagentCard, phase: SubagentPhase, stop: CancellationToken, since: Timestamp) -> Self {
        let SubagentCard { id, kind, name, description, color, model, call, file, mail } = card;
        let phase = watch::channel(phase).0;
        let now = Mutex::default();
        Self { id, kind, name, description, color, model, call, file, since, mail, stop, phase, now }
    }

    /// Its name, or its id if it has none.
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    /// Its phase.
    pub fn phase(&self) -> SubagentPhase {
        self.phase.borrow().clone()
    }

    /// Returns whether it is still running.
    pub fn is_out(&self) -> bool {
        !matches!(*self.phase.borrow(), SubagentPhase::Ended(_))
    }

    /// Returns whether it runs in the background.
    pub fn is_background(&self) -> bool {
        matches!(*self.phase.borrow(), SubagentPhase::Background)
    }

    /// Returns whether it ended in the background.
    pub fn ended_behind(&self) -> bool {
        self.now.lock().ended_behind
    }

    /// Its progress.
    pub fn progress(&self) -> SubagentProgress {
        self.now.lock().progress.clone()
    }

    /// Stops it. It ends soon after.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Moves it to the background. Returns whether that changed anything.
    pub fn send_to_background(&self) -> bool {
        self.phase.send_if_modified(|phase| {
            let waited_for = matches!(phase, SubagentPhase::Foreground);
            if waited_for {
                *phase = SubagentPhase::Background;
            }
            waited_for
        })
    }

    /// Sends its permission requests to the approver at once from now on: somebody is looking at it.
    pub fn bring_to_front(&self) {
        self.now.lock().asks = QuestionRoute::AtOnce;
    }

    /// Takes its first unanswered permission request, if any; the caller answers it.
    pub fn take_question(&self) -> Option<(CallQuestion, oneshot::Sender<PermissionAnswer>)> {
        let mut now = self.now.lock();
        now.forget_stopped();
        now.questions.pop_front()
    }

    /// The tool of its first unanswered permission request, if any.
    pub fn waits_for(&self) -> Option<String> {
        let mut now = self.now.lock();
        now.forget_stopped();
        now.questions.front().map(|(question, _)| question.tool.clone())
    }

    /// Waits for its end.
    pub async fn ended(&self) -> SubagentResult {
        loop {
            if let SubagentPhase::Ended(ended) = self.changed(|phase| matches!(phase, SubagentPhase::Ended(_))).await {
                return ended;
            }
        }
    }

    /// Waits until its parent is free: it has ended, or was moved to the background.
    pub(crate) async fn released(&self) -> SubagentPhase {
        self.changed(|phase| !matches!(phase, SubagentPhase::Foreground)).await
    }

    async fn changed(&self, wanted: fn(&SubagentPhase) -> bool) -> SubagentPhase {
        let mut phase = self.phase.subscribe();
        loop {
            let now = phase.borrow_and_update().clone();
            if wanted(&now) {
                return now;
            }
            if phase.changed().await.is_err() {
                std::future::pending::<()>().await; // it cannot be, as long as there is an subagent
            }
        }
    }

    /// Records its end. Returns its phase before.
    pub(crate) fn end(&self, ended: SubagentResult) -> SubagentPhase {
        let mut before = SubagentPhase::Ended(ended);
        // Both at once: whoever sees that it has ended sees where.
        self.phase.send_modify(|phase| {
            std::mem::swap(phase, &mut before);
            let mut now = self.now.lock();
            now.questions.clear();
            now.ended_behind = matches!(before, SubagentPhase::Background);
        });
        before
    }

    /// Returns whether its permission requests have to wait until somebody looks.
    pub(crate) fn keeps_questions(&self) -> bool {
        self.is_background() && self.now.lock().asks == QuestionRoute::Waits
    }

    /// Queues a permission request until somebody takes and answers it.
    pub(crate) fn keep_question(&self, question: CallQuestion) -> oneshot::Receiver<PermissionAnswer> {
        let (reply, answer) = oneshot::channel();
        self.now.lock().questions.push_back((question, reply));
        answer
    }

    /// Updates its progress.
    pub(crate) fn progressed(&self, now: Timestamp, change: impl FnOnce(&mut SubagentProgress)) {
        let progress = &mut self.now.lock().progress;
        progress.took = Duration::try_from(now.duration_since(self.since)).unwrap_or_default();
        change(progress);
    }
}
