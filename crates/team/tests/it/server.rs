//! The protocol on the wire, as any client may speak it.

use serde_json::json;
use team::checksum;
use team::store::Level;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::house::{House, NOW, call, secret, send};

/// TEAM-2: nothing, a write, a read with its name, 304 for who has it, checksums alone, and 412 for who was late.
#[tokio::test]
async fn the_protocol_is_spoken() {
    let house = House::open().await;
    let token = house.token("Grace", Level::Write).await;
    let (status, _, _) = call(&house, "GET", "", &token, None, None).await;
    assert_eq!(status, 404, "nothing was written yet");
    let body = json!({"entries": {"a.md": "one", "MEMORY.md": "- [a](a.md)"}});
    let (status, first, _) = call(&house, "PUT", "", &token, None, Some(body)).await;
    let first = first.unwrap();
    assert_eq!(status, 200);
    let (status, tag, body) = call(&house, "GET", "", &token, None, None).await;
    assert_eq!((status, tag.as_ref()), (200, Some(&first)));
    assert_eq!(body["content"]["entries"]["a.md"], "one");
    assert_eq!(body["content"]["entryChecksums"]["a.md"], checksum::of("one"));
    assert_eq!(body["checksum"].as_str().unwrap(), first.trim_matches('"'));
    assert_eq!((&body["repo"], &body["version"]), (&json!("acme/rocket"), &json!(1)));
    let (status, ..) = call(&house, "GET", "", &token, Some(("if-none-match", &first)), None).await;
    assert_eq!(status, 304);
    let (_, _, hashes) = call(&house, "GET", "&view=hashes", &token, None, None).await;
    assert_eq!(hashes["entryChecksums"].as_object().unwrap().len(), 2);
    assert!(hashes.get("content").is_none());
    let write = |text: &str| Some(json!({"entries": {"a.md": text}}));
    let (status, second, _) = call(&house, "PUT", "", &token, Some(("if-match", &first)), write("two")).await;
    assert_eq!(status, 200);
    let (status, _, body) = call(&house, "PUT", "", &token, Some(("if-match", &first)), write("lost")).await;
    assert_eq!((status, &body["error"]["type"]), (412, &json!("conflict_error")));
    let (_, _, since) = call(&house, "GET", "&since=1", &token, None, None).await;
    assert_eq!(since["content"]["entries"].as_object().unwrap().len(), 1);
    assert_ne!(second.unwrap(), first);
    house.close().await;
}

/// TEAM-8: without a token, with a wrong one, or without the right, nothing is read or written.
#[tokio::test]
async fn who_may_not_gets_nothing() {
    let house = House::open().await;
    let (reader, writer) = (house.token("Rita", Level::Read).await, house.token("Willy", Level::Write).await);
    let body = || Some(json!({"entries": {"a.md": "one"}}));
    assert_eq!(call(&house, "PUT", "", &writer, None, body()).await.0, 200);
    assert_eq!(call(&house, "GET", "", &reader, None, None).await.0, 200);
    assert_eq!(call(&house, "PUT", "", &reader, None, body()).await.0, 403);
    for wrong in ["", "x", &writer[..writer.len() - 1]] {
        assert_eq!(call(&house, "GET", "", wrong, None, None).await.0, 401, "{wrong}");
        assert_eq!(call(&house, "PUT", "", wrong, None, body()).await.0, 401, "{wrong}");
    }
    let other = format!("{}/api/claude_code/team_memory?repo=acme/other", house.address());
    assert_eq!(send("GET", &other, &reader, None, None).await.0, 403);
    let me = format!("{}/api/team/members", house.address());
    assert_eq!(send("GET", &me, &reader, None, None).await.0, 403);
    house.store.members().remove(&house.admin, "Rita", NOW).await.unwrap();
    assert_eq!(call(&house, "GET", "", &reader, None, None).await.0, 401, "a removed member is nobody");
    house.close().await;
}

