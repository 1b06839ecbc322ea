//! A member who may write, and wants to end everybody else's sync.

use serde_json::{Map, Value, json};
use team::store::Level;

use super::house::{House, call};

/// TEAM-7, TEAM-8: names that no file system takes, one entry both written and deleted, and texts that not every database
/// takes are refused with what is wrong; nothing is written.
#[tokio::test]
async fn what_would_harm_others_is_refused() {
    let house = House::open().await;
    let token = house.token("Mallory", Level::Write).await;
    let part = "a".repeat(256);
    for (body, why) in [
        (json!({"entries": {part.clone(): "x"}}), "255 bytes"),
        (json!({"entries": {}, "deletes": [part]}), "255 bytes"),
        (json!({"entries": {"a.md": "x"}, "deletes": ["b.md", "a.md"]}), "both written and deleted"),
        (json!({"entries": {"a.md": "x\u{0}y"}}), "NUL"),
    ] {
        let (status, _, answer) = call(&house, "PUT", "", &token, None, Some(body)).await;
        assert!(status == 400 && answer["error"]["message"].as_str().unwrap().contains(why), "{status} {answer}");
    }
    assert_eq!(call(&house, "GET", "", &token, None, None).await.0, 404, "nothing was written");
    house.close().await;
}

/// TEAM-5, TEAM-8: whoever deletes what never was leaves nothing that others have to remember.
#[tokio::test]
async fn names_that_never_were_are_not_told() {
    let house = House::with(|options| options.body_bytes = 2_000_000).await;
    let token = house.token("Mallory", Level::Write).await;
    for round in 0..4 {
        let names: Vec<String> = (0..40_000).map(|number| format!("never {round} {number}.md")).collect();
        let (status, _, answer) = call(&house, "PUT", "", &token, None, Some(json!({"deletes": names}))).await;
        assert_eq!(status, 200, "{answer}");
    }
    let grace = house.folder("Grace").await;
    grace.write("a.md", "one");
    assert_eq!(grace.push().await.unwrap().sent.len(), 1);
    let (_, _, told) = call(&house, "GET", "&view=hashes", &token, None, None).await;
    assert!(told.to_string().len() < 1_000, "{} bytes", told.to_string().len());
    house.close().await;
}

/// TEAM-3, TEAM-8: a repository that is larger on its way than an answer may be is still read by a new member.
#[tokio::test]
async fn a_large_repository_can_be_read() {
    const ENTRIES: usize = 60;
    let house = House::with(|options| options.body_bytes = 2_000_000).await;
    let token = house.token("Mallory", Level::Write).await;
    // Each byte takes six in JSON: together more than the 64 MiB that a client reads at once.
    let text = "\u{1}".repeat(240_000);
    for number in 0..ENTRIES {
        let entries: Map<String, Value> = [(format!("{number}.md"), json!(text))].into_iter().collect();
        let (status, _, answer) = call(&house, "PUT", "", &token, None, Some(json!({"entries": entries}))).await;
        assert_eq!(status, 200, "{answer}");
    }
    let grace = house.folder("Grace").await;
    assert_eq!(grace.pull().await.unwrap().taken.len(), ENTRIES);
    house.close().await;
}
