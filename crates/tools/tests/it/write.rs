//! Write: new files, and files that were seen.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::place::{Place, pipe};

#[tokio::test]
async fn a_new_file_is_made_with_its_directories() {
    let place = Place::new();
    let output = place.call("Write", json!({"file_path": "a/b/c.txt", "content": "one\ntwo\n"})).await;
    assert_eq!(output.text(), format!("Created {} with 2 lines.", place.path("a/b/c.txt").display()));
    assert_eq!(output.changed, Some(place.path("a/b/c.txt")));
    assert_eq!(place.content("a/b/c.txt"), "one\ntwo\n");
    // What we wrote ourselves we have seen.
    let text = place.done("Write", json!({"file_path": "a/b/c.txt", "content": "three"})).await;
    assert!(text.ends_with("1 line, before 2."), "{text}");
}

/// TOOL-1, MEM-7: a file that exists is only overwritten by one who has read it as it is.
#[tokio::test]
async fn an_existing_file_must_have_been_read_and_be_unchanged() {
    let place = Place::new();
    place.write("a", "mine");
    let write = json!({"file_path": "a", "content": "new"});
    assert!(place.failed("Write", write.clone()).await.contains("has not been read"));
    place.done("Read", json!({"file_path": "a"})).await;
    place.write("a", "user");
    assert!(place.failed("Write", write.clone()).await.contains("changed since it was read"));
    assert_eq!(place.content("a"), "user");
    place.done("Read", json!({"file_path": "a"})).await;
    place.write("a", "user");
    place.done("Write", write).await;
    assert_eq!(place.content("a"), "new");
}

#[tokio::test]
async fn links_are_written_through_and_devices_not_at_all() {
    let place = Place::new();
    place.write("target", "old");
    symlink("target", place.path("link")).unwrap();
    place.done("Read", json!({"file_path": "target"})).await;
    place.done("Write", json!({"file_path": "link", "content": "new"})).await;
    assert_eq!(place.content("target"), "new");
    assert!(std::fs::symlink_metadata(place.path("link")).unwrap().is_symlink());
    symlink("later", place.path("dangling")).unwrap();
    place.done("Write", json!({"file_path": "dangling", "content": "made"})).await;
    assert_eq!(place.content("later"), "made");
    pipe(&place.path("pipe"));
    for path in ["pipe", "/dev/null"] {
        let said = place.failed("Write", json!({"file_path": path, "content": "x"})).await;
        assert!(said.contains("not a regular file"), "{said}");
    }
    assert!(place.failed("Write", json!({"file_path": ".", "content": "x"})).await.contains("is a directory"));
}
