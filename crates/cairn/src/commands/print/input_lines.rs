//! Reads stdin: text for a prompt, or messages, one JSON object a line.
//!
//! A thread reads it, and nobody waits for that thread: a pipe that stays open delays neither the end of the program
//! nor, if there is a prompt already, its beginning.

use std::io::{BufRead, IsTerminal, Read};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tools::permission::Mode;
use transcript::Block;

use super::sdk_host::Response;
use crate::out;

/// The most that is read from a pipe.
const PIPE_LIMIT: usize = 10_000_000;
/// The longest line of the input.
const LINE_LIMIT: u64 = 64_000_000;
/// Time that a prompt waits for the first byte of a pipe. Programs started by others often inherit one that nobody ever
/// writes to.
const FIRST_BYTE: Duration = Duration::from_secs(3);

/// A line of the input.
#[derive(Debug, PartialEq)]
pub(super) enum InputLine {
    /// The user's words.
    UserMessage(Vec<Block>),
    /// Something is asked of the program itself.
    ControlRequest {
        /// The id that the answer has to name.
        id: String,
        /// The request.
        request: Request,
    },
    /// Something that was asked of the program at the other end is answered.
    Answered {
        /// The question.
        id: String,
        /// The response.
        response: Response,
    },
    /// Anything else, which means nothing here.
    Other,
}

/// Options that a program can ask for at the start and that are not supported: ignoring them silently would mislead it.
const NOT_YET: [&str; 6] =
    ["systemPrompt", "appendSystemPrompt", "planModeInstructions", "jsonSchema", "toolAliases", "plugins"];

/// A request of the controlling program.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    /// The session begins.
    Initialize {
        /// Names of options that are not supported.
        lacking: Vec<&'static str>,
        /// Agents it defines, by name.
        agents: Map<String, Value>,
        /// Hooks of its own, by moment.
        hooks: Map<String, Value>,
        /// Names of MCP servers that it has.
        servers: Vec<String>,
    },
    /// The turn is to stop.
    Interrupt,
    /// Another mode is to hold.
    SetMode(Mode),
    /// A mode that there is not.
    NoMode(Value),
    /// Something that runs is to end: an agent, or a command in the background.
    StopTask(String),
    /// Nobody is to wait any longer for an agent, or for any.
    Background {
        /// The call that sent it out.
        call: Option<String>,
    },
    /// Lists the servers.
    Servers,
    /// Connects a server again.
    ConnectServer(String),
    /// Switches a server on or off.
    SwitchServer {
        /// Its name.
        name: String,
        /// True if it is to be connected.
        on: bool,
    },
    /// A message of a server that is within the program; none of them is waited for.
    ServerMessage,
    /// Something this program cannot do, by its name.
    Unknown(String),
}

impl InputLine {
    /// Names of the MCP servers that the program has, if the line says so.
    pub(super) fn hosted_servers(&self) -> Vec<String> {
        match self {
            Self::ControlRequest { request: Request::Initialize { servers, .. }, .. } => servers.clone(),
            _ => Vec::new(),
        }
    }
}

/// The text of the pipe on stdin, if there is one. Where there is a prompt already, a silent pipe is given up.
pub(super) async fn piped(has_prompt: bool) -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        return Ok(String::new());
    }
    let (sender, mut pieces) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut piece = vec![0; 64 * 1024];
        loop {
            let read = std::io::stdin().lock().read(&mut piece);
            let end = matches!(read, Ok(0) | Err(_));
            if sender.send(read.map(|count| piece[..count].to_vec())).is_err() || end {
                break;
            }
        }
    });
    let mut text = Vec::new();
    loop {
        let next = if has_prompt && text.is_empty() {
            match tokio::time::timeout(FIRST_BYTE, pieces.recv()).await {
                Ok(next) => next,
                Err(_) => {
                    let seconds = FIRST_BYTE.as_secs();
                    out::warn(&format!(
                        "nothing came on stdin for {seconds} s, so it is ignored; < /dev/null avoids the wait"
                    ));
                    return Ok(String::new());
                }
            }
        } else {
            pieces.recv().await
        };
        match next.transpose()? {
            Some(piece) if !piece.is_empty() => text.extend(piece),
            _ => return Ok(String::from_utf8_lossy(&text).into_owned()),
        }
        anyhow::ensure!(text.len() <= PIPE_LIMIT, "more than {PIPE_LIMIT} bytes on stdin: give a file's path instead");
    }
}

/// The lines of stdin as they come.
pub(super) fn lines() -> mpsc::UnboundedReceiver<anyhow::Result<InputLine>> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        for number in 1.. {
            let mut line = Vec::new();
            let parsed = match stdin.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) if line.trim_ascii().is_empty() => continue,
                Ok(_) => InputLine::parse(&line),
                Err(error) => Err(error.into()),
            };
            let parsed = parsed.map_err(|error| error.context(format!("line {number} on stdin cannot be read")));
            let over = parsed.is_err();
            if sender.send(parsed).is_err() || over {
                break;
            }
        }
    });
    lines
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    message: Option<InputMessage>,
    #[serde(default)]
    request_id: String,
    request: Option<ControlRequest>,
    response: Option<ControlAnswer>,
}

#[derive(Deserialize)]
struct ControlAnswer {
    #[serde(default)]
    request_id: String,
    /// Not there where it is an error.
    #[serde(default)]
    response: Value,
    error: Option<String>,
}

#[derive(Deserialize)]
struct InputMessage {
    content: Value,
}

