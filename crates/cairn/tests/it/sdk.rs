use std::path::Path;
use std::process::Command;

use crate::skipped::skipped;
use crate::stage::{bare, run};

/// The official Python SDK, pointed at the simulator, streams, runs tools and counts tokens unchanged.
/// (`./test` installs it; where it cannot, this test says so.)
#[test]
fn the_python_sdk_talks_to_the_simulator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/python/bin/python");
    if !python.exists() {
        return skipped("no Python SDK in target/python; ./test installs it");
    }
    let home = tempfile::tempdir().unwrap();
    let script = root.join("crates/simulator/tests/sdk.toml");
    let mut simulate = bare(home.path(), &home.path().join("config"));
    simulate.args(["simulate", "--script"]).arg(script).stdout(std::process::Stdio::piped());
    let mut server = simulate.spawn().unwrap();
    let mut stdout = std::io::BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").unwrap();
    let ran =
        run(Command::new(python).arg(root.join("crates/simulator/tests/sdk.py")).arg(url).env("NO_PROXY", "127.0.0.1"));
    // SIGTERM ends it with the report on stdout.
    let ended = Command::new("kill").arg(server.id().to_string()).status().unwrap();
    let mut report = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut report).unwrap();
    server.wait().unwrap();
    assert!(ended.success() && ran.code == Some(0), "{ran:?}");
    assert!(ran.stdout.contains(" 0 failed"), "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report["totals"]["requests"].as_u64() > Some(5), "{report}");
}