/// TEAM-7: keys that could name anything but a file below the folder are refused, and nothing of the request is written.
#[tokio::test]
async fn hostile_keys_are_refused() {
    let house = House::open().await;
    let token = house.token("Mallory", Level::Write).await;
    let twins = json!({"entries": {"Same.md": "1", "same.md": "2"}});
    assert_eq!(call(&house, "PUT", "", &token, None, Some(twins)).await.0, 400, "twins");
    for key in
        ["../x", "/etc/passwd", "a/../../x", "a\u{0}b", "%2e%2e/x", "．．/x", ".git/config", "a\\..\\b", "C:x", ""]
    {
        let body = json!({"entries": {"good.md": "1", key: "2"}});
        assert_eq!(call(&house, "PUT", "", &token, None, Some(body)).await.0, 400, "{key:?}");
        let body = json!({"entries": {}, "deletes": [key]});
        assert_eq!(call(&house, "PUT", "", &token, None, Some(body)).await.0, 400, "{key:?}");
    }
    assert_eq!(call(&house, "GET", "", &token, None, None).await.0, 404, "nothing was written");
    for repo in ["..", "a", "../../x", "a/b c", "a/%00"] {
        let address = format!("{}/api/claude_code/team_memory?repo={repo}", house.address());
        assert_eq!(send("GET", &address, &token, None, None).await.0, 400, "{repo}");
    }
    house.close().await;
}

/// TEAM-6: a write that holds a secret is refused whole, with the rule and never the secret, and is audited.
#[tokio::test]
async fn a_secret_is_refused() {
    let house = House::open().await;
    let token = house.token("Grace", Level::Write).await;
    let body = json!({"entries": {"good.md": "1", "bad.md": format!("key: {}", secret())}});
    let (status, _, answer) = call(&house, "PUT", "", &token, None, Some(body)).await;
    assert_eq!((status, &answer["error"]["details"]["refused"]["bad.md"]), (400, &json!("github-pat")));
    assert!(!answer.to_string().contains(&secret()));
    assert_eq!(call(&house, "GET", "", &token, None, None).await.0, 404);
    let audit = house.store.audit().newest(None, 1).await.unwrap();
    assert!(audit[0].detail.contains("bad.md: github-pat") && !audit[0].detail.contains(&secret()));
    house.close().await;
}

/// TEAM-3, TEAM-8: too many entries, too long ones and too large bodies are refused by their names.
#[tokio::test]
async fn limits_are_told() {
    let house = House::with(|options| options.limits.entries = 3).await;
    let token = house.token("Grace", Level::Write).await;
    let entries: serde_json::Map<_, _> = (0..4).map(|number| (format!("{number}.md"), json!("x"))).collect();
    let (status, _, answer) = call(&house, "PUT", "", &token, None, Some(json!({"entries": entries}))).await;
    let details = &answer["error"]["details"];
    assert_eq!((status, &details["error_code"]), (413, &json!("team_memory_too_many_entries")));
    assert_eq!((&details["max_entries"], &details["received_entries"]), (&json!(3), &json!(4)));
    let long = json!({"entries": {"a.md": "x".repeat(250_001)}});
    assert_eq!(call(&house, "PUT", "", &token, None, Some(long)).await.0, 400);
    let body = json!({"entries": {"a.md": "x".repeat(1_000_001)}});
    assert_eq!(call(&house, "PUT", "", &token, None, Some(body)).await.0, 413);
    house.close().await;
}

/// TEAM-8: who asks too often is told to wait, and for how long; others are not.
#[tokio::test]
async fn who_asks_too_often_waits() {
    let house = House::with(|options| options.requests = 20).await;
    let (one, other) = (house.token("One", Level::Read).await, house.token("Other", Level::Read).await);
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.push(call(&house, "GET", "", &one, None, None).await.0);
    }
    assert!(answers.contains(&404) && answers.contains(&429), "{answers:?}");
    assert_eq!(call(&house, "GET", "", &other, None, None).await.0, 404);
    house.clock.fetch_add(60_000, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(call(&house, "GET", "", &one, None, None).await.0, 404);
    house.close().await;
}

