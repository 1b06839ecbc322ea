use super::*;

fn key(name: &str) -> EntryKey {
    name.parse().unwrap()
}

fn one(checksum: Option<&str>) -> Checksums {
    checksum.iter().map(|checksum| (key("a"), (*checksum).to_owned())).collect()
}

fn listing(files: Checksums) -> Listing {
    Listing { files, ..Listing::default() }
}

/// A folder with other files beside `a`, so that it is never empty.
fn here(checksum: Option<&str>) -> Listing {
    let mut files = one(checksum);
    files.insert(key("other"), "0".to_owned());
    listing(files)
}

fn state(was: Option<&str>, other: Option<&str>) -> SyncState {
    let mut state = SyncState { met: true, entries: one(was), server: one(other), ..SyncState::default() };
    for side in [&mut state.entries, &mut state.server] {
        side.insert(key("other"), "0".to_owned());
    }
    if other.is_none() {
        state.deleted.insert(key("a"));
    }
    state
}

/// Answer of the history about the text here.
fn past(is: Option<&str>, past: TextHistory) -> PastTexts {
    let told = is.iter().map(|is| (key("a"), ((*is).to_owned(), past))).collect();
    PastTexts { known: told }
}

fn word(plan: &SyncPlan) -> (&'static str, bool) {
    let sets = [
        ("take", &plan.take),
        ("remove", &plan.remove),
        ("send", &plan.send),
        ("delete", &plan.delete),
        ("keep", &plan.keep),
        ("held", &plan.held),
    ];
    let done = sets.iter().find(|(_, set)| !set.is_empty()).map_or("nothing", |(word, _)| word);
    (done, !plan.conflicts.is_empty())
}

/// The action for one entry, in a word, and whether it is a conflict; the history knows the agreed text.
fn done(was: Option<&str>, is: Option<&str>, other: Option<&str>) -> (&'static str, bool) {
    let told = if is.is_some() && is == was { TextHistory::Known } else { TextHistory::Lost };
    word(&plan(&state(was, other), &here(is), &past(is, told), Deletions::Travel))
}

/// TEAM-3: the server wins per key except for what was changed here; where both changed, the text here wins.
#[test]
fn every_case_has_its_answer() {
    assert_eq!(done(None, None, Some("1")), ("take", false), "new there");
    assert_eq!(done(None, Some("1"), None), ("send", false), "new here");
    assert_eq!(done(Some("1"), Some("1"), Some("1")), ("nothing", false));
    assert_eq!(done(Some("1"), Some("1"), Some("2")), ("take", false), "changed there");
    assert_eq!(done(Some("1"), Some("2"), Some("1")), ("send", false), "changed here");
    assert_eq!(done(Some("1"), Some("2"), Some("2")), ("nothing", false), "changed alike");
    assert_eq!(done(Some("1"), Some("2"), Some("3")), ("send", true), "changed on both sides");
    assert_eq!(done(None, Some("2"), Some("3")), ("send", true), "made on both sides");
}

/// TEAM-5: deletions travel; a text that the other side changed meanwhile beats them, and that is told.
#[test]
fn a_text_beats_a_deletion() {
    assert_eq!(done(Some("1"), Some("1"), None), ("remove", false), "deleted there");
    assert_eq!(done(Some("1"), None, Some("1")), ("delete", false), "deleted here");
    assert_eq!(done(Some("1"), None, None), ("nothing", false), "deleted on both sides");
    assert_eq!(done(Some("1"), Some("2"), None), ("send", true), "changed here, deleted there");
    assert_eq!(done(Some("1"), None, Some("2")), ("take", true), "deleted here, changed there");
    let back = plan(&state(Some("1"), Some("1")), &here(None), &PastTexts::default(), Deletions::ComeBack);
    assert_eq!(word(&back), ("take", false), "with tombstones off a deleted file returns");
}

