//! The top level: which fields there are, of which type, and how they limit one another.

use serde_json::Value;

use super::{CheckedBody, Context, invalid, model_name, no_other_fields};

/// The least thinking budget.
const LEAST_BUDGET: u64 = 1_024;

const CONTEXT_BETAS: &[&str] = &["context-management-2025-06-27", "compact-2026-01-12"];
const OUTPUT_FORMAT_BETA: &str = "structured-outputs-2025-11-13";

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Whole,
    Truth,
    List,
    Object,
    TextOrList,
    Any,
}

impl Kind {
    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Whole => value.is_u64() || value.is_i64(),
            Self::Truth => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::TextOrList => value.is_string() || value.is_array(),
            Self::Any => true,
        }
    }

    fn complaint(self) -> &'static str {
        match self {
            Self::Text => "Input should be a valid string",
            Self::Number => "Input should be a valid number",
            Self::Whole => "Input should be a valid integer",
            Self::Truth => "Input should be a valid boolean",
            Self::Object => "Input should be a valid dictionary",
            Self::List | Self::TextOrList | Self::Any => "Input should be a valid list",
        }
    }
}

const FIELDS: &[(&str, Kind)] = &[
    ("model", Kind::Text),
    ("max_tokens", Kind::Whole),
    ("messages", Kind::List),
    ("system", Kind::TextOrList),
    ("tools", Kind::List),
    ("tool_choice", Kind::Object),
    ("thinking", Kind::Object),
    ("temperature", Kind::Number),
    ("top_p", Kind::Number),
    ("top_k", Kind::Whole),
    ("stop_sequences", Kind::List),
    ("metadata", Kind::Object),
    ("service_tier", Kind::Text),
    ("stream", Kind::Truth),
    ("container", Kind::Any),
    ("mcp_servers", Kind::List),
    ("context_management", Kind::Object),
    ("output_config", Kind::Object),
    ("output_format", Kind::Object),
    ("cache_control", Kind::Object),
    ("speed", Kind::Text),
    ("inference_geo", Kind::Text),
    ("diagnostics", Kind::Object),
    ("fallbacks", Kind::Any),
    ("fallback_credit_token", Kind::Any),
];

/// Fields, their types, and those that must be there.
pub(super) fn known(body: &Value, context: &Context<'_>) -> CheckedBody {
    model_name(body)?;
    refuse_if!(body["max_tokens"].is_null() && !context.counting, "max_tokens", "Field required");
    refuse_if!(body["messages"].is_null(), "messages", "Field required");
    for (key, kind) in FIELDS {
        let value = &body[*key];
        refuse_if!(!value.is_null() && !kind.holds(value), key, kind.complaint());
    }
    let needs_beta = [
        ("context_management", CONTEXT_BETAS.iter().any(|beta| context.has_beta(beta))),
        ("output_format", context.has_beta(OUTPUT_FORMAT_BETA)),
    ];
    for (key, allowed) in needs_beta {
        refuse_if!(!body[key].is_null() && !allowed, key, "Extra inputs are not permitted");
    }
    no_other_fields("metadata", &body["metadata"], &["user_id"])?;
    if !matches!(body["metadata"]["user_id"], Value::Null | Value::String(_)) {
        return Err(invalid("metadata.user_id", "Input should be a valid string"));
    }
    let names: Vec<&str> = FIELDS.iter().map(|(key, _)| *key).collect();
    no_other_fields("", body, &names)
}

/// Checks the ranges of fields, and the limits they set to one another.
pub(super) fn limits(body: &Value, context: &Context<'_>) -> CheckedBody {
    between(body, "temperature")?;
    between(body, "top_p")?;
    let most = body["max_tokens"].as_i64().unwrap_or_default();
    refuse_if!(most < 0, "max_tokens", "Input should be greater than or equal to 0");
    if most.unsigned_abs() > context.longest_reply {
        let (longest, model) = (context.longest_reply, body["model"].as_str().unwrap_or_default());
        let problem = format!("{most} > {longest}, which is the maximum allowed number of output tokens for {model}");
        return Err(invalid("max_tokens", problem));
    }
    if let Some(effort) = body["output_config"]["effort"].as_str()
        && !["low", "medium", "high", "xhigh", "max"].contains(&effort)
    {
        let problem = "Input should be 'low', 'medium', 'high', 'xhigh' or 'max'";
        return Err(invalid("output_config.effort", problem));
    }
    thinking(body, context)
}

fn between(body: &Value, key: &str) -> CheckedBody {
    match body[key].as_f64() {
        Some(value) if !(0.0..=1.0).contains(&value) => Err(invalid(key, "range: 0..1")),
        _ => Ok(()),
    }
}

fn thinking(body: &Value, context: &Context<'_>) -> CheckedBody {
    let thinking = &body["thinking"];
    let kind = match (thinking, thinking["type"].as_str()) {
        (Value::Null, _) | (_, Some("disabled")) => return Ok(()),
        (_, Some(kind @ ("enabled" | "adaptive" | "between_tools"))) => kind,
        (_, Some(other)) => {
            let problem = format!(
                "Input tag '{other}' found using 'type' does not match any of the expected tags: 'adaptive', \
                 'between_tools', 'disabled', 'enabled'"
            );
            return Err(invalid("thinking", problem));
        }
        (_, None) => return Err(invalid("thinking.type", "Field required")),
    };
    if kind == "enabled" {
        let path = "thinking.enabled.budget_tokens";
        let budget = match &thinking["budget_tokens"] {
            Value::Null => return Err(invalid(path, "Field required")),
            budget => budget.as_u64().ok_or_else(|| invalid(path, "Input should be a valid integer"))?,
        };
        refuse_if!(budget < LEAST_BUDGET, path, format!("Input should be greater than or equal to {LEAST_BUDGET}"));
        if !context.counting && budget >= body["max_tokens"].as_u64().unwrap_or_default() {
            let docs = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size";
            let problem = "`max_tokens` must be greater than `thinking.budget_tokens`.";
            return Err(invalid("", format!("{problem} Please consult our documentation at {docs}")));
        }
    }
    if matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
        return Err(invalid("", "Thinking may not be enabled when tool_choice forces tool use."));
    }
    if body["temperature"].as_f64().is_some_and(|value| value < 1.0) {
        return Err(invalid("", "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode."));
    }
    Ok(())
}