/// TEAM-8: a connection that sends its head or its body byte by byte is cut, and does not keep others from being served.
#[tokio::test]
async fn a_slow_client_is_cut() {
    let house = House::with(|options| options.body_patience = std::time::Duration::from_millis(50)).await;
    let token = house.token("Slow", Level::Write).await;
    let host = house.address().strip_prefix("http://").unwrap().to_owned();
    let mut slow = tokio::net::TcpStream::connect(&host).await.unwrap();
    let head = format!(
        "PUT /api/claude_code/team_memory?repo=acme/rocket HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(call(&house, "GET", "", &token, None, None).await.0, 404);
    house.close().await;
}

/// TEAM-8: health, readiness and counters are there for those who run it; counters name routes, never repositories.
#[tokio::test]
async fn those_who_run_it_can_look() {
    let house = House::open().await;
    let token = house.token("Grace", Level::Read).await;
    call(&house, "GET", "", &token, None, None).await;
    let text = async |path: &str| send("GET", &format!("{}{path}", house.address()), "", None, None).await;
    assert_eq!(text("/health").await.0, 200);
    assert_eq!(text("/ready").await.0, 200);
    let metrics = text("/metrics").await.2;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("status=\"404\"} 1") && !metrics.contains("rocket"), "{metrics}");
    house.store.close().await;
    assert_eq!(text("/ready").await.0, 503, "without its database it is not ready");
    house.close().await;
}

/// TEAM-8: joining by invitation, rotating a token, granting and taking away, bringing an old text back: by HTTP.
#[tokio::test]
async fn a_server_is_administered_by_http() {
    let house = House::open().await;
    let ada = house.admin_token().await;
    let post = async |path: &str, token: &str, body: serde_json::Value| {
        send("POST", &format!("{}{path}", house.address()), token, None, Some(body)).await
    };
    let invitation = json!({"repo": "acme/rocket", "level": "write"});
    let (status, _, answer) = post("/api/team/invitations", &ada, invitation.clone()).await;
    assert_eq!(status, 200, "{answer}");
    let joining = json!({"invitation": answer["invitation"], "name": "Grace"});
    let (status, _, joined) = post("/api/team/join", "", joining.clone()).await;
    assert_eq!(status, 200, "{joined}");
    assert_eq!(post("/api/team/join", "", joining).await.0, 404, "an invitation is used once");
    let grace = joined["token"].as_str().unwrap().to_owned();
    assert_eq!(post("/api/team/invitations", &grace, invitation).await.0, 403);
    for text in ["one", "two"] {
        let body = json!({"entries": {"a.md": text}});
        assert_eq!(call(&house, "PUT", "", &grace, None, Some(body)).await.0, 200);
    }
    let body = json!({"repo": "acme/rocket", "key": "a.md", "version": 1});
    assert_eq!(post("/api/team/restore", &grace, body).await.0, 200);
    let (_, _, now) = call(&house, "GET", "", &grace, None, None).await;
    assert_eq!(now["content"]["entries"]["a.md"], "one");
    let (_, _, rotated) = post("/api/team/tokens", &grace, json!({})).await;
    assert_eq!(call(&house, "GET", "", &grace, None, None).await.0, 401);
    let grace = rotated["token"].as_str().unwrap();
    let rights = format!("{}/api/team/rights", house.address());
    let none = json!({"repo": "acme/rocket", "member": "Grace", "level": null});
    assert_eq!(send("PUT", &rights, &ada, None, Some(none)).await.0, 200);
    assert_eq!(call(&house, "GET", "", grace, None, None).await.0, 403);
    house.close().await;
}

/// TEAM-8: connections that send the head of a request byte by byte are cut, however many they are; others are served
/// meanwhile.
#[tokio::test]
async fn slow_heads_are_cut() {
    let house = House::impatient(std::time::Duration::from_millis(500)).await;
    let token = house.token("Grace", Level::Read).await;
    let host = house.address().strip_prefix("http://").unwrap().to_owned();
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = tokio::net::TcpStream::connect(&host).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ").await.unwrap();
        slow.push(stream);
    }
    assert_eq!(call(&house, "GET", "", &token, None, None).await.0, 404, "others are served meanwhile");
    for mut stream in slow {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await; // it is over, by an end or by a reset
    }
    house.close().await;
}

