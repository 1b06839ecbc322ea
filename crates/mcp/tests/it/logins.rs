//! Logins against an authorization server on loopback.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mcp::{
    Callback, CallbackListener, Endpoint, Error, HttpEndpoint, Login, LoginClient, McpServer, ServerOptions,
    ServerState, TokenFiles,
};
use serde_json::{Value, json};

use crate::scripted::{call, text, tool};
use crate::web::{WebAnswer, WebRequest, WebServer, serve};

/// The authorization server and the server it guards.
#[derive(Default)]
struct World {
    /// Number of the token that counts now.
    valid: AtomicUsize,
    /// Number of tokens given so far.
    given: AtomicUsize,
    /// True if registration gives a secret.
    with_secret: bool,
    /// True if metadata documents of clients are taken.
    with_documents: bool,
    /// True if tools want a scope of their own.
    strict: AtomicBool,
    /// True if tokens are given over a network without encryption.
    in_clear: bool,
    /// True if no token is renewed.
    frozen: AtomicBool,
}

impl World {
    fn answer(&self, at: &str, request: &WebRequest) -> WebAnswer {
        let path = request.target.split('?').next().unwrap_or_default();
        match path {
            "/mcp" => self.guarded(at, request),
            "/.well-known/oauth-protected-resource/mcp" => WebAnswer::json(&json!({
                "resource": format!("http://{at}/mcp"), "authorization_servers": [format!("http://{at}")],
                "scopes_supported": ["read"],
            })),
            "/.well-known/oauth-authorization-server" => WebAnswer::json(&json!({
                "issuer": format!("http://{at}"), "authorization_endpoint": format!("http://{at}/authorize"),
                "token_endpoint": if self.in_clear { "http://auth.example/token".to_owned() } else { format!("http://{at}/token") },
                "registration_endpoint": format!("http://{at}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                "scopes_supported": ["read", "write", "offline_access"],
                "client_id_metadata_document_supported": self.with_documents,
            })),
            "/register" => {
                let mut client = json!({"client_id": "registered", "redirect_uris": request.json()["redirect_uris"]});
                if self.with_secret {
                    client["client_secret"] = json!("client-secret");
                }
                WebAnswer::json(&client)
            }
            "/token" => self.token(request),
            _ => WebAnswer::new(404),
        }
    }

    fn token(&self, request: &WebRequest) -> WebAnswer {
        if self.frozen.load(Ordering::SeqCst) {
            let refused = WebAnswer::json(&json!({"error": "invalid_grant", "error_description": "refresh-0 is void"}));
            return WebAnswer { status: 400, ..refused };
        }
        let number = self.given.fetch_add(1, Ordering::SeqCst) + 1;
        self.valid.store(number, Ordering::SeqCst);
        let scope = request.form("scope").unwrap_or_default();
        let scope = if scope.is_empty() { None } else { Some(scope) };
        WebAnswer::json(&json!({"access_token": format!("access-{number}"), "token_type": "Bearer", "expires_in": 3600,
            "refresh_token": format!("refresh-{number}"), "scope": scope}))
    }

    fn guarded(&self, at: &str, request: &WebRequest) -> WebAnswer {
        let wanted = format!("Bearer access-{}", self.valid.load(Ordering::SeqCst));
        if request.header("authorization") != Some(&wanted) {
            let metadata = format!("http://{at}/.well-known/oauth-protected-resource/mcp");
            let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
            return WebAnswer::new(401).with("www-authenticate", &challenge);
        }
        let result =
            |result: Value| WebAnswer::json(&json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}));
        match request.message().as_str() {
            "initialize" => result(json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"}})),
            "tools/list" => result(json!({"tools": [tool("a")]})),
            "tools/call" if self.strict.load(Ordering::SeqCst) => WebAnswer::new(403)
                .with("www-authenticate", "Bearer error=\"insufficient_scope\", scope=\"write admin\""),
            "tools/call" => result(text("called")),
            method if method.starts_with("notifications/") => WebAnswer::new(202),
            _ => WebAnswer::new(400),
        }
    }
}

