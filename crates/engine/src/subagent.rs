//! One agent that is out: what it is called, what it is doing, and what came of it.
//!
//! It works in a task of its own. Whoever sent it waits, or goes on and hears of its end later; which of the two can
//! change while it works. It alone waits for an answer to a question of its own in the background.

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

/// An agent that is out, or was.
#[derive(Debug)]
pub struct Subagent {
    /// Its id, as its file is named.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// What its parent calls it.
    pub name: Option<String>,
    /// What it does, in a few words.
    pub description: String,
    /// The model that was asked for, where another than its own was.
    pub(crate) model: Option<String>,
    /// The call that sent it out.
    pub call: Option<String>,
    /// Where what it says is written.
    pub file: PathBuf,
    /// Since when it is out.
    pub since: Timestamp,
    /// What other agents write to it.
    pub mail: Mail,
    pub(crate) stop: CancellationToken,
    phase: watch::Sender<SubagentPhase>,
    now: Mutex<SubagentActivity>,
}

/// Identity of a subagent, as it knows itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentIdentity {
    /// Its id, as its file is named.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// The file of the session that a person or a program talks to.
    pub session: PathBuf,
    /// The words of the user's that it works for, by their id.
    pub prompt: Option<String>,
}

/// Whether an agent works.
#[derive(Debug, Clone)]
pub enum SubagentPhase {
    /// It does, and its parent waits.
    Foreground,
    /// It does, and its parent goes on.
    Background,
    /// It has ended.
    Ended(SubagentResult),
}

/// What came of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SubagentResult {
    /// How it ended.
    pub how: SubagentOutcome,
    /// Its last words, as data.
    pub report: String,
    /// What it used.
    pub usage: Usage,
    /// What those used that it sent out, and theirs, in tokens.
    pub below: u64,
    /// What was asked beside its conversation: by whom, of which model, and what that used.
    pub beside: Vec<(String, String, Usage)>,
    /// The model it talked to.
    pub model: String,
    /// How long its transcript was then, in bytes.
    pub bytes: u64,
}

/// How an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubagentOutcome {
    /// With a report.
    Done,
    /// Not as it should have, for this reason.
    Failed(String),
    /// Somebody stopped it.
    Stopped,
}

impl SubagentOutcome {
    /// In Claude Code's word.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Done => "completed",
            Self::Failed(_) => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// What an agent has done so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubagentProgress {
    /// What it does, in three to five words.
    pub label: Option<String>,
    /// The tool it called last.
    pub tool: Option<String>,
    /// How many calls it has made.
    pub calls: u64,
    /// How many requests.
    pub requests: u64,
    /// What they read and wrote, in tokens.
    pub tokens: u64,
    /// What that cost, in dollars, where a price is known.
    pub cost_usd: f64,
    /// How long it has been at work.
    pub took: Duration,
}

#[derive(Debug, Default)]
struct SubagentActivity {
    progress: SubagentProgress,
    /// What it waits to be answered, it and those below it, as it came.
    questions: VecDeque<(CallQuestion, oneshot::Sender<PermissionAnswer>)>,
    asks: QuestionRoute,
    /// Whether it had gone on without its parent when it ended.
    ended_behind: bool,
}

impl SubagentActivity {
    /// Who was stopped waits for no answer.
    fn forget_stopped(&mut self) {
        self.questions.retain(|(_, reply)| !reply.is_closed());
    }
}

/// Where a question of an agent in the background goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum QuestionRoute {
    /// It waits until somebody looks.
    #[default]
    Waits,
    /// To whoever is asked for its parent: somebody looks at it.
    AtOnce,
}

/// Who an agent is, before it is out.
pub(crate) struct SubagentCard {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    pub(crate) description: String,
    pub(crate) model: Option<String>,
    pub(crate) call: Option<String>,
    pub(crate) file: PathBuf,
    pub(crate) mail: Mail,
}

impl Subagent {
    pub(crate) fn new(card: SubagentCard, phase: SubagentPhase, stop: CancellationToken, since: Timestamp) -> Self {
        let SubagentCard { id, kind, name, description, model, call, file, mail } = card;
        let phase = watch::channel(phase).0;
        Self { id, kind, name, description, model, call, file, since, mail, stop, phase, now: Mutex::default() }
    }

    /// What others call it: its name, or its id where it has none.
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    /// Whether it works.
    pub fn phase(&self) -> SubagentPhase {
        self.phase.borrow().clone()
    }

    /// Whether it is still out.
    pub fn is_out(&self) -> bool {
        !matches!(*self.phase.borrow(), SubagentPhase::Ended(_))
    }

    /// Whether its parent goes on while it works.
    pub fn is_background(&self) -> bool {
        matches!(*self.phase.borrow(), SubagentPhase::Background)
    }

    /// Whether it has ended in the background.
    pub fn ended_behind(&self) -> bool {
        self.now.lock().ended_behind
    }

    /// What it has done so far.
    pub fn progress(&self) -> SubagentProgress {
        self.now.lock().progress.clone()
    }

    /// Stops it. It ends soon after.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Lets its parent go on. Says whether that makes a difference.
    pub fn send_to_background(&self) -> bool {
        self.phase.send_if_modified(|phase| {
            let waited_for = matches!(phase, SubagentPhase::Foreground);
            if waited_for {
                *phase = SubagentPhase::Background;
            }
            waited_for
        })
    }

    /// Its questions are asked at once from now on: somebody looks at it.
    pub fn bring_to_front(&self) {
        self.now.lock().asks = QuestionRoute::AtOnce;
    }

    /// The first question it waits with, if it does; whoever takes it answers.
    pub fn take_question(&self) -> Option<(CallQuestion, oneshot::Sender<PermissionAnswer>)> {
        let mut now = self.now.lock();
        now.forget_stopped();
        now.questions.pop_front()
    }

    /// The tool it waits to be allowed, if it does.
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

    /// Waits until its parent need not wait any longer: it has ended, or was sent to the background.
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

    /// It has ended. Says where it worked until then.
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

    /// Whether a question has to wait until somebody looks.
    pub(crate) fn keeps_questions(&self) -> bool {
        self.is_background() && self.now.lock().asks == QuestionRoute::Waits
    }

    /// Waits with a question until somebody takes it and answers.
    pub(crate) fn keep_question(&self, question: CallQuestion) -> oneshot::Receiver<PermissionAnswer> {
        let (reply, answer) = oneshot::channel();
        self.now.lock().questions.push_back((question, reply));
        answer
    }

    /// It has done something.
    pub(crate) fn progressed(&self, now: Timestamp, change: impl FnOnce(&mut SubagentProgress)) {
        let progress = &mut self.now.lock().progress;
        progress.took = Duration::try_from(now.duration_since(self.since)).unwrap_or_default();
        change(progress);
    }
}
