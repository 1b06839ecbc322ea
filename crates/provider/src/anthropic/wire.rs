//! The API's side of the vocabulary: events, deltas and counts as they come over the wire.
//!
//! Only what a reply is made of is named here. Everything else the server may say is passed over, except inside blocks,
//! which are kept whole.

use serde::Deserialize;
use serde_json::{Map, Value};
use transcript::{Remarks, StopReason, Usage};

use crate::refusal::Complaint;

/// An event as it comes over the wire. The kinds we have no use for, `ping` among them, are `Unknown`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum WireEvent {
    MessageStart {
        message: MessageHead,
    },
    ContentBlockStart {
        index: u64,
        content_block: Map<String, Value>,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: MessageEnd,
        usage: Option<Counts>,
        context_management: Option<Management>,
    },
    MessageStop,
    Error(Complaint),
    #[serde(other)]
    Unknown,
}

/// The names under which [`WireEvent`]'s known kinds travel.
pub(crate) const KNOWN: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

/// The beginning of a message: id, model and first counts.
#[derive(Debug, Deserialize)]
pub(crate) struct MessageHead {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) model: String,
    pub(crate) usage: Option<Counts>,
    pub(crate) diagnostics: Option<Diagnosis>,
}

/// Diagnosis of a cache miss, if it was asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct Diagnosis {
    cache_miss_reason: Option<CacheMiss>,
}

#[derive(Debug, Deserialize)]
struct CacheMiss {
    #[serde(rename = "type")]
    kind: String,
}

impl Diagnosis {
    /// The reason, if there is one.
    pub(crate) fn reason(self) -> Option<String> {
        self.cache_miss_reason.map(|miss| miss.kind)
    }
}

/// Context that the server cleared by itself.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Management {
    #[serde(default)]
    applied_edits: Vec<WireEdit>,
}

#[derive(Debug, Deserialize)]
struct WireEdit {
    #[serde(default)]
    cleared_tool_uses: u64,
    #[serde(default)]
    cleared_input_tokens: u64,
}

impl Management {
    /// Adds it to the remarks.
    pub(crate) fn tell(&self, remarks: &mut Remarks) {
        remarks.cleared_results += self.applied_edits.iter().map(|edit| edit.cleared_tool_uses).sum::<u64>();
        remarks.cleared_tokens += self.applied_edits.iter().map(|edit| edit.cleared_input_tokens).sum::<u64>();
    }
}

/// A piece of a block.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    #[serde(rename = "citations_delta")]
    Citation { citation: Value },
    #[serde(rename = "compaction_delta")]
    Compaction { content: Option<String> },
    #[serde(other)]
    Unknown,
}

/// The end of a message.
#[derive(Debug, Deserialize)]
pub(crate) struct MessageEnd {
    pub(crate) stop_reason: Option<StopReason>,
}

/// Usage as a server reports it: any of it may be missing.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Counts {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<transcript::message::CacheCreation>,
    output_tokens: Option<u64>,
    server_tool_use: Option<serde_json::Value>,
    iterations: Option<Vec<Iteration>>,
}

/// Usage of one of several steps to a reply.
#[derive(Debug, Deserialize)]
struct Iteration {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(flatten)]
    counts: Box<Counts>,
}

impl Counts {
    /// Usage of summarising the conversation, which the counts of the reply leave out.
    pub(crate) fn of_compaction(&self) -> Option<Usage> {
        let steps = self.iterations.iter().flatten().filter(|step| step.kind == "compaction");
        steps.map(|step| step.counts.usage()).reduce(|mut all, one| {
            all += one;
            all
        })
    }

    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.update(&mut usage);
        usage
    }

    /// Counts are cumulative: a reported number replaces the one before, a missing one leaves it.
    pub(crate) fn update(&self, usage: &mut Usage) {
        let update = |told: Option<u64>, known: &mut u64| *known = told.unwrap_or(*known);
        update(self.input_tokens, &mut usage.input_tokens);
        update(self.cache_read_input_tokens, &mut usage.cache_read_input_tokens);
        update(self.cache_creation_input_tokens, &mut usage.cache_creation_input_tokens);
        update(self.output_tokens, &mut usage.output_tokens);
        let searches = self.server_tool_use.as_ref().and_then(|used| used["web_search_requests"].as_u64());
        update(searches, &mut usage.web_searches);
        usage.cache_creation = self.cache_creation.unwrap_or(usage.cache_creation);
        *usage = usage.bounded();
    }
}

/// A whole reply in one JSON object, from servers that do not stream.
#[derive(Debug, Deserialize)]
pub(crate) struct WholeReply {
    #[serde(flatten)]
    pub(crate) head: MessageHead,
    pub(crate) content: Vec<Map<String, Value>>,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) context_management: Option<Management>,
}
