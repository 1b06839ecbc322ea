//! Settings of background work: its budget, the rhythm of dreams, and messages from other sessions.

/// The most that background work may spend a day, and a subagent on its task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Dollars, all projects together.
    pub usd: f64,
    /// Tokens, all projects together; with none, only models without a price are limited.
    pub tokens: Option<u64>,
    /// Dollars for one project.
    pub project_usd: Option<f64>,
    /// Tokens for one project.
    pub project_tokens: Option<u64>,
    /// Tokens for one subagent, together with the agents it starts.
    pub agent_tokens: Option<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { usd: 2.0, tokens: None, project_usd: None, project_tokens: None, agent_tokens: None }
    }
}

/// The conditions under which a dream is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// True if dreams start automatically.
    pub on: bool,
    /// Hours since the last one.
    pub hours: u64,
    /// Other sessions used since.
    pub sessions: u64,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self { on: true, hours: 24, sessions: 5 }
    }
}

/// Admission of messages from other sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
pub enum Admission {
    /// Only from senders that the user agrees to.
    #[default]
    #[serde(rename = "ask")]
    AskFirst,
    /// All.
    #[serde(rename = "allow")]
    All,
}
