//! Values for what goes on beside the conversation: its budget, the rhythm of dreams, whose messages are heard.

/// What work in the background may spend on a day, and an agent that is sent out on its task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Dollars, all projects together.
    pub usd: f64,
    /// Tokens, all projects together; none bounds only what models without a price use.
    pub tokens: Option<u64>,
    /// Dollars for one project.
    pub project_usd: Option<f64>,
    /// Tokens for one project.
    pub project_tokens: Option<u64>,
    /// Tokens for one agent that is sent out, with those it sends out itself.
    pub agent_tokens: Option<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { usd: 2.0, tokens: None, project_usd: None, project_tokens: None, agent_tokens: None }
    }
}

/// When a dream is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// Whether dreams come by themselves.
    pub on: bool,
    /// Hours since the last one.
    pub hours: u64,
    /// Other sessions that were touched since.
    pub sessions: u64,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self { on: true, hours: 24, sessions: 5 }
    }
}

/// Whose messages from elsewhere are heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
pub enum Admission {
    /// Those of senders the user agrees to.
    #[default]
    #[serde(rename = "ask")]
    Asked,
    /// All, as the user's settings say.
    #[serde(rename = "allow")]
    All,
}
