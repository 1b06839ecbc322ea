//! Events: everything that can be observed of a running session. Hooks have a say at some of the same points
//! ([`crate::gate`]).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use context::account::ClearingFigures;
use context::breaks::CacheBreak;
use context::summary_text::HistorySource;
use learning::dream::progress::DreamProgress;
use learning::extract::Outcome;
use mail::mailbox::IdleReason;
use memory::instructions::LoadedInstruction;
use serde_json::Value;
use session::stats::SessionUse;
use tools::permission::Mode;
use tools::{JobState, Output};
use transcript::window::Window;
use transcript::{Id, Reply, Usage};

use crate::subagent::Subagent;

/// Receiver of events.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

/// News of a subagent.
#[derive(Debug, Clone)]
pub enum SubagentNews {
    /// It has started.
    Started,
    /// It did or received something itself.
    Does(Box<Event>),
    /// It continues in the background.
    Backgrounded,
    /// It waits in the background for an answer to a permission request.
    Asks,
    /// It has a new label.
    Labelled,
    /// It has ended.
    Ended,
}

/// News of a teammate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeammateNews {
    /// Its process has started.
    Started,
    /// It has a new label.
    Labelled(String),
    /// It is idle, and stays.
    Rests(IdleReason),
    /// Its process has ended.
    Ended(JobState),
}

