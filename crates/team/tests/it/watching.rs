//! A folder that is kept in step while somebody works.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use team::watch_folder::{WatchNews, WatchedFolder};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::house::{Desk, House, secret};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn watch(house: &House, desk: &Desk) -> (WatchedFolder, UnboundedReceiver<WatchNews>) {
    let (sender, news) = unbounded_channel();
    let clock = house.clock.clone();
    let clock = Arc::new(move || clock.load(Ordering::SeqCst));
    (WatchedFolder::start(desk.mirror(), clock, Arc::new(move |news| drop(sender.send(news)))), news)
}

/// The next thing that is told; the clock goes on meanwhile.
async fn next(house: &House, news: &mut UnboundedReceiver<WatchNews>) -> WatchNews {
    let later = async {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            house.clock.fetch_add(10_000, Ordering::SeqCst);
        }
    };
    tokio::select! {
        told = tokio::time::timeout(PATIENCE, news.recv()) => told.unwrap().unwrap(),
        () = later => unreachable!(),
    }
}

/// TEAM-3, TEAM-4: what one writes is sent after it, and the other gets it with who wrote it, before and after.
#[tokio::test]
async fn what_one_writes_the_other_gets() {
    let house = House::open().await;
    let (ada, grace) = (house.folder("Ada2").await, house.folder("Grace").await);
    ada.write("old.md", "was here before\n");
    let (ada_watches, mut of_ada) = watch(&house, &ada);
    let WatchNews::Done(done) = next(&house, &mut of_ada).await else { panic!() };
    assert_eq!(done.sent.len(), 1, "what was written before is sent too");
    let (grace_watches, mut of_grace) = watch(&house, &grace);
    let WatchNews::Done(done) = next(&house, &mut of_grace).await else { panic!() };
    assert_eq!(
        (done.changes[0].before.as_deref(), done.changes[0].after.as_deref()),
        (None, Some("was here before\n"))
    );
    assert_eq!(done.changes[0].author.as_deref(), Some("Ada2"));
    ada.write("old.md", "and now\n");
    let WatchNews::Done(done) = next(&house, &mut of_ada).await else { panic!() };
    assert_eq!(done.sent.len(), 1);
    let WatchNews::Done(done) = next(&house, &mut of_grace).await else { panic!() };
    let change = &done.changes[0];
    assert_eq!((change.before.as_deref(), change.after.as_deref()), (Some("was here before\n"), Some("and now\n")));
    // A folder that is empty would come back.
    ada.write("stays.md", "words\n");
    ada.remove("old.md");
    let WatchNews::Done(done) = next(&house, &mut of_ada).await else { panic!() };
    assert_eq!(done.deleted.len(), 1);
    let WatchNews::Done(done) = next(&house, &mut of_grace).await else { panic!() };
    assert_eq!((done.removed.len(), grace.read("old.md")), (1, None));
    // What is written at the very end still goes out.
    ada.write("last.md", "words\n");
    ada_watches.close().await;
    grace_watches.close().await;
    grace.pull().await.unwrap();
    assert_eq!(grace.read("last.md").as_deref(), Some("words\n"));
    house.close().await;
}

/// TEAM-6: a file that holds a secret is told by its rule, once, and never sent.
#[tokio::test]
async fn a_secret_is_told_and_not_sent() {
    let house = House::open().await;
    let ada = house.folder("Ada2").await;
    let (watching, mut news) = watch(&house, &ada);
    ada.write("keys.md", &secret());
    ada.write("good.md", "fine\n");
    let mut told = Vec::new();
    while told.len() < 2 {
        told.push(next(&house, &mut news).await);
    }
    let left = told.iter().find_map(|news| if let WatchNews::Left(left) = news { Some(left) } else { None }).unwrap();
    assert_eq!(left.get("keys.md").map(String::as_str), Some("it holds a secret (github-pat)"));
    assert!(!format!("{told:?}").contains(&secret()));
    assert_eq!(watching.status().left.len(), 1);
    watching.close().await;
    let hashes = house.store.entries().hashes(&super::house::repository()).await.unwrap().unwrap();
    assert_eq!(hashes.entry_checksums.len(), 1);
    house.close().await;
}

/// TEAM-4: who may not write is told so once, and what waits is not tried again and again.
#[tokio::test]
async fn who_may_not_write_is_told_once() {
    let house = House::open().await;
    let ada = house.reader("Ada2").await;
    ada.write("mine.md", "words\n");
    let (watching, mut news) = watch(&house, &ada);
    let WatchNews::Trouble(why) = next(&house, &mut news).await else { panic!() };
    assert!(why.contains("403"), "{why}");
    for _ in 0..20 {
        house.clock.fetch_add(60_000, Ordering::SeqCst);
        tokio::task::yield_now().await;
    }
    assert!(watching.status().is_silent && watching.status().trouble().unwrap().contains("nothing is sent until"));
    watching.close().await;
    assert!(news.try_recv().is_err());
    house.close().await;
}
