//! From a chosen rule to a reply: templates, the token budget, stop reasons, ids and signatures.
//!
//! The reply is honest about its limits. Text beyond `max_tokens` or the window is cut and the stop reason says so; a
//! stop sequence stops it. A script that asks for what no model could do, calling a tool that was not offered or
//! answering a schema with something else, is an error that names the rule.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value, json};

use super::ScriptRule;
use super::choose::RuleChoice;
use crate::Error;
use crate::cached_prompt::items;
use crate::count::Counter;
use crate::ids::Ids;
use crate::refusal::Refusal;
use crate::schema;
use crate::when::Names;

/// Text that fills up to `say_bytes`.
const FILLER: &str = "Stone upon stone, the path is marked for those who come after. ";

/// A reply is never longer than this.
const MOST_SAID_BYTES: usize = 64 * 1024 * 1024;
/// Steps that a template may take, so that a loop in it ends.
const TEMPLATE_STEPS: u64 = 1_000_000;

/// Everything about a reply except how it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) content: Vec<Value>,
    pub(crate) stop_reason: String,
    pub(crate) stop_sequence: Option<String>,
    pub(crate) output_tokens: u64,
    /// Tokens read and written after the provider's own summary of the conversation, if there is one.
    pub(crate) after_summary: Option<(u64, u64)>,
}

impl Reply {
    /// Makes what was said the summary that the provider pauses with; gives it.
    pub(crate) fn compact(&mut self) -> String {
        let said: Vec<&str> = self.content.iter().filter_map(|block| block["text"].as_str()).collect();
        let summary = said.join("\n");
        self.content = vec![json!({"type": "compaction", "content": summary})];
        (self.stop_reason, self.after_summary) = ("compaction".to_owned(), Some((0, 0)));
        summary
    }

    /// Goes on behind its summary with what was said to it, in a prompt of so many tokens.
    pub(crate) fn go_on(&mut self, next: Reply, tokens: u64) {
        self.content.extend(next.content);
        (self.stop_reason, self.stop_sequence) = (next.stop_reason, next.stop_sequence);
        self.after_summary = Some((tokens, next.output_tokens));
    }
}

/// Input of a reply besides the rule.
pub(crate) struct Frame<'a> {
    pub(crate) body: &'a Value,
    pub(crate) ids: &'a Ids,
    pub(crate) counter: Counter,
    /// Tokens that the window leaves after the prompt.
    pub(crate) room: u64,
    pub(crate) default_thinking: Option<&'a str>,
}

/// The templates of a rule.
fn templates(rule: &ScriptRule) -> Vec<&str> {
    let mut texts: Vec<&str> = rule.think.iter().chain(&rule.say).map(String::as_str).collect();
    rule.json.iter().for_each(|value| strings_in(value, &mut texts));
    rule.call.iter().for_each(|call| strings_in(&call.input, &mut texts));
    for search in &rule.search {
        texts.push(&search.query);
        strings_in(&search.results, &mut texts);
    }
    texts
}

/// True if a template of a rule mentions a word.
pub(crate) fn mentions(rule: &ScriptRule, word: &str) -> bool {
    templates(rule).iter().any(|text| text.contains(word))
}

/// All that an expression matches in a text, each once, in order: what a model that writes things down has seen.
fn matches(text: &str, expression: &str) -> Result<Vec<String>, minijinja::Error> {
    let wrong =
        |problem: regex::Error| minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, problem.to_string());
    let mut found: Vec<String> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for one in regex::Regex::new(expression).map_err(wrong)?.find_iter(text) {
        if known.insert(one.as_str()) {
            found.push(one.as_str().to_owned());
        }
    }
    Ok(found)
}

/// Refuses templates that cannot be parsed, before any request.
pub(crate) fn check_templates(environment: &Environment<'_>, rule: &ScriptRule) -> Result<(), Error> {
    let wrong = |problem: minijinja::Error| Error::Rule { rule: rule.name.clone(), problem: problem.to_string() };
    for text in templates(rule) {
        environment.template_from_str(text).map_err(wrong)?;
    }
    Ok(())
}

fn strings_in<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings_in(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings_in(field, found)),
        _ => {}
    }
}

/// The reply when no rule applies.
pub(crate) fn fallback(frame: &Frame<'_>, rules: &str) -> Result<Reply, Refusal> {
    let say = format!("I have nothing to add here. No rule of the script applies; considered: {rules}.");
    let rule = ScriptRule { name: "no rule applies".into(), say: Some(escape(&say)), ..ScriptRule::default() };
    render(frame, &RuleChoice { rule, names: Names::new() })
}

fn escape(text: &str) -> String {
    text.replace('{', "(").replace('}', ")")
}

