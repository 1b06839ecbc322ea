//! One suite, on every database: what the store promises.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use team::protocol::{EntryWrite, HistoryQuestion};
use team::store::{Action, Invitation, Level, Member, RepositoryLimits, Store};
use team::{EntryKey, Error, Repository, checksum};

use super::databases::Postgres;

const NOW: i64 = 1_800_000_000_000;
const WEEK: i64 = 7 * 24 * 60 * 60 * 1000;

fn repository() -> Repository {
    "acme/rocket".parse().unwrap()
}

fn key(text: &str) -> EntryKey {
    text.parse().unwrap()
}

fn texts(entries: &[(&str, &str)]) -> EntryWrite {
    let entries = entries.iter().map(|(name, text)| (key(name), (*text).to_owned())).collect();
    EntryWrite { entries, ..EntryWrite::default() }
}

fn deletes(keys: &[&str]) -> EntryWrite {
    EntryWrite { deletes: keys.iter().map(|name| key(name)).collect(), ..EntryWrite::default() }
}

async fn admin(store: &Store) -> Member {
    let invitation = store.invitations().first(NOW).await.unwrap().unwrap();
    store.invitations().accept(invitation.reveal(), "Ada", None, "laptop", NOW).await.unwrap().member
}

async fn put(store: &Store, member: &Member, write: &EntryWrite, expected: Option<&str>) -> Result<String, Error> {
    let written =
        store.entries().write(&repository(), member, write, expected, &RepositoryLimits::default(), NOW).await?;
    Ok(written.checksum)
}

/// TEAM-2: entries are put per key, others stay; checksums tell of each and of the whole; an empty repository is none.
async fn entries_are_put_per_key(store: Store) {
    let ada = admin(&store).await;
    assert!(
        store.entries().read(&repository(), 0).await.unwrap().is_none()
            && store.entries().state(&repository()).await.unwrap().is_none()
    );
    let first = put(&store, &ada, &texts(&[("a.md", "one"), ("b/c.md", "two")]), None).await.unwrap();
    let second = put(&store, &ada, &texts(&[("a.md", "three")]), Some(&first)).await.unwrap();
    let snapshot = store.entries().read(&repository(), 0).await.unwrap().unwrap();
    assert_eq!((snapshot.version, &snapshot.checksum), (2, &second));
    assert_eq!(snapshot.content.entries[&key("a.md")], "three");
    assert_eq!(snapshot.content.entries[&key("b/c.md")], "two");
    assert_eq!(snapshot.content.entry_checksums[&key("a.md")], checksum::of("three"));
    assert_eq!(snapshot.content.authors[&key("a.md")].name, "Ada");
    let hashes = store.entries().hashes(&repository()).await.unwrap().unwrap();
    assert_eq!(hashes.entry_checksums, snapshot.content.entry_checksums);
    let all = hashes.entry_checksums.iter().map(|(key, checksum)| (key, checksum.as_str()));
    assert_eq!(hashes.checksum, checksum::of_all(all));
    let since = store.entries().read(&repository(), 1).await.unwrap().unwrap();
    assert_eq!(since.content.entries.keys().map(EntryKey::as_str).collect::<Vec<_>>(), ["a.md"]);
}

/// TEAM-2: whoever read an older state writes nothing, and hears what the state is.
async fn who_read_an_older_state_writes_nothing(store: Store) {
    let ada = admin(&store).await;
    let first = put(&store, &ada, &texts(&[("a.md", "one")]), None).await.unwrap();
    let second = put(&store, &ada, &texts(&[("a.md", "two")]), Some(&first)).await.unwrap();
    let refused = put(&store, &ada, &texts(&[("a.md", "lost"), ("b.md", "lost")]), Some(&first)).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict { checksum } if checksum == second));
    let snapshot = store.entries().read(&repository(), 0).await.unwrap().unwrap();
    assert_eq!((snapshot.content.entries.len(), snapshot.content.entries[&key("a.md")].as_str()), (1, "two"));
}

