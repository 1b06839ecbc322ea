//! A server over pipes in memory that answers as a test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mcp::{Endpoint, McpServer, OpenPipes, Pipes, ServerOptions};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

/// Something a server does about one message.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Sends a message.
    Say(Value),
    /// Sends these very bytes.
    Raw(String),
    /// Sends an answer of about this many bytes to the message.
    Large(usize),
    /// Waits first.
    Wait(Duration),
    /// Ends the connection.
    Die,
}

/// The messages that a server got, in order.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<Value>>>);

impl Heard {
    /// Those of a method.
    pub(crate) fn of(&self, method: &str) -> Vec<Value> {
        self.0.lock().iter().filter(|message| message["method"] == method).cloned().collect()
    }

    /// Answers to the server's own requests.
    pub(crate) fn answers(&self) -> Vec<Value> {
        self.0.lock().iter().filter(|message| message.get("method").is_none()).cloned().collect()
    }
}

/// Pipes to a server that a function plays. The function gets the number of the connection and each message.
pub(crate) struct ScriptedServer<F> {
    act: Arc<F>,
    opened: AtomicUsize,
    heard: Heard,
}

impl<F: Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static> OpenPipes for ScriptedServer<F> {
    fn open(&self) -> BoxFuture<'static, Result<Pipes, String>> {
        let number = self.opened.fetch_add(1, Ordering::SeqCst);
        let (ours, theirs) = duplex(1 << 20);
        let (act, heard) = (self.act.clone(), self.heard.clone());
        tokio::spawn(play(theirs, number, act, heard));
        let (read, write) = tokio::io::split(ours);
        let last_words: mcp::LastWords = Arc::new(|| Box::pin(async { "its last words".to_owned() }));
        let pipes = Pipes { read: Box::new(read), write: Box::new(write), last_words: Some(last_words) };
        Box::pin(async move { Ok(pipes) })
    }
}

async fn play<F: Fn(usize, &Value) -> Vec<Act>>(stream: DuplexStream, number: usize, act: Arc<F>, heard: Heard) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        heard.0.lock().push(message.clone());
        for act in act(number, &message) {
            let written = match act {
                Act::Say(answer) => write.write_all(format!("{answer}\n").as_bytes()).await,
                Act::Raw(text) => write.write_all(text.as_bytes()).await,
                Act::Large(bytes) => large(&mut write, &message["id"], bytes).await,
                Act::Wait(time) => {
                    tokio::time::sleep(time).await;
                    Ok(())
                }
                Act::Die => return,
            };
            if written.is_err() {
                return;
            }
        }
    }
}

async fn large<W: AsyncWriteExt + Unpin>(write: &mut W, id: &Value, bytes: usize) -> std::io::Result<()> {
    let chunk = [b'x'; 64 << 10];
    write.write_all(br#"{"result":{"content":[{"type":"text","text":""#).await?;
    for _ in 0..bytes / chunk.len() {
        write.write_all(&chunk).await?;
    }
    write.write_all(format!("\"}}]}},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n").as_bytes()).await
}

/// A server that a function plays, and what it hears.
pub(crate) fn scripted<F>(act: F, options: ServerOptions) -> (McpServer, Heard)
where
    F: Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static,
{
    let heard = Heard::default();
    let server = ScriptedServer { act: Arc::new(act), opened: AtomicUsize::new(0), heard: heard.clone() };
    (McpServer::new("srv", Endpoint::Stdio(Arc::new(server)), options), heard)
}

/// The answer to a request.
pub(crate) fn answer(request: &Value, result: Value) -> Act {
    Act::Say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

/// A result with one text.
pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A tool without arguments.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("does {name}"), "inputSchema": {"type": "object"}})
}

/// Answers of a well-behaved server with the tools `b` and `a`, which answer with their own name.
pub(crate) fn well_behaved(request: &Value) -> Vec<Act> {
    match request["method"].as_str() {
        Some("initialize") => vec![answer(
            request,
            json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "scripted", "version": "1"},
                "capabilities": {"tools": {"listChanged": true}}, "instructions": "be kind"}),
        )],
        Some("tools/list") => vec![answer(request, json!({"tools": [tool("b"), tool("a")]}))],
        Some("tools/call") => vec![answer(request, text(request["params"]["name"].as_str().unwrap()))],
        _ => Vec::new(),
    }
}

/// Calls a tool without arguments and joins the texts of the reply.
pub(crate) async fn call(server: &McpServer, tool: &str) -> Result<String, mcp::Error> {
    let reply = server.call(tool, Map::new(), None).await?;
    Ok(reply.blocks.iter().filter_map(transcript::block::Block::as_text).collect())
}
