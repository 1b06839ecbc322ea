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
];

#[test]
fn crates_import_one_another_only_downwards() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut seen = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let may = allowed.get(name).unwrap_or_else(|| panic!("{name} is not in the map: draw it first"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let (other, kind) = (dependency["name"].as_str().unwrap(), &dependency["kind"]);
            // Tests may use the simulator; nothing else.
            let for_tests = kind == "dev" && other == "simulator";
            if dependency["path"].is_string() && !for_tests {
                assert!(may.contains(&other), "{name} imports {other}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 8, "only {seen} edges: is the metadata read right?");
}
