//! Hooks that call a tool of an MCP server.
//!
//! The server is one of the session's: no hook starts one, logs in to one or answers its questions. Parts of the event's
//! input stand in the arguments where the hook says `${path}`; what they put in is not searched again. The server's text is
//! judged as what a command prints, and that of a server which the project's files define is the project's, whoever's hook it
//! is.

use std::time::Duration;

use mcp::{ServerState, ToolInteraction};
use serde_json::{Map, Value};
use settings::hook_definitions::{Hook, HookAuthor};
use settings::servers::ServerAuthor;
use transcript::block::Outcome;

use super::hook_output::HookOutput;
use crate::servers::SessionServers;

/// The longest wait for a server that is being connected.
const CONNECTING: Duration = Duration::from_secs(30);
/// The longest wait for a server whose turn to be connected has not come. One that is switched off looks the same.
const TO_BEGIN: Duration = Duration::from_secs(1);
/// Most characters of a server's words about a failure.
const WORDS: usize = 500;

/// A call that a hook makes.
pub(super) struct ServerCall<'a> {
    pub(super) hook: &'a Hook,
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    /// Input of the event.
    pub(super) event: &'a Value,
}

impl ServerCall<'_> {
    /// Makes it.
    pub(super) async fn run(&self, servers: Option<&SessionServers>) -> HookOutput {
        self.answer(servers).await.unwrap_or_else(HookOutput::failed)
    }

    async fn answer(&self, servers: Option<&SessionServers>) -> Result<HookOutput, String> {
        let name = self.server;
        let servers = servers.ok_or("servers are connected in sessions alone")?;
        let server = servers.find(name).ok_or_else(|| format!("there is no server {name}"))?;
        let Some(connection) = server.connection() else { return Err(format!("the server {name} may not be started")) };
        servers.settled(TO_BEGIN, |one| one.name == name).await;
        if connection.status().state == ServerState::Connecting {
            servers.settled(CONNECTING, |one| one.name == name).await;
        }
        let status = connection.status();
        match &status.state {
            ServerState::Ready => {}
            ServerState::NeedsLogin => return Err(format!("the server {name} wants a login: cairn mcp login {name}")),
            ServerState::Failed(why) => return Err(format!("the server {name} failed: {}", cut(why))),
            ServerState::Connecting | ServerState::Off => return Err(format!("the server {name} is not connected")),
        }
        let offer = status.tools.iter().find(|offer| offer.name == self.tool);
        let Some(offer) = offer else { return Err(format!("the server {name} has no tool {}", self.tool)) };
        if offer.interaction == ToolInteraction::EachTime {
            return Err(format!("{} of {name} wants your consent each time, so no hook calls it", self.tool));
        }
        let reply = connection.call(&offer.name, self.filled(), None).await.map_err(|error| error.to_string())?;
        let texts: Vec<String> = reply.blocks.iter().filter_map(|block| block.as_text()).collect();
        let text = texts.join("\n");
        if reply.outcome != Outcome::Done {
            return Err(format!("{} of {name} failed: {}", self.tool, cut(&text)));
        }
        let is_projects = server.defined.as_ref().is_some_and(|defined| defined.author == ServerAuthor::Project);
        let author = is_projects.then_some(HookAuthor::Project);
        Ok(HookOutput { author, ..HookOutput::of_text(self.hook.hook_event, &text) })
    }

    fn filled(&self) -> Map<String, Value> {
        self.arguments.iter().map(|(name, value)| (name.clone(), self.value(value))).collect()
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(values) => values.iter().map(|value| self.value(value)).collect(),
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), self.value(value))).collect(),
            other => other.clone(),
        }
    }

    /// A text with the parts of the event that it names; one that is not there is empty.
    fn text(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            match after.split_once('}').filter(|(path, _)| is_path(path)) {
                Some((path, after)) => {
                    out.push_str(&self.part(path));
                    rest = after;
                }
                None => {
                    out.push_str("${");
                    rest = after;
                }
            }
        }
        out + rest
    }

    fn part(&self, path: &str) -> String {
        if let Some(folder) = self.hook.variables.get(path) {
            return folder.clone();
        }
        let found = path.split('.').try_fold(self.event, |value, name| value.get(name));
        match found {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

fn is_path(path: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    path.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && path.chars().all(is_name)
}

fn cut(words: &str) -> String {
    words.trim().chars().take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use settings::hook_definitions::{HookEvent, HookRepetition, HookWait, Kind, Matcher};
    use settings::{SettingsSource, ValueOrigin};

    use super::*;

    /// HOOK-2: arguments hold the parts of the event that they name, once; what is not there is empty, and what is no path
    /// stays as it is.
    #[test]
    fn arguments_hold_parts_of_the_event() {
        let (matcher, _) = Matcher::parse(None);
        let hook = Hook {
            hook_event: HookEvent::PostToolUse,
            matcher,
            matcher_text: String::new(),
            kind: Kind::NotYet { name: String::new() },
            condition: None,
            times: HookRepetition::Always,
            waiting: HookWait::Yes,
            timeout: None,
            status: None,
            origin: ValueOrigin { source: SettingsSource::User, file: None, line: 1, column: 1 },
            variables: BTreeMap::from([("CLAUDE_PLUGIN_ROOT".to_owned(), "/plugin".to_owned())]),
        };
        let event = json!({"tool_input": {"file_path": "${cwd}", "lines": [1, 2]}, "cwd": "/w", "none": null});
        let Value::Object(arguments) = json!({
            "path": "at ${tool_input.file_path}!", "deep": [{"lines": "${tool_input.lines}"}], "count": 3,
            "root": "${CLAUDE_PLUGIN_ROOT}/x", "missing": "<${tool_input.other}${none}>", "stays": "${a b} ${ $x ${cwd",
        }) else {
            unreachable!()
        };
        let call = ServerCall { hook: &hook, server: "s", tool: "t", arguments: &arguments, event: &event };
        let expected = json!({
            "path": "at ${cwd}!", "deep": [{"lines": "[1,2]"}], "count": 3, "root": "/plugin/x", "missing": "<>",
            "stays": "${a b} ${ $x ${cwd",
        });
        assert_eq!(Value::Object(call.filled()), expected);
    }
}
