//! Replies of a server, and the progress of calls.

use std::sync::Arc;

use transcript::block::{Block, Outcome};

/// Answer to a call, or content of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerReply {
    /// Its content, as blocks of a tool result. All of it is the server's text.
    pub blocks: Vec<Block>,
    /// Failed if the server says so.
    pub outcome: Outcome,
}

/// A prompt with its arguments filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptReply {
    /// Its description.
    pub description: Option<String>,
    /// Its content, messages of both roles in order.
    pub blocks: Vec<Block>,
}

/// Progress of a call, as the server reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// Amount done.
    pub done: f64,
    /// Amount in all.
    pub total: Option<f64>,
    /// Its words, cut.
    pub message: Option<String>,
}

/// Hears of progress.
pub type OnProgress = Arc<dyn Fn(CallProgress) + Send + Sync>;
