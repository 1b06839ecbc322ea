//! Who is no member: what others may still do while somebody tries, and how often an issuer is asked for it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use team::serve::Issuer;
use team::store::Store;

use super::house::{House, NOW, send};
use super::office::Office;

/// A client that comes from another address of this machine.
fn from(address: &str) -> reqwest::Client {
    let address: std::net::IpAddr = address.parse().unwrap();
    team::client::http().no_proxy().local_address(address).build().unwrap()
}

/// TEAM-8: joining, signing in and asking for the issuer are limited by address: who tries too often keeps nobody else
/// from it.
#[tokio::test]
async fn who_tries_too_often_keeps_nobody_else_out() {
    let house = House::with(|options| options.requests = 20).await;
    let invitation =
        house.store.invitations().create(&house.admin, &team::store::Invitation::Admin, NOW).await.unwrap();
    let join = async |client: &reqwest::Client, invitation: &str| {
        let address = format!("{}/api/team/join", house.address());
        client.post(address).json(&json!({"invitation": invitation, "name": "Bob"})).send().await.unwrap()
    };
    let sign_in = async |client: &reqwest::Client| {
        let address = format!("{}/sign-in", house.address());
        client.post(address).body("token=wrong").send().await.unwrap().status().as_u16()
    };
    let (eve, bob) = (from("127.0.0.2"), from("127.0.0.3"));
    let mut refused = None;
    for _ in 0..10 {
        let answer = join(&eve, "wrong").await;
        refused = (answer.status() == 429).then(|| answer.headers()["retry-after"].to_str().unwrap().to_owned());
    }
    assert!(refused.is_some_and(|seconds| seconds.parse::<u64>().unwrap() > 0));
    assert_eq!(sign_in(&eve).await, 429, "it is one allowance");
    assert_eq!(sign_in(&bob).await, 401);
    assert_eq!(join(&bob, invitation.reveal()).await.status(), 200);
    house.close().await;
}

/// TEAM-8: all strangers together have an allowance, too.
#[tokio::test]
async fn many_strangers_share_an_allowance() {
    let house = House::with(|options| options.requests = 4).await;
    let mut answers = Vec::new();
    for number in 2..40 {
        let address = format!("{}/sign-in", house.address());
        let client = from(&format!("127.0.0.{number}"));
        answers.push(client.post(address).body("token=wrong").send().await.unwrap().status().as_u16());
    }
    assert!(answers.starts_with(&[401; 10]) && answers.ends_with(&[429]), "{answers:?}");
    house.close().await;
}

/// TEAM-8: an issuer is asked once for many sign-ins, not at all for what cannot be a token of its own, and again after a
/// while.
#[tokio::test]
async fn an_issuer_is_not_asked_for_every_stranger() {
    let office = Office::open(NOW / 1000).await;
    let domain = Some("example.org".to_owned());
    let issuer = Issuer { address: office.address.clone(), client: "cairn".to_owned(), secret: None, domain };
    let house = House::with(|options| options.issuer = Some(issuer)).await;
    let hand_in = async |id_token: &str| {
        let address = format!("{}/api/team/sign-in", house.address());
        send("POST", &address, "", None, Some(json!({"id_token": id_token}))).await.0
    };
    let mut elsewhere = office.claims("grace@example.org");
    elsewhere["iss"] = json!("http://elsewhere");
    let mut old = office.claims("grace@example.org");
    old["iat"] = json!(i64::MIN);
    for id_token in ["", "x", "a.b.c", &office.signed(&elsewhere), &office.signed(&old)] {
        assert_eq!(hand_in(id_token).await, 401);
    }
    assert_eq!(office.read(), 0, "none of them can be the issuer's");
    let stranger = Office::open(NOW / 1000).await;
    for _ in 0..20 {
        assert_eq!(hand_in(&stranger.signed(&office.claims("grace@example.org"))).await, 401);
        let address = format!("{}/api/team/issuer", house.address());
        assert_eq!(send("GET", &address, "", None, None).await.0, 200);
    }
    assert_eq!(office.read(), 2, "what it publishes, and its keys");
    assert_eq!(hand_in(&office.signed(&office.claims("grace@example.org"))).await, 200);
    assert_eq!(office.read(), 2);
    house.clock.store(NOW + 11 * 60 * 1000, std::sync::atomic::Ordering::Relaxed);
    let mut later = office.claims("grace@example.org");
    later["iat"] = json!(NOW / 1000 + 11 * 60);
    assert_eq!(hand_in(&office.signed(&later)).await, 200);
    assert_eq!(office.read(), 4, "what it said is old by now");
    house.close().await;
}

/// TEAM-8: a database is its owner's alone, with what lies beside it, wherever it is; one that was not is made so.
#[tokio::test]
async fn a_database_is_its_owners_alone() {
    let place = tempfile::tempdir().unwrap();
    let open = async |path: &Path| {
        let store = Store::open(&path.display().to_string()).await.unwrap();
        store.invitations().first(NOW).await.unwrap();
        let mut modes = Vec::new();
        for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
            let entry = entry.unwrap();
            modes.push((
                entry.file_name().into_string().unwrap(),
                entry.metadata().unwrap().permissions().mode() & 0o777,
            ));
        }
        modes.sort();
        store.close().await;
        modes
    };
    let path = place.path().join("team.db");
    let all = ["team.db", "team.db-shm", "team.db-wal"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(open(&path).await, all);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(open(&path).await, all);
}