/// TEAM-8: ten thousand entries at once are refused whole, and that is written down.
#[tokio::test]
async fn ten_thousand_entries_are_refused() {
    let house = House::open().await;
    let token = house.token("Mallory", Level::Write).await;
    let entries: serde_json::Map<_, _> = (0..10_000).map(|number| (format!("{number}.md"), json!("x"))).collect();
    let (status, _, answer) = call(&house, "PUT", "", &token, None, Some(json!({"entries": entries}))).await;
    assert_eq!((status, &answer["error"]["details"]["received_entries"]), (413, &json!(10_000)));
    assert_eq!(call(&house, "GET", "", &token, None, None).await.0, 404, "nothing was written");
    let bad = json!({"entries": {"../x": "1"}});
    assert_eq!(call(&house, "PUT", "", &token, None, Some(bad)).await.0, 400);
    let told = house.store.audit().newest(Some(&super::house::repository()), 2).await.unwrap();
    let refused = |line: &team::store::AuditLine| line.action == team::store::Action::Refused && line.who == "Mallory";
    assert!(told.iter().all(refused) && told[0].detail.contains("../x"), "{told:?}");
    house.close().await;
}

/// TEAM-8: a token that was rotated, revoked or cut, and an invitation that was used, count no more when they are shown again.
#[tokio::test]
async fn what_was_used_up_counts_no_more() {
    let house = House::open().await;
    let first = house.token("Grace", Level::Write).await;
    let tokens = format!("{}/api/team/tokens", house.address());
    let (_, _, rotated) = send("POST", &tokens, &first, None, Some(json!({}))).await;
    let second = rotated["token"].as_str().unwrap().to_owned();
    let (_, _, known) = send("GET", &tokens, &second, None, None).await;
    assert!(!known.to_string().contains(&second), "a token is shown once");
    let id = known["tokens"][0]["id"].as_str().unwrap();
    assert_eq!(send("DELETE", &format!("{tokens}/{id}"), &second, None, None).await.0, 200);
    for used in [&first, &second, &second[..second.len() - 5]] {
        assert_eq!(call(&house, "GET", "", used, None, None).await.0, 401, "{used}");
    }
    house.close().await;
}

/// TEAM-8: on the way out a server finishes what is under way and takes no more.
#[tokio::test]
async fn what_is_under_way_is_finished() {
    let mut house = House::open().await;
    let token = house.token("Grace", Level::Write).await;
    let host = house.address().strip_prefix("http://").unwrap().to_owned();
    let body = json!({"entries": {"a.md": "said in time"}}).to_string();
    let head = format!(
        "PUT /api/claude_code/team_memory?repo=acme/rocket HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut writer = tokio::net::TcpStream::connect(&host).await.unwrap();
    writer.write_all(head.as_bytes()).await.unwrap();
    // It reads the body: the request is under way.
    let mut said = [0; 25];
    writer.read_exact(&mut said).await.unwrap();
    assert!(said.starts_with(b"HTTP/1.1 100"));
    let stopping = house.stopping();
    tokio::pin!(stopping);
    assert!(futures_util::poll!(&mut stopping).is_pending(), "it waits for what is under way");
    writer.write_all(body.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let (_, read) = tokio::join!(stopping, writer.read_to_end(&mut answer));
    read.unwrap();
    assert!(String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    assert!(tokio::net::TcpStream::connect(&host).await.is_err(), "nobody is let in any more");
    let kept = house.store.entries().read(&super::house::repository(), 0).await.unwrap().unwrap();
    assert_eq!(kept.content.entries.len(), 1);
    house.close().await;
}

/// TEAM-8: a repository is removed by its admin alone, with its entries and its history; what was done stays in the audit log.
#[tokio::test]
async fn an_admin_removes_a_repository() {
    let house = House::open().await;
    let (writer, admin) = (house.token("Willy", Level::Write).await, house.token("Ann", Level::Admin).await);
    let body = json!({"entries": {"a.md": "one"}});
    assert_eq!(call(&house, "PUT", "", &writer, None, Some(body)).await.0, 200);
    let address = format!("{}/api/team/repositories?repo=acme/rocket", house.address());
    assert_eq!(send("DELETE", &address, &writer, None, None).await.0, 403);
    assert_eq!(send("DELETE", &address, &admin, None, None).await.0, 200);
    let key = "a.md".parse().unwrap();
    assert!(house.store.history().versions(&super::house::repository(), &key).await.unwrap().is_empty());
    let told = house.store.audit().newest(None, 1).await.unwrap();
    assert_eq!((told[0].action, told[0].who.as_str()), (team::store::Action::RemovedRepository, "Ann"));
    house.close().await;
}
