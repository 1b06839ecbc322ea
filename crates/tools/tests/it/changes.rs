//! Which file a call would write, for one who wants to keep its content before.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};
use tools::standard;

use super::place::Place;

fn changes(place: &Place, name: &str, input: &Value) -> Option<PathBuf> {
    standard().iter().find(|tool| tool.name() == name).unwrap().changes(input, &place.scope)
}

/// LOG-14: Write and Edit say before they run which file they would change, and it is the one they do change.
#[tokio::test]
async fn write_and_edit_name_the_file_they_are_about_to_change() {
    let place = Place::new();
    place.write("target", "one");
    symlink("target", place.path("link")).unwrap();
    symlink("later", place.path("dangling")).unwrap();
    for (named, real) in [("target", "target"), ("./x/../link", "target"), ("dangling", "later"), ("a/new", "a/new")] {
        for path in [PathBuf::from(named), place.path(named)] {
            let write = json!({"file_path": path, "content": "two"});
            let edit = json!({"file_path": path, "old_string": "one", "new_string": "two"});
            assert_eq!(changes(&place, "Write", &write), Some(place.path(real)), "{named}");
            assert_eq!(changes(&place, "Edit", &edit), Some(place.path(real)), "{named}");
        }
    }
    place.done("Read", json!({"file_path": "target"})).await;
    let edit = json!({"file_path": "link", "old_string": "one", "new_string": "two"});
    let told = changes(&place, "Edit", &edit).unwrap();
    place.done("Edit", edit).await;
    assert_eq!(std::fs::read_to_string(told).unwrap(), "two");
}

#[test]
fn other_tools_and_bad_input_change_no_file_that_is_known() {
    let place = Place::new();
    for (name, input) in [
        ("Read", json!({"file_path": "a"})),
        ("Grep", json!({"pattern": "a"})),
        ("Glob", json!({"pattern": "a"})),
        ("Bash", json!({"command": "echo > a"})),
        ("TaskOutput", json!({"task_id": "a"})),
        ("TaskStop", json!({"task_id": "a"})),
        ("Write", json!({"path": "a"})),
        ("Edit", Value::Null),
    ] {
        assert_eq!(changes(&place, name, &input), None, "{name}");
    }
}
