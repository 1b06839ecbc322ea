//! The crates import one another only as ARCHITECTURE.md draws it, no module of a crate imports one that imports it, no
//! type collects what belongs into several, and names of types and files can be searched for.

#[path = "edges/modules.rs"]
mod modules;
#[path = "edges/names.rs"]
mod names;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Who may import whom. A crate that is not named may be imported by nobody.
const ALLOWED: &[(&str, &[&str])] = &[
    ("transcript", &[]),
    ("files", &[]),
    ("shell", &[]),
    ("simulator", &[]),
    ("web", &[]),
    ("context", &["transcript"]),
    ("memory", &["transcript", "files"]),
    ("provider", &["transcript"]),
    ("mcp", &["transcript", "files"]),
    ("tools", &["transcript", "files", "shell"]),
    ("team", &["files", "memory"]),
    ("session", &["transcript", "files", "context", "memory", "provider", "tools"]),
    ("settings", &["transcript", "files", "context", "memory", "mcp", "tools", "session"]),
    ("mail", &["transcript", "files", "memory", "tools", "session", "settings"]),
    ("learning", &["transcript", "files", "context", "memory", "provider", "tools", "session", "settings"]),
    ("extensions", &["transcript", "files", "memory", "tools", "session", "settings"]),
    (
        "engine",
        &[
            "transcript",
            "files",
            "context",
            "memory",
            "provider",
            "mcp",
            "tools",
            "session",
            "settings",
            "mail",
            "learning",
            "extensions",
            "web",
        ],
    ),
    (
        "cairn",
        &[
            "transcript",
            "files",
            "memory",
            "provider",
            "mcp",
            "shell",
            "tools",
            "session",
            "settings",
            "mail",
            "learning",
            "extensions",
            "engine",
            "simulator",
            "team",
        ],
    ),
    ("storm", &[]),
];
/// The one cycle of modules there is: a subagent is an agent, which has subagents.
const CYCLES: &[(&str, &str)] = &[("engine", "agent agents")];

/// A type with methods in more files than this is several types.
const MOST_FILES_OF_A_TYPE: usize = 5;

/// Two types, or two files, may share a name in crates that never meet; a third makes a search for it useless.
const MOST_MEANINGS: usize = 2;

/// Files that say what they are by the folder they are in, as every crate and module has them.
const OF_A_FOLDER: &[&str] = &["lib.rs", "main.rs", "error.rs", "tests.rs"];

/// Of a hundred doc comments, those that may circle the thing instead of naming it. In review 31 did, and each cost a second
/// reading.
const MOST_CIRCLING: usize = 1;

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

#[test]
fn no_module_imports_one_that_imports_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut wrong = String::new();
    let mut seen = 0;
    for (name, _) in ALLOWED {
        let mut files = Vec::new();
        read_sources(&crates.join(name).join("src"), Path::new(""), &mut files);
        let edges = modules::edges(&files);
        seen += edges.len();
        for cycle in modules::cycles(&edges) {
            let is_known = |known: &str| cycle.iter().all(|module| known.split(' ').any(|one| one == module));
            if CYCLES.iter().any(|(of, known)| of == name && is_known(known)) {
                continue;
            }
            for ((from, to), place) in edges.iter().filter(|((from, to), _)| cycle.contains(from) && cycle.contains(to))
            {
                wrong += &format!("{name}: {from} imports {to} in crates/{name}/src/{place}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "modules that import one another:\n{wrong}");
    assert!(seen >= 500, "only {seen} edges: are the sources read right?");
}

#[test]
fn no_type_has_methods_in_more_than_five_files() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut wrong, mut seen) = (String::new(), 0);
    for (name, _) in ALLOWED {
        let mut files = Vec::new();
        read_sources(&crates.join(name).join("src"), Path::new(""), &mut files);
        for (of, files) in modules::implementations(&files) {
            seen += 1;
            if files.len() > MOST_FILES_OF_A_TYPE {
                wrong += &format!("{name}: {of} in {} files, {files:?}\n", files.len());
            }
        }
    }
    assert!(wrong.is_empty(), "types that are several:\n{wrong}");
    assert!(seen >= 500, "only {seen} types: are the sources read right?");
}

#[test]
fn no_type_name_has_more_than_two_meanings() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, _) in ALLOWED {
        let mut files = Vec::new();
        read_sources(&crates.join(name).join("src"), Path::new(""), &mut files);
        for (of, places) in names::types(name, &files) {
            all.entry(of).or_default().extend(places);
        }
    }
    assert!(all.len() >= 1000, "only {} types: are the sources read right?", all.len());
    all.retain(|_, places| places.len() > MOST_MEANINGS);
    assert!(all.is_empty(), "names of too many types: {all:#?}");
}

#[test]
fn no_file_name_is_used_more_than_twice() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, _) in ALLOWED {
        let mut files = Vec::new();
        read_sources(&crates.join(name).join("src"), Path::new(""), &mut files);
        for (path, _) in files {
            let file = path.rsplit('/').next().unwrap_or_default().to_owned();
            all.entry(file).or_default().push(format!("crates/{name}/src/{path}"));
        }
    }
    assert!(all.len() >= 500, "only {} names: are the folders read right?", all.len());
    all.retain(|file, places| places.len() > MOST_MEANINGS && !OF_A_FOLDER.contains(&file.as_str()));
    assert!(all.is_empty(), "files that cannot be told apart by their names: {all:#?}");
}

#[test]
fn doc_comments_name_the_thing() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut seen = 0;
    for (name, _) in ALLOWED {
        let mut files = Vec::new();
        read_sources(&crates.join(name).join("src"), Path::new(""), &mut files);
        let (all, circling) = names::doc_comments(&files);
        seen += all;
        assert!(circling.len() * 100 <= all * MOST_CIRCLING, "{name}: {circling:#?}");
    }
    assert!(seen >= 5000, "only {seen} doc comments: are the sources read right?");
}

/// All files below a folder, by their paths from it.
fn read_sources(folder: &Path, below: &Path, files: &mut Vec<(String, String)>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder.join(below)).unwrap().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            read_sources(folder, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push((path.display().to_string(), std::fs::read_to_string(entry.path()).unwrap()));
        }
    }
}
