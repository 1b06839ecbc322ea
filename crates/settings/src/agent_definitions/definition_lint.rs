//! Warnings about a definition that does not mean here what it seems to: missing tools, models that are no names, modes
//! of other programs. The agent still works, and `cairn agents check` shows the warnings. Nothing here changes or
//! refuses a definition.

use serde_json::{Map, Value};
use transcript::tool_names;

use super::agent_definition::{Definition, OfferedTools, is_model};
use super::tool_restriction::base;
use crate::Weight;

/// The key, the message and its weight.
pub(super) type DefinitionDoubt = (&'static str, String, Weight);

/// Tools made for each session, beside the standard ones.
const OF_SESSIONS: [&str; 8] = [
    tool_names::AGENT,
    tool_names::HISTORY,
    tool_names::NOTEBOOK_EDIT,
    tool_names::SEND_MESSAGE,
    tool_names::SKILL,
    tool_names::WEB_FETCH,
    tool_names::WEB_SEARCH,
    tool_names::TOOL_SEARCH,
];

/// The tools for plans, questions and tasks. A session that began without them continues without them.
pub const OF_PLANS: [&str; 7] = [
    tool_names::ASK_USER_QUESTION,
    tool_names::ENTER_PLAN_MODE,
    tool_names::EXIT_PLAN_MODE,
    tool_names::TASK_CREATE,
    tool_names::TASK_GET,
    tool_names::TASK_LIST,
    tool_names::TASK_UPDATE,
];

/// Tools of Claude Code that definitions name, with their equivalents here.
const ELSEWHERE: [(&str, &str); 6] = [
    ("AgentOutputTool", tool_names::TASK_OUTPUT),
    ("BashOutput", tool_names::TASK_OUTPUT),
    ("KillBash", tool_names::TASK_STOP),
    ("KillShell", tool_names::TASK_STOP),
    ("LS", tool_names::GLOB),
    ("MultiEdit", tool_names::EDIT),
];

/// Tools without an equivalent here.
const MISSING: &str = "Config CronCreate CronDelete CronList EnterWorktree ExitWorktree LSP ListMcpResourcesTool Monitor \
    NotebookRead PowerShell PushNotification ReadMcpResourceTool RemoteTrigger \
    SlashCommand StructuredOutput TeamCreate TeamDelete TodoRead TodoWrite WaitForMcpServers";

/// All warnings about a definition that could be read, by its keys as written.
pub(super) fn doubts(agent: &Definition, fields: &Map<String, Value>) -> Vec<DefinitionDoubt> {
    let offered: &[String] = match &agent.tools {
        OfferedTools::Only(names) => names,
        OfferedTools::All => &[],
    };
    let named = offered.iter().map(|name| ("tools", name)).chain(agent.without.iter().map(|name| (WITHOUT, name)));
    let tools = named.filter_map(|(key, name)| of_tool(key, name));
    model(fields).into_iter().chain(effort(fields)).chain(mode(fields)).chain(tools).collect()
}

const WITHOUT: &str = "disallowedTools";

fn of_tool(key: &'static str, name: &str) -> Option<DefinitionDoubt> {
    let tool = base(name);
    let standard = tools::standard();
    let known = || standard.iter().map(|tool| tool.name()).chain(OF_SESSIONS).chain(OF_PLANS);
    let (what, weight) = if known().any(|known| known == tool) {
        match (key, name.contains('(')) {
            (WITHOUT, true) => (format!("{key} can only remove whole tools, so {name} has no effect"), Weight::Warning),
            _ => return None,
        }
    } else if let Some((_, instead)) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == tool) {
        (format!("{key} names {tool}, which Cairn does not have; {instead} does the same"), Weight::Note)
    } else if MISSING.split(' ').any(|missing| missing == tool) {
        (format!("{key} names {tool}, which Cairn does not have yet"), Weight::Note)
    } else if tool.starts_with("mcp__") {
        return None; // a server's, which is known when it is connected
    } else {
        let meant = known().find(|known| known.eq_ignore_ascii_case(tool));
        let meant = meant.map(|known| format!("; did you mean {known}?")).unwrap_or_default();
        (format!("{key} names {tool:?}, but there is no such tool{meant}"), Weight::Warning)
    };
    Some((key, what, weight))
}

/// A model that is no name; the parent's is used.
fn model(fields: &Map<String, Value>) -> Option<DefinitionDoubt> {
    let text = match fields.get("model")? {
        Value::Null => return None,
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    let what = match text.as_str() {
        "" => "model is empty".to_owned(),
        text if is_model(text) => return None,
        text => format!("model {text} is not a name such as sonnet"),
    };
    Some(("model", format!("{what}; it uses the model of the agent that starts it"), Weight::Warning))
}

/// Effort as a number, which some programs write.
fn effort(fields: &Map<String, Value>) -> Option<DefinitionDoubt> {
    let number = fields.get("effort").filter(|value| value.is_number())?;
    let what = format!("effort {number} is ignored; it must be a word such as high");
    Some(("effort", what, Weight::Warning))
}

fn mode(fields: &Map<String, Value>) -> Option<DefinitionDoubt> {
    let mode =
        fields.get("permissionMode").and_then(Value::as_str).filter(|mode| ["dontAsk", "auto"].contains(mode))?;
    Some(("permissionMode", format!("there is no mode {mode}; it works in the mode default"), Weight::Warning))
}
