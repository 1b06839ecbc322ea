//! Servers that others have written, over pipes and HTTP, in the full run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mcp::{
    CallProgress, Elicitation, ElicitationAnswer, ElicitationRequest, Endpoint, HttpEndpoint, LoginClient, McpServer,
    OnProgress, OpenPipes, Pipes, ServerOptions, ServerState, ServerStatus,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use transcript::block::{Kind, Outcome};

use crate::conformance::installed;

const PACKAGES: &str = "target/clients/node_modules";
const PYTHON: &str = "target/python-mcp/bin/python";

/// Starts a program for each connection; it ends with the connection.
struct Program {
    program: PathBuf,
    arguments: Vec<String>,
}

impl OpenPipes for Program {
    fn open(&self) -> BoxFuture<'static, Result<Pipes, String>> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Box::pin(async move {
            let mut child = command.spawn().map_err(|error| error.to_string())?;
            let (read, write) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
            let mut errors = child.stderr.take().unwrap();
            let said = Arc::new(Mutex::new(String::new()));
            let hears = said.clone();
            tokio::spawn(async move {
                // The child lives as long as its errors are read: to its end.
                let _child: Child = child;
                let mut chunk = [0; 4096];
                while let Ok(read @ 1..) = errors.read(&mut chunk).await {
                    *hears.lock() += &String::from_utf8_lossy(&chunk[..read]);
                }
            });
            let last_words: mcp::LastWords = Arc::new(move || {
                let said = said.lock().clone();
                Box::pin(async move { said })
            });
            Ok(Pipes { read: Box::new(read), write: Box::new(write), last_words: Some(last_words) })
        })
    }
}

/// A user with a name.
struct User;

impl Elicitation for User {
    fn ask(&self, request: ElicitationRequest) -> BoxFuture<'static, ElicitationAnswer> {
        let answer = match request {
            ElicitationRequest::Form { schema, .. } => {
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let values = required.map(|name| (name.to_owned(), json!("Ada"))).collect();
                ElicitationAnswer::Accept(values)
            }
            ElicitationRequest::Url { .. } => ElicitationAnswer::Decline,
        };
        Box::pin(async move { answer })
    }
}

fn options() -> ServerOptions {
    let roots = vec![PathBuf::from("/home/ada/project")];
    ServerOptions { roots, elicitation: Some(Arc::new(User)), ..ServerOptions::default() }
}

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

async fn texts(server: &McpServer, tool: &str, with: Value) -> String {
    let reply = server.call(tool, arguments(with), None).await.unwrap();
    assert_eq!(reply.outcome, Outcome::Done, "{tool}: {reply:?}");
    reply.blocks.iter().filter_map(transcript::block::Block::as_text).collect::<Vec<_>>().join("\n")
}

fn ready(status: &ServerStatus) {
    assert_eq!(status.state, ServerState::Ready, "{status:?}");
    assert!(status.problems.is_empty(), "{status:?}");
}

/// All that the server has that a client can meet.
async fn everything(server: &McpServer) {
    let status = server.connect().await;
    ready(&status);
    assert!(status.tools.len() >= 10 && status.prompts.len() >= 4 && !status.resources.is_empty(), "{status:?}");
    assert!(status.tools.is_sorted_by(|one, other| one.name < other.name));
    assert_eq!(texts(server, "echo", json!({"message": "hello"})).await, "Echo: hello");
    assert!(texts(server, "get-sum", json!({"a": 2, "b": 40})).await.contains("42"));
    let structured = texts(server, "get-structured-content", json!({"location": "New York"})).await;
    let structured: Value = serde_json::from_str(&structured).unwrap();
    assert!(structured["temperature"].is_number(), "{structured}");
    let picture = server.call("get-tiny-image", Map::new(), None).await.unwrap();
    assert!(picture.blocks.iter().any(|block| *block.kind() == Kind::Image), "{picture:?}");
    assert!(texts(server, "get-resource-links", json!({"count": 2})).await.contains("[link to the resource demo://"));
    assert!(texts(server, "get-resource-reference", json!({"resourceId": 1})).await.contains("[resource demo://"));
    assert!(texts(server, "get-roots-list", json!({})).await.contains("/home/ada/project"));
    assert!(texts(server, "trigger-elicitation-request", json!({})).await.contains("Ada"));
    let refused = server.call("no-such-tool", Map::new(), None).await;
    assert!(refused.is_err() || refused.is_ok_and(|reply| reply.outcome == Outcome::Failed));

    let seen = Arc::new(Mutex::new(Vec::new()));
    let hears = seen.clone();
    let on_progress: OnProgress = Arc::new(move |progress: CallProgress| hears.lock().push(progress.done));
    let long = arguments(json!({"duration": 1, "steps": 4}));
    server.call("trigger-long-running-operation", long.clone(), Some(on_progress)).await.unwrap();
    assert!(seen.lock().len() >= 3, "{seen:?}");
    let long = arguments(json!({"duration": 60, "steps": 4}));
    let cancelled = server.call("trigger-long-running-operation", long, None);
    assert!(tokio::time::timeout(Duration::from_millis(100), cancelled).await.is_err());
    assert_eq!(texts(server, "echo", json!({"message": "still there"})).await, "Echo: still there");

    let resource = server.read_resource(&status.resources[0].uri).await.unwrap();
    assert!(!resource.blocks.is_empty());
    let prompt = server.prompt("simple-prompt", BTreeMap::new()).await.unwrap();
    assert!(!prompt.blocks.is_empty());
    server.switch_off().await;
}