/// Makes the reply.
pub(crate) fn render(frame: &Frame<'_>, choice: &RuleChoice) -> Result<Reply, Refusal> {
    let rule = &choice.rule;
    let template = Template::new(rule, &choice.names);
    let mut content = Vec::new();

    if let Some(text) = rule.think.as_deref().or(frame.default_thinking)
        && is_thinking_enabled(frame.body)
    {
        let text = template.text(text)?;
        let shown = if frame.body["thinking"]["display"] == "omitted" { String::new() } else { text };
        let signature = frame.ids.signature(&shown);
        content.push(json!({"type": "thinking", "thinking": shown, "signature": signature}));
    }
    for (index, search) in rule.search.iter().enumerate() {
        offers_search(frame, rule, index)?;
        content.extend(searched(frame, index, &template.text(&search.query)?, template.value(&search.results)?));
    }
    if let Some(text) = spoken(frame, rule, &template)?
        && !text.is_empty()
    {
        content.push(json!({"type": "text", "text": text}));
    }
    for (index, call) in rule.call.iter().enumerate() {
        let tool = offered(frame, rule, &call.tool)?;
        let input = typed(template.value(&call.input)?, &tool["input_schema"]["properties"]);
        let id = frame.ids.tool_use(index, content.iter().any(|block| block["type"] == "thinking"));
        content.push(json!({"type": "tool_use", "id": id, "name": call.tool, "input": input}));
    }
    obeys_choice(frame, rule)?;
    Ok(limited(frame, rule, content))
}

/// A search is the provider's own tool, used no more often than the request lets it.
fn offers_search(frame: &Frame<'_>, rule: &ScriptRule, index: usize) -> Result<(), Refusal> {
    let is_search = |tool: &&Value| tool["type"].as_str().is_some_and(|kind| kind.starts_with("web_search_"));
    let Some(tool) = items(&frame.body["tools"]).find(is_search) else {
        return Err(Refusal::script(&rule.name, "searches, which the request does not offer"));
    };
    match tool["max_uses"].as_u64() {
        Some(most) if index as u64 >= most => Err(Refusal::script(&rule.name, "searches more often than max_uses")),
        _ => Ok(()),
    }
}

/// A search and its answer, as the provider puts them into the reply.
fn searched(frame: &Frame<'_>, index: usize, query: &str, results: Value) -> [Value; 2] {
    let id = frame.ids.tool_use(index, false).replacen("toolu", "srvtoolu", 1);
    let page = |page: Value| json!({"type": "web_search_result", "url": page["url"], "title": page["title"], "encrypted_content": "c2VhcmNo", "page_age": null});
    let answer = match results {
        Value::Array(pages) => pages.into_iter().map(page).collect(),
        code => json!({"type": "web_search_tool_result_error", "error_code": code}),
    };
    [
        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": query}}),
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": answer}),
    ]
}

/// A model that is made to call, or to call only once, does.
fn obeys_choice(frame: &Frame<'_>, rule: &ScriptRule) -> Result<(), Refusal> {
    let choice = &frame.body["tool_choice"];
    let calls = |name: &Value| rule.call.iter().any(|call| *name == *call.tool);
    let problem = match choice["type"].as_str() {
        Some("any") if rule.call.is_empty() => "calls nothing although tool_choice is any",
        Some("tool") if !calls(&choice["name"]) => "does not call the tool that tool_choice names",
        Some(_) if choice["disable_parallel_tool_use"] == true && rule.call.len() > 1 => {
            "makes several calls although tool_choice disables parallel use"
        }
        _ => return Ok(()),
    };
    Err(Refusal::script(&rule.name, problem))
}

/// True if the request lets the model think.
fn is_thinking_enabled(body: &Value) -> bool {
    matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive" | "between_tools"))
}

/// The schema a structured-output request asks for.
pub(crate) fn requested_schema(body: &Value) -> Option<&Value> {
    [&body["output_config"]["format"], &body["output_format"]]
        .into_iter()
        .find(|format| format["type"] == "json_schema")
        .map(|format| &format["schema"])
}

fn spoken(frame: &Frame<'_>, rule: &ScriptRule, template: &Template<'_>) -> Result<Option<String>, Refusal> {
    let mut text = match (&rule.json, &rule.say) {
        (Some(Value::String(text)), _) => Some(template.text(text)?),
        (Some(value), _) => Some(template.value(value)?.to_string()),
        (None, Some(text)) => Some(template.text(text)?),
        (None, None) => None,
    };
    if let Some(schema) = requested_schema(frame.body)
        && rule.call.is_empty()
        && rule.stop.is_none()
    {
        let text = text.as_deref().unwrap_or_default();
        let value: Value = serde_json::from_str(text)
            .map_err(|_| Refusal::script(&rule.name, "the request asks for JSON and the rule says something else"))?;
        if let Some(problem) = schema::violation(schema, &value) {
            return Err(Refusal::script(&rule.name, format!("the reply violates the requested schema: {problem}")));
        }
    }
    if let Some(bytes) = rule.say_bytes {
        let bytes = bytes.min(MOST_SAID_BYTES);
        let said = text.get_or_insert_default();
        let missing = bytes.saturating_sub(said.len());
        said.push_str(&FILLER.repeat(missing.div_ceil(FILLER.len()))[..missing]);
    }
    Ok(text)
}

fn offered<'a>(frame: &Frame<'a>, rule: &ScriptRule, name: &str) -> Result<&'a Value, Refusal> {
    if frame.body["tool_choice"]["type"] == "none" {
        return Err(Refusal::script(&rule.name, format!("calls `{name}` although tool_choice is none")));
    }
    items(&frame.body["tools"])
        .find(|tool| tool["name"] == name)
        .ok_or_else(|| Refusal::script(&rule.name, format!("calls `{name}`, which the request does not offer")))
}

