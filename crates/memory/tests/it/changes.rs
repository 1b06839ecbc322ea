//! What agents changed, and taking it back.

use memory::changes::{Changes, KEPT, RunHead, USER, UndoResult, Writer};
use memory::remember::MemoryOrigin;
use memory::store::{IndexUpkeep, Store};
use memory::{Error, index};

use super::revise::{marked, text};

struct Place {
    held: tempfile::TempDir,
    store: Store,
    changes: Changes,
}

impl Place {
    fn new() -> Self {
        let held = tempfile::tempdir().unwrap();
        let store = Store::create(held.path().join("memory"), IndexUpkeep::Kept).unwrap();
        let changes = Changes::at(held.path().join("changes"));
        Self { held, store, changes }
    }

    fn begin(&self, id: &str) -> Writer {
        self.begin_as("dream", id)
    }

    fn begin_as(&self, agent: &str, id: &str) -> Writer {
        let directory = self.store.root().path().to_owned();
        let at = "2026-03-01T00:00:00Z".to_owned();
        let head = RunHead { agent: agent.into(), session: None, model: None, at, directory };
        self.changes.begin(id, head).unwrap()
    }

    fn seen(&self, path: &str) -> Option<files::Stamp> {
        files::stamp(self.store.root().path().join(path)).ok()
    }

    fn write(&self, run: &mut Writer, path: &str, body: &str) {
        let text = text(path, body);
        let seen = self.seen(path);
        self.store
            .revise(path, &text, seen.as_ref(), &MemoryOrigin::default(), None, &mut |one| run.keep(one))
            .unwrap();
    }

    fn discard(&self, run: &mut Writer, path: &str) {
        self.store.discard(path, self.seen(path).as_ref(), &mut |one| run.keep(one)).unwrap();
    }

    fn memories(&self) -> Vec<(String, String)> {
        marked(&self.held.path().join("memory"))
    }

    /// Three memories of the user's, one with a line the user worded.
    fn of_the_users(&self) {
        for name in ["one", "two", "three"] {
            std::fs::write(self.store.root().path().join(format!("{name}.md")), text(name, "the user's")).unwrap();
        }
        let index = "- [One](one.md) — in my own words\n- [two](two.md)\n- [three](three.md) — x\n";
        std::fs::write(self.store.root().path().join("MEMORY.md"), index).unwrap();
    }
}

