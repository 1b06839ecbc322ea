//! What the model is told.

use serde_json::{Value, json};
use tools::{Limit, standard};

use super::place::Place;

/// TOOL-1: the tools are defined by small schemas that are the same every time.
#[test]
fn definitions_are_stable_and_without_noise() {
    let definitions: Vec<_> = standard().iter().map(|tool| tool.definition()).collect();
    let again: Vec<_> = standard().iter().map(|tool| tool.definition()).collect();
    let text = serde_json::to_string_pretty(&definitions).unwrap();
    assert_eq!(text, serde_json::to_string_pretty(&again).unwrap());
    for noise in ["$ref", "$defs", "$schema", "\"title\"", "\"format\"", "null", "anyOf", "oneOf"] {
        assert!(!text.contains(noise), "{noise}");
    }
    for definition in &definitions {
        assert_eq!(definition.input_schema["additionalProperties"], json!(false), "{}", definition.name);
        assert!(!definition.description.is_empty());
        for (name, property) in definition.input_schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{} {name}", definition.name);
        }
    }
    insta::assert_snapshot!(text);
}

/// SPILL-2: each tool names its own limit; Read bounds itself.
#[test]
fn limits_are_those_of_the_tools() {
    let limits: Vec<_> = standard().iter().map(|tool| (tool.name().to_owned(), tool.limit())).collect();
    let characters = Limit::Characters;
    for (name, limit) in [
        ("Read", Limit::Unlimited),
        ("Write", characters(100_000)),
        ("Edit", characters(100_000)),
        ("Grep", characters(20_000)),
        ("Glob", characters(100_000)),
        ("Bash", characters(30_000)),
        ("TaskOutput", characters(30_000)),
    ] {
        assert!(limits.contains(&(name.to_owned(), limit)), "{name}");
    }
}

#[tokio::test]
async fn bad_input_names_the_field_and_what_was_expected() {
    let place = Place::new();
    for (tool, input, words) in [
        ("Read", json!({}), vec!["missing field `file_path`"]),
        ("Read", json!({"file_path": 3}), vec!["`file_path`", "expected a string"]),
        ("Read", json!({"file_path": "x", "offset": "one"}), vec!["`offset`", "expected u64"]),
        ("Read", json!({"file_path": "x", "offset": -1}), vec!["`offset`", "expected u64"]),
        ("Read", json!({"path": "x"}), vec!["unknown field `path`", "`file_path`"]),
        ("Grep", json!({"pattern": "x", "output_mode": "lines"}), vec!["`output_mode`", "`content`"]),
        ("Bash", Value::Null, vec!["expected a JSON object, found nothing"]),
        ("Bash", json!("ls"), vec!["expected a JSON object, found a string"]),
        ("Edit", json!({"file_path": "x", "old_string": "a"}), vec!["missing field `new_string`"]),
    ] {
        let said = place.failed(tool, input.clone()).await;
        for word in words {
            assert!(said.contains(word) && said.starts_with(tool), "{tool} {input}: {said}");
        }
    }
    // Models send null for what they leave out.
    place.write("a", "x");
    place.done("Read", json!({"file_path": place.path("a"), "offset": null, "limit": null})).await;
}