/// TEAM-9: without a common state a text that the history knows gives way, also to a deletion; another one is sent.
#[test]
fn without_a_common_state_old_texts_give_way() {
    let plan_of = |other: Option<&str>, told: TextHistory| {
        let state = SyncState { met: false, ..state(None, other) };
        word(&plan(&state, &here(Some("2")), &past(Some("2"), told), Deletions::Travel))
    };
    assert_eq!(plan_of(Some("3"), TextHistory::Known), ("take", false));
    assert_eq!(plan_of(Some("3"), TextHistory::Lost), ("send", true));
    assert_eq!(plan_of(Some("3"), TextHistory::Trimmed), ("send", true), "it may be an edit");
    assert_eq!(plan_of(Some("3"), TextHistory::Untold), ("send", true), "a server without a history");
    assert_eq!(plan_of(None, TextHistory::Known), ("remove", false));
    // With one, a file that has an old text again was put there by somebody.
    let again = plan(&state(None, None), &here(Some("2")), &PastTexts::default(), Deletions::Travel);
    assert_eq!(word(&again), ("send", false));
    let back = plan(&state(Some("3"), Some("3")), &here(Some("2")), &PastTexts::default(), Deletions::Travel);
    assert_eq!(word(&back), ("send", false), "an old text brought back by hand");
    assert!(questions(&state(Some("3"), Some("3")), &here(Some("2")), &PastTexts::default()).is_empty());
}

/// TEAM-9: a text that the server lost is sent again over an older one, and put into the history below one that is not known
/// to be older.
#[test]
fn what_a_server_lost_it_gets_back() {
    let untouched = |other: Option<&str>, before: &[&str]| {
        let mut state = state(Some("2"), other);
        state.past.insert(key("a"), before.iter().map(|&text| text.to_owned()).collect());
        word(&plan(&state, &here(Some("2")), &past(Some("2"), TextHistory::Lost), Deletions::Travel))
    };
    assert_eq!(untouched(Some("1"), &["1"]), ("send", true), "the server went back");
    assert_eq!(untouched(Some("3"), &["1"]), ("keep", true), "and somebody wrote since");
    assert_eq!(untouched(None, &[]), ("send", true));
    let mut vanished = state(Some("2"), None);
    vanished.deleted.clear();
    let of = |told| word(&plan(&vanished, &here(Some("2")), &past(Some("2"), told), Deletions::Travel));
    assert_eq!(of(TextHistory::Untold), ("send", false), "gone there without a tombstone");
    assert_eq!(of(TextHistory::Known), ("remove", false), "deleted, and its tombstone too");
}

/// TEAM-9: a text that somebody put back below what is there is sent again by who had that one before it, also where the
/// server has changed since it was read.
#[test]
fn what_was_put_back_is_sent_by_who_knows_the_order() {
    for tag in ["as it was read", "changed since"] {
        let answer = HistoryAnswer {
            checksum: "as it was read".to_owned(),
            known: [key("a")].into(),
            put_back: [key("a")].into(),
            ..HistoryAnswer::default()
        };
        let mut past = PastTexts::default();
        past.note(&one(Some("2")), Some(&answer), tag);
        let mut state = state(Some("2"), Some("1"));
        assert_eq!(word(&plan(&state, &here(Some("2")), &past, Deletions::Travel)), ("take", false));
        state.past.insert(key("a"), vec!["1".to_owned()]);
        assert_eq!(word(&plan(&state, &here(Some("2")), &past, Deletions::Travel)), ("send", false));
    }
}

/// TEAM-9: what cannot be listed or shared is neither deleted, nor taken, nor asked about.
#[test]
fn what_cannot_be_seen_is_left_alone() {
    let mut state = state(None, None);
    for name in ["sub/a", "sub/deep/b", "file"] {
        state.entries.insert(key(name), "1".to_owned());
        state.server.insert(key(name), if name == "file" { "2".to_owned() } else { "1".to_owned() });
    }
    let mut here = here(None);
    for name in ["sub", "file"] {
        here.left.insert(name.to_owned(), "it cannot be listed".to_owned());
    }
    assert!(plan(&state, &here, &PastTexts::default(), Deletions::TravelAll).is_empty());
    here.left.clear();
    let seen = plan(&state, &here, &PastTexts::default(), Deletions::Travel);
    assert_eq!((seen.delete.len(), seen.take.len()), (2, 1), "the test can fail");
}

