//! Entries from JSON. Keys that are unknown are left alone: other programs have keys of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    DefinitionError, DefinitionFinding, HttpDefinition, OAuthSettings, ServerDefinition, ServerDefinitions,
    ServerTransport, StdioDefinition, ToolLoading,
};
use crate::names::is_reserved;

/// The most characters of a server's name; it has to leave room for a tool's in 64.
const LONGEST_NAME: usize = 64;
/// The shortest limit on a call, as Claude Code has it.
const SHORTEST_TIMEOUT: u64 = 1000;

pub(super) fn definitions(servers: &Value) -> ServerDefinitions {
    let mut read = ServerDefinitions::default();
    let Some(entries) = servers.as_object() else {
        let problem = DefinitionError::Wrong { key: "mcpServers", wanted: "an object" };
        read.findings.push(DefinitionFinding { server: String::new(), problem });
        return read;
    };
    for (name, entry) in entries {
        match check_name(name).and_then(|()| definition(entry)) {
            Ok(definition) => _ = read.servers.insert(name.clone(), definition),
            Err(problem) => read.findings.push(DefinitionFinding { server: name.clone(), problem }),
        }
    }
    read
}

fn check_name(name: &str) -> Result<(), DefinitionError> {
    if name.trim().is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(DefinitionError::Name { most: LONGEST_NAME });
    }
    if is_reserved(name) { Err(DefinitionError::Reserved) } else { Ok(()) }
}

pub(super) fn definition(entry: &Value) -> Result<ServerDefinition, DefinitionError> {
    let entry = Entry(entry.as_object().ok_or(DefinitionError::NotAnObject)?);
    let transport = match entry.text("type")?.as_deref() {
        None if entry.0.contains_key("url") && !entry.0.contains_key("command") => {
            return Err(DefinitionError::UrlWithoutType);
        }
        None | Some("stdio") => ServerTransport::Stdio(StdioDefinition {
            command: entry.required("command")?,
            args: entry.texts("args")?,
            env: entry.map("env")?,
        }),
        Some("http" | "streamable-http") => ServerTransport::Http(HttpDefinition {
            url: entry.required("url")?,
            headers: entry.map("headers")?,
            headers_helper: entry.text("headersHelper")?,
            oauth: oauth(&entry)?,
        }),
        Some("sse") => return Err(DefinitionError::Sse),
        Some("ws") => return Err(DefinitionError::WebSocket),
        Some("sdk") => return Err(DefinitionError::Sdk),
        Some(other) => return Err(DefinitionError::UnknownTransport(other.chars().take(LONGEST_NAME).collect())),
    };
    let loading = if entry.switch("alwaysLoad")? { ToolLoading::Always } else { ToolLoading::OnDemand };
    Ok(ServerDefinition { transport, call_timeout: entry.timeout()?, loading, disabled: entry.switch("disabled")? })
}

fn oauth(entry: &Entry<'_>) -> Result<OAuthSettings, DefinitionError> {
    let Some(value) = entry.present("oauth") else { return Ok(OAuthSettings::default()) };
    let oauth = Entry(value.as_object().ok_or(DefinitionError::Wrong { key: "oauth", wanted: "an object" })?);
    let wrong_port = DefinitionError::Wrong { key: "callbackPort", wanted: "a port from 1 to 65535" };
    let callback_port = match oauth.present("callbackPort").map(Value::as_u64) {
        None => None,
        Some(port) => {
            let port = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
            Some(port.ok_or(wrong_port)?)
        }
    };
    let scopes = match oauth.present("scopes") {
        Some(Value::String(scopes)) => scopes.split_whitespace().map(str::to_owned).collect(),
        _ => oauth.texts("scopes")?,
    };
    let metadata_url = oauth.text("authServerMetadataUrl")?;
    Ok(OAuthSettings { client_id: oauth.text("clientId")?, callback_port, scopes, metadata_url })
}

/// An object whose keys are read with their kinds. `null` counts as absent.
struct Entry<'a>(&'a Map<String, Value>);

