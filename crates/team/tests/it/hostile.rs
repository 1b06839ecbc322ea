//! A server that wants to do harm: what it sends never leaves the folder, and never more than can be held.

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{Response, StatusCode};
use axum::routing::any;
use serde_json::{Value, json};
use team::client::Client;
use team::mirror::{Done, Mirror, Stopped};
use team::sync::Deletions;
use team::{checksum, protocol};

/// A server that always answers the same.
async fn server(answer: impl Fn() -> Response<Body> + Clone + Send + Sync + 'static) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().route(protocol::PATH, any(move || std::future::ready(answer())));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

fn json_answer(body: &Value) -> Response<Body> {
    Response::builder().header(CONTENT_TYPE, "application/json").body(Body::from(body.to_string())).unwrap()
}

fn snapshot(entries: &[(&str, &str)]) -> Value {
    let texts: serde_json::Map<String, Value> =
        entries.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
    let checksums: serde_json::Map<String, Value> =
        entries.iter().map(|(key, text)| ((*key).to_owned(), json!(checksum::of(text)))).collect();
    json!({"repo": "acme/rocket", "version": 1, "checksum": "sha256:x",
        "content": {"entries": texts, "entryChecksums": checksums}})
}

/// Pulls from it into a folder; gives what was done, and the files that then lie in and beside the folder.
async fn pulled(address: &str) -> (Result<Done, Stopped>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    let client = Client::new(address, "token", "acme/rocket".parse().unwrap()).unwrap();
    let (folder, state) = (place.path().join("team"), place.path().join("state.json"));
    let mut mirror = Mirror::open(&folder, &state, client, Deletions::Travel).unwrap();
    let done = mirror.pull().await;
    let mut found = Vec::new();
    let mut folders = vec![place.path().to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path().strip_prefix(place.path()).unwrap().display().to_string()),
            }
        }
    }
    found.sort();
    (done, found)
}

/// TEAM-7: of a server's keys those that could name another place are left out; the others are taken.
#[tokio::test]
async fn bad_keys_of_a_server_are_left_out() {
    let bad =
        ["../up.md", "/etc/x.md", "a/../../b.md", "%2e%2e/c.md", "．．/d.md", ".git/hooks/e", "f\\g.md", "h\u{0}.md"];
    let mut entries = vec![("good.md", "fine")];
    entries.extend(bad.iter().map(|key| (*key, "bad")));
    let body = snapshot(&entries);
    let address = server(move || json_answer(&body)).await;
    let (done, found) = pulled(&address).await;
    assert_eq!(done.unwrap().taken.len(), 1);
    assert_eq!(found, ["state.json", "team/good.md"]);
}

/// TEAM-3: a text that is not what its checksum says is not taken.
#[tokio::test]
async fn a_text_with_a_wrong_checksum_is_not_taken() {
    let mut body = snapshot(&[("a.md", "one"), ("b.md", "two")]);
    body["content"]["entries"]["a.md"] = json!("changed on the way");
    let address = server(move || json_answer(&body)).await;
    let (done, found) = pulled(&address).await;
    assert_eq!(done.unwrap().taken.len(), 1);
    assert_eq!(found, ["state.json", "team/b.md"]);
}

/// TEAM-3: ten thousand entries, an endless body, no JSON and a redirect to elsewhere are refused, and nothing is written.
#[tokio::test]
async fn what_cannot_be_held_is_refused() {
    let many: Vec<(String, String)> = (0..10_000).map(|number| (format!("{number}.md"), "x".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let many = snapshot(&many);
    let endless = || {
        let part = axum::body::Bytes::from(vec![b' '; 1 << 20]);
        let parts = futures_util::stream::repeat_with(move || Ok::<_, std::io::Error>(part.clone()));
        Response::new(Body::from_stream(parts))
    };
    let elsewhere = || {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        answer.headers_mut().insert(LOCATION, "http://127.0.0.1:1/".parse().unwrap());
        answer
    };
    let addresses = [
        server(move || json_answer(&many)).await,
        server(endless).await,
        server(|| Response::new(Body::from("<html>"))).await,
        server(elsewhere).await,
    ];
    for address in addresses {
        let (done, found) = pulled(&address).await;
        assert!(done.is_err() && found.is_empty(), "{done:?} {found:?}");
    }
}