async fn start(world: &Arc<World>) -> WebServer {
    let world = world.clone();
    serve(move |at, request| {
        let answer = world.answer(&at, &request);
        async move { answer }
    })
    .await
}

fn endpoint(web: &WebServer, folder: &Path) -> HttpEndpoint {
    let url = web.url("/mcp");
    let tokens = TokenFiles::new(folder.to_path_buf()).of("srv", &url);
    HttpEndpoint { url, headers: BTreeMap::new(), helper: None, tokens: Some(tokens), client: LoginClient::default() }
}

fn server(endpoint: &HttpEndpoint) -> McpServer {
    McpServer::new("srv", Endpoint::Http(endpoint.clone()), ServerOptions::default())
}

fn query(address: &str) -> BTreeMap<String, String> {
    url::Url::parse(address).unwrap().query_pairs().into_owned().collect()
}

/// Follows a login to its end, as a browser and a user who agrees would. Answers with what the browser was asked.
async fn log_in(endpoint: &HttpEndpoint, challenge: Option<String>) -> Result<BTreeMap<String, String>, Error> {
    let listener = CallbackListener::bind(None).await.unwrap();
    let login = Login::begin("srv", endpoint, challenge, &listener.redirect_uri()).await?;
    let asked = query(login.url());
    let back = format!("{}?code=the-code&state={}", asked["redirect_uri"], asked["state"]);
    let (callback, page) = tokio::join!(login.callback(&listener), reqwest::get(back));
    assert_eq!(page.unwrap().status(), 200);
    login.finish(&callback).await?;
    Ok(asked)
}

fn token_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    all.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

/// MCP-2: a server that wants a login says so; after it the tools work, in this process and in the next, and the tokens lie
/// in a file of mode 0600.
#[tokio::test]
async fn a_login_makes_a_server_usable() {
    let (world, home) = (Arc::new(World::default()), tempfile::tempdir().unwrap());
    let web = start(&world).await;
    let folder = home.path().join("tokens");
    let endpoint = endpoint(&web, &folder);
    let server = server(&endpoint);
    assert_eq!(server.connect().await.state, ServerState::NeedsLogin);
    assert!(matches!(call(&server, "a").await, Err(Error::NeedsLogin { .. })));

    let asked = log_in(&endpoint, server.challenge()).await.unwrap();
    assert_eq!((asked["client_id"].as_str(), asked["code_challenge_method"].as_str()), ("registered", "S256"));
    assert_eq!((asked["scope"].as_str(), asked["resource"].as_str()), ("read offline_access", endpoint.url.as_str()));
    let exchange = web.requests().into_iter().find(|request| request.target == "/token").unwrap();
    assert!(exchange.form("code_verifier").is_some_and(|verifier| verifier.len() >= 43));

    assert_eq!(server.connect().await.state, ServerState::Ready);
    assert_eq!(call(&server, "a").await.unwrap(), "called");
    let next = self::server(&endpoint);
    assert_eq!(next.connect().await.state, ServerState::Ready);
    let files = token_files(&folder);
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);

    endpoint.tokens.as_ref().unwrap().clear().unwrap();
    assert_eq!(next.connect().await.state, ServerState::NeedsLogin);
    assert!(token_files(&folder).is_empty());
}

/// MCP-2: tokens of one server are not loaded for another that has its name, nor for a file that was put in their place.
#[tokio::test]
async fn tokens_stay_with_the_address_they_were_given_for() {
    let (world, home) = (Arc::new(World::default()), tempfile::tempdir().unwrap());
    let web = start(&world).await;
    let own = endpoint(&web, home.path());
    log_in(&own, None).await.unwrap();
    let thief = start(&Arc::new(World::default())).await;
    let other = endpoint(&thief, home.path());
    assert_eq!(server(&other).connect().await.state, ServerState::NeedsLogin);
    assert!(other.tokens.as_ref().unwrap().load().unwrap().is_none());
    // The same file under the other's name.
    let stolen = std::fs::read(&token_files(home.path())[0]).unwrap();
    other.tokens.as_ref().unwrap().save(&mcp::Tokens::default()).unwrap();
    for file in token_files(home.path()) {
        std::fs::write(file, &stolen).unwrap();
    }
    assert!(other.tokens.as_ref().unwrap().load().unwrap().is_none());
    assert_eq!(server(&other).connect().await.state, ServerState::NeedsLogin);
    for request in thief.requests() {
        assert!(!format!("{request:?}").contains("access-"), "{request:?}");
    }
}