#[derive(Deserialize)]
struct ControlRequest {
    subtype: String,
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl From<ControlRequest> for Request {
    fn from(asked: ControlRequest) -> Self {
        let more = |key: &str| asked.more.get(key).cloned().unwrap_or_default();
        let object = |key: &str| more(key).as_object().cloned().unwrap_or_default();
        let text = |key: &str| more(key).as_str().map(str::to_owned);
        match asked.subtype.as_str() {
            "initialize" => Self::Initialize {
                lacking: NOT_YET.into_iter().filter(|key| !is_empty(&more(key))).collect(),
                agents: object("agents"),
                hooks: object("hooks"),
                servers: serde_json::from_value(more("sdkMcpServers")).unwrap_or_default(),
            },
            "interrupt" => Self::Interrupt,
            "set_permission_mode" => {
                serde_json::from_value(more("mode")).map_or_else(|_| Self::NoMode(more("mode")), Self::SetMode)
            }
            "stop_task" => Self::StopTask(text("task_id").unwrap_or_default()),
            "background_tasks" => Self::Background { call: text("tool_use_id") },
            "mcp_status" => Self::Servers,
            "mcp_reconnect" => Self::ConnectServer(text("serverName").unwrap_or_default()),
            "mcp_toggle" => {
                Self::SwitchServer { name: text("serverName").unwrap_or_default(), on: more("enabled") == true }
            }
            "mcp_message" => Self::ServerMessage,
            _ => Self::Unknown(asked.subtype),
        }
    }
}

/// True if a value asks for nothing. The TypeScript SDK sends a list with an empty text if nobody gave a prompt.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.iter().all(is_empty),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

impl InputLine {
    fn parse(line: &[u8]) -> anyhow::Result<Self> {
        let envelope: Envelope = serde_json::from_slice(line)?;
        Ok(match (envelope.kind.as_str(), envelope.message, envelope.request) {
            ("user", Some(message), _) => Self::UserMessage(message_blocks(message.content)?),
            ("user", None, _) => anyhow::bail!("a user line without a message"),
            ("control_request", _, Some(request)) => {
                Self::ControlRequest { id: envelope.request_id, request: request.into() }
            }
            ("control_response", _, _) => match envelope.response {
                Some(ControlAnswer { request_id: id, response, error }) => {
                    Self::Answered { id, response: error.map_or(Ok(response), Err) }
                }
                None => Self::Other,
            },
            _ => Self::Other,
        })
    }
}

/// The blocks of a message. Results of calls are not the user's to give.
fn message_blocks(content: Value) -> anyhow::Result<Vec<Block>> {
    let blocks = match content {
        Value::String(text) => vec![Block::text(text)],
        Value::Array(blocks) => blocks.into_iter().map(Block::from_value).collect(),
        _ => anyhow::bail!("the content of a message must be a string or a list of blocks"),
    };
    use transcript::block::Kind;
    let (mut kept, mut others) = (Vec::new(), Vec::new());
    for block in blocks {
        match block.kind() {
            Kind::Text if block.as_text().is_none_or(|text| text.trim().is_empty()) => {}
            Kind::Text | Kind::Image | Kind::Document => kept.push(block),
            other => others.push(format!("{other:?}")),
        }
    }
    anyhow::ensure!(others.is_empty(), "a user message can have text, images and documents, not {}", others.join(", "));
    anyhow::ensure!(!kept.is_empty(), "a user message without content");
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_other_programs_write_them() {
        let parse = |line: &str| InputLine::parse(line.as_bytes());
        let text =
            r#"{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null,"session_id":""}"#;
        assert_eq!(parse(text).unwrap(), InputLine::UserMessage(vec![Block::text("hi")]));
        let blocks = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}}"#;
        assert_eq!(parse(blocks).unwrap(), InputLine::UserMessage(vec![Block::text("a")]));
        let asked = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"initialize","systemPrompt":[""],"hooks":null}}"#;
        assert_eq!(
            parse(asked).unwrap(),
            InputLine::ControlRequest {
                id: "r1".into(),
                request: Request::Initialize {
                    lacking: vec![],
                    agents: Map::new(),
                    hooks: Map::new(),
                    servers: vec![]
                }
            }
        );
        let asked =
            r#"{"type":"control_request","request_id":"r2","request":{"subtype":"set_permission_mode","mode":"plan"}}"#;
        assert_eq!(
            parse(asked).unwrap(),
            InputLine::ControlRequest { id: "r2".into(), request: Request::SetMode(Mode::Plan) }
        );
        let asked = r#"{"type":"control_request","request_id":"r3","request":{"subtype":"initialize","hooks":{"Stop":[]},"toolAliases":{"a":"b"},"agents":{"a":{"prompt":"b"}}}}"#;
        let agents = serde_json::json!({"a": {"prompt": "b"}}).as_object().cloned().unwrap();
        let hooks = serde_json::json!({"Stop": []}).as_object().cloned().unwrap();
        let request = Request::Initialize { lacking: vec!["toolAliases"], agents, hooks, servers: vec![] };
        assert_eq!(parse(asked).unwrap(), InputLine::ControlRequest { id: "r3".into(), request });
        let said = r#"{"type":"control_response","response":{"subtype":"success","request_id":"q","response":{"behavior":"allow"}}}"#;
        let response = serde_json::json!({"behavior": "allow"});
        assert_eq!(parse(said).unwrap(), InputLine::Answered { id: "q".into(), response: Ok(response) });
        let failed =
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"q","error":"it broke"}}"#;
        assert_eq!(parse(failed).unwrap(), InputLine::Answered { id: "q".into(), response: Err("it broke".into()) });
        for other in [r#"{"type":"keep_alive"}"#, r#"{"type":"control_response"}"#] {
            assert_eq!(parse(other).unwrap(), InputLine::Other);
        }
        for wrong in [
            "hello",
            "[1]",
            r#"{"type":"user"}"#,
            r#"{"type":"user","message":{"content":[]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}}"#,
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
