//! Servers over HTTP: both families of revisions, failures, redirects, and coming back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mcp::{
    Endpoint, Error, HeadersHelper, HttpEndpoint, LoginClient, McpServer, ServerLimits, ServerOptions, ServerState,
};
use serde_json::{Map, Value, json};

use crate::scripted::{call, text, tool};
use crate::web::{WebAnswer, WebRequest, serve, serve_at};

fn endpoint(url: String) -> HttpEndpoint {
    let headers = [("x-key".to_owned(), "secret".to_owned())].into();
    HttpEndpoint { url, headers, helper: None, tokens: None, client: LoginClient::default() }
}

fn server(endpoint: HttpEndpoint) -> McpServer {
    // Longer than any machine is slow.
    probing(endpoint, Duration::from_secs(25))
}

fn probing(endpoint: HttpEndpoint, probe: Duration) -> McpServer {
    let limits = ServerLimits { probe, ..ServerLimits::default() };
    McpServer::new("srv", Endpoint::Http(endpoint), ServerOptions { limits, ..ServerOptions::default() })
}

fn result(request: &WebRequest, result: Value) -> WebAnswer {
    WebAnswer::json(&json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}))
}

fn error(request: &WebRequest, code: i32, message: &str) -> WebAnswer {
    let id = request.json()["id"].clone();
    WebAnswer::json(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

/// A server of a revision with a handshake.
fn older(request: &WebRequest) -> WebAnswer {
    match request.message().as_str() {
        "initialize" => result(
            request,
            json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "old", "version": "1"},
                "capabilities": {"tools": {}}}),
        )
        .with("mcp-session-id", "s1"),
        "tools/list" => result(request, json!({"tools": [tool("a")]})),
        "tools/call" => result(request, text("called")),
        method if method.starts_with("notifications/") => WebAnswer::new(202),
        "" => WebAnswer::new(405),
        method => error(request, -32601, &format!("no {method} here")),
    }
}

/// A server of the current revision.
fn current(request: &WebRequest) -> WebAnswer {
    let lasting = |mut value: Value| {
        let entries = value.as_object_mut().unwrap();
        entries.extend([
            ("resultType".to_owned(), json!("complete")),
            ("ttlMs".to_owned(), json!(0)),
            ("cacheScope".to_owned(), json!("private")),
        ]);
        value
    };
    match request.message().as_str() {
        "server/discover" => result(
            request,
            lasting(json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "new", "version": "1"}, "instructions": "short"})),
        ),
        "tools/list" => result(request, lasting(json!({"tools": [tool("a")]}))),
        "tools/call" => result(request, lasting(text("called"))),
        _ => error(request, -32601, "no"),
    }
}

/// MCP-3: a server of the current revision is spoken to without a handshake, and each request says what it speaks.
#[tokio::test]
async fn the_current_revision_has_no_handshake() {
    let web = serve(|_, request| async move { current(&request) }).await;
    let server = server(endpoint(web.url("/mcp")));
    let status = server.connect().await;
    assert_eq!((&status.state, status.protocol.as_deref()), (&ServerState::Ready, Some("2026-07-28")));
    assert_eq!(status.instructions.as_deref(), Some("short"));
    assert_eq!(call(&server, "a").await.unwrap(), "called");
    let messages = web.messages();
    assert!(!messages.contains(&"initialize".to_owned()), "{messages:?}");
    let request = web.requests().into_iter().find(|request| request.message() == "tools/call").unwrap();
    assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!((request.header("mcp-method"), request.header("mcp-name")), (Some("tools/call"), Some("a")));
    assert_eq!(request.header("x-key"), Some("secret"));
    let meta = &request.json()["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "cairn");
}

/// MCP-3: a server of an older revision is found by a probe, whether it refuses that, answers with nonsense, or not at all.
#[tokio::test]
async fn an_older_revision_is_found_by_a_probe() {
    for refusal in ["error", "400", "page", "silence", "unsupported"] {
        let web = serve(move |_, request| async move {
            match (request.message().as_str(), refusal) {
                ("server/discover", "400") => WebAnswer::new(400),
                ("server/discover", "page") => {
                    WebAnswer { body: b"<html>".to_vec(), ..WebAnswer::new(404) }.with("content-type", "text/html")
                }
                ("server/discover", "silence") => std::future::pending().await,
                ("server/discover", "unsupported") => {
                    let id = request.json()["id"].clone();
                    let error = json!({"code": -32022, "message": "no", "data": {"supported": ["2025-11-25"]}});
                    WebAnswer::json(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
                }
                _ => older(&request),
            }
        })
        .await;
        let probe = Duration::from_secs(if refusal == "silence" { 1 } else { 25 });
        let server = probing(endpoint(web.url("/mcp")), probe);
        let status = server.connect().await;
        assert_eq!(status.state, ServerState::Ready, "{refusal}");
        assert_eq!(status.protocol.as_deref(), Some("2025-11-25"));
        assert_eq!(call(&server, "a").await.unwrap(), "called");
        let request = web.requests().into_iter().find(|request| request.message() == "tools/call").unwrap();
        assert_eq!(request.header("mcp-session-id"), Some("s1"));
        server.switch_off().await;
        assert!(web.requests().iter().any(|request| request.method == "DELETE"), "the session is given back");
    }
}

/// MCP-3: a server of the current revision that is slow to answer is not taken for an older one.
#[tokio::test]
async fn a_slow_server_of_the_current_revision_is_asked_again() {
    let web = serve(|_, request| async move {
        if request.message() == "server/discover" {
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
        current(&request)
    })
    .await;
    let status = probing(endpoint(web.url("/mcp")), Duration::from_millis(300)).connect().await;
    assert_eq!((&status.state, status.protocol.as_deref()), (&ServerState::Ready, Some("2026-07-28")));
}

/// MCP-1: a server that cannot be reached, or says that it is busy, is tried again; a wrong address is not.
#[tokio::test]
async fn a_server_that_is_being_started_is_tried_again() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let web = serve(move |_, request| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if first { WebAnswer::new(503) } else { older(&request) } }
    })
    .await;
    assert_eq!(server(endpoint(web.url("/mcp"))).connect().await.state, ServerState::Ready);

    let web = serve(|_, _| async { WebAnswer::new(404) }).await;
    let ServerState::Failed(why) = server(endpoint(web.url("/other"))).connect().await.state.clone() else { panic!() };
    assert_eq!(why, "unexpected server response: HTTP 404 Not Found");
    let wrong = server(endpoint("ftp://x".to_owned())).connect().await.state.clone();
    assert_eq!(wrong, ServerState::Failed("the address must begin with http:// or https://".to_owned()));
}

