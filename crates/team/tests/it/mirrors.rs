//! Folders of several members, kept in step by a server.

use team::RequestTrouble;
use team::report::EarlyEnd;
use team::sync::Deletions;

use super::house::{House, secret};

/// TEAM-3: what one member writes, the others have after a pull; files that did not change are not touched.
#[tokio::test]
async fn what_one_writes_the_others_have() {
    let house = House::open().await;
    let (ada, grace) = (house.folder("ada").await, house.folder("grace").await);
    ada.write("MEMORY.md", "- [Deploy](deploy.md)");
    ada.write("api/auth.md", "tokens");
    assert_eq!(ada.push().await.unwrap().sent.len(), 2);
    assert_eq!(grace.pull().await.unwrap().taken.len(), 2);
    assert_eq!(grace.read("api/auth.md").unwrap(), "tokens");
    let before = std::fs::metadata(grace.file("MEMORY.md")).unwrap().modified().unwrap();
    ada.write("api/auth.md", "tokens and keys");
    ada.push().await.unwrap();
    let done = grace.push().await.unwrap();
    assert_eq!((done.taken.len(), done.sent.len()), (1, 0));
    assert_eq!(std::fs::metadata(grace.file("MEMORY.md")).unwrap().modified().unwrap(), before);
    assert_eq!(ada.all(), grace.all());
    house.close().await;
}

/// TEAM-3: where both changed an entry the one who pushes wins, it is told, and the other text stays in the history.
#[tokio::test]
async fn a_conflict_is_told_and_both_texts_are_kept() {
    let house = House::open().await;
    let (ada, grace) = (house.folder("ada").await, house.folder("grace").await);
    ada.write("a.md", "one");
    ada.push().await.unwrap();
    grace.pull().await.unwrap();
    ada.write("a.md", "Ada's");
    grace.write("a.md", "Grace's");
    ada.push().await.unwrap();
    let done = grace.push().await.unwrap();
    assert_eq!((done.conflicts.len(), done.sent.len()), (1, 1));
    ada.pull().await.unwrap();
    assert_eq!(ada.read("a.md").unwrap(), "Grace's");
    let repository = super::house::repository();
    let history = house.store.history().versions(&repository, &"a.md".parse().unwrap()).await.unwrap();
    let texts: Vec<&str> = history.iter().filter_map(|version| version.text.as_deref()).collect();
    assert_eq!(texts, ["Grace's", "Ada's", "one"]);
    house.close().await;
}

/// TEAM-5: a deletion travels; with tombstones off a deleted file returns.
#[tokio::test]
async fn a_deletion_travels() {
    let house = House::open().await;
    let (ada, mut grace) = (house.folder("ada").await, house.folder("grace").await);
    ada.write("a.md", "one");
    ada.write("b.md", "two");
    ada.push().await.unwrap();
    grace.pull().await.unwrap();
    ada.remove("a.md");
    assert_eq!(ada.push().await.unwrap().deleted.len(), 1);
    assert_eq!(grace.pull().await.unwrap().removed.len(), 1);
    assert_eq!(grace.read("a.md"), None);
    grace.deletions = Deletions::ComeBack;
    grace.remove("b.md");
    assert_eq!(grace.push().await.unwrap().taken.len(), 1);
    assert_eq!(grace.read("b.md").unwrap(), "two");
    house.close().await;
}

/// TEAM-6, TEAM-7: secrets, links, odd names and files that are no text stay where they are, and are told.
#[tokio::test]
async fn what_must_not_be_shared_stays() {
    let house = House::open().await;
    let ada = house.folder("ada").await;
    ada.write("good.md", "fine");
    ada.write("secret.md", &format!("key {}", secret()));
    ada.write("odd%2e.md", "x");
    std::fs::write(ada.file("binary.md"), [0xff, 0xfe]).unwrap();
    std::fs::write(ada.file("large.md"), "x".repeat(250_001)).unwrap();
    let outside = ada.file("../outside.txt");
    std::fs::write(&outside, "outside").unwrap();
    std::os::unix::fs::symlink(&outside, ada.file("link.md")).unwrap();
    let done = ada.push().await.unwrap();
    assert_eq!(done.sent.iter().map(|key| key.as_str()).collect::<Vec<_>>(), ["good.md"]);
    assert_eq!(done.left.len(), 5, "{:?}", done.left);
    assert!(done.left["secret.md"].contains("github-pat") && !format!("{done:?}").contains(&secret()));
    house.close().await;
}

/// TEAM-7: a link planted in the folder is never written through.
#[tokio::test]
async fn a_planted_link_is_not_written_through() {
    let house = House::open().await;
    let (ada, grace) = (house.folder("ada").await, house.folder("grace").await);
    ada.write("sub/a.md", "one");
    ada.write("b.md", "two");
    ada.push().await.unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("victim"), "mine").unwrap();
    std::os::unix::fs::symlink(outside.path(), grace.file("sub")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("victim"), grace.file("b.md")).unwrap();
    let _ = grace.pull().await;
    assert_eq!(std::fs::read_to_string(outside.path().join("victim")).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    house.close().await;
}

/// TEAM-3: as many entries are sent as the server keeps, the rest is told; and when it keeps more, they are sent.
#[tokio::test]
async fn a_full_repository_takes_what_fits() {
    let mut house = House::with(|options| options.limits.entries = 2).await;
    let ada = house.folder("ada").await;
    for name in ["a.md", "b.md", "c.md", "d.md"] {
        ada.write(name, name);
    }
    for sent in [2, 0] {
        let done = ada.push().await.unwrap();
        assert_eq!((done.sent.len(), done.limit, done.not_sent.len()), (sent, Some(2), 2));
    }
    house.limit(3).await;
    let ada = house.again(&ada);
    let done = ada.push().await.unwrap();
    assert_eq!((done.sent.len(), done.limit, done.not_sent.len()), (1, Some(3), 1));
    house.limit(1_000).await;
    let done = house.again(&ada).push().await.unwrap();
    assert_eq!((done.sent.len(), done.limit), (1, None), "the limit is forgotten");
    house.close().await;
}

/// TEAM-3: members that push at the same time lose nothing and end alike.
#[tokio::test]
async fn members_that_push_together_converge() {
    let house = House::open().await;
    let mut desks = Vec::new();
    for who in 0..5 {
        let desk = house.folder(&format!("member{who}")).await;
        for number in 0..4 {
            desk.write(&format!("{who}/{number}.md"), &format!("{who} {number}"));
        }
        desks.push(std::sync::Arc::new(desk));
    }
    let tasks: Vec<_> = desks
        .iter()
        .cloned()
        .map(|desk| {
            tokio::spawn(async move {
                loop {
                    match desk.push().await {
                        Ok(_) => break,
                        Err(EarlyEnd::Server(RequestTrouble::Conflict)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for desk in &desks {
        desk.push().await.unwrap();
    }
    assert!(desks.iter().all(|desk| desk.all() == desks[0].all() && desk.all().len() == 20));
    house.close().await;
}
