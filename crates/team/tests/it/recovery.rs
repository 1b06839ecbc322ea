//! What a folder and a server make of each other after one of them was cut off, moved, restored or lost.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use team::client::Transport;
use team::report::EarlyEnd;
use team::sync::Deletions;
use tokio::sync::Notify;

use super::house::{Desk, House, repository};

/// Two members who have these files alike.
async fn alike(names: &[&str]) -> (House, Desk, Desk) {
    let house = House::open().await;
    let (ada, bob) = (house.folder("ada").await, house.folder("bob").await);
    for name in names {
        ada.write(name, "one");
    }
    ada.push().await.unwrap();
    bob.pull().await.unwrap();
    (house, ada, bob)
}

/// TEAM-9: what was about to be taken is written down before: after a run that was cut off while it put files into the
/// folder, none of them is an edit, and none that is missing a deletion.
#[tokio::test]
async fn what_was_taken_before_a_cut_is_no_edit() {
    let (house, ada, bob) = alike(&["a.md", "b.md", "c.md"]).await;
    let before = std::fs::read(bob.state()).unwrap();
    for name in ["a.md", "b.md", "c.md", "d.md"] {
        ada.write(name, "two");
    }
    ada.push().await.unwrap();
    // The disk as a kill leaves it after the first file: its text is there, and only what was written before.
    let mut state: serde_json::Value = serde_json::from_slice(&before).unwrap();
    let two = team::checksum::of("two");
    state["underway"] = serde_json::json!({"a.md": two, "b.md": two, "c.md": two, "d.md": two});
    std::fs::write(bob.state(), state.to_string()).unwrap();
    bob.write("a.md", "two");
    for name in ["a.md", "b.md"] {
        ada.write(name, "three");
    }
    ada.push().await.unwrap();
    let done = bob.push().await.unwrap();
    assert!(done.sent.is_empty() && done.deleted.is_empty() && done.conflicts.is_empty(), "{done:?}");
    assert_eq!(bob.all(), ada.all());
    house.close().await;
}

/// TEAM-9: the same with nothing written down at all, and with the whole state lost: the history knows what is old.
#[tokio::test]
async fn an_old_text_gives_way_without_a_common_state() {
    let (house, ada, bob) = alike(&["a.md", "b.md", "c.md"]).await;
    ada.write("a.md", "two");
    ada.write("b.md", "two");
    ada.remove("c.md");
    ada.push().await.unwrap();
    bob.write("b.md", "typed by Bob");
    bob.write("new.md", "typed by Bob");
    std::fs::remove_file(bob.state()).unwrap();
    let done = bob.push().await.unwrap();
    assert_eq!(bob.read("a.md").unwrap(), "two", "an old text is replaced");
    assert_eq!(bob.read("c.md"), None, "what was deleted does not come back");
    assert_eq!((done.sent.len(), done.conflicts.len()), (2, 1), "what he typed is sent, and told: {done:?}");
    ada.pull().await.unwrap();
    assert_eq!(ada.all(), bob.all());
    house.close().await;
}

/// A network on which the answer to a write never comes.
struct Deaf {
    http: reqwest::Client,
    arrived: Arc<Notify>,
}

impl Transport for Deaf {
    fn exchange(&self, request: reqwest::Request) -> BoxFuture<'static, Result<reqwest::Response, String>> {
        let (is_write, arrived) = (request.method() == reqwest::Method::PUT, self.arrived.clone());
        let answer = self.http.exchange(request);
        Box::pin(async move {
            let answer = answer.await?;
            if is_write {
                arrived.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(answer)
        })
    }
}

/// TEAM-5, TEAM-9: a text that was sent by a run which was killed before it heard so, and that others deleted since, is not
/// brought back; a new text under that name is sent.
#[tokio::test]
async fn what_was_sent_unnoticed_and_deleted_stays_deleted() {
    let (house, ada, bob) = alike(&["a.md"]).await;
    bob.write("new.md", "one");
    bob.write("other.md", "one");
    let arrived = Arc::new(Notify::new());
    let deaf = bob.over(Arc::new(Deaf { http: team::client::http().build().unwrap(), arrived: arrived.clone() }));
    tokio::select! {
        outcome = deaf.push() => panic!("it ended: {outcome:?}"),
        () = arrived.notified() => {} // and here it is killed
    }
    ada.pull().await.unwrap();
    ada.remove("new.md");
    ada.remove("other.md");
    ada.push().await.unwrap();
    bob.write("other.md", "typed by Bob");
    let done = bob.push().await.unwrap();
    assert_eq!(bob.read("new.md"), None, "{done:?}");
    assert!(done.sent.len() == 1 && done.conflicts.is_empty(), "{done:?}");
    ada.pull().await.unwrap();
    assert_eq!(ada.all(), bob.all());
    house.close().await;
}