/// MCP-2: a token that the server rejects is renewed once, with the secret of the client if it has one; then the call goes
/// through. Without a renewal the server wants a login, and no token appears in what is said about it.
#[tokio::test]
async fn a_rejected_token_is_renewed_once() {
    for with_secret in [false, true] {
        let world = Arc::new(World { with_secret, ..World::default() });
        let home = tempfile::tempdir().unwrap();
        let web = start(&world).await;
        let endpoint = endpoint(&web, home.path());
        log_in(&endpoint, None).await.unwrap();
        let server = server(&endpoint);
        server.connect().await;
        // The server forgets the token.
        world.valid.store(999, Ordering::SeqCst);
        assert_eq!(call(&server, "a").await.unwrap(), "called");
        let renewals: Vec<_> = web
            .requests()
            .into_iter()
            .filter(|request| request.form("grant_type").as_deref() == Some("refresh_token"))
            .collect();
        assert_eq!(renewals.len(), 1);
        assert_eq!(renewals[0].form("refresh_token").as_deref(), Some("refresh-1"));
        assert_eq!(renewals[0].form("resource").as_deref(), Some(endpoint.url.as_str()));
        assert_eq!(renewals[0].header("authorization").is_some(), with_secret);
        let kept = std::fs::read_to_string(&token_files(home.path())[0]).unwrap();
        assert!(kept.contains("refresh-2") && !kept.contains("refresh-1"));
        assert_eq!(kept.contains("client-secret"), with_secret);

        world.valid.store(999, Ordering::SeqCst);
        world.frozen.store(true, Ordering::SeqCst);
        let error = call(&server, "a").await.unwrap_err();
        assert_eq!(error.to_string(), "the MCP server srv needs a login");
        let mut status = server.watch();
        status.wait_for(|status| status.state == ServerState::NeedsLogin).await.unwrap();
        let said = format!("{error:?} {:?} {:?}", server.status(), endpoint.tokens.as_ref().unwrap().load());
        assert!(!said.contains("refresh-") && !said.contains("access-") && !said.contains("secret"), "{said}");
    }
}

/// MCP-2: a server that wants more rights gets a login that asks for them, beside those that were granted, even from another
/// process.
#[tokio::test]
async fn a_server_that_wants_more_rights_is_asked_about_them() {
    let (world, home) = (Arc::new(World::default()), tempfile::tempdir().unwrap());
    let web = start(&world).await;
    let endpoint = endpoint(&web, home.path());
    log_in(&endpoint, None).await.unwrap();
    let server = server(&endpoint);
    server.connect().await;
    world.strict.store(true, Ordering::SeqCst);
    assert!(matches!(call(&server, "a").await, Err(Error::NeedsLogin { .. })));
    world.strict.store(false, Ordering::SeqCst);
    let again = self::endpoint(&web, home.path());
    let asked = log_in(&again, None).await.unwrap();
    assert_eq!(asked["scope"], "read offline_access write admin");
    assert_eq!(server.connect().await.state, ServerState::Ready);
    assert_eq!(call(&server, "a").await.unwrap(), "called");
    assert_eq!(log_in(&again, None).await.unwrap()["scope"], "read offline_access", "the wish was met");
}