/// TEAM-9: five files or more, and more than a third, are not deleted without a question; a folder that is empty comes back.
#[test]
fn many_deletions_are_asked_about() {
    let of = |all: usize, missing: usize, deletions: Deletions| {
        let keys: Vec<EntryKey> = (0..all).map(|number| key(&format!("f{number:02}"))).collect();
        let texts: Checksums = keys.iter().map(|key| (key.clone(), "1".to_owned())).collect();
        let here = listing(texts.clone().split_off(&key(&format!("f{missing:02}"))));
        let state = SyncState { met: true, entries: texts.clone(), server: texts, ..SyncState::default() };
        word(&plan(&state, &here, &PastTexts::default(), deletions)).0
    };
    assert_eq!((of(10, 4, Deletions::Travel), of(15, 5, Deletions::Travel)), ("delete", "delete"));
    assert_eq!((of(14, 5, Deletions::Travel), of(14, 5, Deletions::TravelAll)), ("held", "delete"));
    assert_eq!(of(14, 5, Deletions::ComeBack), "take");
    assert_eq!((of(3, 3, Deletions::Travel), of(3, 3, Deletions::TravelAll)), ("take", "delete"));
    // What was held stays held when others come and go, until somebody answers.
    let texts: Checksums = (0..9).map(|number| (key(&format!("f{number}")), "1".to_owned())).collect();
    let held = [key("f0")].into();
    let state = SyncState { met: true, entries: texts.clone(), server: texts.clone(), held, ..SyncState::default() };
    let here = listing(texts.into_iter().skip(2).collect());
    let plan = plan(&state, &here, &PastTexts::default(), Deletions::Travel);
    assert_eq!((plan.held, plan.delete), ([key("f0")].into(), [key("f1")].into()));
}

/// TEAM-7, TEAM-9: a file and a folder of one name, and names that differ in case alone, are told and stop nothing.
#[test]
fn names_in_the_way_are_told() {
    let texts = |names: &[&str]| names.iter().map(|name| (key(name), format!("text of {name}"))).collect();
    let server: Checksums = texts(&["api/x.md", "NOTES.md", "ok.md", "dir"]);
    let state = SyncState { met: true, server, ..SyncState::default() };
    let here = listing(texts(&["api", "notes.md", "mine.md", "dir/y.md"]));
    let plan = plan(&state, &here, &PastTexts::default(), Deletions::Travel);
    let names = |keys: Vec<&EntryKey>| keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(names(plan.take.iter().collect()), "ok.md");
    assert_eq!(names(plan.send.iter().collect()), "mine.md");
    assert_eq!(names(plan.not_taken.keys().collect()), "NOTES.md api/x.md dir");
    assert_eq!(names(plan.not_sent.keys().collect()), "api dir/y.md notes.md");
    assert!(!plan.is_empty());
}

/// TEAM-3: batches have at most 200,000 bytes; what is larger travels alone; nothing is lost.
#[test]
fn texts_are_sent_in_batches() {
    let text = |bytes: usize| "x".repeat(bytes);
    let texts: BTreeMap<EntryKey, String> = [("a", 90_000), ("b", 90_000), ("c", 90_000), ("d", 240_000), ("e", 10)]
        .into_iter()
        .map(|(name, bytes)| (key(name), text(bytes)))
        .collect();
    let sent = batches(texts.clone());
    let names: Vec<String> = sent.iter().map(|batch| batch.keys().map(EntryKey::as_str).collect::<String>()).collect();
    assert_eq!(names, ["ab", "c", "d", "e"]);
    assert_eq!(sent.into_iter().flatten().collect::<BTreeMap<_, _>>(), texts);
}
