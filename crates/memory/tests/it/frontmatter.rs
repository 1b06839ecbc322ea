//! Frontmatter: read whatever it looks like, edited without touching the rest.

use memory::frontmatter::{read, remove, set, set_under};
use memory::{FileProblem, Kind, Memory};
use proptest::prelude::*;

fn memory(text: &str) -> Memory {
    Memory::parse("a.md", text.as_bytes(), None, text.len() as u64)
}

/// MEM-1: flat and nested types, unknown keys, quotes, comments and block texts.
#[test]
fn well_formed_frontmatter_is_read_as_yaml() {
    let flat = memory("---\nname: Role\ndescription: \"a: b # c\"\ntype: user\nextra: [1, 2]\n---\n\nbody\n");
    assert_eq!(
        (flat.name.as_str(), flat.description.as_deref(), flat.kind),
        ("Role", Some("a: b # c"), Some(Kind::User))
    );
    assert_eq!(flat.body.trim(), "body");
    assert_eq!(flat.diagnostics, []);
    let nested = memory("---\nname: n # why\nmetadata:\n  type: feedback\n  modified: 2026-01-02T03:04:05Z\n---\nx");
    assert_eq!((nested.name.as_str(), nested.kind), ("n", Some(Kind::Feedback)));
    assert_eq!(nested.dated.unwrap().to_string(), "2026-01-02T03:04:05Z");
    let flow = memory("---\nmetadata: {type: project, originSessionId: x}\n---\n");
    assert_eq!(flow.kind, Some(Kind::Project));
    let block = memory("---\ndescription: >\n  one\n  two\n---\n");
    assert_eq!(block.description.as_deref(), Some("one two"));
    assert_eq!(memory("---\nname: 1.10\n---\n").name, "1.10");
}

/// MEM-1: what is no YAML is read line by line, with a diagnostic.
#[test]
fn broken_frontmatter_is_read_line_by_line() {
    let colons = memory("---\nname: Deploy\ndescription: note: never on Friday: really\ntype: feedback\n---\nbody");
    assert_eq!(colons.description.as_deref(), Some("note: never on Friday: really"));
    assert_eq!(colons.kind, Some(Kind::Feedback));
    assert!(matches!(colons.diagnostics[0].problem, FileProblem::NotYaml(_)), "{:?}", colons.diagnostics);
    let twice = memory("---\nname: a\nname: b\ntype: user\n---\n");
    assert_eq!((twice.name.as_str(), twice.kind), ("a", Some(Kind::User)));
    let quote = memory("---\nname: \"open\ntype: user\n---\nb");
    assert_eq!(quote.kind, Some(Kind::User));
}

/// MEM-1: BOM, CRLF, CJK, a missing end, an unknown type, nothing at all.
#[test]
fn odd_frontmatter_degrades() {
    let crlf = memory("\u{feff}---\r\nname: 名前\r\ndescription: 数据库: 备份\r\ntype: project\r\n---\r\nbody\r\n");
    assert_eq!((crlf.name.as_str(), crlf.kind), ("名前", Some(Kind::Project)));
    assert_eq!(crlf.description.as_deref(), Some("数据库: 备份"));
    assert_eq!(crlf.body, "body\r\n");
    let open = memory("---\nname: a\ntype: user\n\n# Heading\ntext");
    assert_eq!((open.name.as_str(), open.kind), ("a", Some(Kind::User)));
    assert_eq!(open.diagnostics[0].problem, FileProblem::Unclosed);
    assert!(open.body.contains("# Heading"));
    let unknown = memory("---\ntype: preference\n---\n");
    assert_eq!(unknown.kind, None);
    assert_eq!(unknown.diagnostics[0].problem, FileProblem::UnknownType("preference".to_owned()));
    let endless = memory("---\ntype: project\nuntil: next week\n---\n");
    assert_eq!(endless.until, None);
    assert_eq!(endless.diagnostics[0].problem, FileProblem::UnknownDay("next week".to_owned()));
    assert_eq!(memory("---\ntype: project\nuntil:\n---\n").diagnostics, []);
    let none = memory("just text\n---\nmore");
    assert_eq!((none.name.as_str(), none.kind, none.body.as_str()), ("a", None, "just text\n---\nmore"));
    assert_eq!(none.diagnostics, []);
    for text in ["", "---", "---\n", "---\n---", "---\n...\n", "\u{feff}", "---\n: \n---\n", "---\n- a\n- b\n---\nx"] {
        memory(text);
    }
}

