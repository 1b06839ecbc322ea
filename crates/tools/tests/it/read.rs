//! Read: bounded, honest about what it left out.

use serde_json::json;
use transcript::block::Kind;

use super::place::{Place, pipe};

#[tokio::test]
async fn text_comes_with_numbers_and_says_what_is_left() {
    let place = Place::new();
    let path = place.write("a.txt", "one\r\ntwo\n\nfour");
    let all = place.done("Read", json!({"file_path": path})).await;
    assert_eq!(all, "     1\tone\n     2\ttwo\n     3\t\n     4\tfour");
    let part = place.done("Read", json!({"file_path": "a.txt", "offset": 2, "limit": 1})).await;
    assert_eq!(part, "     2\ttwo\n\n[lines 2–2 of 4; go on with offset 3]");
    let past = place.failed("Read", json!({"file_path": path, "offset": 9})).await;
    assert!(past.contains("Offset 9 is past the end") && past.contains("has 4 lines"), "{past}");
    place.write("empty", "");
    assert!(place.done("Read", json!({"file_path": "empty"})).await.contains("is empty"));
    place.write("bom", "\u{feff}x\n");
    assert_eq!(place.done("Read", json!({"file_path": "bom"})).await, "     1\tx");
}

/// SPILL-2: Read bounds itself: 2,000 lines, 2,000 characters a line, about 25,000 tokens.
#[tokio::test]
async fn long_files_lines_and_parts_are_bounded() {
    let place = Place::new();
    place.write("lines", "x\n".repeat(2_500));
    let text = place.done("Read", json!({"file_path": "lines"})).await;
    assert!(text.ends_with("  2000\tx\n\n[lines 1–2000 of 2500; go on with offset 2001]"));
    place.write("line", "ä".repeat(2_345));
    let text = place.done("Read", json!({"file_path": "line"})).await;
    assert!(text.ends_with("ä [… 345 more characters]"));
    place.write("tokens", format!("{}\n", "y".repeat(993)).repeat(2_000));
    let said = place.failed("Read", json!({"file_path": "tokens"})).await;
    assert!(said.contains("about 25000 tokens") && said.contains("offset 1 with limit 74 fits"), "{said}");
    place.done("Read", json!({"file_path": "tokens", "limit": 74})).await;
}

#[tokio::test]
async fn a_huge_file_is_streamed_to_where_it_was_asked_for() {
    let place = Place::new();
    let path = place.path("huge");
    let mut content = "0123456789abcde\n".repeat(700_000).into_bytes();
    content.extend(vec![b'z'; 12_000_000]);
    content.extend(b"\nlast");
    std::fs::write(&path, content).unwrap();
    let text = place.done("Read", json!({"file_path": path, "offset": 699_999, "limit": 2})).await;
    assert_eq!(
        text,
        "699999\t0123456789abcde\n700000\t0123456789abcde\n\n[lines 699999–700000; more follow: go on with offset 700001]"
    );
    let text = place.done("Read", json!({"file_path": path, "offset": 700_001})).await;
    assert!(text.contains("[the line has 12000000 bytes]") && text.ends_with("700002\tlast"), "{}", text.len());
    assert!(text.len() < 3_000);
    let said = place.failed("Read", json!({"file_path": path, "offset": 1, "limit": 600_000})).await;
    assert!(said.contains("above the limit"));
    let past = place.failed("Read", json!({"file_path": path, "offset": 800_000})).await;
    assert!(past.contains("has 700002 lines"), "{past}");
}

#[tokio::test]
async fn pictures_and_documents_come_as_what_they_are() {
    let place = Place::new();
    for (name, bytes, media) in [
        ("a.txt", &b"\x89PNG\r\n\x1a\nrest"[..], "image/png"),
        ("b", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("c", b"GIF89a", "image/gif"),
        ("d", b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
    ] {
        let path = place.write(name, bytes);
        let output = place.call("Read", json!({"file_path": path})).await;
        assert_eq!(output.content[0].kind(), &Kind::Image);
        assert!(output.content[0].json().contains(media));
    }
    let path = place.write("e.pdf", "%PDF-1.7 …");
    let output = place.call("Read", json!({"file_path": path})).await;
    assert_eq!(output.content[0].kind(), &Kind::Document);
    let mut large = b"\x89PNG\r\n\x1a\n".to_vec();
    large.resize(4_000_000, 1);
    let path = place.write("large.png", large);
    assert!(place.failed("Read", json!({"file_path": path})).await.contains("is too large: 4000000 bytes"));
}

#[tokio::test]
async fn what_is_not_text_is_refused_or_marked() {
    let place = Place::new();
    place.write("binary", b"\x7fELF\0\0");
    assert!(place.failed("Read", json!({"file_path": "binary"})).await.contains("is a binary file"));
    place.write("latin", b"caf\xe9\n");
    let text = place.done("Read", json!({"file_path": "latin"})).await;
    assert!(text.starts_with("     1\tcaf\u{fffd}\n") && text.contains("not valid UTF-8"));
    pipe(&place.path("pipe"));
    assert!(place.failed("Read", json!({"file_path": "pipe"})).await.contains("not a regular file"));
    assert!(place.failed("Read", json!({"file_path": "/dev/zero"})).await.contains("not a regular file"));
    let said = place.failed("Read", json!({"file_path": place.root})).await;
    assert!(said.contains("is a directory") && said.contains("Use Glob"), "{said}");
}

#[tokio::test]
async fn a_missing_file_names_the_closest_one() {
    let place = Place::new();
    place.write("src/Config.ts", "x");
    place.write("src/other.md", "x");
    for (wrong, right) in [("src/config.tsx", "Config.ts"), ("src/othr.md", "other.md")] {
        let said = place.failed("Read", json!({"file_path": wrong})).await;
        assert!(said.ends_with(&format!("Did you mean {}?", place.path("src").join(right).display())), "{said}");
    }
    let said = place.failed("Read", json!({"file_path": "src/quite-different"})).await;
    assert!(said.contains("does not exist. The working directory is"), "{said}");
}