impl Entry<'_> {
    fn present(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &'static str) -> Result<Option<String>, DefinitionError> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.present(key).map(|value| text(value).ok_or(DefinitionError::Wrong { key, wanted: "a string" })).transpose()
    }

    fn required(&self, key: &'static str) -> Result<String, DefinitionError> {
        self.text(key)?.filter(|text| !text.trim().is_empty()).ok_or(DefinitionError::Missing(key))
    }

    fn texts(&self, key: &'static str) -> Result<Vec<String>, DefinitionError> {
        let wrong = DefinitionError::Wrong { key, wanted: "a list of strings" };
        let Some(value) = self.present(key) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| wrong.clone())?;
        list.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(|| wrong.clone())).collect()
    }

    fn map(&self, key: &'static str) -> Result<BTreeMap<String, String>, DefinitionError> {
        let wrong = DefinitionError::Wrong { key, wanted: "an object of strings" };
        let Some(value) = self.present(key) else { return Ok(BTreeMap::new()) };
        let map = value.as_object().ok_or_else(|| wrong.clone())?;
        let text = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            _ => Err(wrong.clone()),
        };
        map.iter().map(|(name, value)| Ok((name.clone(), text(value)?))).collect()
    }

    fn switch(&self, key: &'static str) -> Result<bool, DefinitionError> {
        let wrong = DefinitionError::Wrong { key, wanted: "true or false" };
        self.present(key).map_or(Ok(false), |value| value.as_bool().ok_or(wrong))
    }

    fn timeout(&self) -> Result<Option<Duration>, DefinitionError> {
        let wrong = DefinitionError::Wrong { key: "timeout", wanted: "a number of milliseconds, at least 1000" };
        let Some(value) = self.present("timeout") else { return Ok(None) };
        let timeout = value.as_u64().filter(|timeout| *timeout >= SHORTEST_TIMEOUT).ok_or(wrong)?;
        Ok(Some(Duration::from_millis(timeout)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{NamedVariable, VariableKind};

    fn problem(entry: &Value) -> String {
        definition(entry).unwrap_err().to_string()
    }

    /// MCP-1: the entries people have for Claude Code are read as they are.
    #[test]
    fn programs_and_addresses_are_read() {
        let stdio = definition(&json!({
            "command": "npx", "args": ["-y", "${PKG:-server}"], "env": {"PORT": 8080, "GITHUB_TOKEN": "${GITHUB_TOKEN}"},
            "timeout": 5000, "alwaysLoad": true, "other": [1],
        }))
        .unwrap();
        let ServerTransport::Stdio(program) = &stdio.transport else { panic!("{stdio:?}") };
        assert_eq!((program.command.as_str(), program.env["PORT"].as_str()), ("npx", "8080"));
        assert_eq!((stdio.call_timeout, stdio.loading), (Some(Duration::from_secs(5)), ToolLoading::Always));
        let named = |name: &str, kind| NamedVariable { name: name.into(), kind };
        let variables = [named("GITHUB_TOKEN", VariableKind::Credential), named("PKG", VariableKind::Plain)];
        assert_eq!(stdio.variables(), variables);

        for kind in ["http", "streamable-http"] {
            let http = definition(&json!({"type": kind, "url": "https://${HOST}/mcp", "headers": {"x": "${X_KEY}"},
                "headersHelper": "print-headers", "disabled": true,
                "oauth": {"clientId": "me", "callbackPort": 8912, "scopes": "a b", "authServerMetadataUrl": "https://a/"}}))
            .unwrap();
            let ServerTransport::Http(address) = &http.transport else { panic!("{http:?}") };
            assert_eq!(address.headers_helper.as_deref(), Some("print-headers"));
            assert_eq!((address.oauth.callback_port, address.oauth.scopes.len()), (Some(8912), 2));
            assert!(http.disabled);
            let names: Vec<_> = http.variables().into_iter().map(|variable| variable.name).collect();
            assert_eq!(names, ["HOST", "X_KEY"]);
        }
    }

    /// MCP-1: transports that are not supported, and addresses without `type`, name themselves.
    #[test]
    fn what_is_not_supported_says_so_by_name() {
        for (entry, words) in [
            (json!({"type": "sse", "url": "https://a"}), "\"sse\" is not supported"),
            (json!({"type": "ws", "url": "wss://a"}), "\"ws\" is not supported"),
            (json!({"type": "sdk", "name": "a"}), "\"sdk\""),
            (json!({"type": "carrier pigeon"}), "\"carrier pigeon\" is unknown"),
            (json!({"url": "https://a"}), "`url` without `type`"),
            (json!({}), "`command` is missing"),
            (json!({"type": "http"}), "`url` is missing"),
            (json!({"command": ["npx"]}), "`command` must be a string"),
            (json!({"command": "x", "args": "y"}), "`args` must be"),
            (json!({"command": "x", "env": {"A": []}}), "`env` must be"),
            (json!({"command": "x", "timeout": 10}), "at least 1000"),
            (json!({"command": "x", "alwaysLoad": "yes"}), "`alwaysLoad` must be"),
            (json!({"type": "http", "url": "u", "oauth": {"callbackPort": 0}}), "`callbackPort` must be"),
            (json!("x"), "must be an object"),
        ] {
            assert!(problem(&entry).contains(words), "{entry}: {}", problem(&entry));
        }
    }

    #[test]
    fn a_broken_entry_does_not_hide_the_others() {
        let read =
            definitions(&json!({"good": {"command": "a"}, "bad": {"type": "sse"}, "workspace": {"command": "a"},
            " ": {"command": "a"}, "bell\u{7}": {"command": "a"}}));
        assert_eq!(read.servers.keys().collect::<Vec<_>>(), ["good"]);
        let servers: Vec<_> = read.findings.iter().map(|finding| finding.server.as_str()).collect();
        assert_eq!(servers, ["bad", "workspace", " ", "bell\u{7}"]);
        assert_eq!(definitions(&json!([])).findings.len(), 1);
    }

    /// MCP-1: expanded values may be credentials: no Debug output has them.
    #[test]
    fn expanded_values_are_not_in_debug_output() {
        let look_up = |name: &str| name.starts_with("MY").then(|| "hunter2".to_owned());
        for entry in [
            json!({"command": "run", "args": ["${MY_TOKEN}"], "env": {"A": "${MY_TOKEN}"}}),
            json!({"type": "http", "url": "https://a/${MY_TOKEN}", "headers": {"authorization": "Bearer ${MY_TOKEN}"}}),
        ] {
            let expanded = definition(&entry).unwrap().expand(&look_up);
            assert!(!format!("{expanded:?}").contains("hunter2"), "{expanded:?}");
            assert!(expanded.problems.is_empty());
        }
        let unset = definition(&json!({"command": "${A} ${A} ${OPENAI_API_KEY}"})).unwrap().expand(&look_up);
        assert_eq!(
            unset.problems,
            [DefinitionError::Unset("A".into()), DefinitionError::ProviderKey("OPENAI_API_KEY".into())]
        );
    }
}