/// MCP-1: the protocol's own test server works over pipes, from the first message to the last.
#[tokio::test]
async fn server_everything_works_over_pipes() {
    let Some(packages) = installed(PACKAGES) else { return };
    let script = packages.join("@modelcontextprotocol/server-everything/dist/index.js");
    let arguments = vec![script.display().to_string(), "stdio".to_owned()];
    let program = Program { program: packages.join(".bin/node"), arguments };
    everything(&McpServer::new("everything", Endpoint::Stdio(Arc::new(program)), options())).await;
}

/// MCP-1: the same over HTTP.
#[tokio::test]
async fn server_everything_works_over_http() {
    let Some(packages) = installed(PACKAGES) else { return };
    let script = packages.join("@modelcontextprotocol/server-everything/dist/index.js");
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(packages.join(".bin/node"));
    command.arg(script).arg("streamableHttp").env("PORT", port.to_string()).kill_on_drop(true);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("listening") {
            break;
        }
    }
    let reads = tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let url = format!("http://127.0.0.1:{port}/mcp");
    let client = LoginClient::default();
    let endpoint = HttpEndpoint { url, headers: BTreeMap::new(), helper: None, tokens: None, client };
    everything(&McpServer::new("everything", Endpoint::Http(endpoint), options())).await;
    child.kill().await.unwrap();
    reads.await.unwrap();
}

/// MCP-1: a server of the protocol's library for Python works over pipes.
#[tokio::test]
async fn a_python_server_works_over_pipes() {
    let Some(python) = installed(PYTHON) else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/real/server.py").to_owned();
    let program = Program { program: python, arguments: vec![script] };
    let server = McpServer::new("python", Endpoint::Stdio(Arc::new(program)), options());
    let status = server.connect().await;
    ready(&status);
    assert_eq!(status.instructions.as_deref(), Some("Adds numbers."));
    assert!(status.identity.as_deref().unwrap().starts_with("python-server"), "{status:?}");
    assert!(texts(&server, "add", json!({"a": 2, "b": 40})).await.contains("42"));
    let failed = server.call("add", arguments(json!({"a": "x"})), None).await.unwrap();
    assert_eq!(failed.outcome, Outcome::Failed);
    let notes = server.read_resource("notes://today").await.unwrap();
    assert!(notes.blocks[0].as_text().unwrap().ends_with("nothing happened"));
    let code = [("code".to_owned(), "x = 1".to_owned())].into();
    let prompt = server.prompt("review", code).await.unwrap();
    assert_eq!(prompt.blocks[0].as_text().unwrap(), "Please review: x = 1");
    server.switch_off().await;
}

/// MCP-1: a server from the Python package index works as it is installed.
#[tokio::test]
async fn a_server_from_the_package_index_works() {
    let Some(python) = installed(PYTHON) else { return };
    let words = ["-m", "mcp_server_time", "--local-timezone", "UTC"].map(str::to_owned).to_vec();
    let program = Program { program: python, arguments: words };
    let server = McpServer::new("time", Endpoint::Stdio(Arc::new(program)), options());
    let status = server.connect().await;
    ready(&status);
    let names: Vec<&str> = status.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["convert_time", "get_current_time"]);
    let time = texts(&server, "get_current_time", json!({"timezone": "Europe/Berlin"})).await;
    assert!(time.contains("Europe/Berlin"), "{time}");
    let wrong = server.call("get_current_time", arguments(json!({"timezone": "Nowhere/At_All"})), None).await.unwrap();
    assert_eq!(wrong.outcome, Outcome::Failed);
    server.switch_off().await;
}

/// MCP-1: a program that cannot be started, or that is no server, says so in its own words.
#[tokio::test]
async fn a_program_that_is_no_server_says_so_in_its_own_words() {
    let fails = |program: &str, arguments: &[&str]| {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let program = Program { program: PathBuf::from(program), arguments };
        McpServer::new("broken", Endpoint::Stdio(Arc::new(program)), options())
    };
    let ServerState::Failed(why) = fails("/nowhere/at/all", &[]).connect().await.state.clone() else { panic!() };
    assert!(why.contains("No such file"), "{why}");
    let script = "echo 'no key: set EXAMPLE_KEY' >&2; read line; exit 3";
    let ServerState::Failed(why) = fails("/bin/sh", &["-c", script]).connect().await.state.clone() else { panic!() };
    assert_eq!(why, "it ended before the connection was made: no key: set EXAMPLE_KEY");
}