/// Every byte that was not edited is kept.
#[test]
fn an_edit_touches_only_its_line() {
    let text = "\u{feff}---\r\n# keep\r\nname: 'Old'   # mine\r\nunknown: {a: 1}\r\nmetadata:\r\n  # inner\r\n  type: user\r\n  modified: x\r\n---\r\n\r\nbody  \r\n";
    let named = set(text, "name", "New: one");
    assert_eq!(named, text.replace("'Old'", "\"New: one\""));
    let typed = set_under(text, "metadata", "type", "project");
    assert_eq!(typed, text.replace("type: user", "type: project"));
    let added = set(text, "description", "d");
    assert_eq!(added, text.replace("modified: x\r\n", "modified: x\r\ndescription: d\r\n"));
    assert_eq!(remove(&added, "description"), text);
    let flow = "---\nmetadata: {type: user, modified: 2026}\n---\n";
    assert_eq!(set_under(flow, "metadata", "type", "feedback"), flow.replace("user", "feedback"));
    assert_eq!(read(&set_under(flow, "metadata", "by", "x y")).metadata("by").as_deref(), Some("x y"));
    let block = "---\ndescription: >\n  one\n  two\nname: n\n---\nb";
    assert_eq!(set(block, "description", "three"), "---\ndescription: three\nname: n\n---\nb");
    assert_eq!(set("text\n", "name", "nn"), "---\nname: nn\n---\n\ntext\n");
    assert_eq!(set("---\nname: a\n\nbody", "name", "b"), "---\nname: b\n\nbody");
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,30}",
        "\\PC{0,20}",
        Just("true".to_owned()),
        Just("12".to_owned()),
        Just("- x".to_owned()),
        Just("a: b # c".to_owned()),
        Just("line\nbreak\ttab \u{85}\u{2028}".to_owned()),
    ]
}

fn any_frontmatter() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        3 => "[a-z]{1,6}: [ -~]{0,20}",
        1 => Just("name: old".to_owned()),
        1 => Just("name:".to_owned()),
        1 => Just("  inner: x".to_owned()),
        1 => Just("metadata:".to_owned()),
        1 => Just("# comment".to_owned()),
        1 => Just("- item".to_owned()),
        1 => "\\PC{0,12}",
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    (prop::bool::ANY, prop::collection::vec(line, 0..8), end, prop::bool::ANY, "[ -~\n]{0,40}").prop_map(
        |(bom, lines, end, closed, body)| {
            let bom = if bom { "\u{feff}" } else { "" };
            let lines: String = lines.iter().map(|line| format!("{line}{end}")).collect();
            let close = if closed { format!("---{end}") } else { String::new() };
            format!("{bom}---{end}{lines}{close}{body}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A value that was set is read back, whatever it is, from a file that was made by us.
    #[test]
    fn what_is_set_is_read_back(value in value(), body in "[ -~\n]{0,60}") {
        let text = set(&set(&body, "type", "user"), "name", &value);
        let front = read(&text);
        prop_assert_eq!(front.text("name").unwrap_or_default(), value.trim());
        prop_assert_eq!(&front.diagnostics, &vec![]);
        prop_assert!(text.ends_with(&body));
    }

    /// An edit keeps every line that is not of its key: what is before and after is the same bytes.
    #[test]
    fn an_edit_keeps_all_other_bytes(text in any_frontmatter(), value in "[a-z ]{1,12}") {
        let edited = set(&text, "name", &value);
        let common_head = text.bytes().zip(edited.bytes()).take_while(|(a, b)| a == b).count();
        let rest = text.len().min(edited.len()) - common_head;
        let common_tail = text.bytes().rev().zip(edited.bytes().rev()).take_while(|(a, b)| a == b).count().min(rest);
        let gone = &text.as_bytes()[common_head..text.len() - common_tail];
        let gone = String::from_utf8_lossy(gone);
        // What went is at most the old value of the key: never another key's line, never the body.
        let lost = gone.lines().skip(1).find(|line| !line.trim().is_empty() && !line.starts_with([' ', '-', '\t', '#']));
        prop_assert_eq!(lost, None, "{:?}", gone);
        let comments = |text: &str| text.lines().filter(|line| line.starts_with('#')).count();
        prop_assert_eq!(comments(&edited), comments(&text));
        prop_assert_eq!(set(&edited, "name", &value), edited.clone());
    }

    /// Reading never fails, whatever the bytes.
    #[test]
    fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), text in any_frontmatter()) {
        Memory::parse("x.md", &bytes, None, bytes.len() as u64);
        let mut odd = b"---\n".to_vec();
        odd.extend(&bytes);
        odd.extend(b"\n---\n");
        Memory::parse("x.md", &odd, None, odd.len() as u64);
        memory(&text);
        remove(&text, "name");
        set_under(&text, "metadata", "type", "user");
    }
}

/// MEM-1: a rule further down does not close frontmatter that was left open, and an edit does not land in the body.
#[test]
fn a_rule_in_the_body_does_not_close_open_frontmatter() {
    let text = "---\nname: a\ntype: user\n\nThe first paragraph.\n\n---\n\nThe second.\n";
    let open = memory(text);
    assert_eq!((open.name.as_str(), open.kind), ("a", Some(Kind::User)));
    assert_eq!(open.diagnostics[0].problem, FileProblem::Unclosed);
    assert!(open.body.contains("The first paragraph.") && open.body.contains("---\n\nThe second."), "{:?}", open.body);
    let edited = set(text, "description", "d");
    let body = edited.find("The first").unwrap();
    assert!(edited.find("description: d").unwrap() < body, "{edited}");
    let gaps = memory("---\nname: b\n\ntype: project\n\n# a comment\n---\nbody");
    assert_eq!((gaps.name.as_str(), gaps.kind), ("b", Some(Kind::Project)));
}
