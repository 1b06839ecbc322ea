//! Lists that change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp::{ServerOptions, ServerState, ToolInteraction, ToolLoading};
use serde_json::{Value, json};

use crate::scripted::{Act, answer, scripted, text, tool, well_behaved};

fn changed(list: &str) -> Act {
    Act::Say(json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")}))
}

/// MCP-1: a list that changed is read again; one that cannot be read again stays as it was, and that is said.
#[tokio::test(start_paused = true)]
async fn a_changed_list_is_read_again_or_stays() {
    let readings = AtomicUsize::new(0);
    let act = move |_: usize, message: &Value| match message["method"].as_str() {
        Some("tools/list") => match readings.fetch_add(1, Ordering::SeqCst) {
            0 => well_behaved(message),
            1 => vec![answer(message, json!({"tools": [tool("c")]}))],
            _ => vec![Act::Say(json!({"jsonrpc": "2.0", "id": message["id"],
                "error": {"code": -32000, "message": "not now"}}))],
        },
        Some("tools/call") => vec![answer(message, text("ok")), changed("tools")],
        _ => well_behaved(message),
    };
    let (server, _) = scripted(act, ServerOptions::default());
    server.connect().await;
    let mut status = server.watch();
    server.call("a", serde_json::Map::new(), None).await.unwrap();
    let new = status.wait_for(|status| status.tools.len() == 1).await.unwrap().clone();
    assert_eq!(new.tools[0].name, "c");
    server.call("c", serde_json::Map::new(), None).await.unwrap();
    let kept = status.wait_for(|status| !status.problems.is_empty()).await.unwrap().clone();
    assert_eq!(kept.tools[0].name, "c");
    assert_eq!(kept.problems, ["its changed tools could not be read: the MCP server srv answered: not now"]);
}

/// MCP-1: a server that announces changes without end is asked once a second at most.
#[tokio::test(start_paused = true)]
async fn endless_announcements_of_changes_are_bounded() {
    let act = |_: usize, message: &Value| match message["method"].as_str() {
        Some("tools/list") => [well_behaved(message), vec![changed("tools"), changed("tools")]].concat(),
        _ => well_behaved(message),
    };
    let (server, heard) = scripted(act, ServerOptions::default());
    assert_eq!(server.connect().await.state, ServerState::Ready);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let readings = heard.of("tools/list").len();
    assert!((30..=62).contains(&readings), "{readings}");
}

/// MCP-1: resources, patterns and prompts are offered with what describes them.
#[tokio::test(start_paused = true)]
async fn resources_and_prompts_are_offered_and_read() {
    let act = |_: usize, message: &Value| match message["method"].as_str() {
        Some("initialize") => vec![answer(
            message,
            json!({"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": "2"},
                "capabilities": {"resources": {}, "prompts": {}}}),
        )],
        Some("resources/list") => vec![answer(
            message,
            json!({"resources": [{"uri": "demo://b", "name": "B", "mimeType": "text/plain", "size": 5},
                {"uri": "demo://a", "name": "a", "title": "A", "description": "first"}]}),
        )],
        Some("resources/templates/list") => {
            vec![answer(message, json!({"resourceTemplates": [{"uriTemplate": "demo://{x}", "name": "any"}]}))]
        }
        Some("prompts/list") => vec![answer(
            message,
            json!({"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": true}]}]}),
        )],
        Some("resources/read") => {
            let uri = &message["params"]["uri"];
            vec![answer(message, json!({"contents": [{"uri": uri, "text": "content"}]}))]
        }
        Some("prompts/get") => {
            let who = message["params"]["arguments"]["who"].as_str().unwrap();
            let content = json!({"type": "text", "text": format!("hello {who}")});
            vec![answer(message, json!({"messages": [{"role": "user", "content": content}]}))]
        }
        _ => Vec::new(),
    };
    let (server, heard) = scripted(act, ServerOptions::default());
    let status = server.connect().await;
    assert!(heard.of("tools/list").is_empty());
    let resources: Vec<_> = status.resources.iter().map(|one| (one.uri.as_str(), one.name.as_str())).collect();
    assert_eq!(resources, [("demo://a", "A"), ("demo://b", "B")]);
    assert_eq!(status.templates[0].uri_template, "demo://{x}");
    assert_eq!((status.prompts[0].name.as_str(), status.prompts[0].arguments[0].required), ("greet", true));

    let read = server.read_resource("demo://b").await.unwrap();
    assert_eq!(read.blocks[0].as_text().unwrap(), "[resource demo://b]\ncontent");
    let arguments = [("who".to_owned(), "you".to_owned())].into();
    let prompt = server.prompt("greet", arguments).await.unwrap();
    assert_eq!(prompt.blocks[0].as_text().unwrap(), "hello you");
}

/// MCP-1: what a tool says of itself in `_meta` is read within its limits.
#[tokio::test(start_paused = true)]
async fn marks_of_tools_are_read() {
    let act = |_: usize, message: &Value| match message["method"].as_str() {
        Some("tools/list") => {
            let mut marked = tool("marked");
            marked["annotations"] = json!({"readOnlyHint": true, "title": "Marked"});
            marked["_meta"] = json!({"anthropic/alwaysLoad": true, "anthropic/requiresUserInteraction": true,
                "anthropic/maxResultSizeChars": 900_000});
            vec![answer(message, json!({"tools": [marked, tool("plain")]}))]
        }
        _ => well_behaved(message),
    };
    let (server, _) = scripted(act, ServerOptions::default());
    let status = Arc::clone(&server.connect().await);
    let [marked, plain] = &status.tools[..] else { panic!("{status:?}") };
    assert_eq!((marked.loading, marked.interaction), (ToolLoading::Always, ToolInteraction::EachTime));
    assert_eq!((marked.most_result_chars, marked.title.as_deref()), (Some(500_000), Some("Marked")));
    assert!(marked.claims_read_only && !plain.claims_read_only);
    assert_eq!((plain.loading, plain.interaction), (ToolLoading::OnDemand, ToolInteraction::ByRules));
    let definition = plain.definition("mcp__srv__plain");
    assert_eq!((definition.name.as_str(), definition.description.as_str()), ("mcp__srv__plain", "does plain"));
}