/// TEAM-9: a server that moved, by backup or by name, is the same team: nobody's old text replaces a newer one.
#[tokio::test]
async fn a_moved_server_is_the_same_team() {
    let (mut house, ada, bob) = alike(&["a.md", "b.md"]).await;
    ada.write("a.md", "two");
    ada.push().await.unwrap();
    let backup = house.back_up().await;
    house.restore(&backup).await;
    let (ada, bob) = (house.again(&ada), house.again(&bob));
    let done = bob.push().await.unwrap();
    assert_eq!((done.sent.len(), bob.read("a.md").unwrap().as_str()), (0, "two"));
    assert!(ada.push().await.unwrap().is_empty());
    house.close().await;
}

/// TEAM-9: a server that was restored gets back what it lost, whatever was written since; nobody diverges, and a text that
/// somebody wrote meanwhile is not overwritten by who edited nothing.
#[tokio::test]
async fn a_restored_server_gets_back_what_it_lost() {
    let (mut house, ada, bob) = alike(&["one.md", "both.md"]).await;
    let cyd = house.folder("cyd").await;
    cyd.pull().await.unwrap();
    let backup = house.back_up().await;
    for name in ["one.md", "both.md", "two.md", "three.md"] {
        ada.write(name, "newer");
        ada.push().await.unwrap();
    }
    bob.pull().await.unwrap();
    house.restore(&backup).await;
    let (ada, bob, cyd) = (house.again(&ada), house.again(&bob), house.again(&cyd));
    // Versions pass those that were before.
    for round in 0..6 {
        cyd.write("both.md", &format!("Cyd's {round}"));
        cyd.push().await.unwrap();
    }
    for desk in [&bob, &ada, &cyd, &bob, &ada] {
        desk.push().await.unwrap();
    }
    assert_eq!(ada.read("one.md").unwrap(), "newer");
    assert_eq!(ada.read("three.md").unwrap(), "newer");
    assert_eq!(ada.read("both.md").unwrap(), "Cyd's 5", "she edited nothing, Cyd did");
    let history = house.store.history().versions(&repository(), &"both.md".parse().unwrap()).await.unwrap();
    assert!(history.iter().any(|version| version.text.as_deref() == Some("newer")), "{history:?}");
    assert_eq!((history[0].text.as_deref(), history[0].author.as_str()), (Some("Cyd's 5"), "cyd"));
    assert!(ada.all() == bob.all() && bob.all() == cyd.all());
    house.close().await;
}

/// TEAM-9: a text that was sent by a run which did not hear so is one that this folder had. Where a restored server has it
/// in place of what was typed and sent after it, the newer one is sent again.
#[tokio::test]
async fn what_was_sent_unnoticed_does_not_come_back_over_a_newer_text() {
    let (mut house, ada, bob) = alike(&["a.md"]).await;
    bob.write("a.md", "two");
    let arrived = Arc::new(Notify::new());
    let deaf = bob.over(Arc::new(Deaf { http: team::client::http().build().unwrap(), arrived: arrived.clone() }));
    tokio::select! {
        outcome = deaf.push() => panic!("it ended: {outcome:?}"),
        () = arrived.notified() => {} // and here it is killed
    }
    let backup = house.back_up().await;
    bob.write("a.md", "three");
    bob.push().await.unwrap();
    house.restore(&backup).await;
    let (ada, bob) = (house.again(&ada), house.again(&bob));
    for desk in [&bob, &ada, &bob] {
        desk.push().await.unwrap();
    }
    assert_eq!((bob.read("a.md").unwrap().as_str(), ada.read("a.md").unwrap().as_str()), ("three", "three"));
    house.close().await;
}

/// TEAM-9: somebody who had a text that a restored server lost, and none of those before it, puts it back below what is
/// there. Who wrote both knows which is newer, and sends it again.
#[tokio::test]
async fn a_text_that_another_put_back_stands_again_once_its_author_comes() {
    let (mut house, ada, bob) = alike(&["a.md"]).await;
    ada.write("a.md", "two");
    ada.push().await.unwrap();
    let backup = house.back_up().await;
    ada.write("a.md", "three");
    ada.push().await.unwrap();
    bob.pull().await.unwrap(); // who never had "two"
    house.restore(&backup).await;
    let (ada, bob) = (house.again(&ada), house.again(&bob));
    bob.push().await.unwrap();
    assert_eq!(bob.read("a.md").unwrap(), "two", "it cannot be said which is newer");
    for desk in [&ada, &bob] {
        desk.push().await.unwrap();
    }
    assert_eq!((ada.read("a.md").unwrap().as_str(), bob.read("a.md").unwrap().as_str()), ("three", "three"));
    house.close().await;
}

