//! Messages, tool definitions, usage and replies: the vocabulary shared by the log, the providers and the tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::block::Block;
use crate::effort::Effort;

/// Role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, and everything else on the user's side: tool results, attachments, summaries.
    User,
    /// The model.
    Assistant,
}

/// One message as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Role of the speaker.
    pub role: Role,
    /// Content of the message.
    #[serde(rename = "content")]
    pub blocks: Vec<Block>,
}

/// A tool as it is described to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name it is called by.
    pub name: String,
    /// Description for the model: purpose and when to use it.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
}

/// Upper limit on the tokens of a request. Numbers come from files and servers that may say anything; up to this limit
/// they can be summed.
pub const MOST_TOKENS: u64 = 1 << 40;

/// Usage of a request, as the provider reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input after the last cache breakpoint.
    pub input_tokens: u64,
    /// Input read from the cache.
    pub cache_read_input_tokens: u64,
    /// Input written to the cache, for any lifetime.
    pub cache_creation_input_tokens: u64,
    /// The same by lifetime, if the provider says so.
    pub cache_creation: CacheCreation,
    /// Output, thinking included.
    pub output_tokens: u64,
    /// Searches of the web that the provider made.
    #[serde(skip_serializing_if = "is_none")]
    pub web_searches: u64,
}

/// Cache writes by lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    /// For five minutes.
    pub ephemeral_5m_input_tokens: u64,
    /// For an hour.
    pub ephemeral_1h_input_tokens: u64,
}

impl Usage {
    /// With every figure cut to [`MOST_TOKENS`].
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
            web_searches: bounded(self.web_searches),
        }
    }

    /// Everything the model read.
    pub fn context(&self) -> u64 {
        self.input_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens
    }

    /// Everything the next request starts from: input and output.
    pub fn total(&self) -> u64 {
        self.context() + self.output_tokens
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.web_searches += other.web_searches;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        self.cache_creation.ephemeral_5m_input_tokens += other.cache_creation.ephemeral_5m_input_tokens;
        self.cache_creation.ephemeral_1h_input_tokens += other.cache_creation.ephemeral_1h_input_tokens;
    }
}

/// Thinking mode of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Thinking {
    /// Up to a budget.
    Enabled {
        /// The budget in tokens.
        budget_tokens: u64,
    },
    /// As much as the model decides.
    Adaptive,
    /// Not at all.
    Disabled,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The provider's own search of the web, as a request offers it to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSearchOffer {
    /// Limit on searches in the request.
    pub max_uses: u32,
}

/// Everything of a request before its messages. Changing it is a declared cache break at position 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prologue {
    /// The model's name at the provider.
    pub model: String,
    /// Limit on output tokens.
    pub max_tokens: u64,
    /// Rendered system blocks, static ones first.
    pub system: Vec<Block>,
    /// Number of static blocks, which are the same for every user.
    #[serde(default)]
    pub static_blocks: usize,
    /// Number of blocks at the end that only this session has; no other session reads what is cached after them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub own_blocks: usize,
    /// Tools, in order.
    pub tools: Vec<ToolDefinition>,
    /// Tools that were loaded later, in order. They are no part of the cached prefix: each counts from the result that refers
    /// to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loaded: Vec<ToolDefinition>,
    /// The provider's own search, if it is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearchOffer>,
    /// Thinking mode, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Effort, if it is set and the model supports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Beta features by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub betas: Vec<String>,
    /// JSON Schema of the reply, unless it is free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Value>,
    /// Provider's own context management, in the provider's format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_management: Option<Value>,
}

impl Prologue {
    /// True if requests with these two begin with the same bytes, as far as the provider's cache is concerned.
    pub fn is_same_prefix(&self, other: &Self) -> bool {
        let Self { model, max_tokens, system, static_blocks, own_blocks, tools, loaded: _, .. } = self;
        let Self { web_search, thinking, effort, betas, format, context_management, .. } = self;
        (model, max_tokens, system, static_blocks, own_blocks, tools)
            == (&other.model, &other.max_tokens, &other.system, &other.static_blocks, &other.own_blocks, &other.tools)
            && web_search == &other.web_search
            && (thinking, effort, betas, format, context_management)
                == (&other.thinking, &other.effort, &other.betas, &other.format, &other.context_management)
    }
}

/// Reason the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Its answer is complete.
    EndTurn,
    /// It calls tools.
    ToolUse,
    /// It reached the output limit.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// The provider paused a long turn; sending the reply back continues it.
    PauseTurn,
    /// It declined to answer.
    Refusal,
    /// The window is full.
    ModelContextWindowExceeded,
    /// A reason this version does not know.
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
    /// Content of the reply.
    pub blocks: Vec<Block>,
    /// Reason it stopped.
    pub stop: StopReason,
    /// Usage of the request.
    pub usage: Usage,
    /// The provider's remarks.
    pub remarks: Remarks,
}

/// A provider's remarks on a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Number of tool results left out of the model's input.
    pub cleared_results: u64,
    /// Number of tokens left out.
    pub cleared_tokens: u64,
    /// Usage of the provider's own summary of the conversation, which is not part of the reply's.
    pub compaction: Option<Usage>,
    /// Reason the cache entry of the previous reply was not found.
    pub cache_miss: Option<String>,
}
