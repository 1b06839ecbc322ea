//! Links: what was judged is what is read and written, and what may not be shown is not shown through one.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use serde_json::{Value, json};
use tools::{Output, Subject, ToolCall, run_all, standard};

use super::place::{Place, pipe};

/// Calls a tool about what its path was judged to be before `meanwhile` happened.
async fn judged(place: &Place, name: &str, input: Value, meanwhile: impl FnOnce()) -> Output {
    let tool = standard().into_iter().find(|tool| tool.name() == name).unwrap();
    let subject = Some(tool.subject(&input, &place.scope));
    meanwhile();
    let call = ToolCall { subject, ..ToolCall::new(name, input) };
    run_all(vec![call], &standard(), &place.scope, |_, _| {}).await.remove(0)
}

/// TRUST-5: between the approval of a call and its run a link is put in the way; nothing is written or read through it.
#[tokio::test]
async fn a_link_put_in_the_way_after_the_approval_is_not_followed() {
    let place = Place::new();
    let secret = place.write("../outside/file.txt", "secret\n");
    for (tool, more) in [
        ("Write", json!({"content": "new"})),
        ("Edit", json!({"old_string": "old", "new_string": "new"})),
        ("Edit", json!({"old_string": "", "new_string": "new"})),
        ("Read", json!({})),
        ("Grep", json!({"pattern": "secret", "output_mode": "content"})),
    ] {
        for whole_directory in [true, false] {
            let _ = std::fs::remove_file(place.path("dir"));
            let _ = std::fs::remove_dir_all(place.path("dir"));
            let path = place.write("dir/file.txt", "old\n");
            place.done("Read", json!({"file_path": path})).await;
            let mut input = more.clone();
            input[if tool == "Grep" { "path" } else { "file_path" }] = json!(path);
            let output = judged(&place, tool, input, || {
                std::fs::remove_dir_all(place.path("dir")).unwrap();
                if whole_directory {
                    symlink(secret.parent().unwrap(), place.path("dir")).unwrap();
                } else {
                    std::fs::create_dir(place.path("dir")).unwrap();
                    symlink(&secret, &path).unwrap();
                }
            })
            .await;
            assert!(!output.text().contains("secret"), "{tool}: {}", output.text());
            assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret\n", "{tool}");
            assert_eq!(std::fs::read_dir(secret.parent().unwrap()).unwrap().count(), 1, "{tool}");
        }
    }
}

/// A link that was there when the call was judged is followed, as before.
#[tokio::test]
async fn a_link_that_was_judged_is_written_through() {
    let place = Place::new();
    place.write("real/file.txt", "old\n");
    symlink("real", place.path("alias")).unwrap();
    let path = place.path("alias/file.txt");
    place.done("Read", json!({"file_path": path})).await;
    let input = json!({"file_path": path, "old_string": "old", "new_string": "new"});
    let output = judged(&place, "Edit", input, || {}).await;
    assert!(output.text().contains("alias/file.txt"), "{}", output.text());
    assert_eq!(place.content("real/file.txt"), "new\n");
}

/// TRUST-5: Grep and Glob do not show by another name what may not be shown.
#[tokio::test]
async fn what_may_not_be_shown_is_not_found_by_another_name() {
    let mut place = Place::new();
    place.write("secrets/key.txt", "needle\n");
    place.write("open.txt", "needle\n");
    symlink(".", place.path("alias")).unwrap();
    symlink("secrets/key.txt", place.path("link.txt")).unwrap();
    let denied = place.path("secrets");
    place.scope = place
        .scope
        .with_readable(Arc::new(move |named, real| !named.starts_with(&denied) && !real.starts_with(&denied)));
    for path in [".", "alias", "alias/alias"] {
        let found = place.done("Grep", json!({"pattern": "needle", "path": path})).await;
        assert!(found.contains("open.txt") && !found.contains("key.txt"), "{path}: {found}");
        let found = place.done("Glob", json!({"pattern": "**/*.txt", "path": path})).await;
        assert!(found.contains("open.txt") && !found.contains("key.txt") && !found.contains("link.txt"), "{found}");
    }
    assert_eq!(
        place.scope.subject("alias/secrets/key.txt"),
        Subject::Path { named: place.path("alias/secrets/key.txt"), real: place.path("secrets/key.txt") }
    );
}

/// A pipe where an ignore file is expected does not make a search wait.
#[tokio::test]
async fn a_pipe_in_place_of_an_ignore_file_is_not_read() {
    let place = Place::new();
    place.write("open.txt", "needle\n");
    place.write("sub/other.txt", "needle\n");
    pipe(&place.path("sub/.gitignore"));
    assert!(place.done("Grep", json!({"pattern": "needle"})).await.contains("open.txt"));
    pipe(&place.path(".ignore"));
    assert!(place.done("Glob", json!({"pattern": "*.txt"})).await.contains("open.txt"));
}
