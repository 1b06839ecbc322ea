//! MCP servers within the program that drives a session: each message for one is a request to the program.
//!
//! The program answers in any order, and one that does not answer holds up nothing but its own call.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::{OpenPipes, Pipes};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::sdk_host::SdkHost;
use crate::server_host::ServerHosting;

/// Bytes that wait on the way in either direction.
const ROOM: usize = 64 * 1024;

impl ServerHosting for SdkHost {
    fn pipes(self: Arc<Self>, server: &str) -> Arc<dyn OpenPipes> {
        Arc::new(HostedPipes { program: self, server: server.to_owned() })
    }
}

/// The way to one server of the program.
struct HostedPipes {
    program: Arc<SdkHost>,
    server: String,
}

impl OpenPipes for HostedPipes {
    fn open(&self) -> BoxFuture<'static, Result<Pipes, String>> {
        let (ours, its) = tokio::io::duplex(ROOM);
        tokio::spawn(relay(its, self.program.clone(), self.server.clone()));
        let (read, write) = tokio::io::split(ours);
        let pipes = Pipes { read: Box::new(read), write: Box::new(write), last_words: None };
        std::future::ready(Ok(pipes)).boxed()
    }
}

/// Hands messages on until the connection ends.
async fn relay(pipe: DuplexStream, program: Arc<SdkHost>, server: String) {
    let (read, write) = tokio::io::split(pipe);
    let write = Arc::new(Mutex::new(write));
    let mut messages = BufReader::new(read).lines();
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            line = next(&mut messages) => match line.and_then(|line| serde_json::from_str(&line).ok()) {
                Some(message) => drop(open.spawn(exchange(message, program.clone(), server.clone(), write.clone()))),
                None => return,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn next(messages: &mut tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>) -> Option<String> {
    messages.next_line().await.ok().flatten()
}

/// Hands one message on, and its answer back if it wants one.
async fn exchange(message: Value, program: Arc<SdkHost>, server: String, write: Arc<Mutex<WriteHalf<DuplexStream>>>) {
    let id = message.get("id").cloned();
    let request = json!({"subtype": "mcp_message", "server_name": server, "message": message});
    let answer = program.send_request(request).await;
    let Some(id) = id else { return };
    let failed = |why: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": why}});
    let response = match answer {
        Some(Ok(mut said)) => said["mcp_response"].take(),
        Some(Err(why)) => failed(&why),
        None => failed("the program that has this server is gone"),
    };
    let line = format!("{response}\n");
    let _ = write.lock().await.write_all(line.as_bytes()).await; // nobody reads it once the connection has ended
}