/// An event of a session.
#[derive(Debug, Clone)]
pub enum Event {
    /// A session is open.
    SessionStarted {
        /// Its id.
        session: String,
        /// Its file.
        file: PathBuf,
        /// The model it talks to.
        model: String,
        /// The tools it has.
        tools: Vec<String>,
        /// The permission mode.
        mode: Mode,
    },
    /// The user's message is in the log.
    PromptSubmitted {
        /// The line.
        line: Option<Id>,
        /// Its text.
        text: String,
    },
    /// Files that the user's message names were attached, or could not be.
    Attached {
        /// The files, in the order of the message.
        files: Vec<AttachedFile>,
    },
    /// A message from another agent is in the log.
    MessageArrived {
        /// Name that the sender uses for itself.
        from: String,
        /// Its text.
        text: String,
    },
    /// A teammate waits with a permission request until somebody looks.
    TeammateAsks {
        /// Its name.
        name: String,
        /// The tool it wants to use.
        tool: String,
    },
    /// News of a teammate.
    Teammate {
        /// Its name.
        name: String,
        /// Its session.
        session: String,
        /// The news.
        news: TeammateNews,
        /// Usage of its session so far.
        used: SessionUse,
    },
    /// The model or its window has changed.
    ModelChanged {
        /// Its name.
        model: String,
        /// Its window.
        window: Window,
    },
    /// A request goes out.
    RequestSent {
        /// Number of the request within this turn, from 1.
        round: u32,
        /// Estimate of its tokens.
        tokens: u64,
    },
    /// More text of the reply.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// The model is writing a call.
    CallWriting {
        /// The tool.
        tool: String,
    },
    /// An attempt failed; another follows.
    Retrying {
        /// Number of failed attempts.
        attempt: u32,
        /// Time until the next attempt.
        after: Duration,
        /// Reason for the failure.
        why: String,
    },
    /// The reply broke off and starts again: what was shown of it is void.
    Restarted,
    /// The reply is in the log.
    Replied {
        /// The reply.
        reply: Reply,
    },
    /// A tool is about to run.
    ToolStarted {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
        /// Its input.
        input: Value,
    },
    /// A call was not allowed.
    ToolDenied {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
        /// Its input.
        input: Value,
        /// The reason, as the model was told.
        why: String,
    },
    /// A tool has ended, and its result is in the log.
    ToolEnded {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
        /// Its output.
        output: Output,
    },
    /// Oversized results were spilled to disk.
    Spilled {
        /// Number of results.
        results: usize,
        /// Estimate of the tokens kept out of view.
        freed: u64,
    },
    /// The oldest messages were dropped.
    Snipped {
        /// Number of messages that are out of view by now.
        messages: usize,
        /// Estimate of the tokens that left the view.
        freed: u64,
    },
    /// A span was replaced with its summary.
    Collapsed {
        /// Number of messages in it.
        messages: usize,
        /// Estimate of the tokens that left the view.
        freed: u64,
    },
    /// Old results were cleared.
    Cleared {
        /// Number of results.
        results: usize,
        /// Estimate of the tokens that left the view.
        freed: u64,
        /// Reason why it was worth it.
        why: String,
    },
    /// A result was needed after it had been cleared.
    Regretted {
        /// Number of regrets so far, their cost, and what clearing saved; without dollars if the model's price is
        /// unknown.
        figures: ClearingFigures,
    },
    /// A compaction begins. It may take a while.
    Compacting {
        /// The conversation's tokens.
        tokens: u64,
    },
    /// The conversation was compacted.
    Compacted {
        /// Source of the text that replaced it.
        made: HistorySource,
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
    },
    /// A compaction failed, or did not free enough.
    CompactionFailed {
        /// The reason.
        why: String,
    },
    /// Notes were updated, or the update failed.
    NotesUpdated {
        /// The file.
        path: PathBuf,
        /// Usage of the update.
        usage: Usage,
        /// True if the section that must be rewritten was left alone.
        left_current_state: bool,
        /// Reason for the failure.
        failed: Option<String>,
    },
    /// A cache break.
    CacheBroke(CacheBreak),
    /// The turn is over.
    TurnEnded {
        /// Usage of all its requests.
        usage: Usage,
    },
    /// Memories joined the next request.
    Recalled {
        /// The memories.
        memories: Vec<RecalledMemory>,
    },
    /// Instruction files were loaded.
    InstructionsLoaded {
        /// The files.
        files: Vec<LoadedInstruction>,
    },
    /// A memory was saved.
    MemorySaved {
        /// The file.
        path: PathBuf,
    },
    /// A memory was written empty, which is how one is forgotten.
    MemoryForgotten {
        /// The file.
        path: PathBuf,
    },
    /// Team memory was received or sent.
    TeamMemory {
        /// Descriptions, one sentence each.
        sentences: Vec<String>,
        /// Texts that others changed here.
        changed: Vec<TeamChange>,
    },
    /// An extraction ended.
    Extracted(Box<Outcome>),
    /// Progress of a dream alongside the session.
    Dream(Box<DreamProgress>),
    /// The notification settings have changed.
    SignalsChanged(settings::Notifications),
    /// Hooks are running.
    HooksStarted {
        /// The hook event.
        hook_event: settings::hook_definitions::HookEvent,
        /// Status text to show meanwhile.
        status: Option<String>,
    },
    /// A hook has a message for the user.
    HookMessage {
        /// The hook event.
        hook_event: settings::hook_definitions::HookEvent,
        /// The message.
        text: String,
    },
    /// News of a subagent.
    Agent {
        /// The subagent.
        subagent: Arc<Subagent>,
        /// The news.
        news: SubagentNews,
    },
    /// A warning for the user; the session goes on.
    Warning(String),
}

/// A shared text that somebody else changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamChange {
    /// The text and the author of the change.
    pub title: String,
    /// Earlier text; empty if there was none.
    pub before: String,
    /// New text; empty if there is none.
    pub after: String,
}

/// A file that the user's message names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// Its name as the message has it.
    pub name: String,
    /// Its size in a few words, or the reason why it was not attached.
    pub outcome: Result<String, String>,
}

/// A memory that joined a request.
#[derive(Debug, Clone)]
pub struct RecalledMemory {
    /// Its path, relative to the memory directory; the full path if it is an agent's own.
    pub path: String,
    /// Its file.
    pub file: PathBuf,
    /// Its text as the model sees it.
    pub text: String,
}
