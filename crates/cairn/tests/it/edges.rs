//! The crates import one another only as ARCHITECTURE.md draws it.

use std::collections::BTreeMap;
use std::process::Command;

/// Who may import whom. A crate that is not named may be imported by nobody.
const ALLOWED: &[(&str, &[&str])] = &[
    ("transcript", &[]),
    ("files", &[]),
    ("simulator", &[]),
    ("context", &["transcript"]),
    ("memory", &["transcript", "files"]),
    ("provider", &["transcript"]),
    ("tools", &["transcript", "files"]),
    ("team", &["files", "memory"]),
    ("engine", &["transcript", "files", "context", "memory", "provider", "tools"]),
    ("cairn", &["transcript", "files", "memory", "provider", "tools", "engine", "simulator", "team"]),
    ("storm", &[]),
];
/// All of it is tests, of everything.
const TESTS: &str = "storm";
/// The feature of `files` by which a disk can fail.
const FAULTS: &str = "faults";

fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn crates_import_one_another_only_downwards() {
    let metadata = metadata();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut seen = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let may = allowed.get(name).unwrap_or_else(|| panic!("{name} is not in the map: draw it first"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let (other, kind) = (dependency["name"].as_str().unwrap(), &dependency["kind"]);
            // Tests may use the simulator, and switch on features of their own crate; nothing else, but for those that are
            // of everything.
            let for_tests = kind == "dev" && (other == "simulator" || other == name || name == TESTS);
            if dependency["path"].is_string() && !for_tests {
                assert!(may.contains(&other), "{name} imports {other}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 8, "only {seen} edges: is the metadata read right?");
}

/// LOG-7: the program's disk cannot be made to fail: nothing but a dev-dependency of tests switches that on.
#[test]
fn no_program_is_built_with_a_disk_that_fails() {
    let mut tests = 0;
    for package in metadata()["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            if dependency["features"].as_array().unwrap().iter().any(|feature| feature == FAULTS) {
                assert!(
                    dependency["kind"] == "dev" && name == TESTS,
                    "{name} switches it on for {}",
                    dependency["name"]
                );
                tests += 1;
            }
        }
        for (feature, others) in package["features"].as_object().unwrap() {
            let others = others.to_string();
            assert!(feature == FAULTS && name == "files" || !others.contains(FAULTS), "{name}: {feature} is {others}");
            assert!(feature != "default" || !others.contains(FAULTS), "{name}: by default");
        }
    }
    assert_eq!(tests, 1, "the tests that need it");
}