/// SEC-2, DREAM-5: whatever a run did, taking it back gives the files and lines that were there before.
#[test]
fn a_run_is_taken_back_whole() {
    let place = Place::new();
    place.of_the_users();
    let before = place.memories();
    let mut run = place.begin("20260301-000000-dream-1");
    place.write(&mut run, "one.md", "changed");
    place.write(&mut run, "one.md", "changed twice");
    place.discard(&mut run, "two.md");
    place.write(&mut run, "new.md", "made");
    place.discard(&mut run, "three.md");
    place.write(&mut run, "three.md", "made anew");
    run.end().unwrap();
    assert_ne!(place.memories(), before);
    let runs = place.changes.runs();
    assert_eq!((runs.len(), runs[0].net().len(), runs[0].ended), (1, 4, true));
    let undone = place.changes.undo(&runs[0].id, None, &place.store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert!(undone.iter().all(|one| !matches!(one, UndoResult::ChangedSince { .. })), "{undone:?}");
    let after = place.memories();
    let mut lines: Vec<_> = after.iter().filter(|(path, _)| path.ends_with("MEMORY.md")).cloned().collect();
    lines.iter_mut().for_each(|(_, text)| {
        let mut sorted: Vec<&str> = text.lines().collect();
        sorted
            .sort_unstable_by_key(|line| ["one.md", "two.md", "three.md"].iter().position(|name| line.contains(name)));
        *text = sorted.join("\n") + "\n"; // a line that was removed comes back at the end
    });
    let files = |all: &[(String, String)]| -> Vec<_> {
        all.iter().filter(|(path, _)| !path.ends_with("MEMORY.md")).cloned().collect()
    };
    assert_eq!(files(&after), files(&before));
    assert_eq!(lines[0].1, "- [One](one.md) — in my own words\n- [two](two.md)\n- [three](three.md) — x\n");
    // Again, there is nothing left to do.
    place.changes.undo(&runs[0].id, None, &place.store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(place.memories(), after);
}

/// DREAM-5: what was changed since stays as it is, and is shown.
#[test]
fn what_was_changed_since_stays() {
    let place = Place::new();
    place.of_the_users();
    let mut run = place.begin("r-1");
    place.write(&mut run, "one.md", "changed");
    place.write(&mut run, "two.md", "changed");
    run.end().unwrap();
    let one = place.store.root().path().join("one.md");
    std::fs::write(&one, text("one", "and the user's edit after it")).unwrap();
    let undone = place.changes.undo("r-1", None, &place.store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert!(matches!(&undone[0], UndoResult::ChangedSince { path, .. } if path == "one.md"), "{undone:?}");
    assert_eq!(undone[1], UndoResult::Restored { path: "two.md".into() });
    assert!(std::fs::read_to_string(&one).unwrap().contains("the user's edit after it"));
    let only = place.changes.undo("r-1", Some("two.md"), &place.store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(only, [UndoResult::Restored { path: "two.md".into() }]);
}

/// MEM-3: a run that was killed between a file and its line is settled at the next start; one that still runs is not.
#[test]
fn a_run_that_was_killed_leaves_file_and_index_in_step_at_the_next_start() {
    let place = Place::new();
    place.of_the_users();
    let index = place.store.root().path().join("MEMORY.md");
    let mut run = place.begin("r-1");
    place.write(&mut run, "new.md", "made");
    place.discard(&mut run, "two.md");
    std::fs::write(&index, "- [One](one.md) — in my own words\n- [two](two.md)\n- [three](three.md) — x\n").unwrap();
    assert_eq!(place.changes.settle(&place.store).unwrap(), Vec::<String>::new(), "it still runs");
    drop(run); // killed
    assert_eq!(place.changes.settle(&place.store).unwrap(), ["new.md", "two.md"]);
    let text = std::fs::read_to_string(&index).unwrap();
    assert!(text.contains("(new.md)") && !text.contains("(two.md)"), "{text}");
    assert_eq!(place.changes.settle(&place.store).unwrap(), Vec::<String>::new(), "once");
}

/// Old runs go, so that the folder has an end; names that are no run's lead nowhere.
#[test]
fn only_so_many_runs_are_kept() {
    let place = Place::new();
    for n in 0..KEPT + 5 {
        let mut run = place.begin(&format!("r-{n:04}"));
        run.keep(&memory::changes::KeptChange { path: "a.md".into(), before: None, after: None, line: None }).unwrap();
    }
    let runs = place.changes.runs();
    assert_eq!((runs.len(), runs[0].id.as_str()), (KEPT, "r-0104"));
    for bad in ["../x", "", "a/b", "r.0"] {
        assert!(place.changes.run(bad).is_err(), "{bad}");
    }
}

/// DREAM-5: a line that the user has reworded since stays as they worded it, whatever becomes of the file.
#[test]
fn a_line_that_was_reworded_since_stays() {
    let place = Place::new();
    place.of_the_users();
    let mut run = place.begin("r-1");
    place.write(&mut run, "one.md", "changed");
    place.write(&mut run, "two.md", "changed");
    run.end().unwrap();
    let index = place.store.root().path().join("MEMORY.md");
    let worded = index::restore(
        &std::fs::read_to_string(&index).unwrap(),
        "one.md",
        "- [One](one.md) — in better words of mine",
    );
    std::fs::write(&index, &worded).unwrap();
    let undone = place.changes.undo("r-1", None, &place.store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert!(undone.iter().all(|one| matches!(one, UndoResult::Restored { .. })), "{undone:?}");
    assert!(std::fs::read_to_string(&index).unwrap().contains("- [One](one.md) — in better words of mine\n"));
    assert!(std::fs::read_to_string(place.store.root().path().join("one.md")).unwrap().contains("the user's"));
}

/// TOMB-1: what the user took back is refused to agents under its name, and in other surroundings; the user's own command
/// lifts it, and so does taking back the removal.
#[test]
fn what_was_taken_back_does_not_come_back() {
    let place = Place::new();
    let body = "The vault of the payroll archive is opened by Vera and by nobody else, on Mondays before noon.";
    let mut run = place.begin("r-1");
    place.write(&mut run, "vault.md", body);
    run.end().unwrap();
    let undone = place.changes.undo("r-1", None, &place.store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(undone, [UndoResult::Removed { path: "vault.md".into() }]);

    let attempt = |run: &mut Writer, path: &str, text: &str| {
        place.store.revise(path, text, None, &MemoryOrigin::default(), None, &mut |one| run.keep(one))
    };
    let mut run = place.begin("r-2");
    for (path, text) in [
        ("vault.md", text("vault", "Something else altogether stands here now.")),
        ("keys.md", text("keys", &format!("Who has keys. {body} So it was said in March."))),
    ] {
        let error = attempt(&mut run, path, &text).unwrap_err();
        assert!(matches!(&error, Error::Forgotten { removed, .. } if removed == "vault.md"), "{error}");
        assert!(!place.store.root().path().join(path).exists());
    }
    attempt(&mut run, "other.md", &text("other", "The payroll archive is cleaned on Mondays by the night shift."))
        .unwrap();
    run.end().unwrap();
    assert!(!place.held.path().join("memory/tombstones").exists(), "it lies beside the changes");
    let kept = std::fs::read_to_string(place.held.path().join("changes/tombstones")).unwrap();
    assert!(!kept.contains("payroll"), "of the text there are only hashes: {kept}");

    let mut users = place.begin_as(USER, "r-3");
    attempt(&mut users, "vault.md", &text("vault", body)).unwrap();
    users.end().unwrap();
    assert_eq!(place.changes.tombstones().all(), []);
    let mut run = place.begin("r-4");
    place.write(&mut run, "vault.md", "An agent changes what the user wants again, and may.");
    assert_eq!(place.changes.runs().len(), 4);
}

/// TOMB-1: a memory whose file the user removed by hand is as good as forgotten; one that was moved, was never made, or is the
/// team's is not.
#[test]
fn what_was_removed_by_hand_is_buried() {
    let place = Place::new();
    let mut run = place.begin("r-1");
    for path in ["gone.md", "moved.md", "stays.md", "team/shared.md"] {
        place.write(&mut run, path, &format!("What {path} says is said nowhere else in here."));
    }
    run.end().unwrap();
    let mut run = place.begin("r-2");
    let never_made = |change: &memory::changes::KeptChange| {
        run.keep(change)?;
        Err(Error::NoMemory { name: String::new(), directory: Default::default() })
    };
    place
        .store
        .revise("never.md", &text("never", "x"), None, &MemoryOrigin::default(), None, &mut { never_made })
        .unwrap_err();
    run.end().unwrap();
    let folder = place.store.root().path();
    ["gone.md", "team/shared.md"].into_iter().for_each(|path| std::fs::remove_file(folder.join(path)).unwrap());
    std::fs::rename(folder.join("moved.md"), folder.join("elsewhere.md")).unwrap();
    for _ in 0..2 {
        place.changes.bury_removed(&place.store, "2026-03-02T00:00:00Z".parse().unwrap()).unwrap();
        let buried: Vec<String> = place.changes.tombstones().all().into_iter().map(|stone| stone.path).collect();
        assert_eq!(buried, ["gone.md"]);
    }
}

/// TOMB-1: a memory that was removed by hand is buried by its name where no run of it is kept any more.
#[test]
fn what_was_removed_by_hand_long_after_its_run_is_buried_by_name() {
    let place = Place::new();
    let mut run = place.begin("r-1");
    place.write(&mut run, "old.md", "What an old memory says is said nowhere else.");
    run.end().unwrap();
    std::fs::remove_file(place.store.root().path().join("old.md")).unwrap();
    // Newer runs push it out.
    for number in 0..memory::changes::KEPT {
        let mut run = place.begin(&format!("s-{number:03}"));
        place.write(&mut run, "other.md", &format!("Something else, for the {number}th time."));
        run.end().unwrap();
    }
    std::fs::remove_file(place.changes.folder().join("r-1.jsonl")).unwrap_or_default();
    for _ in 0..2 {
        place.changes.bury_removed(&place.store, "2026-03-02T00:00:00Z".parse().unwrap()).unwrap();
        let buried: Vec<String> = place.changes.tombstones().all().into_iter().map(|stone| stone.path).collect();
        assert_eq!(buried, ["old.md"]);
    }
}

/// TOMB-1: after a removal the user's new words are learnt; words typed before it, nobody's words, and the removed text under
/// some new sentence are not.
#[test]
fn what_the_user_types_after_a_removal_may_be_learnt() {
    let place = Place::new();
    let body = "Releases of the archive go out on Fridays after the night shift.";
    let stones = place.changes.tombstones();
    stones.plant("releases.md", &text("releases", body), Some("2026-03-02T00:00:00Z".into())).unwrap();
    let spoken = |sentence: &str, at: &str| memory::quoted_sentences::QuotedSentence {
        sentence: sentence.into(),
        at: Some(at.into()),
        session: None,
        message: None,
    };
    let (before, after) = ("2026-02-01T00:00:00Z", "2026-12-01T00:00:00Z");
    let new = text("releases", "It is Tuesdays now.");
    let is_refused = |text: &str, spoken: Option<&memory::quoted_sentences::QuotedSentence>| {
        stones.refusing("releases.md", text, spoken).is_some()
    };
    assert!(!is_refused(&new, Some(&spoken("We release on Tuesdays now.", after))));
    assert!(is_refused(&new, Some(&spoken("We release on Tuesdays now.", before))));
    assert!(is_refused(&new, None));
    let old = text("releases", body);
    assert!(is_refused(&old, Some(&spoken("Thanks, go on as before.", after))), "the old text under other words");
    assert!(!is_refused(&old, Some(&spoken(body, after))), "the user says it again");
    let reworded = spoken("We release the archive on Fridays, when the night shift is over.", after);
    assert!(!is_refused(&old, Some(&reworded)), "the user says it again in other words");
    let more = format!("{body}\n\nWhoever releases it waits for the second signature of somebody else.");
    stones.plant("more.md", &text("more", &more), Some("2026-03-02T00:00:00Z".into())).unwrap();
    let some = stones.refusing("other.md", &text("other", &more), Some(&spoken("Fridays it is.", after)));
    assert!(some.is_some(), "the user says a word of it");
}

/// TOMB-1: what was learnt again after a removal and is removed once more is buried with the later date.
#[test]
fn a_second_removal_by_hand_is_buried_too() {
    let place = Place::new();
    let body = "What comes and goes is said nowhere else in here.";
    let earlier = "2020-01-01T00:00:00Z";
    place.changes.tombstones().plant("twice.md", &text("twice", "Something else."), Some(earlier.into())).unwrap();
    let spoken = memory::quoted_sentences::QuotedSentence {
        sentence: body.into(),
        at: Some("2025-01-01T00:00:00Z".into()),
        session: None,
        message: None,
    };
    let mut run = place.begin("r-1");
    let mut keep = |change: &memory::changes::KeptChange| run.keep_quoting(change, Some(&spoken));
    let origin = MemoryOrigin::default();
    place.store.revise("twice.md", &text("twice", body), None, &origin, None, &mut keep).unwrap();
    run.end().unwrap();
    std::fs::remove_file(place.store.root().path().join("twice.md")).unwrap();
    for _ in 0..2 {
        place.changes.bury_removed(&place.store, "2027-03-02T00:00:00Z".parse().unwrap()).unwrap();
        assert_eq!(place.changes.tombstones().all().len(), 2);
    }
    let again = place.changes.tombstones().refusing("twice.md", &text("twice", body), Some(&spoken));
    assert!(again.is_some(), "said between the two removals");
}
