//! One entry that cannot be kept, taken or written stops no other; and whose text was overwritten is told.

use serde_json::json;

use super::house::{House, call, repository};

/// TEAM-3, TEAM-9: names that differ in case alone, a NUL byte and a file where a folder is are told, and the rest is sent
/// and taken.
#[tokio::test]
async fn one_refused_entry_stops_no_other() {
    let house = House::open().await;
    let (ada, bob) = (house.folder("ada").await, house.folder("bob").await);
    ada.write("Notes.md", "Ada's");
    ada.write("api/x.md", "Ada's");
    ada.push().await.unwrap();
    for (name, text) in [("notes.md", "Bob's"), ("api", "Bob's"), ("zero.md", "a\0b"), ("good.md", "fine")] {
        bob.write(name, text);
    }
    let done = bob.push().await.unwrap();
    let told = |key: &str| done.not_sent.get(&key.parse().unwrap()).map(String::as_str).unwrap_or_default();
    assert_eq!(done.sent.iter().map(|key| key.as_str()).collect::<Vec<_>>(), ["good.md"], "{done:?}");
    assert!(told("notes.md").contains("Notes.md") && told("api").contains("api/x.md"), "{done:?}");
    assert!(done.left["zero.md"].contains("NUL"), "{done:?}");
    assert!(done.refused["api/x.md"].contains("api is a file"), "{done:?}");
    house.close().await;
}

/// TEAM-9: what only the server can see is refused by name, with all others of its batch; in the next try they pass. A
/// server that names nothing is tried with halves.
#[tokio::test]
async fn what_the_server_refuses_is_left_out() {
    for by_name in [true, false] {
        let address = picky(by_name).await;
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("team");
        std::fs::create_dir(&folder).unwrap();
        for number in 0..9 {
            std::fs::write(folder.join(format!("{number}.md")), format!("text {number}")).unwrap();
        }
        let client = team::client::Client::new(&address, "token", repository()).unwrap();
        let state = place.path().join("state.json");
        let mut mirror = team::mirror::Mirror::open(&folder, &state, client, Default::default()).unwrap();
        let done = mirror.push().await.unwrap();
        assert_eq!((done.sent.len(), done.not_sent.len()), (8, 1), "{done:?}");
        assert!(done.not_sent[&"4.md".parse().unwrap()].contains("no fours"), "{done:?}");
    }
}

/// A server that refuses 4.md, with a word on which entry that was or without.
async fn picky(by_name: bool) -> String {
    use axum::extract::Request;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    let answer = move |request: Request| async move {
        if request.method() != "PUT" {
            return StatusCode::NOT_FOUND.into_response();
        }
        let body = axum::body::to_bytes(request.into_body(), 1_000_000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        if body["entries"].get("4.md").is_none() {
            return axum::Json(json!({"version": 1, "checksum": "x"})).into_response();
        }
        let details = if by_name { json!({"refused": {"4.md": "no fours"}}) } else { json!({}) };
        let error = json!({"type": "invalid_request_error", "message": "no fours", "details": details});
        (StatusCode::BAD_REQUEST, axum::Json(json!({"error": error}))).into_response()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let routes = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

/// TEAM-8, TEAM-9: a server says of every entry that it refuses why, and takes no key to be written and deleted at once.
#[tokio::test]
async fn the_server_names_what_it_refuses() {
    let house = House::open().await;
    let token = house.admin_token().await;
    let body = json!({"entries": {"a.md": "x\0y", "b.md": "fine", "c.md": "x".repeat(250_001)}});
    let (status, _, answer) = call(&house, "PUT", "", &token, None, Some(body)).await;
    let refused = answer["error"]["details"]["refused"].as_object().unwrap().clone();
    assert_eq!((status, refused.keys().map(String::as_str).collect::<Vec<_>>()), (400, vec!["a.md", "c.md"]));
    let both = json!({"entries": {"a.md": "one"}, "deletes": ["a.md"]});
    let (status, _, answer) = call(&house, "PUT", "", &token, None, Some(both)).await;
    assert!(status == 400 && answer["error"]["message"].as_str().unwrap().contains("both"), "{answer}");
    house.close().await;
}

/// TEAM-9: whose text was replaced by somebody who had not seen it is told, once, also for entries of a later batch; who
/// was seen is not.
#[tokio::test]
async fn whose_text_was_overwritten_is_told() {
    let house = House::open().await;
    let (ada, bob) = (house.folder("ada").await, house.folder("bob").await);
    // Two batches: the second is sent upon the first.
    let long = |word: &str| format!("{word} {}", "x".repeat(150_000));
    for name in ["1.md", "2.md", "seen.md"] {
        ada.write(name, &long("one"));
    }
    ada.push().await.unwrap();
    bob.pull().await.unwrap();
    for name in ["1.md", "2.md"] {
        ada.write(name, &long("Ada's"));
        bob.write(name, &long("Bob's"));
    }
    bob.write("seen.md", "Bob's");
    ada.push().await.unwrap();
    let done = bob.push().await.unwrap();
    assert_eq!((done.conflicts.len(), done.sent.len()), (2, 3), "{:?}", done.conflicts);
    let done = ada.pull().await.unwrap();
    let told: Vec<(&str, &str)> = done.overwritten.iter().map(|text| (text.key.as_str(), text.by.as_str())).collect();
    assert_eq!(told, [("1.md", "bob"), ("2.md", "bob")]);
    assert!(ada.pull().await.unwrap().overwritten.is_empty(), "once");
    house.close().await;
}

/// TEAM-3, TEAM-9: somebody who writes between two batches is not overwritten without a word, nor is a deletion.
#[tokio::test]
async fn every_batch_is_compared_again() {
    let house = House::open().await;
    let (ada, bob) = (house.folder("ada").await, house.folder("bob").await);
    let long = |word: &str| format!("{word} {}", "x".repeat(150_000));
    for name in ["1.md", "2.md", "3.md"] {
        ada.write(name, &long("one"));
    }
    ada.push().await.unwrap();
    bob.pull().await.unwrap();
    for name in ["1.md", "2.md", "3.md"] {
        ada.write(name, &long("Ada's"));
    }
    bob.write("2.md", &long("Bob's"));
    bob.remove("3.md");
    // Bob's push comes when Ada has read and not yet sent: she reads, he writes, she is refused and reads again.
    let gate = super::faults::Gate::start(house.address()).await;
    let ada_late = ada.through(&gate.address);
    let mut mirror = ada_late.mirror();
    let (done, ()) = tokio::join!(mirror.push(), async {
        gate.first_write().await;
        bob.push().await.unwrap();
        gate.open();
    });
    let done = done.unwrap();
    let conflicts: Vec<&str> = done.conflicts.iter().map(|key| key.as_str()).collect();
    assert_eq!((conflicts, done.sent.len()), (vec!["2.md", "3.md"], 3));
    let told = bob.pull().await.unwrap().overwritten;
    assert_eq!(told.iter().map(|text| text.key.as_str()).collect::<Vec<_>>(), ["2.md"]);
    house.close().await;
}
