//! A server that wants to do harm: what it sends never leaves the folder, and never more than can be held.

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{Response, StatusCode};
use axum::routing::any;
use serde_json::{Value, json};
use team::client::Client;
use team::mirror::Mirror;
use team::report::{EarlyEnd, SyncReport};
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
async fn pulled(address: &str) -> (Result<SyncReport, EarlyEnd>, Vec<String>) {
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
                false if [".team-lock", ".mark"].iter().any(|name| entry.file_name() == *name) => {}
                false => found.push(entry.path().strip_prefix(place.path()).unwrap().display().to_string()),
            }
        }
    }
    found.sort();
    (done, found)
}

/// TEAM-7: of a server's keys those that could name another place are refused, each with why; the others are taken.
#[tokio::test]
async fn bad_keys_of_a_server_are_refused_by_name() {
    let bad =
        ["../up.md", "/etc/x.md", "a/../../b.md", "%2e%2e/c.md", "．．/d.md", ".git/hooks/e", "f\\g.md", "h\u{0}.md"];
    let mut entries = vec![("good.md", "fine")];
    entries.extend(bad.iter().map(|key| (*key, "bad")));
    let body = snapshot(&entries);
    let address = server(move || json_answer(&body)).await;
    let (done, found) = pulled(&address).await;
    let done = done.unwrap();
    assert_eq!((done.taken.len(), done.refused.len()), (1, bad.len()), "each is named: {:?}", done.refused);
    assert_eq!(found, ["state.json", "team/good.md"]);
}

/// TEAM-3: a text that is not what its checksum says is not taken.
#[tokio::test]
async fn a_text_with_a_wrong_checksum_is_not_taken() {
    let mut body = snapshot(&[("a.md", "one"), ("b.md", "two")]);
    body["content"]["entries"]["a.md"] = json!("changed on the way");
    let address = server(move || json_answer(&body)).await;
    let (done, found) = pulled(&address).await;
    let done = done.unwrap();
    assert!(done.taken.len() == 1 && done.refused["a.md"].contains("checksum"), "{:?}", done.refused);
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

/// TEAM-7: of names that are one file on some systems the first is taken, the others are left out; so is one that is a file
/// here in other letters.
#[tokio::test]
async fn twins_of_a_server_are_left_out() {
    let body = snapshot(&[
        ("Same.md", "1"),
        ("same.md", "2"),
        ("caf\u{e9}.md", "3"),
        ("cafe\u{301}.md", "4"),
        ("ﬁle.md", "5"),
    ]);
    let address = server(move || json_answer(&body)).await;
    let (done, found) = pulled(&address).await;
    assert_eq!(done.unwrap().taken.len(), 2);
    assert_eq!(found, ["state.json", "team/Same.md", "team/caf\u{e9}.md"]);
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("team")).unwrap();
    std::fs::write(place.path().join("team/SAME.md"), "mine").unwrap();
    let client = Client::new(&address, "token", "acme/rocket".parse().unwrap()).unwrap();
    let (folder, state) = (place.path().join("team"), place.path().join("state.json"));
    Mirror::open(&folder, &state, client, Deletions::Travel).unwrap().pull().await.unwrap();
    assert!(!folder.join("Same.md").exists() && folder.join("SAME.md").exists());
}

/// TEAM-3: texts that were never sent, are too long, or stand behind names with nothing: none is taken, and the pull ends.
#[tokio::test]
async fn what_is_promised_and_not_there_is_not_taken() {
    let long = "x".repeat(protocol::ENTRY_BYTES + 1);
    let mut body = snapshot(&[("good.md", "fine"), ("long.md", &long)]);
    for number in 0..100 {
        body["content"]["entryChecksums"][format!("{number}.md")] = json!(checksum::of("nothing"));
    }
    let address = server(move || json_answer(&body)).await;
    let (done, found) = pulled(&address).await;
    assert_eq!((done.unwrap().taken.len(), found), (1, vec!["state.json".to_owned(), "team/good.md".to_owned()]));
}

/// The most memory this process has had, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// TEAM-3, TEAM-8: a gigabyte from a server, and a gigabyte from a client, are cut at the limit: memory stays bounded.
#[tokio::test]
async fn a_gigabyte_is_cut_at_the_limit() {
    let before = peak();
    let gigabyte = || {
        let part = axum::body::Bytes::from(vec![b' '; 1 << 20]);
        futures_util::stream::iter((0..1024).map(move |_| Ok::<_, std::io::Error>(part.clone())))
    };
    let address = server(move || Response::new(Body::from_stream(gigabyte()))).await;
    let (done, found) = pulled(&address).await;
    assert!(done.is_err() && found.is_empty());
    let house = super::house::House::open().await;
    let token = house.token("Mallory", team::store::Level::Write).await;
    let address = format!("{}{}?repo=acme/rocket", house.address(), protocol::PATH);
    let http = team::client::http().no_proxy().build().unwrap();
    let sent = http.put(&address).bearer_auth(&token).body(reqwest::Body::wrap_stream(gigabyte())).send().await;
    // It may hang up before it has heard all, and then the answer can be lost on the way.
    assert!(sent.is_err() || sent.unwrap().status() == 413);
    let chunk = peak() - before;
    assert!(chunk < 256, "{chunk} MB");
    let told = house.store.audit().newest(None, 1).await.unwrap();
    assert!(told[0].detail.contains("at most"), "it is written down: {told:?}");
    house.close().await;
}

/// TEAM-7: a folder that is a link, to elsewhere or to the private memories beside it, is refused: nothing of what it leads
/// to is sent, and nothing is written there.
#[tokio::test]
async fn a_folder_that_is_a_link_is_refused() {
    let body = snapshot(&[("good.md", "fine")]);
    let address = server(move || json_answer(&body)).await;
    let client = Client::new(&address, "token", "acme/rocket".parse().unwrap()).unwrap();
    let place = tempfile::tempdir().unwrap();
    for folder in ["memory/private", "elsewhere"] {
        std::fs::create_dir_all(place.path().join(folder)).unwrap();
        std::fs::write(place.path().join(folder).join("mine.md"), "private").unwrap();
    }
    let (folder, state) = (place.path().join("memory/team"), place.path().join("state.json"));
    for target in ["../elsewhere", "private", "."] {
        std::os::unix::fs::symlink(target, &folder).unwrap();
        let opened = Mirror::open(&folder, &state, client.clone(), Deletions::Travel);
        assert!(opened.is_err(), "{target}");
        std::fs::remove_file(&folder).unwrap();
    }
    assert!(!place.path().join("elsewhere/good.md").exists());
}
