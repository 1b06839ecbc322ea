//! Grep and Glob: in order, bounded, honouring what the project ignores.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tools::{ToolCall, run_all, standard};

use super::place::{Place, pipe};

fn age(place: &Place, name: &str, seconds: u64) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - seconds);
    std::fs::File::options().write(true).open(place.path(name)).unwrap().set_modified(then).unwrap();
}

fn project() -> Place {
    let place = Place::new();
    place.write(".gitignore", "ignored/\n*.log\n");
    place.write("src/b.rs", "fn main() {}\n// needle one\n// needle two\n");
    place.write("src/a.rs", "before\nNeedle\nneedle\nafter\nfar\nneedle\n");
    place.write("readme.md", "a needle\n");
    place.write("ignored/x.rs", "needle\n");
    place.write("debug.log", "needle\n");
    place.write(".hidden/x.rs", "needle\n");
    place.write(".git/config", "needle\n");
    place.write("binary", b"needle\n\0\0\n");
    for (seconds, name) in ["src/a.rs", "readme.md", "src/b.rs"].into_iter().enumerate() {
        age(&place, name, 10 * seconds as u64);
    }
    for name in [".gitignore", ".hidden/x.rs", "binary"] {
        age(&place, name, 1000);
    }
    place
}

#[tokio::test]
async fn files_come_newest_first_lines_by_path() {
    let place = project();
    let files = place.done("Grep", json!({"pattern": "needle"})).await;
    assert_eq!(files, "src/a.rs\nreadme.md\nsrc/b.rs\n\n[Found 3 files]");
    let lines = place.done("Grep", json!({"pattern": "needle", "output_mode": "content"})).await;
    assert_eq!(
        lines,
        "readme.md:1:a needle\nsrc/a.rs:3:needle\nsrc/a.rs:6:needle\nsrc/b.rs:2:// needle one\nsrc/b.rs:3:// needle two"
    );
    let counts = place.done("Grep", json!({"pattern": "needle", "output_mode": "count"})).await;
    assert_eq!(counts, "readme.md:1\nsrc/a.rs:2\nsrc/b.rs:2\n\n[Found 5 matching lines in 3 files]");
    assert_eq!(place.done("Grep", json!({"pattern": "absent"})).await, "No matches found.");
}

#[tokio::test]
async fn options_mean_what_they_mean_in_ripgrep() {
    let place = project();
    let grep = async |input| place.done("Grep", input).await;
    let content = "content";
    assert_eq!(
        grep(json!({"pattern": "NEEDLE", "-i": true, "path": "src/a.rs", "output_mode": content, "-n": false})).await,
        "src/a.rs:Needle\nsrc/a.rs:needle\nsrc/a.rs:needle"
    );
    assert_eq!(
        grep(json!({"pattern": "^needle", "path": "src", "output_mode": content, "-B": 1, "-A": 1})).await,
        "src/a.rs-2-Needle\nsrc/a.rs:3:needle\nsrc/a.rs-4-after\nsrc/a.rs-5-far\nsrc/a.rs:6:needle"
    );
    assert_eq!(
        grep(json!({"pattern": "Needle", "path": "src", "output_mode": content, "-C": 1})).await,
        "src/a.rs-1-before\nsrc/a.rs:2:Needle\nsrc/a.rs-3-needle"
    );
    assert_eq!(grep(json!({"pattern": "needle", "type": "rust"})).await, "src/a.rs\nsrc/b.rs\n\n[Found 2 files]");
    assert_eq!(grep(json!({"pattern": "needle", "glob": "*.md"})).await, "readme.md\n\n[Found 1 file]");
    assert_eq!(grep(json!({"pattern": "needle", "glob": "!*.rs"})).await, "readme.md\n\n[Found 1 file]");
    assert_eq!(grep(json!({"pattern": "needle", "glob": "*.log"})).await, "No matches found.");
    assert_eq!(grep(json!({"pattern": "needle", "path": ".hidden"})).await, ".hidden/x.rs\n\n[Found 1 file]");
    assert_eq!(grep(json!({"pattern": "needle", "path": "debug.log"})).await, "debug.log\n\n[Found 1 file]");
    assert_eq!(
        grep(json!({"pattern": "far.needle", "multiline": true, "output_mode": content})).await,
        "src/a.rs:5:far\nsrc/a.rs:6:needle"
    );
}