/// MCP-1: a server over HTTP that was gone and comes back is found again without a command.
#[tokio::test]
async fn a_server_over_http_that_comes_back_is_found_again() {
    let web = serve(|_, request| async move { older(&request) }).await;
    let at = web.address.clone();
    let server = server(endpoint(web.url("/mcp")));
    server.connect().await;
    drop(web);
    tokio::task::yield_now().await;
    let error = call(&server, "a").await.unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error}");
    let mut status = server.watch();
    status.wait_for(|status| status.state == ServerState::Connecting).await.unwrap();
    assert_eq!(server.status().tools.len(), 1, "its tools stay known");
    let _web = serve_at(&at, |_, request| async move { older(&request) }).await;
    status.wait_for(|status| status.state == ServerState::Ready).await.unwrap();
    assert_eq!(call(&server, "a").await.unwrap(), "called");
}

/// MCP-2: headers and calls follow no redirect to another origin; one to the same path with a slash is followed.
#[tokio::test]
async fn nothing_is_sent_to_another_origin() {
    let other = serve(|_, request| async move { older(&request) }).await;
    let elsewhere = other.url("/mcp");
    for status in [301, 302, 307, 308] {
        let elsewhere = elsewhere.clone();
        let web = serve(move |_, _| {
            let answer = WebAnswer::new(status).with("location", &elsewhere);
            async move { answer }
        })
        .await;
        let ServerState::Failed(why) = server(endpoint(web.url("/mcp"))).connect().await.state.clone() else {
            panic!()
        };
        assert!(why.contains("a redirect to 127.0.0.1, which is not followed"), "{why}");
    }
    assert!(other.requests().is_empty());

    let web = serve(|_, request| async move {
        match request.target.as_str() {
            "/mcp" => WebAnswer::new(307).with("location", "/mcp/"),
            _ => older(&request),
        }
    })
    .await;
    let server = server(endpoint(web.url("/mcp")));
    assert_eq!(server.connect().await.state, ServerState::Ready);
    assert_eq!(call(&server, "a").await.unwrap(), "called");
}

/// MCP-1: an answer that is too large is not kept, however it is sent.
#[tokio::test]
async fn an_answer_that_is_too_large_fails_its_own_call() {
    for kind in ["application/json", "text/event-stream"] {
        let web = serve(move |_, request| async move {
            match request.message().as_str() {
                "tools/call" if request.json()["params"]["name"] == "large" => {
                    let body = b"data: {\"text\": \"".to_vec();
                    WebAnswer { body, filler: 4 << 20, ..WebAnswer::new(200) }.with("content-type", kind)
                }
                _ => older(&request),
            }
        })
        .await;
        let limits = ServerLimits { message_bytes: 1 << 20, ..ServerLimits::default() };
        let options = ServerOptions { limits, ..ServerOptions::default() };
        let server = McpServer::new("srv", Endpoint::Http(endpoint(web.url("/mcp"))), options);
        server.connect().await;
        let error = call(&server, "large").await.unwrap_err();
        match kind {
            "application/json" => assert!(matches!(error, Error::TooLarge { .. }), "{error}"),
            _ => assert!(matches!(error, Error::Broken { .. }), "{error}"),
        }
        assert_eq!(call(&server, "a").await.unwrap(), "called");
    }
}

