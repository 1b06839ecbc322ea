//! Calls: answers, progress, time limits, cancelling, and connections that end.

use std::sync::Arc;
use std::time::Duration;

use mcp::{CallProgress, Error, OnProgress, ServerLimits, ServerOptions, ServerState};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::scripted::{Act, answer, call, scripted, text, well_behaved};

fn limits(change: impl FnOnce(&mut ServerLimits)) -> ServerOptions {
    let mut options = ServerOptions::default();
    change(&mut options.limits);
    options
}

fn progress(call: &Value, done: u32) -> Act {
    let token = &call["params"]["_meta"]["progressToken"];
    Act::Say(json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": done, "total": 3, "message": format!("step {done}")}}))
}

/// MCP-1: a server over pipes is connected with a handshake, and its tools can be called.
#[tokio::test(start_paused = true)]
async fn a_server_is_connected_and_its_tools_are_called() {
    let (server, heard) = scripted(|_, message| well_behaved(message), ServerOptions::default());
    assert_eq!(server.status().state, ServerState::Off);
    let status = server.connect().await;
    assert_eq!(status.state, ServerState::Ready);
    assert_eq!(status.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b"], "sorted");
    assert_eq!(status.identity.as_deref(), Some("scripted 1"));
    assert_eq!(status.instructions.as_deref(), Some("be kind"));
    assert_eq!(status.protocol.as_deref(), Some("2025-11-25"));
    assert_eq!(call(&server, "b").await.unwrap(), "b");
    assert_eq!(heard.of("initialize").len(), 1);
    assert!(heard.of("server/discover").is_empty(), "pipes are not probed");
    assert!(heard.of("resources/list").is_empty(), "only what the server says it has");

    server.switch_off().await;
    assert_eq!(server.status().state, ServerState::Off);
    assert!(server.status().tools.is_empty());
    assert!(matches!(call(&server, "b").await, Err(Error::NotConnected { .. })));
}

/// MCP-1: the progress of a call is reported, and each sign of it gives the call more time.
#[tokio::test(start_paused = true)]
async fn progress_is_reported_and_keeps_a_call_alive() {
    let act = |_: usize, message: &Value| match message["method"].as_str() {
        Some("tools/call") => {
            let step = |done| [Act::Wait(Duration::from_secs(8)), progress(message, done)];
            let mut acts: Vec<Act> = [1, 2, 3].into_iter().flat_map(step).collect();
            acts.extend([Act::Wait(Duration::from_secs(8)), answer(message, text("done"))]);
            acts
        }
        _ => well_behaved(message),
    };
    let (server, _) = scripted(act, limits(|limits| limits.idle = Some(Duration::from_secs(10))));
    server.connect().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let on_progress: OnProgress = Arc::new({
        let seen = seen.clone();
        move |progress: CallProgress| seen.lock().push(progress)
    });
    let begun = Instant::now();
    server.call("a", Map::new(), Some(on_progress)).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(32));
    let seen = seen.lock();
    assert_eq!(seen.len(), 3);
    assert_eq!((seen[1].done, seen[1].total, seen[1].message.as_deref()), (2.0, Some(3.0), Some("step 2")));
}

/// MCP-1: a call that shows no sign of life ends after the idle limit, one that shows too many after its own; either way the
/// server is told.
#[tokio::test(start_paused = true)]
async fn a_call_ends_after_its_time() {
    let silent = |_: usize, message: &Value| match message["method"].as_str() {
        Some("tools/call") if message["params"]["name"] == "a" => Vec::new(),
        Some("tools/call") => {
            (0..100).flat_map(|step| [Act::Wait(Duration::from_secs(1)), progress(message, step)]).collect()
        }
        _ => well_behaved(message),
    };
    let options = limits(|limits| {
        limits.idle = Some(Duration::from_secs(10));
        limits.call = Duration::from_secs(60);
    });
    let (server, heard) = scripted(silent, options);
    server.connect().await;
    for (tool, seconds) in [("a", 10), ("b", 60)] {
        let begun = Instant::now();
        let error = call(&server, tool).await.unwrap_err();
        let expected = format!("the MCP server srv did not answer a call of {tool} within {seconds} s");
        assert_eq!((error.to_string(), begun.elapsed().as_secs()), (expected, seconds));
    }
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(heard.of("notifications/cancelled").len(), 2);
    assert_eq!(server.status().state, ServerState::Ready);
}

/// MCP-1: giving up a call cancels it at the server, which goes on answering others.
#[tokio::test(start_paused = true)]
async fn giving_up_a_call_cancels_it() {
    let act = |_: usize, message: &Value| match message["params"]["name"].as_str() {
        Some("a") => Vec::new(),
        _ => well_behaved(message),
    };
    let (server, heard) = scripted(act, ServerOptions::default());
    server.connect().await;
    let given_up = tokio::time::timeout(Duration::from_secs(1), call(&server, "a")).await;
    assert!(given_up.is_err());
    assert_eq!(call(&server, "b").await.unwrap(), "b");
    let cancelled = heard.of("notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0]["params"]["requestId"], heard.of("tools/call")[0]["id"]);
}

/// MCP-1: a server over pipes that dies says so with its last words, is not started by itself, and works again by command.
#[tokio::test(start_paused = true)]
async fn a_server_that_dies_comes_back_by_command() {
    let act = |connection: usize, message: &Value| match message["method"].as_str() {
        Some("tools/call") if connection == 0 => vec![Act::Raw("{\"jsonrpc\":".to_owned()), Act::Die],
        _ => well_behaved(message),
    };
    let (server, heard) = scripted(act, ServerOptions::default());
    server.connect().await;
    let error = call(&server, "a").await.unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error}");
    let mut status = server.watch();
    status.wait_for(|status| status.state != ServerState::Ready).await.unwrap();
    assert_eq!(server.status().state, ServerState::Failed("the process ended: its last words".to_owned()));
    assert_eq!(server.status().tools.len(), 2, "its tools stay known");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(heard.of("initialize").len(), 1);
    let error = call(&server, "a").await.unwrap_err().to_string();
    assert_eq!(error, "the MCP server srv is not connected: the process ended: its last words");

    assert_eq!(server.connect().await.state, ServerState::Ready);
    assert_eq!(call(&server, "a").await.unwrap(), "a");
}

/// MCP-1: a server that is dropped is gone.
#[tokio::test(start_paused = true)]
async fn dropping_a_server_closes_its_pipes() {
    let (server, heard) = scripted(|_, message| well_behaved(message), ServerOptions::default());
    server.connect().await;
    let mut status = server.watch();
    drop(server);
    // The last part of the server to go is the one that tells of its state.
    while status.changed().await.is_ok() {}
    assert_eq!(heard.of("initialize").len(), 1);
}
