//! What can be seen of a session while it runs. Hooks have a say at some of the same points ([`crate::gate`]).

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

/// Where events go.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

/// What happened to an agent that was sent out.
#[derive(Debug, Clone)]
pub enum SubagentNews {
    /// It is out.
    Started,
    /// It did, or heard, something itself.
    Does(Box<Event>),
    /// Its parent does not wait for it any longer.
    Backgrounded,
    /// It waits for an answer to a question, in the background.
    Asks,
    /// There are new words for what it does.
    Labelled,
    /// It has ended.
    Ended,
}

/// What happened to a teammate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MateNews {
    /// Its process runs.
    Started,
    /// There are new words for what it does.
    Labelled(String),
    /// It has nothing to do any more, and stays.
    Rests(IdleReason),
    /// Its process has ended.
    Ended(JobState),
}

/// Something happened.
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
        /// How much may happen without asking.
        mode: Mode,
    },
    /// The user's words are in the log.
    PromptSubmitted {
        /// The line.
        line: Option<Id>,
        /// Its text.
        text: String,
    },
    /// A message from somebody else is in the log.
    MessageArrived {
        /// Who sent it, as they call themselves.
        from: String,
        /// What it says, in words.
        text: String,
    },
    /// A teammate waits with a question until somebody looks.
    TeammateAsks {
        /// Its name.
        name: String,
        /// The tool it wants to use.
        tool: String,
    },
    /// Something happened to a teammate.
    Teammate {
        /// Its name.
        name: String,
        /// Its session.
        session: String,
        /// What.
        news: MateNews,
        /// What its session has used so far.
        used: SessionUse,
    },
    /// Another model is talked to from now on, or its window is another.
    ModelChanged {
        /// Its name.
        model: String,
        /// Its window.
        window: Window,
    },
    /// A request goes out.
    RequestSent {
        /// Which of this turn, from 1.
        round: u32,
        /// The estimate of its tokens.
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
        /// How many have failed.
        attempt: u32,
        /// How long until the next.
        after: Duration,
        /// What failed.
        why: String,
    },
    /// The reply broke off and begins anew: what was shown of it is void.
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
        /// What it was called with.
        input: Value,
    },
    /// A call was not allowed.
    ToolDenied {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
        /// What it was called with.
        input: Value,
        /// Why, as the model was told.
        why: String,
    },
    /// A tool has ended, and its result is in the log.
    ToolEnded {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
        /// What it gave.
        output: Output,
    },
    /// Oversized results went to disk.
    Spilled {
        /// How many.
        results: usize,
        /// Tokens that stay out of the view, by estimate.
        freed: u64,
    },
    /// The oldest messages were dropped.
    Snipped {
        /// How many are out of view by now.
        messages: usize,
        /// Tokens that left the view, by estimate.
        freed: u64,
    },
    /// A span gave way to its summary.
    Collapsed {
        /// How many messages are behind it.
        messages: usize,
        /// Tokens that left the view, by estimate.
        freed: u64,
    },
    /// Old results were cleared.
    Cleared {
        /// How many.
        results: usize,
        /// Tokens that left the view, by estimate.
        freed: u64,
        /// Why it was worth it.
        why: String,
    },
    /// A result was needed after it had been cleared.
    Regretted {
        /// How many so far, what that cost, and what clearing saved; without dollars where the model's price is not known.
        figures: ClearingFigures,
    },
    /// A compaction begins. It may take a while.
    Compacting {
        /// The conversation's tokens.
        tokens: u64,
    },
    /// What was said gave way to what matters of it.
    Compacted {
        /// What history is made of now.
        made: HistorySource,
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
    },
    /// A compaction came to nothing, or not to enough.
    CompactionFailed {
        /// Why.
        why: String,
    },
    /// Notes were brought up to date, or should have been.
    NotesUpdated {
        /// The file.
        path: PathBuf,
        /// What it used.
        usage: Usage,
        /// Whether the section was left alone that has to be rewritten.
        left_current_state: bool,
        /// Why it came to nothing.
        failed: Option<String>,
    },
    /// The provider's cache did not hold.
    CacheBroke(CacheBreak),
    /// The turn is over.
    TurnEnded {
        /// What all its requests used.
        usage: Usage,
    },
    /// Memories joined the next request.
    Recalled {
        /// Which.
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
    /// Memory that is shared with others came or went.
    TeamMemory {
        /// What happened, a sentence each.
        told: Vec<String>,
        /// The texts that others changed here.
        changed: Vec<TeamChange>,
    },
    /// What was learnt from the conversation was written down, or should have been.
    Extracted(Box<Outcome>),
    /// A dream goes on beside the session.
    Dream(Box<DreamProgress>),
    /// The session is to show itself otherwise.
    SignalsChanged(settings::Notifications),
    /// Hooks run.
    HooksStarted {
        /// When.
        moment: settings::hooks::HookEvent,
        /// What is shown meanwhile.
        status: Option<String>,
    },
    /// A hook tells the user something.
    HookSaid {
        /// When.
        moment: settings::hooks::HookEvent,
        /// What.
        text: String,
    },
    /// Something happened to an agent that was sent out.
    Agent {
        /// The agent.
        subagent: Arc<Subagent>,
        /// What.
        news: SubagentNews,
    },
    /// Something the user should know, that stops nothing.
    Warning(String),
}

/// A shared text that somebody else changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamChange {
    /// Which, and who.
    pub title: String,
    /// The text before; empty where there was none.
    pub before: String,
    /// The text now; empty where there is none.
    pub after: String,
}

/// A memory that joined a request.
#[derive(Debug, Clone)]
pub struct RecalledMemory {
    /// Its path, relative to the memory directory; an agent's own by its whole path.
    pub path: String,
    /// Its file.
    pub file: PathBuf,
    /// What the model sees of it.
    pub text: String,
}