/// TEAM-9: a folder that cannot be listed, or is a link now, is not deleted for all.
#[tokio::test]
async fn what_cannot_be_listed_is_not_deleted() {
    let (house, ada, bob) = alike(&["sub/a.md", "sub/b.md", "c.md"]).await;
    std::fs::rename(bob.file("sub"), bob.file("../elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", bob.file("sub")).unwrap();
    let done = bob.push().await.unwrap();
    assert!(done.deleted.is_empty() && done.taken.is_empty() && done.left.contains_key("sub"), "{done:?}");
    ada.pull().await.unwrap();
    assert_eq!(ada.read("sub/a.md").unwrap(), "one");
    house.close().await;
}

/// TEAM-9: a folder that vanished comes back, though somebody wrote into the new one; one that was emptied does too.
#[tokio::test]
async fn a_folder_that_vanished_comes_back() {
    let (house, _ada, bob) = alike(&["a.md", "b.md", "c.md"]).await;
    std::fs::remove_dir_all(bob.file("")).unwrap();
    bob.write("b.md", "the first words in the new folder");
    let done = bob.push().await.unwrap();
    assert_eq!((done.deleted.len(), done.taken.len(), done.sent.len()), (0, 2, 1), "{done:?}");
    for name in ["a.md", "b.md", "c.md"] {
        bob.remove(name);
    }
    assert_eq!(bob.push().await.unwrap().taken.len(), 3);
    for name in ["a.md", "b.md", "c.md"] {
        bob.remove(name);
    }
    assert_eq!(bob.mirror().push_all_deletions().await.unwrap().deleted.len(), 3, "unless it is said to be meant");
    house.close().await;
}

/// TEAM-9: more than a third of a folder, and at least five files, are not deleted for all without a question.
#[tokio::test]
async fn many_deletions_wait_for_an_answer() {
    let names: Vec<String> = (0..12).map(|number| format!("{number}.md")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (house, ada, mut bob) = alike(&names).await;
    names[..5].iter().for_each(|name| bob.remove(name));
    for _ in 0..2 {
        let done = bob.push().await.unwrap();
        assert_eq!((done.deleted.len(), done.held.len(), done.taken.len()), (0, 5, 0));
        bob.write("new.md", "meanwhile");
    }
    bob.deletions = Deletions::ComeBack;
    assert_eq!(bob.pull().await.unwrap().taken.len(), 5);
    bob.deletions = Deletions::Travel;
    names[..5].iter().for_each(|name| bob.remove(name));
    assert_eq!(bob.mirror().push_all_deletions().await.unwrap().deleted.len(), 5);
    assert_eq!(ada.pull().await.unwrap().removed.len(), 5, "who is told does not ask");
    house.close().await;
}

/// TEAM-9: one run at a time in a folder; another waits, and says who holds it if that takes too long.
#[tokio::test]
async fn one_run_at_a_time() {
    let (house, _ada, bob) = alike(&["a.md"]).await;
    let lock = files::Root::open(bob.file("..")).unwrap().open_lock_file(".team-lock").unwrap();
    assert!(lock.try_lock().unwrap());
    lock.write("4711").unwrap();
    let stopped = bob.mirror().with_patience(Duration::from_millis(60)).push().await.unwrap_err();
    assert!(matches!(&stopped, EarlyEnd::Busy { by } if by == "4711"), "{stopped}");
    let mut waiting = bob.mirror();
    let (done, ()) = tokio::join!(waiting.pull(), async { drop(lock) });
    done.unwrap();
    house.close().await;
}

/// TEAM-3: a repository that is larger than one answer may be is read in parts, by who is new and by who was away.
#[tokio::test]
async fn a_large_repository_is_read_in_parts() {
    let house = House::open().await;
    let (ada, bob) = (house.folder("ada").await, house.folder("bob").await);
    for number in 0..80 {
        ada.write(&format!("{number}.md"), &format!("{number} {}", "word ".repeat(48_000)));
    }
    ada.write("old.md", "goes");
    ada.push().await.unwrap();
    ada.remove("old.md");
    ada.write("0.md", "changed");
    ada.push().await.unwrap();
    let part = house.store.entries().read_part(&repository(), 0, 1_000_000).await.unwrap().unwrap();
    assert!(part.until.is_some() && part.content.entries.len() < 10, "the test can fail: {:?}", part.until);
    assert_eq!(bob.pull().await.unwrap().taken.len(), 80);
    assert!(bob.all() == ada.all() && bob.pull().await.unwrap().is_empty());
    house.close().await;
}
