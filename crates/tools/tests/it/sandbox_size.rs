//! The sandbox in directories of any size: it protects as much, and tells as much, as in small ones.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::sandbox::Confined;
use crate::skipped::{is_full, skipped, skipped_on_this_machine};

/// Set where a test runs on a file system in memory of its own.
const IN_MEMORY: &str = "SANDBOX_SIZE_IN_MEMORY";

/// SANDBOX-2: with half a million files beside and above it a repository is still read-only, every other name of its
/// files with it, and what a command makes is told about.
#[tokio::test]
async fn guarded_paths_hold_beside_half_a_million_files() {
    if in_memory("guarded_paths_hold_beside_half_a_million_files") {
        holds(500_001, 10).await;
    }
}

/// SANDBOX-2: and so it is with two million, and in a hundred thousand directories.
#[tokio::test]
async fn guarded_paths_hold_beside_two_million_files() {
    if !is_full() {
        return skipped("./test full runs it");
    }
    if in_memory("guarded_paths_hold_beside_two_million_files") {
        holds(2_000_000, 100_000).await;
    }
}

async fn holds(files: usize, directories: usize) {
    let Some(confined) = Confined::new().await else { return };
    let place = &confined.place;
    let top = place.write("first", "");
    for (name, text) in
        [("deep/sub/.git/config", "as it was\n"), (".git/config", "as it was\n"), (".envrc", "as it was\n")]
    {
        place.write(name, text);
    }
    std::fs::create_dir_all(place.path("deep/sub/.git/hooks")).unwrap();
    std::fs::hard_link(place.path("deep/sub/.git/config"), place.path("deep/alias")).unwrap();
    // Some file systems name the newest first, others the oldest.
    for number in 0..files {
        std::fs::hard_link(&top, place.path(&format!("file-{number}"))).unwrap();
    }
    for number in 0..directories {
        std::fs::create_dir(place.path(&format!("directory-{number}"))).unwrap();
    }
    place.write("deep/other/.git/config", "as it was\n");
    let attempts = [
        "deep/sub/.git/config",
        "deep/sub/.git/hooks/x",
        ".git/config",
        ".envrc",
        "deep/alias",
        "deep/other/.git/config",
    ];
    let mut command: String = attempts.iter().map(|path| format!("echo bad > {path}; ")).collect();
    command += "mkdir -p deep/new/.husky; touch .mcp.json plain";
    let input = json!({"command": command, "timeout": 600_000});
    let output = place.call("Bash", input).await;
    let mut made: Vec<_> = output.made.iter().map(|made| made.path.strip_prefix(confined.root()).unwrap()).collect();
    made.sort();
    assert_eq!(made, [".mcp.json", "deep/new/.husky"].map(Path::new), "{}", output.text());
    assert!(place.path("plain").exists(), "{}", output.text());
    for path in attempts.iter().filter(|path| !path.ends_with('x')) {
        assert_eq!(place.content(path), "as it was\n", "{path}");
    }
    assert!(!place.path("deep/sub/.git/hooks/x").exists());
}

/// SANDBOX-2: a guard that still looks through the directories when the command was stopped is heard to its end, for as
/// long as it shows that it is at work.
#[tokio::test]
async fn a_guard_at_work_is_waited_for() {
    if !is_full() {
        return skipped("./test full runs it");
    }
    // Longer in all than a guard without a sign of life is waited for.
    let slow = "#!/bin/bash\nread -r order; read -rn1 word\nfor i in 1 2 3 4 5 6 7; do sleep 1; printf ' ' >&0; done\n\
        echo '{\"Ended\": {\"status\": 0, \"others\": false, \"made\": []}}' >&0\n";
    let place = super::place::Place::new();
    let guard = place.write("guard", slow);
    std::fs::set_permissions(&guard, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let scope = place.scope.clone().with_guard(guard);
    let call = tools::ToolCall::new("Bash", json!({"command": "true", "timeout": 1}));
    let said = tools::run_all(vec![call], &tools::standard(), &scope, |_, _| {}).await.remove(0).text();
    assert!(said.starts_with("Timed out"), "{said}");
}

/// Whether this is on a file system in memory. Where it is not, the test is run again on one, which ends with it.
fn in_memory(test: &str) -> bool {
    if std::env::var_os(IN_MEMORY).is_some() {
        return true;
    }
    let directory = tempfile::tempdir_in(super::attacks::elsewhere()).unwrap();
    let flags = if rustix::process::geteuid().is_root() { "-m" } else { "-Urm" };
    let script = "mount -t tmpfs none \"$TMPDIR\" || { echo no memory as files; exit; }; exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args([flags, "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args([&format!("it::sandbox_size::{test}"), "--exact", "--nocapture"])
        .env("TMPDIR", directory.path())
        .env(IN_MEMORY, "1")
        .output();
    let Ok(output) = output else {
        skipped("there is no unshare");
        return false;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    match said.contains("no memory as files") {
        true => skipped_on_this_machine("no file system in memory can be mounted"),
        false => assert!(said.contains("1 passed"), "{said}"),
    }
    false
}