/// A template gives a string; where the tool's schema wants a number or a truth value, it becomes one.
fn typed(input: Value, properties: &Value) -> Value {
    let Value::Object(fields) = input else {
        return input;
    };
    let convert = |key: &str, value: Value| match (&value, properties[key]["type"].as_str()) {
        (Value::String(text), Some("integer" | "number" | "boolean" | "array" | "object")) => {
            serde_json::from_str(text).unwrap_or(value)
        }
        _ => value,
    };
    Value::Object(fields.into_iter().map(|(key, value)| (key.clone(), convert(&key, value))).collect())
}

/// Stops the content where a stop sequence, `max_tokens` or the window ends it.
fn limited(frame: &Frame<'_>, rule: &ScriptRule, content: Vec<Value>) -> Reply {
    let asked = frame.body["max_tokens"].as_u64().unwrap_or_default();
    let budget = asked.min(frame.room);
    let out_of_budget = if frame.room < asked { "model_context_window_exceeded" } else { "max_tokens" };
    let calls = content.iter().any(|block| block["type"] == "tool_use");
    let mut stop = (if calls { "tool_use" } else { "end_turn" }).to_owned();
    let mut stop_sequence = None;
    let mut kept = Vec::new();
    let mut tokens = 0;
    for mut block in content {
        if let Some((end, sequence)) = stopped_at(&block, frame.body) {
            shorten(&mut block, end);
            stop_sequence = Some(sequence);
        }
        let left = budget.saturating_sub(tokens);
        let cost = frame.counter.block(&block, false);
        if cost > left && rule.output_tokens.is_none() {
            stop = out_of_budget.to_owned();
            stop_sequence = None;
            if block["type"] == "text" && left > 0 {
                shorten_to(&mut block, left, frame.counter);
                kept.push(block);
            }
            tokens = budget;
            break;
        }
        tokens += cost;
        if block["text"] != "" {
            kept.push(block);
        }
        if stop_sequence.is_some() {
            stop = "stop_sequence".to_owned();
            break;
        }
    }
    if asked == 0 {
        // Warming the cache: no reply at all.
        kept.clear();
        (stop, tokens) = ("max_tokens".to_owned(), 0);
    }
    Reply {
        id: frame.ids.message(),
        model: frame.body["model"].as_str().unwrap_or_default().to_owned(),
        content: kept,
        stop_reason: rule.stop.clone().unwrap_or(stop),
        stop_sequence,
        output_tokens: rule.output_tokens.unwrap_or(tokens.max(u64::from(asked > 0))),
        after_summary: None,
    }
}

fn stopped_at(block: &Value, body: &Value) -> Option<(usize, String)> {
    let text = block["text"].as_str()?;
    items(&body["stop_sequences"])
        .filter_map(Value::as_str)
        .filter_map(|sequence| text.find(sequence).map(|at| (at, sequence.to_owned())))
        .min()
}

fn shorten(block: &mut Value, end: usize) {
    if let Value::String(text) = &mut block["text"] {
        text.truncate(end);
    }
}

/// Cuts a text to at most `tokens`, by halving the doubt.
fn shorten_to(block: &mut Value, tokens: u64, counter: Counter) {
    let Value::String(text) = &mut block["text"] else {
        return;
    };
    let (mut fits, mut too_long) = (0, text.len());
    while too_long - fits > 1 {
        let middle = text.floor_char_boundary(usize::midpoint(fits, too_long));
        if middle <= fits {
            break;
        }
        if counter.text(&text[..middle]) <= tokens { fits = middle } else { too_long = middle }
    }
    text.truncate(fits);
}

/// Renders the strings of one rule.
struct Template<'a> {
    environment: Environment<'static>,
    rule: &'a str,
    names: &'a Names,
}

impl<'a> Template<'a> {
    fn new(rule: &'a ScriptRule, names: &'a Names) -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(TEMPLATE_STEPS));
        environment.add_filter("matches", matches);
        let mut syntax = SyntaxConfig::builder();
        syntax.keep_trailing_newline(true);
        // Only custom delimiters can be wrong, and these are the usual ones.
        if let Ok(syntax) = syntax.build() {
            environment.set_syntax(syntax);
        }
        Self { environment, rule: &rule.name, names }
    }

    fn text(&self, text: &str) -> Result<String, Refusal> {
        if !text.contains('{') {
            return Ok(text.to_owned());
        }
        self.environment.render_str(text, self.names).map_err(|problem| Refusal::script(self.rule, problem))
    }

    fn value(&self, value: &Value) -> Result<Value, Refusal> {
        Ok(match value {
            Value::String(text) => Value::String(self.text(text)?),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?),
            Value::Object(fields) => {
                let mut rendered = Map::new();
                for (key, field) in fields {
                    rendered.insert(key.clone(), self.value(field)?);
                }
                Value::Object(rendered)
            }
            other => other.clone(),
        })
    }
}
