//! Messages, tool definitions, usage and replies: the vocabulary shared by the log, the providers and the tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::block::Block;
use crate::effort::Effort;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, and everything said on the user's side: tool results, attachments, summaries.
    User,
    /// The model.
    Assistant,
}

/// One message as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    #[serde(rename = "content")]
    pub blocks: Vec<Block>,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name it is called by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
}

/// No request has more tokens than this. Numbers come from files and servers that may say anything; below it they can be
/// added up.
pub const MOST_TOKENS: u64 = 1 << 40;

/// What a request cost, as the provider reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input after the last cache breakpoint.
    pub input_tokens: u64,
    /// Input read from the cache.
    pub cache_read_input_tokens: u64,
    /// Input written to the cache, for any time.
    pub cache_creation_input_tokens: u64,
    /// Of those, how many for how long, where the provider says so.
    pub cache_creation: CacheCreation,
    /// Output, thinking included.
    pub output_tokens: u64,
}

/// Cache writes by time to live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    /// For five minutes.
    pub ephemeral_5m_input_tokens: u64,
    /// For an hour.
    pub ephemeral_1h_input_tokens: u64,
}

impl Usage {
    /// Without numbers that nobody can have counted.
    #[must_use]
    pub fn bounded(self) -> Self {
        let bounded = |tokens: u64| tokens.min(MOST_TOKENS);
        Self {
            input_tokens: bounded(self.input_tokens),
            cache_read_input_tokens: bounded(self.cache_read_input_tokens),
            cache_creation_input_tokens: bounded(self.cache_creation_input_tokens),
            cache_creation: CacheCreation {
                ephemeral_5m_input_tokens: bounded(self.cache_creation.ephemeral_5m_input_tokens),
                ephemeral_1h_input_tokens: bounded(self.cache_creation.ephemeral_1h_input_tokens),
            },
            output_tokens: bounded(self.output_tokens),
        }
    }

    /// Everything the model read.
    pub fn context(&self) -> u64 {
        self.input_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens
    }

    /// Everything the next request will start from: what was read and what was answered.
    pub fn total(&self) -> u64 {
        self.context() + self.output_tokens
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        self.cache_creation.ephemeral_5m_input_tokens += other.cache_creation.ephemeral_5m_input_tokens;
        self.cache_creation.ephemeral_1h_input_tokens += other.cache_creation.ephemeral_1h_input_tokens;
    }
}

/// Whether and how the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Thinking {
    /// Up to a budget.
    Enabled {
        /// In tokens.
        budget_tokens: u64,
    },
    /// As much as the model sees fit.
    Adaptive,
    /// Not at all.
    Disabled,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Everything of a request that stands before its messages. A change of it is a declared break at position 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prologue {
    /// The model's name as the provider knows it.
    pub model: String,
    /// The most it may answer.
    pub max_tokens: u64,
    /// Rendered system blocks: the static ones first.
    pub system: Vec<Block>,
    /// How many of them are static, the same for every user.
    #[serde(default)]
    pub static_blocks: usize,
    /// How many of the last ones are this session's alone, so that no other will read what is cached behind them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub own_blocks: usize,
    /// Tools, in order.
    pub tools: Vec<ToolDefinition>,
    /// Thinking, where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// How hard it is asked to try, where it can be asked and somebody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Beta features by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub betas: Vec<String>,
    /// The JSON Schema the reply has to keep to, where it is no free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Value>,
    /// What the provider may leave out of what the model sees, as the provider wants it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_management: Option<Value>,
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said what it wanted to say.
    EndTurn,
    /// It wants tools to run.
    ToolUse,
    /// The output limit.
    MaxTokens,
    /// A stop sequence.
    StopSequence,
    /// The provider paused a long turn; sending the reply back continues it.
    PauseTurn,
    /// It declined to answer.
    Refusal,
    /// The window is full.
    ModelContextWindowExceeded,
    /// One that this version does not know.
    #[serde(untagged)]
    Other(String),
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The provider's id of the message.
    pub id: String,
    /// The model that answered.
    pub model: String,
    /// What it said.
    pub blocks: Vec<Block>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What it cost.
    pub usage: Usage,
    /// What the provider says beside it.
    pub remarks: Remarks,
}

/// What a provider says beside a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Tool results it left out of what the model saw.
    pub cleared_results: u64,
    /// Tokens it left out.
    pub cleared_tokens: u64,
    /// What summarising the conversation by itself used, beside the reply.
    pub compaction: Option<Usage>,
    /// Why its cache did not hold what the reply before had left there.
    pub cache_miss: Option<String>,
}
