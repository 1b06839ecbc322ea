//! Recall: what a turn gets to see.

use std::collections::BTreeSet;

use files::Root;
use jiff::Timestamp;
use memory::age;
use memory::rank::OlderMemory;
use memory::rank::{RankQuestion, Ranker, WorkAtHand};
use memory::recall::{SESSION_BYTES, Skip, State, agents, surface_over, words};

use super::scan::write;

const NOW: i64 = 1_772_800_000;

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

fn days_ago(days: u64) -> u64 {
    NOW.unsigned_abs() - days * 86_400 - 60
}

/// MEM-6: whole days, floored, never negative; a warning from two days on.
#[test]
fn ages_are_whole_days() {
    let at = |seconds: i64| Some(Timestamp::from_second(NOW - seconds).unwrap());
    let cases = [(0, 0), (86_399, 0), (86_400, 1), (2 * 86_400 - 1, 1), (2 * 86_400, 2), (-500_000, 0)];
    for (seconds, days) in cases {
        assert_eq!(age::days(at(seconds), now()), days);
    }
    assert_eq!(age::days(None, now()), 0);
    assert_eq!([age::words(0), age::words(1), age::words(47)], ["today", "yesterday", "47 days ago"]);
    assert!(age::warning(1).is_none() && age::warning(2).unwrap().contains("2 days old"));
}

/// RECALL-3: fewer than two words, switched off, or enough seen already.
#[test]
fn a_turn_that_is_not_worth_it_is_skipped() {
    let fresh = State::default();
    assert_eq!(fresh.check("fix it", true), Ok(()));
    assert_eq!(fresh.check("fix", true), Err(Skip::TooShort));
    assert_eq!(fresh.check("  ", true), Err(Skip::TooShort));
    assert_eq!(fresh.check("部署", true), Ok(()));
    assert_eq!(fresh.check("错", true), Err(Skip::TooShort));
    assert_eq!(fresh.check("fix it", false), Err(Skip::Disabled));
    let spent = State { surfaced: BTreeSet::new(), bytes: SESSION_BYTES };
    assert_eq!(spent.check("fix it", true), Err(Skip::Spent));
    assert_eq!([words("one two  three"), words("用 git 提交"), words("커밋 하자"), words("デプロイ")], [3, 4, 2, 4]);
}

/// RECALL-6: each file with its age, at most 200 lines and 4,096 bytes, cut with a note.
#[test]
fn a_surfaced_memory_has_its_age_and_its_limits() {
    let directory = tempfile::tempdir().unwrap();
    let asked = "asked: who? when?\n";
    write(directory.path(), "new.md", &format!("---\nname: n\n{asked}description: d\n---\nshort\n"), days_ago(0));
    write(directory.path(), "lines.md", &"line\n".repeat(300), days_ago(1));
    write(directory.path(), "bytes.md", &format!("{}\n", "x".repeat(99)).repeat(100), days_ago(10));
    let root = Root::open(directory.path()).unwrap();
    let shown = |path: &str| surface_over(&root, path, &[], None, now());
    assert!(shown("gone.md").is_err());
    let shown = ["new.md", "lines.md", "bytes.md"].map(|path| shown(path).unwrap());
    assert!(
        shown[0].text.contains("saved today") && shown[0].text.contains("short") && !shown[0].text.contains("[cut")
    );
    assert!(shown[0].text.ends_with("\n</memory>"), "{}", shown[0].text);
    assert!(shown[1].text.contains("yesterday") && shown[1].text.matches("line\n").count() == 200);
    assert!(shown[1].text.contains("Read") && shown[1].text.contains("lines.md for the rest"));
    assert!(shown[2].text.contains("10 days old") && shown[2].bytes <= 4_096 && shown[2].text.contains("[cut"));
    let mut state = State::default();
    state.count(&shown);
    state.count(&shown);
    assert_eq!(state.bytes, shown.iter().map(|one| one.bytes).sum::<u64>());
    assert!(state.has("new.md") && !state.has("gone.md"));
    assert!(
        shown[0].text.contains("---\nname: n\ndescription: d\n---\nshort"),
        "as it lies on the disk, but for the questions it is found by: {}",
        shown[0].text
    );
    let over = surface_over(
        &root,
        "new.md",
        &[OlderMemory { path: "old.md".to_owned(), description: Some("the <memory> of May".to_owned()) }],
        None,
        now(),
    )
    .unwrap();
    assert!(over.text.contains("old.md"));
}

/// RECALL-7: agents named in a message.
#[test]
fn agents_are_named_with_a_sign() {
    assert_eq!(agents("ask @agent-reviewer and @agent-db:expert, not me@agent-x"), ["reviewer", "db:expert"]);
    assert_eq!(agents("@agent- @agent-a @agent-a"), ["a"]);
}

/// RECALL-8: with no model the ranker chooses, may choose nothing, and passes over what was seen.
#[test]
fn the_ranker_chooses_when_there_is_no_model() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    write(
        at,
        "freeze.md",
        "---\nname: Merge freeze\ndescription: no merges after March 5\ntype: project\n---\n",
        days_ago(3),
    );
    write(at, "role.md", "---\nname: Role\ndescription: user is a data scientist\ntype: user\n---\n", days_ago(3));
    let root = Root::open(at).unwrap();
    let mut ranker = Ranker::load(&root).unwrap();
    let doing = WorkAtHand::default();
    let ask = |text: &'static str| RankQuestion { text, doing: &doing, now: now() };
    let hits = ranker.choose(&ask("when does the merge freeze start?"), |_| true);
    assert_eq!(hits.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), ["freeze.md"]);
    assert!(ranker.choose(&ask("when does the merge freeze start?"), |path| path != "freeze.md").is_empty());
    assert!(ranker.choose(&ask("how do I bake sourdough bread?"), |_| true).is_empty());
    // Only what changed is read again.
    assert_eq!(ranker.reload(&root).unwrap(), 0);
    write(at, "bread.md", "---\nname: Sourdough\ndescription: bread is baked at 230 degrees\n---\n", days_ago(1));
    std::fs::remove_file(at.join("role.md")).unwrap();
    assert_eq!(ranker.reload(&root).unwrap(), 2);
    assert_eq!(ranker.choose(&ask("how do I bake sourdough bread?"), |_| true)[0].path, "bread.md");
    assert_eq!(ranker.likeliest(&ask("sourdough"), 10), ["bread.md", "freeze.md"]);
}
