//! Strict checks: what the provider would refuse with 400, refused here in its words.
//!
//! A client that passes here should pass there. The checks share no type with our own client, or they could not prove
//! it wrong. Each file holds one group: [`fields`] the top level, [`content`] the blocks, [`system_messages`] system messages, [`pairing`] tool calls and
//! their results, [`thoughts`] the thinking that goes with them, [`tools`] the definitions, [`breakpoints`] the cache marks, [`mod@format`] structured output, and
//! [`editing`] context management and cache edits.
//!
//! What comes out is the body in its long form: string contents and a string system prompt have become lists of one text
//! block, so that no later code has to know the shorthand.

use serde_json::{Value, json};

use crate::ids::Ids;
use crate::refusal::Refusal;

/// Refuses a request where something is wrong with it: at which path, and in which words.
macro_rules! refuse_if {
    ($wrong:expr, $path:expr, $problem:expr) => {
        if $wrong {
            return Err($crate::check::invalid($path, $problem));
        }
    };
}

mod breakpoints;
mod content;
mod editing;
mod fields;
mod format;
mod pairing;
mod system_messages;
mod thoughts;
mod tools;

/// Input of the checks besides the body.
pub(crate) struct Context<'a> {
    /// Values of the `anthropic-beta` header.
    pub(crate) betas: &'a [String],
    /// True if the private `cache_edits` beta is on.
    pub(crate) cache_edits: bool,
    /// Knows the signatures of thinking blocks.
    pub(crate) ids: &'a Ids,
    /// The longest reply of the model.
    pub(crate) longest_reply: u64,
    /// True if the model takes system messages in the middle of the conversation.
    pub(crate) system_messages: bool,
    /// True if `max_tokens` may be missing, as when tokens are only counted.
    pub(crate) counting: bool,
}

impl Context<'_> {
    fn has_beta(&self, name: &str) -> bool {
        self.betas.iter().any(|beta| beta == name)
    }
}

type CheckedBody = Result<(), Refusal>;

/// Checks a body and brings it into its long form.
pub(crate) fn request(body: Value, context: &Context<'_>) -> Result<Value, Refusal> {
    refuse_if!(!body.is_object(), "", "Input should be a valid dictionary");
    refuse_threads(&body)?;
    fields::known(&body, context)?;
    let body = long_form(body)?;
    tools::definitions(&body)?;
    content::system(&body)?;
    content::messages(&body, context)?;
    system_messages::places(&body)?;
    pairing::calls_and_results(&body)?;
    thoughts::before_calls(&body, context)?;
    breakpoints::marks(&body)?;
    tools::choice(&body)?;
    fields::limits(&body, context)?;
    format::output(&body)?;
    editing::context_management(&body)?;
    editing::cache_edits(&body)?;
    Ok(body)
}

/// The model that a body names, or why it cannot be asked.
pub(crate) fn model_name(body: &Value) -> Result<&str, Refusal> {
    match &body["model"] {
        Value::Null => Err(invalid("model", "Field required")),
        Value::String(name) if name.is_empty() => Err(invalid("model", "String should have at least 1 character")),
        Value::String(name) => Ok(name),
        _ => Err(invalid("model", "Input should be a valid string")),
    }
}

/// State held by the server is not simulated. The details tell a client to send its whole history.
fn refuse_threads(body: &Value) -> CheckedBody {
    if body["thread"].is_null() {
        return Ok(());
    }
    let details = json!({"error_code": "thread_unsupported_request"});
    let message = "thread: Threads are not supported here. Send the full conversation without `thread`.";
    Err(Refusal { details: Some(details), ..Refusal::invalid(message) })
}

fn long_form(mut body: Value) -> Result<Value, Refusal> {
    if let Value::String(text) = &body["system"] {
        body["system"] = if text.is_empty() { json!([]) } else { json!([{"type": "text", "text": text}]) };
    }
    let Some(messages) = body["messages"].as_array_mut() else {
        return Err(invalid("messages", "Input should be a valid list"));
    };
    for message in messages {
        if let Some(Value::String(text)) = message.get("content") {
            message["content"] = json!([{"type": "text", "text": text}]);
        }
    }
    Ok(body)
}

/// A refusal that names the path first, as the provider does.
fn invalid(path: &str, problem: impl std::fmt::Display) -> Refusal {
    Refusal::invalid(if path.is_empty() { problem.to_string() } else { format!("{path}: {problem}") })
}

/// Refuses fields that are not in the list.
fn no_other_fields(path: &str, value: &Value, known: &[&str]) -> CheckedBody {
    let fields = value.as_object().into_iter().flatten();
    match fields.map(|(key, _)| key).find(|key| !known.contains(&key.as_str())) {
        Some(key) if path.is_empty() => Err(invalid(key, "Extra inputs are not permitted")),
        Some(key) => Err(invalid(&format!("{path}.{key}"), "Extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// A string field that must be there.
fn required_text<'a>(path: &str, value: &'a Value, key: &str) -> Result<&'a str, Refusal> {
    match &value[key] {
        Value::Null => Err(invalid(&format!("{path}.{key}"), "Field required")),
        Value::String(text) => Ok(text),
        _ => Err(invalid(&format!("{path}.{key}"), "Input should be a valid string")),
    }
}

fn is_name(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
