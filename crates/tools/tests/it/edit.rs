//! Edit: exact, and only on what was seen.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::place::Place;

fn edit(old: &str, new: &str) -> Value {
    json!({"file_path": "a", "old_string": old, "new_string": new})
}

async fn seen(content: impl AsRef<[u8]>) -> Place {
    let place = Place::new();
    place.write("a", content);
    place.done("Read", json!({"file_path": "a"})).await;
    place
}

#[tokio::test]
async fn one_exact_text_is_replaced_and_shown() {
    let place = seen("1\n2\n3\n4\nfive\n6\n7\n8\n9\n").await;
    let text = place.done("Edit", edit("five", "FIVE\nand more")).await;
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "     2\t2",
            "     3\t3",
            "     4\t4",
            "     5\tFIVE",
            "     6\tand more",
            "     7\t6",
            "     8\t7",
            "     9\t8"
        ]
    );
    assert_eq!(place.content("a"), "1\n2\n3\n4\nFIVE\nand more\n6\n7\n8\n9\n");
    // Our own edit counts as seen.
    place.done("Edit", edit("FIVE", "5")).await;
}

/// TOOL-1, MEM-7: Edit needs a prior Read and an unchanged file.
#[tokio::test]
async fn a_file_not_read_or_changed_since_is_not_edited() {
    let place = Place::new();
    place.write("a", "one");
    assert!(place.failed("Edit", edit("one", "two")).await.contains("has not been read"));
    place.done("Read", json!({"file_path": "a"})).await;
    place.write("a", "one and the user's");
    assert!(place.failed("Edit", edit("one", "two")).await.contains("changed since it was read. Read it again"));
    assert_eq!(place.content("a"), "one and the user's");
    std::fs::remove_file(place.path("a")).unwrap();
    assert!(place.failed("Edit", edit("one", "two")).await.contains("does not exist"));
}

#[tokio::test]
async fn a_text_that_is_not_there_once_is_an_error_that_says_where_to_look() {
    let place = seen("fn a() {\n\tx();\n}\nx();\nlet a  = 1;\n").await;
    let said = place.failed("Edit", edit("x();", "y();")).await;
    assert!(said.contains("occurs 2 times, at lines 2, 4"), "{said}");
    let said = place.failed("Edit", edit("fn a() {\n    x();\n}", "z")).await;
    assert!(said.contains("line 1 differs from it only in whitespace"), "{said}");
    let said = place.failed("Edit", edit("let a = 1;", "z")).await;
    assert!(said.contains("line 5 differs"), "{said}");
    assert!(place.failed("Edit", edit("absent", "z")).await.starts_with("old_string was not found."));
    assert!(place.failed("Edit", edit("x", "x")).await.contains("are the same"));
    let mut all = edit("x();", "y();");
    all["replace_all"] = json!(true);
    assert!(place.done("Edit", all).await.contains("in 2 places"));
    assert_eq!(place.content("a"), "fn a() {\n\ty();\n}\ny();\nlet a  = 1;\n");
}

#[tokio::test]
async fn line_endings_the_mark_the_last_newline_and_the_mode_stay() {
    let place = seen("\u{feff}one\r\ntwo\r\nthree").await;
    std::fs::set_permissions(place.path("a"), std::fs::Permissions::from_mode(0o755)).unwrap();
    place.done("Edit", edit("one\ntwo", "1\n2\n2b")).await;
    place.done("Edit", edit("three", "3\n4")).await;
    assert_eq!(place.content("a"), "\u{feff}1\r\n2\r\n2b\r\n3\r\n4");
    assert_eq!(std::fs::metadata(place.path("a")).unwrap().permissions().mode() & 0o777, 0o755);
    let mixed = seen("a\nb\nc\r\n").await;
    mixed.done("Edit", edit("a\nb", "x\ny")).await;
    assert_eq!(mixed.content("a"), "x\ny\nc\r\n");
}

#[tokio::test]
async fn an_empty_old_string_makes_a_file_and_only_that() {
    let place = Place::new();
    place.done("Edit", edit("", "new\n")).await;
    assert_eq!(place.content("a"), "new\n");
    assert!(place.failed("Edit", edit("", "other")).await.contains("only makes a new file"));
    assert_eq!(place.content("a"), "new\n");
}

#[tokio::test]
async fn invalid_utf8_is_not_edited() {
    let place = seen(b"caf\xe9 one").await;
    assert!(place.failed("Edit", edit("one", "two")).await.contains("not valid UTF-8"));
    assert_eq!(std::fs::read(place.path("a")).unwrap(), b"caf\xe9 one");
}