/// TEAM-2: of many who write at once under the lock, the sum of what was accepted is the history.
async fn no_update_is_lost_under_contention(store: Store) {
    let ada = admin(&store).await;
    let tasks: Vec<_> = (0..8)
        .map(|who| {
            let (store, ada) = (store.clone(), ada.clone());
            tokio::spawn(async move {
                let mut accepted = 0;
                for round in 0..10 {
                    loop {
                        let state = store.entries().state(&repository()).await.unwrap();
                        let expected = state.map(|state| state.checksum).unwrap_or_default();
                        let write = texts(&[("count.md", &format!("{who} {round}"))]);
                        match put(&store, &ada, &write, Some(&expected)).await {
                            Ok(_) => break accepted += 1,
                            Err(Error::Conflict { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
                accepted
            })
        })
        .collect();
    let mut accepted = 0;
    for task in tasks {
        accepted += task.await.unwrap();
    }
    let history = store.history().versions(&repository(), &key("count.md")).await.unwrap();
    let distinct: BTreeSet<_> = history.iter().filter_map(|version| version.text.clone()).collect();
    assert_eq!((accepted, history.len(), distinct.len()), (80, 80, 80));
    assert_eq!(store.entries().state(&repository()).await.unwrap().unwrap().version, 80);
}

/// TEAM-2: who leaves in the middle of a question or of a write harms nobody who comes after.
async fn who_leaves_halfway_harms_nobody(store: Store) {
    let ada = admin(&store).await;
    put(&store, &ada, &texts(&[("a.md", "one")]), None).await.unwrap();
    for polls in 1..10 {
        for _ in 0..2 {
            left_after(polls, store.entries().hashes(&repository())).await;
            left_after(polls, put(&store, &ada, &texts(&[("left.md", "half")]), None)).await;
        }
        let after = (0..4).map(|who| {
            let (store, ada) = (store.clone(), ada.clone());
            tokio::spawn(async move { put(&store, &ada, &texts(&[("a.md", &format!("{polls} {who}"))]), None).await })
        });
        for one in after.collect::<Vec<_>>() {
            one.await.unwrap().unwrap();
        }
    }
}

/// Polls a future so many times, then drops it.
async fn left_after<F: Future>(polls: usize, future: F) {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        left -= 1;
        let ended = future.as_mut().poll(context).is_ready() || left == 0;
        if ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// TEAM-5: a deleted entry leaves a tombstone that readers see, its text stays in the history, and it can come back.
async fn a_deletion_leaves_a_tombstone(store: Store) {
    let ada = admin(&store).await;
    put(&store, &ada, &texts(&[("a.md", "one"), ("b.md", "two")]), None).await.unwrap();
    put(&store, &ada, &deletes(&["a.md"]), None).await.unwrap();
    let snapshot = store.entries().read(&repository(), 1).await.unwrap().unwrap();
    assert_eq!((snapshot.content.deleted.len(), snapshot.content.entries.len()), (1, 0));
    assert!(!store.entries().hashes(&repository()).await.unwrap().unwrap().entry_checksums.contains_key(&key("a.md")));
    let history = store.history().versions(&repository(), &key("a.md")).await.unwrap();
    let told: Vec<Option<&str>> = history.iter().map(|version| version.text.as_deref()).collect();
    assert_eq!(told, [None, Some("one")]);
    put(&store, &ada, &texts(&[("a.md", "again")]), None).await.unwrap();
    assert!(store.entries().hashes(&repository()).await.unwrap().unwrap().deleted.is_empty());
}

/// TEAM-7: names that would be one file on some systems cannot both be there; a change of case is a rename.
async fn twins_are_refused(store: Store) {
    let ada = admin(&store).await;
    put(&store, &ada, &texts(&[("Notes.md", "one")]), None).await.unwrap();
    let refused = put(&store, &ada, &texts(&[("notes.md", "two")]), None).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(_)), "{refused}");
    let mut rename = texts(&[("notes.md", "two")]);
    rename.deletes.insert(key("Notes.md"));
    put(&store, &ada, &rename, None).await.unwrap();
}

/// TEAM-3, TEAM-8: more entries or longer ones than the limit are refused whole; history beyond the retention goes.
async fn limits_hold(store: Store) {
    let ada = admin(&store).await;
    let limits = RepositoryLimits { entries: 2, entry_bytes: 10, versions: 3, ..RepositoryLimits::default() };
    let write = |write| {
        let (store, ada) = (store.clone(), ada.clone());
        async move { store.entries().write(&repository(), &ada, &write, None, &limits, NOW).await }
    };
    write(texts(&[("a.md", "1"), ("b.md", "1")])).await.unwrap();
    let refused = write(texts(&[("c.md", "1")])).await.unwrap_err();
    assert!(matches!(refused, Error::TooMany { most: 2, received: 3 }), "{refused}");
    assert!(matches!(write(texts(&[("a.md", "12345678901")])).await.unwrap_err(), Error::Refused(_)));
    for round in 0..5 {
        write(texts(&[("a.md", &round.to_string())])).await.unwrap();
    }
    let history = store.history().versions(&repository(), &key("a.md")).await.unwrap();
    let told: Vec<&str> = history.iter().filter_map(|version| version.text.as_deref()).collect();
    assert_eq!(told, ["4", "3", "2"]);
    assert_eq!(store.history().versions(&repository(), &key("b.md")).await.unwrap().len(), 1);
}

/// TEAM-8: a token stands for its member until it is revoked or its time is over; a cut or changed one for nobody.
async fn tokens_stand_for_members(store: Store) {
    let ada = admin(&store).await;
    let token = store.tokens().issue(&ada, "ci", Some(NOW + 10), NOW).await.unwrap();
    let token = token.reveal();
    assert_eq!(store.tokens().member(token, NOW).await.unwrap().unwrap().name, "Ada");
    assert!(store.tokens().member(token, NOW + 10).await.unwrap().is_none(), "its time is over");
    let changed = format!("{}0", &token[..token.len() - 1]);
    let other = format!("{}1", &token[..token.len() - 1]);
    for wrong in [&token[..token.len() - 1], &token[..30], "", "cairn_team_", &format!("{token}0")] {
        assert!(store.tokens().member(wrong, NOW).await.unwrap().is_none(), "{wrong}");
    }
    assert!(
        store.tokens().member(&changed, NOW).await.unwrap().is_none()
            || store.tokens().member(&other, NOW).await.unwrap().is_none()
    );
    let rotated = store.tokens().rotate(token, NOW).await.unwrap();
    assert!(store.tokens().member(token, NOW).await.unwrap().is_none(), "the old one counts no more");
    assert!(store.tokens().member(rotated.reveal(), NOW).await.unwrap().is_some());
    let known = store.tokens().of(&ada).await.unwrap();
    let ci = known.iter().find(|known| known.label == "ci").unwrap();
    store.tokens().revoke(&ada, &ada, &ci.id, NOW).await.unwrap();
    assert!(store.tokens().member(rotated.reveal(), NOW).await.unwrap().is_none());
    assert!(format!("{rotated:?}").len() < 12, "Debug shows no secret");
}

/// TEAM-8: rights are per repository and level; a removed member can do nothing, and what it wrote stays under its name.
async fn rights_are_per_repository(store: Store) {
    let ada = admin(&store).await;
    let invitation = Invitation::Repository(repository(), Level::Write);
    let invitation = store.invitations().create(&ada, &invitation, NOW).await.unwrap();
    let grace = store.invitations().accept(invitation.reveal(), "Grace", None, "laptop", NOW).await.unwrap();
    let other: Repository = "acme/other".parse().unwrap();
    assert_eq!(store.repositories().level(&grace.member, &repository()).await.unwrap(), Some(Level::Write));
    assert_eq!(store.repositories().level(&grace.member, &other).await.unwrap(), None);
    assert_eq!(store.repositories().level(&ada, &other).await.unwrap(), Some(Level::Admin));
    assert_eq!(store.repositories().visible_to(&grace.member).await.unwrap(), [repository()]);
    put(&store, &grace.member, &texts(&[("a.md", "hers")]), None).await.unwrap();
    store.repositories().grant(&ada, &grace.member, &repository(), Some(Level::Read), NOW).await.unwrap();
    assert_eq!(store.repositories().level(&grace.member, &repository()).await.unwrap(), Some(Level::Read));
    assert_eq!(store.repositories().rights(&repository()).await.unwrap().len(), 1);
    store.members().remove(&ada, "Grace", NOW).await.unwrap();
    assert!(store.tokens().member(grace.token.reveal(), NOW).await.unwrap().is_none());
    let snapshot = store.entries().read(&repository(), 0).await.unwrap().unwrap();
    assert_eq!(snapshot.content.authors[&key("a.md")].name, "Grace");
    assert!(store.members().remove(&ada, "Ada", NOW).await.is_err(), "the last admin stays");
    store.repositories().remove(&ada, &repository(), NOW).await.unwrap();
    assert!(store.entries().read(&repository(), 0).await.unwrap().is_none());
    assert!(store.history().versions(&repository(), &key("a.md")).await.unwrap().is_empty());
}

/// TEAM-8: an invitation is taken up once, within a week; the first one is for an admin, and only while there is nobody.
async fn an_invitation_is_used_once(store: Store) {
    let first = store.invitations().first(NOW).await.unwrap().unwrap();
    let of_second_server = store.invitations().first(NOW).await.unwrap().unwrap();
    let late = store.invitations().accept(first.reveal(), "Ada", None, "x", NOW + WEEK).await;
    assert!(late.is_err());
    let ada = store.invitations().accept(first.reveal(), "Ada", None, "x", NOW).await.unwrap();
    assert!(ada.member.is_admin && store.invitations().accept(first.reveal(), "Eve", None, "x", NOW).await.is_err());
    let late = store.invitations().accept(of_second_server.reveal(), "Eve", None, "x", NOW).await;
    assert!(late.is_err(), "there is a first admin");
    assert!(store.invitations().first(NOW).await.unwrap().is_none());
    let second = store.invitations().create(&ada.member, &Invitation::Admin, NOW).await.unwrap();
    assert!(matches!(
        store.invitations().accept(second.reveal(), "Ada", None, "x", NOW).await.unwrap_err(),
        Error::Exists(_)
    ));
    store.invitations().accept(second.reveal(), "Grace", Some("issuer|7"), "x", NOW).await.unwrap();
    assert_eq!(store.members().of_subject("issuer|7").await.unwrap().unwrap().name, "Grace");
}

/// TEAM-8: of many who join at once under one name, each with an invitation of its own, one does; the others are told that
/// the name is taken, and can join under another.
async fn a_name_is_taken_once(store: Store) {
    let ada = admin(&store).await;
    let mut joining = Vec::new();
    for number in 0..20 {
        let invitation = store.invitations().create(&ada, &Invitation::Admin, NOW).await.unwrap();
        let store = store.clone();
        joining.push(tokio::spawn(async move {
            match store.invitations().accept(invitation.reveal(), "Grace", None, "x", NOW).await {
                Err(Error::Exists(_)) => store
                    .invitations()
                    .accept(invitation.reveal(), &format!("Grace {number}"), None, "x", NOW)
                    .await
                    .map(|_| 0),
                other => other.map(|_| 1),
            }
        }));
    }
    let mut joined = 0;
    for one in joining {
        joined += one.await.unwrap().unwrap();
    }
    assert_eq!((joined, store.members().all().await.unwrap().len()), (1, 21));
}

/// TEAM-5, TEAM-8: what never was there leaves no tombstone, and of many only the newest are told of.
async fn tombstones_are_bounded(store: Store) {
    let ada = admin(&store).await;
    let limits = RepositoryLimits { tombstones: 3, ..RepositoryLimits::default() };
    let never: Vec<String> = (0..1_000).map(|number| format!("never{number}.md")).collect();
    put(&store, &ada, &deletes(&never.iter().map(String::as_str).collect::<Vec<_>>()), None).await.unwrap();
    assert!(store.entries().read(&repository(), 0).await.unwrap().unwrap().content.deleted.is_empty());
    assert!(store.history().versions(&repository(), &key("never1.md")).await.unwrap().is_empty());
    for number in 0..6 {
        let name = format!("{number}.md");
        for write in [texts(&[(&name, "x")]), deletes(&[&name])] {
            store.entries().write(&repository(), &ada, &write, None, &limits, NOW).await.unwrap();
        }
    }
    let told = store.entries().hashes(&repository()).await.unwrap().unwrap().deleted;
    assert_eq!(told.iter().map(EntryKey::as_str).collect::<Vec<_>>(), ["3.md", "4.md", "5.md"]);
    assert_eq!(store.history().versions(&repository(), &key("0.md")).await.unwrap().len(), 2, "its history stays");
}

/// TEAM-8: what is both written and deleted is refused, and nothing is done.
async fn one_write_says_one_thing_of_an_entry(store: Store) {
    let ada = admin(&store).await;
    let mut both = texts(&[("a.md", "one")]);
    both.deletes.insert(key("a.md"));
    assert!(matches!(put(&store, &ada, &both, None).await.unwrap_err(), Error::Invalid(_)));
    assert!(store.entries().state(&repository()).await.unwrap().is_none());
}

/// TEAM-8: what was done stands in the audit log, by whom and where, without texts and secrets.
async fn what_was_done_is_audited(store: Store) {
    let ada = admin(&store).await;
    put(&store, &ada, &texts(&[("a.md", "a private text")]), None).await.unwrap();
    store.audit().add("Ada", Action::Refused, Some(&repository()), "b.md: github-pat", NOW).await.unwrap();
    let lines = store.audit().newest(None, 100).await.unwrap();
    let told: Vec<Action> = lines.iter().map(|line| line.action).collect();
    assert_eq!(told, [Action::Refused, Action::Wrote, Action::IssuedToken, Action::Joined, Action::Invited]);
    assert!(!format!("{lines:?}").contains("private"));
    assert_eq!(store.audit().newest(Some(&repository()), 1).await.unwrap()[0].detail, "b.md: github-pat");
}

/// TEAM-8: a visit to the page stands for its member until it ends.
async fn a_visit_ends(store: Store) {
    let ada = admin(&store).await;
    let cookie = store.visits().begin(&ada, NOW).await.unwrap();
    let visit = store.visits().find(cookie.reveal(), NOW).await.unwrap().unwrap();
    assert!(visit.member == ada && visit.form.len() > 32);
    assert!(store.visits().find(cookie.reveal(), NOW + WEEK).await.unwrap().is_none());
    assert!(store.tokens().member(cookie.reveal(), NOW).await.unwrap().is_none(), "a cookie is no token");
    store.visits().end(cookie.reveal()).await.unwrap();
    assert!(store.visits().find(cookie.reveal(), NOW).await.unwrap().is_none());
}

/// TEAM-9: the history says which texts it knows and whose were replaced unseen; a text that it lost goes back below what is
/// there; what is read in parts is all there is.
async fn the_history_can_be_asked(store: Store) {
    let ada = admin(&store).await;
    let invitation = Invitation::Repository(repository(), Level::Write);
    let invitation = store.invitations().create(&ada, &invitation, NOW).await.unwrap();
    let bob = store.invitations().accept(invitation.reveal(), "Bob", None, "desk", NOW).await.unwrap().member;
    let made_from = |write: EntryWrite, base: &str| {
        let bases = write.entries.keys().map(|key| (key.clone(), base.to_owned())).collect();
        EntryWrite { bases, ..write }
    };
    put(&store, &ada, &made_from(texts(&[("a.md", "one"), ("b.md", "one")]), ""), None).await.unwrap();
    put(&store, &ada, &made_from(texts(&[("a.md", "Ada's")]), &checksum::of("one")), None).await.unwrap();
    put(&store, &bob, &made_from(texts(&[("a.md", "Bob's"), ("b.md", "Bob's")]), &checksum::of("one")), None)
        .await
        .unwrap();
    let told = store.history().overwritten(&repository(), &ada, 1).await.unwrap();
    assert_eq!(told.len(), 1, "who was seen is not told: {told:?}");
    assert_eq!((told[0].key.as_str(), told[0].version, told[0].by.as_str()), ("a.md", 2, "Bob"));
    assert!(store.history().overwritten(&repository(), &bob, 0).await.unwrap().is_empty());
    assert!(store.history().overwritten(&repository(), &ada, 3).await.unwrap().is_empty());
    let ask = |text: &str| HistoryQuestion { entries: [(key("a.md"), checksum::of(text))].into() };
    let limits = RepositoryLimits::default();
    assert!(store.history().known(&repository(), &ask("one"), &limits).await.unwrap().known.contains(&key("a.md")));
    let lost = store.history().known(&repository(), &ask("lost"), &limits).await.unwrap();
    assert!(lost.known.is_empty() && lost.trimmed.is_empty());
    assert_eq!(lost.checksum, store.entries().state(&repository()).await.unwrap().unwrap().checksum);
    let few = RepositoryLimits { versions: 3, ..limits };
    assert!(store.history().known(&repository(), &ask("lost"), &few).await.unwrap().trimmed.contains(&key("a.md")));
    let kept = EntryWrite { kept: [(key("a.md"), "lost".to_owned())].into(), ..EntryWrite::default() };
    assert_eq!(put(&store, &ada, &kept, Some(&lost.checksum)).await.unwrap(), lost.checksum, "what is there stays");
    let history = store.history().versions(&repository(), &key("a.md")).await.unwrap();
    let texts: Vec<_> = history.iter().filter_map(|one| one.text.as_deref()).collect();
    assert_eq!((texts, history[0].author.as_str()), (vec!["Bob's", "lost", "Bob's", "Ada's", "one"], "Bob"));
    // Who says what it replaces is late only for that.
    let seen = |name: &str, text: &str| [(key(name), text.to_owned())].into();
    let write = |name: &str, text: &str| EntryWrite { seen: seen(name, text), ..self::texts(&[(name, "new")]) };
    assert!(put(&store, &ada, &write("b.md", &checksum::of("Bob's")), Some("late")).await.is_ok());
    assert!(put(&store, &ada, &write("c.md", ""), Some("late")).await.is_ok());
    for (name, text) in [("b.md", checksum::of("Bob's")), ("a.md", String::new()), ("d.md", checksum::of("x"))] {
        assert!(matches!(put(&store, &ada, &write(name, &text), Some("late")).await, Err(Error::Conflict { .. })));
    }
    assert!(
        put(&store, &ada, &self::texts(&[("e.md", "new")]), Some("late")).await.is_err(),
        "who says nothing is late"
    );
    let first = store.entries().read_part(&repository(), 0, 1).await.unwrap().unwrap();
    let rest = store.entries().read_part(&repository(), first.until.unwrap(), 1).await.unwrap().unwrap();
    assert!(first.content.entries.len() == 1 && rest.content.entries.len() == 1 && rest.until.is_some());
}

/// Runs every case on a database of its own.
macro_rules! suite {
    ($open:expr, $($case:ident),* $(,)?) => {$(
        eprintln!("{}", stringify!($case));
        let store = Store::open(&$open).await.unwrap();
        $case(store.clone()).await;
        store.close().await;
    )*};
    ($open:expr) => {
        suite!($open, entries_are_put_per_key, who_read_an_older_state_writes_nothing,
            no_update_is_lost_under_contention, who_leaves_halfway_harms_nobody, a_deletion_leaves_a_tombstone, twins_are_refused, limits_hold,
            tokens_stand_for_members, rights_are_per_repository, an_invitation_is_used_once, what_was_done_is_audited,
            a_visit_ends, a_name_is_taken_once, tombstones_are_bounded, one_write_says_one_thing_of_an_entry,
            the_history_can_be_asked)
    };
}

/// TEAM-8: the store keeps its promises on SQLite.
#[tokio::test]
async fn the_store_keeps_its_promises_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::cell::Cell::new(0);
    let open = || {
        number.set(number.get() + 1);
        folder.path().join(format!("{}.db", number.get())).display().to_string()
    };
    suite!(open());
}

/// TEAM-8: the store keeps its promises on PostgreSQL, and servers that start together make its tables once.
#[tokio::test]
async fn the_store_keeps_its_promises_on_postgresql() {
    let Some(mut postgres) = Postgres::start() else { return };
    suite!(postgres.database());
    let address = postgres.database();
    let opened: Vec<_> = (0..6)
        .map(|_| {
            let address = address.clone();
            tokio::spawn(async move { Store::open(&address).await.map(drop) })
        })
        .collect();
    for one in opened {
        one.await.unwrap().unwrap();
    }
}

/// TEAM-8: a backup of one database can be read into the other, whole or not at all.
#[tokio::test]
async fn a_backup_moves_between_databases() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = |name: &str| folder.path().join(name).display().to_string();
    let from = Store::open(&sqlite("from.db")).await.unwrap();
    let ada = admin(&from).await;
    let token = from.tokens().issue(&ada, "ci", None, NOW).await.unwrap();
    put(&from, &ada, &texts(&[("a.md", "one\nline \"quoted\" ünï"), ("b.md", "two")]), None).await.unwrap();
    put(&from, &ada, &deletes(&["b.md"]), None).await.unwrap();
    let mut backup = Vec::new();
    from.back_up(&mut backup).await.unwrap();
    let cut = backup[..backup.len() - 20].to_vec();
    let mut postgres = Postgres::start();
    let mut others = vec![sqlite("to.db")];
    others.extend(postgres.as_mut().map(Postgres::database));
    for address in others {
        let to = Store::open(&address).await.unwrap();
        assert!(to.restore(&mut cut.as_slice(), NOW).await.is_err(), "a cut backup is refused");
        assert!(to.members().all().await.unwrap().is_empty());
        to.restore(&mut backup.as_slice(), NOW).await.unwrap();
        assert_eq!(
            to.entries().read(&repository(), 0).await.unwrap(),
            from.entries().read(&repository(), 0).await.unwrap()
        );
        assert_eq!(to.history().versions(&repository(), &key("b.md")).await.unwrap().len(), 2);
        assert_eq!(to.tokens().member(token.reveal(), NOW).await.unwrap().unwrap().name, "Ada");
        assert!(to.restore(&mut backup.as_slice(), NOW).await.is_err(), "only into an empty database");
        to.close().await;
    }
}