/// Headers that are right from the second time on.
struct Helper(AtomicUsize);

impl HeadersHelper for Helper {
    fn headers(&self) -> BoxFuture<'static, Result<BTreeMap<String, String>, String>> {
        let value = format!("token {}", self.0.fetch_add(1, Ordering::SeqCst));
        Box::pin(async move { Ok([("authorization".to_owned(), value)].into()) })
    }
}

/// MCP-1: the helper for headers is asked for each connection, and once more if the server rejects them.
#[tokio::test]
async fn headers_of_a_helper_are_made_anew() {
    let web = serve(|_, request| async move {
        match request.header("authorization") {
            Some("token 0") | None => WebAnswer::new(401),
            Some(_) => older(&request),
        }
    })
    .await;
    let helped = HttpEndpoint { helper: Some(Arc::new(Helper(AtomicUsize::new(0)))), ..endpoint(web.url("/mcp")) };
    let server = server(helped);
    assert_eq!(server.connect().await.state, ServerState::Ready);
    assert_eq!(call(&server, "a").await.unwrap(), "called");
    let never = HttpEndpoint { headers: BTreeMap::new(), ..endpoint(web.url("/mcp")) };
    assert_eq!(self::server(never).connect().await.state, ServerState::NeedsLogin);
    // No login helps here.
    let own = [("Authorization".to_owned(), "token 0".to_owned())].into();
    let wrong = HttpEndpoint { headers: own, ..endpoint(web.url("/mcp")) };
    let rejected = ServerState::Failed("it rejected the authorization in its definition".to_owned());
    assert_eq!(self::server(wrong).connect().await.state, rejected);
}

/// MCP-1: headers that run out in the middle are made anew, and the call that noticed fails.
#[tokio::test]
async fn headers_that_run_out_are_made_anew() {
    let valid = Arc::new(AtomicUsize::new(0));
    let counts = valid.clone();
    let web =
        serve(move |_, request| {
            let wanted = format!("token {}", counts.load(Ordering::SeqCst));
            async move {
                if request.header("authorization") == Some(&wanted) { older(&request) } else { WebAnswer::new(401) }
            }
        })
        .await;
    let helped = HttpEndpoint { helper: Some(Arc::new(Helper(AtomicUsize::new(0)))), ..endpoint(web.url("/mcp")) };
    let server = server(helped);
    assert_eq!(server.connect().await.state, ServerState::Ready);
    valid.store(1, Ordering::SeqCst);
    let error = call(&server, "a").await.unwrap_err().to_string();
    assert!(error.ends_with("it rejected the headers of its definition"), "{error}");
    let mut status = server.watch();
    status.wait_for(|status| status.state == ServerState::Connecting).await.unwrap();
    status.wait_for(|status| status.state == ServerState::Ready).await.unwrap();
    assert_eq!(call(&server, "a").await.unwrap(), "called");
}

/// MCP-1: a server over HTTP that stays away is tried five times, from one second on, each wait twice as long.
#[tokio::test]
async fn a_server_over_http_that_stays_away_is_given_up() {
    let web = serve(|_, request| async move { older(&request) }).await;
    let server = server(endpoint(web.url("/mcp")));
    server.connect().await;
    drop(web);
    tokio::task::yield_now().await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    call(&server, "a").await.unwrap_err();
    let mut status = server.watch();
    status.wait_for(|status| matches!(status.state, ServerState::Failed(_))).await.unwrap();
    assert!(begun.elapsed().as_secs() >= 1 + 2 + 4 + 8 + 16, "{:?}", begun.elapsed());
    assert_eq!(server.status().tools.len(), 1, "what it offered stays known");
}

