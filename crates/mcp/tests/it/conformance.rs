//! The protocol's conformance suite against the client, in the full run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::skipped::{is_full, skipped};

/// Folder in which `./test full` installs the suite, and a Node that runs it.
const PACKAGES: &str = "target/clients/node_modules";
const NODE: &str = ".bin/node";
const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";

/// For one scenario, in milliseconds: the suite starts all at once, beside other tests.
const PATIENCE: &str = "90000";
/// Fewest required scenarios of each revision: a suite that ran none would find no failure.
const REQUIRED: [(&str, usize); 2] = [("2025-11-25", 18), ("2026-07-28", 32)];

#[derive(Deserialize)]
struct Exceptions {
    exception: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    scenario: String,
    reason: String,
}

/// A path below the repository, when the tests run in full and it was installed.
pub(crate) fn installed(path: &str) -> Option<PathBuf> {
    let root = std::fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    let path = root.join(path);
    match (is_full(), path.exists()) {
        (false, _) => skipped("./test full runs it"),
        (true, false) => skipped(&format!("{} is missing; ./test full installs it", path.display())),
        (true, true) => return Some(path),
    }
    None
}

/// The program that the suite drives; it is built with the tests.
fn client() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let client = tests.parent().and_then(Path::parent).unwrap().join("examples/conformance");
    assert!(client.exists(), "{} is missing: cargo build -p mcp --example conformance", client.display());
    client
}

/// MCP-3: every required client scenario of both families of revisions passes; the exceptions are those that are listed, none
/// of which is required.
#[test]
fn the_conformance_suite_passes_with_the_listed_exceptions() {
    let (Some(packages), exceptions) = (installed(PACKAGES), include_str!("conformance/exceptions.toml")) else {
        return;
    };
    let listed: Exceptions = toml::from_str(exceptions).unwrap();
    assert!(listed.exception.iter().all(|exception| exception.reason.len() > 10), "an exception has a reason");
    let listed: BTreeSet<&str> = listed.exception.iter().map(|exception| exception.scenario.as_str()).collect();
    for (revision, required) in REQUIRED {
        let mut suite = Command::new(packages.join(NODE));
        suite.arg(packages.join(SUITE)).args(["client", "--requirements", revision, "--timeout", PATIENCE]);
        suite.arg("--command").arg(client());
        let output = suite.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let summary = said.split("SUITE SUMMARY").nth(1).unwrap_or_else(|| panic!("{said}"));
        let (scored, others) = summary.split_once("Total:").unwrap_or_else(|| panic!("{said}"));
        let of = |mark: &str| -> BTreeSet<&str> {
            let lines = scored.lines().filter_map(|line| line.strip_prefix(mark)?.trim().split_once(": "));
            lines.map(|(scenario, _)| scenario).collect()
        };
        let (passed, failed) = (of("✓"), of("✗"));
        assert_eq!(failed, listed, "{revision}: {said}");
        assert!(passed.len() >= required, "{revision}: only {} scenarios", passed.len());
        // The suite's own word for what is not required.
        assert!(failed.iter().all(|scenario| others.contains(&format!("✗ {scenario} ("))), "{revision}: {others}");
        assert!(output.status.success(), "{revision}: {others}");
    }
}
