//! The index: limits and edits.

use memory::index::{BYTE_LIMIT, LINE_LIMIT, Warning, line, links, load, point, put, take};
use proptest::prelude::*;

/// MEM-2: at most 200 lines, then 25,000 bytes cut at a line end, each with a warning.
#[test]
fn an_index_is_loaded_up_to_its_limits() {
    let short = "- [A](a.md) — x\n- [B](b.md) — y\n";
    assert_eq!((load(short).text.as_str(), load(short).warnings.len()), (short.trim(), 0));
    let many: String = (0..250).map(|n| format!("- [T{n}](t{n}.md) — hook\n")).collect();
    let loaded = load(&many);
    assert_eq!(loaded.text.lines().count(), LINE_LIMIT);
    assert_eq!(loaded.warnings, [Warning::Lines(250)]);
    assert!(
        loaded.text.starts_with("- [T50](t50.md)") && loaded.text.ends_with("- [T249](t249.md) — hook"),
        "the newest"
    );
    assert!(loaded.warnings[0].to_string().contains("50 are left out"), "{}", loaded.warnings[0]);
    let headed = format!("# Mine\n\n{many}");
    assert!(load(&headed).text.starts_with("# Mine\n\n- [T52](t52.md)"), "{}", load(&headed).text);
    let wide: String = (0..150).map(|n| format!("- [T{n}](t{n}.md) — {}\n", "x".repeat(300))).collect();
    let loaded = load(&wide);
    assert!(loaded.text.len() <= BYTE_LIMIT && loaded.text.ends_with('x') && loaded.text.contains("[T149]"));
    assert!(loaded.text.lines().all(|line| wide.contains(&format!("{line}\n"))), "cut at a line end");
    assert!(matches!(loaded.warnings[..], [Warning::Bytes { left_out: 71.., .. }]));
    let both: String = (0..250).map(|n| format!("- [T{n}](t{n}.md) — {}\n", "x".repeat(300))).collect();
    assert_eq!(load(&both).warnings.len(), 2);
    assert!(load(&both).warnings[0].to_string().contains("200"));
}

/// MEM-2: what was changed last is shown, wherever its line stands, and the model is told how many are left out.
#[test]
fn of_an_overlong_index_the_newest_memories_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let text: String = (0..230).map(|n| format!("- [T{n}](t{n}.md) — hook\n")).collect();
    std::fs::write(directory.path().join("MEMORY.md"), text).unwrap();
    for n in 0..230 {
        super::scan::write(directory.path(), &format!("t{n}.md"), "x", 1_700_000_000 + n);
    }
    super::scan::write(directory.path(), "t3.md", "changed", 1_800_000_000);
    let shown = memory::index::shown(&directory.path().join("MEMORY.md")).unwrap();
    assert!(shown.starts_with("- [T3](t3.md) — hook\n- [T31](t31.md) — hook\n"), "{shown}");
    assert!(
        shown.contains("- [T229](t229.md)") && shown.ends_with("30 are left out; merge or remove entries]"),
        "{shown}"
    );
}

/// MEM-2: frontmatter and comments do not count.
#[test]
fn what_does_not_count_is_not_loaded() {
    let comments = format!("---\nname: x\n---\n<!--\n{}-->\n- [A](a.md) — x\n", "note\n".repeat(300));
    let loaded = load(&comments);
    assert_eq!((loaded.text.as_str(), loaded.warnings.len()), ("- [A](a.md) — x", 0));
}

/// MEM-2: a line of 200 KB is cut inside, at a character.
#[test]
fn a_single_huge_line_is_cut() {
    let huge = "é".repeat(100_000);
    let loaded = load(&huge);
    assert!(loaded.text.len() <= BYTE_LIMIT && loaded.text.len() > BYTE_LIMIT - 4);
    assert_eq!(loaded.warnings, [Warning::Bytes { bytes: 200_000, left_out: 0 }]);
}

#[test]
fn lines_are_read_as_people_write_them() {
    let text = "# Memory\n- [A](a.md) — hook\n* [B \\[x\\]](<b c.md>) - hook: two\n  - [C](./sub/c.md): hook\n- [D](https://x.y)\n- plain\n- [E](e%20f.md)\n";
    let links: Vec<_> = links(text).into_iter().map(|link| (link.title, link.target, link.hook, link.line)).collect();
    let link = |a: &str, b: &str, c: &str, n| (a.to_owned(), b.to_owned(), c.to_owned(), n);
    assert_eq!(
        links,
        [
            link("A", "a.md", "hook", 2),
            link("B [x]", "b c.md", "hook: two", 3),
            link("C", "sub/c.md", "hook", 4),
            link("E", "e f.md", "", 7),
        ]
    );
}

/// MEM-2: a line is about 150 characters.
#[test]
fn a_line_is_cut_to_its_length() {
    let made = line("Title", "file.md", &"word ".repeat(100));
    assert!(made.chars().count() <= 150 && made.ends_with('…'));
    assert_eq!(line("A\nB", "a.md", " x\n y "), "- [A B](a.md) — x y");
    let named = line(&"name ".repeat(6_000), "a.md", "what it is about");
    assert!(named.chars().count() <= 150 && named.ends_with("](a.md) — what it is about"), "{named}");
}

#[test]
fn edits_keep_every_other_byte() {
    let text = "# Mine\r\n\r\n- [A](a.md) — x\r\n<!-- note -->\r\n- [B](b.md) — y";
    assert_eq!(put(text, "C", "c.md", "z"), format!("{text}\r\n- [C](c.md) — z\r\n"));
    assert_eq!(put(text, "A2", "a.md", "x2"), text.replace("[A](a.md) — x", "[A2](a.md) — x2"));
    assert_eq!(take(text, "a.md"), text.replace("- [A](a.md) — x\r\n", ""));
    assert_eq!(point(text, "b.md", "sub/d.md"), text.replace("b.md", "sub/d.md"));
    assert_eq!(take(text, "none.md"), text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What was put is found, what was taken is not, and nothing else changes.
    #[test]
    fn put_and_take_are_opposites(text in "(\\PC{0,20}\n|- \\[[a-z]{1,4}\\]\\([a-z]{1,4}\\.md\\)( — [a-z ]{0,9})?\n){0,8}", title in "[ -~]{1,20}", hook in "\\PC{0,30}") {
        let before = links(&text);
        let with = put(&text, &title, "zz-new.md", &hook);
        let found: Vec<_> = links(&with).into_iter().filter(|link| link.target == "zz-new.md").collect();
        prop_assert_eq!(found.len(), 1);
        prop_assert!(with.starts_with(&text));
        prop_assert_eq!(take(&with, "zz-new.md"), text.clone());
        prop_assert_eq!(links(&text), before);
    }

    /// Reading and loading never panic and never grow.
    #[test]
    fn any_text_is_an_index(text in "\\PC{0,200}|(.|\n){0,300}") {
        links(&text);
        prop_assert!(load(&text).text.len() <= text.len());
    }
}