/// MCP-2: a client that was registered beforehand or has a metadata document is not registered again.
#[tokio::test]
async fn a_known_client_is_not_registered_again() {
    let world = Arc::new(World { with_documents: true, ..World::default() });
    let home = tempfile::tempdir().unwrap();
    let web = start(&world).await;
    let own = |client| HttpEndpoint { client, ..endpoint(&web, home.path()) };
    let known = LoginClient { id: Some("mine".into()), scopes: vec!["write".into()], ..LoginClient::default() };
    let asked = log_in(&own(known), None).await.unwrap();
    assert_eq!((asked["client_id"].as_str(), asked["scope"].as_str()), ("mine", "write offline_access"));
    let document = "https://cairn.example/client.json";
    let published = LoginClient { document_url: Some(document.into()), ..LoginClient::default() };
    assert_eq!(log_in(&own(published), None).await.unwrap()["client_id"], document);
    let metadata = LoginClient {
        id: Some("mine".into()),
        metadata_url: Some(web.url("/.well-known/oauth-authorization-server")),
        ..LoginClient::default()
    };
    log_in(&own(metadata), None).await.unwrap();
    assert!(web.requests().iter().all(|request| request.target != "/register"));
}

/// MCP-2: codes and tokens are not sent over a network without encryption.
#[tokio::test]
async fn an_endpoint_without_encryption_is_refused() {
    let world = Arc::new(World { in_clear: true, ..World::default() });
    let home = tempfile::tempdir().unwrap();
    let web = start(&world).await;
    let error = log_in(&endpoint(&web, home.path()), None).await.unwrap_err().to_string();
    assert!(error.ends_with("the endpoint http://auth.example/token is not encrypted"), "{error}");
}

/// MCP-2: a login that the user refuses, or that comes back from elsewhere, gives no tokens.
#[tokio::test]
async fn a_login_that_comes_back_wrong_gives_no_tokens() {
    let (world, home) = (Arc::new(World::default()), tempfile::tempdir().unwrap());
    let web = start(&world).await;
    let endpoint = endpoint(&web, home.path());
    for (back, words) in [
        ("error=access_denied&error_description=no%0Athanks", "access_denied no thanks"),
        ("code=x&state=other", "the code of another login"),
        ("code=x", "without a code"),
    ] {
        let login = Login::begin("srv", &endpoint, None, "http://localhost:1/callback").await.unwrap();
        let callback = Callback::from_address(&format!("http://localhost:1/callback?{back}")).unwrap();
        let error = login.finish(&callback).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(Callback::from_address("http://localhost:1/callback").is_err());
    assert!(web.requests().iter().all(|request| request.target != "/token"));
    assert!(token_files(home.path()).is_empty());
}

/// MCP-2: the port for the browser takes one address and one `state`, shows nothing it was sent, and is not held up by
/// others.
#[tokio::test]
async fn the_port_for_the_browser_takes_only_the_answer_it_waits_for() {
    let (world, home) = (Arc::new(World::default()), tempfile::tempdir().unwrap());
    let web = start(&world).await;
    let endpoint = endpoint(&web, home.path());
    let listener = CallbackListener::bind(None).await.unwrap();
    let uri = listener.redirect_uri();
    let login = Login::begin("srv", &endpoint, None, &uri).await.unwrap();
    let state = query(login.url())["state"].clone();
    let port = uri.split(':').nth(2).unwrap().split('/').next().unwrap().to_owned();
    let visits = async {
        // Some connections that say nothing.
        let mut silent = Vec::new();
        for _ in 0..3 {
            silent.push(tokio::net::TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap());
        }
        for wrong in [format!("{uri}?code=a&state=b<script>"), format!("http://localhost:{port}/?code=a&state={state}")]
        {
            let page = reqwest::get(wrong).await.unwrap();
            assert_eq!(page.status(), 404);
            assert!(!page.text().await.unwrap().contains("script"));
        }
        let post = reqwest::Client::new().post(format!("{uri}?code=a&state={state}")).send().await;
        assert!(post.is_err());
        drop(silent);
        reqwest::get(format!("{uri}?code=good&state={state}")).await.unwrap().status()
    };
    let both = async { tokio::join!(login.callback(&listener), visits) };
    let (callback, status) = tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
    assert_eq!(status, 200);
    assert!(!format!("{callback:?} {login:?}").contains(&state));
    login.finish(&callback).await.unwrap();
}