/// MCP-1: a server of the current revision tells of changes on a stream; what changed while there was none is found too.
#[tokio::test]
async fn a_server_of_the_current_revision_tells_of_changes() {
    let readings = Arc::new(AtomicUsize::new(0));
    let counts = readings.clone();
    let web = serve(move |_, request| {
        let number = match request.message().as_str() {
            "tools/list" => counts.fetch_add(1, Ordering::SeqCst),
            _ => 0,
        };
        async move {
            let json = request.json();
            let meta = json!({"io.modelcontextprotocol/subscriptionId": json["id"]});
            let event = |method: &str, mut params: Value| {
                params["_meta"] = meta.clone();
                format!("data: {}\n\n", json!({"jsonrpc": "2.0", "method": method, "params": params}))
            };
            match request.message().as_str() {
                "server/discover" => {
                    let mut answer = current(&request);
                    let mut body: Value = serde_json::from_slice(&answer.body).unwrap();
                    body["result"]["capabilities"] = json!({"tools": {"listChanged": true}, "prompts": {}});
                    answer.body = body.to_string().into_bytes();
                    answer
                }
                "prompts/list" => result(&request, json!({"prompts": [], "resultType": "complete"})),
                "tools/list" => {
                    result(&request, json!({"tools": [tool(&format!("t{number}"))], "resultType": "complete"}))
                }
                "subscriptions/listen" => {
                    assert_eq!(json["params"]["notifications"], json!({"toolsListChanged": true}));
                    let filter = json!({"notifications": {"toolsListChanged": true}});
                    let acknowledged = event("notifications/subscriptions/acknowledged", filter);
                    let body = acknowledged + &event("notifications/tools/list_changed", json!({}));
                    WebAnswer { body: body.into_bytes(), ..WebAnswer::new(200) }
                        .with("content-type", "text/event-stream")
                }
                _ => current(&request),
            }
        }
    })
    .await;
    let server = server(endpoint(web.url("/mcp")));
    let status = server.connect().await;
    assert_eq!((&status.state, status.tools[0].name.as_str()), (&ServerState::Ready, "t0"), "{status:?}");
    let mut status = server.watch();
    status.wait_for(|status| status.tools[0].name == "t1").await.unwrap();
    status.wait_for(|status| status.tools[0].name == "t2").await.unwrap();
}

/// MCP-3: a server of the current revision that needs more for a call asks for it in its answer, and gets it.
#[tokio::test]
async fn a_call_that_needs_more_goes_in_rounds() {
    let web = serve(|_, request| async move {
        let params = request.json()["params"].clone();
        match (request.message().as_str(), params.get("inputResponses")) {
            ("tools/call", None) if params["name"] == "odd" => {
                result(&request, json!({"resultType": "hologram", "content": []}))
            }
            ("tools/call", None) => {
                let form = json!({"mode": "form", "message": "who?", "requestedSchema": {"type": "object",
                    "properties": {"name": {"type": "string", "default": "nobody"}}}});
                let wanted = json!({"resultType": "input_required", "requestState": "s-1",
                    "inputRequests": {"q": {"method": "elicitation/create", "params": form}}});
                result(&request, wanted)
            }
            ("tools/call", Some(responses)) => {
                assert_eq!(params["requestState"], "s-1");
                result(
                    &request,
                    json!({"resultType": "complete", "content": [{"type": "text", "text": responses.to_string()}]}),
                )
            }
            _ => current(&request),
        }
    })
    .await;
    let server = server(endpoint(web.url("/mcp")));
    server.connect().await;
    assert_eq!(call(&server, "a").await.unwrap(), r#"{"q":{"action":"decline"}}"#);
    let error = call(&server, "odd").await.unwrap_err().to_string();
    assert!(error.ends_with("it answered in a way that this client does not know: \"hologram\""), "{error}");
}

/// MCP-1: errors of a server come in its own words; none has a header or the address in it.
#[tokio::test]
async fn errors_have_no_secrets_in_them() {
    let web = serve(|_, request| async move {
        match request.message().as_str() {
            "tools/call" => match request.json()["params"]["name"].as_str() {
                Some("broken") => WebAnswer::new(500),
                Some("page") => {
                    WebAnswer { body: b"<html>".to_vec(), ..WebAnswer::new(200) }.with("content-type", "text/html")
                }
                _ => error(&request, -32602, "no such tool"),
            },
            _ => older(&request),
        }
    })
    .await;
    let server = server(endpoint(web.url("/mcp?key=hunter2")));
    server.connect().await;
    for (tool, words) in
        [("broken", "HTTP 500"), ("page", "Unexpected content type"), ("none", "answered: no such tool")]
    {
        let error = server.call(tool, Map::new(), None).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
    drop(web);
    tokio::task::yield_now().await;
    let error = server.call("a", Map::new(), None).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    let reserved =
        HttpEndpoint { headers: [("Host".to_owned(), "x".to_owned())].into(), ..endpoint("http://a".into()) };
    let state = self::server(reserved).connect().await.state.clone();
    assert_eq!(state, ServerState::Failed("the header \"Host\" belongs to the protocol".to_owned()));
}