#[tokio::test]
async fn a_long_output_is_cut_and_says_how_to_go_on() {
    let place = Place::new();
    place.write("a", "hit\n".repeat(300));
    place.write("long", format!("hit{}\n", "x".repeat(1_000)));
    let text = place.done("Grep", json!({"pattern": "hit", "output_mode": "content"})).await;
    assert!(text.contains("a:250:hit") && !text.contains("a:251:"), "{text}");
    assert!(text.ends_with("[cut after 250 lines; more follow: go on with offset 250, or narrow the search]"));
    let text =
        place.done("Grep", json!({"pattern": "hit", "output_mode": "content", "offset": 299, "head_limit": 0})).await;
    assert!(text.starts_with("a:300:hit\nlong:1:hitxxx") && text.ends_with("[… 503 more characters]"), "{text}");
    let text = place.done("Grep", json!({"pattern": "hit", "head_limit": 1})).await;
    assert!(text.contains("[Found 2 files]") && text.contains("cut after 1 file;"), "{text}");
    assert!(place.done("Grep", json!({"pattern": "hit", "offset": 9})).await.contains("Offset 9 is past the end"));
}

#[tokio::test]
async fn bad_searches_say_what_is_wrong() {
    let place = project();
    for (input, words) in [
        (json!({"pattern": "fn ("}), "is not a valid regular expression"),
        (json!({"pattern": "a\\nb"}), "Set multiline to match across lines"),
        (json!({"pattern": "x", "type": "klingon"}), "There is no file type `klingon`"),
        (json!({"pattern": "x", "glob": "{a"}), "cannot be understood"),
        (json!({"pattern": "x", "path": "reedme.md"}), "Did you mean"),
        (json!({"pattern": "(((((a{100}){100}){100}){100}){100})"}), "is not a valid regular expression"),
    ] {
        let said = place.failed("Grep", input.clone()).await;
        assert!(said.contains(words), "{input}: {said}");
    }
    pipe(&place.path("pipe"));
    assert!(place.failed("Grep", json!({"pattern": "x", "path": "pipe"})).await.contains("not a regular file"));
    place.done("Grep", json!({"pattern": "needle"})).await;
}

#[tokio::test]
async fn glob_finds_by_name_newest_first() {
    let place = project();
    let glob = async |pattern: &str| place.done("Glob", json!({"pattern": pattern})).await;
    assert_eq!(glob("**/*.rs").await, "src/a.rs\nsrc/b.rs\n.hidden/x.rs");
    assert_eq!(glob("*.rs").await, "src/a.rs\nsrc/b.rs\n.hidden/x.rs");
    assert_eq!(glob("src/*.rs").await, "src/a.rs\nsrc/b.rs");
    assert_eq!(glob("./readme.{md,txt}").await, "readme.md");
    assert_eq!(glob("config").await, "No files found.");
    assert_eq!(glob(&format!("{}/src/*.rs", place.root.display())).await, "src/a.rs\nsrc/b.rs");
    assert_eq!(glob(&format!("{}/readme.md", place.root.display())).await, "readme.md");
    assert_eq!(place.done("Glob", json!({"pattern": "*.rs", "path": "src"})).await, "src/a.rs\nsrc/b.rs");
    assert!(place.failed("Glob", json!({"pattern": "*", "path": "nowhere"})).await.contains("does not exist"));
    assert!(place.failed("Glob", json!({"pattern": "[a"})).await.contains("cannot be understood"));
    for number in 0..120 {
        place.write(&format!("many/{number}.txt"), "");
    }
    let text = glob("many/*").await;
    assert_eq!(text.lines().filter(|line| line.starts_with("many/")).count(), 100);
    assert!(text.contains("[the newest 100 of 120 files;"));
}

/// TOOL-2: what a rule keeps from being read is not found by searching either.
#[tokio::test]
async fn files_that_may_not_be_shown_are_not_found() {
    let mut place = project();
    place.scope = place.scope.with_readable(Arc::new(|named, _| !named.ends_with("readme.md")));
    assert!(!place.done("Grep", json!({"pattern": "needle"})).await.contains("readme"));
    assert!(!place.done("Glob", json!({"pattern": "*"})).await.contains("readme"));
}

#[tokio::test]
async fn a_search_can_be_stopped() {
    let place = project();
    place.scope.cancel().cancel();
    let call = ToolCall::new("Grep", json!({"pattern": "needle"}));
    let output = run_all(vec![call], &standard(), &place.scope, |_, _| {}).await.remove(0);
    assert_eq!(output.text(), "cancelled by the user");
}
