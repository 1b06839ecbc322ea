//! The official TypeScript SDK.

use std::process::Command;

use super::{PACKAGES, installed, root};
use crate::stage::{Stage, run};

/// It streams, runs tools, counts, parses and maps errors against the simulator. Its tool runner begins with a thread
/// held by the server, is refused, and goes on without one.
#[test]
fn the_typescript_sdk_talks_to_the_simulator() {
    if installed(&format!("{PACKAGES}/node_modules/@anthropic-ai/sdk")).is_none() {
        return;
    }
    let stage = Stage::new(include_str!("../../../../simulator/tests/sdk.toml"));
    // A module is looked for from where the script lies.
    let script = root().join(PACKAGES).join("sdk.mjs");
    std::fs::copy(root().join("crates/cairn/tests/clients/sdk.mjs"), &script).unwrap();
    let ran = run(Command::new("node").arg(script).arg(stage.simulator.url()).env("NO_PROXY", "127.0.0.1"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "14 passed, 0 failed\n"), "{ran:?}");
    let report = stage.simulator.report();
    let threads = report.requests.iter().filter(|line| line.error.as_deref().unwrap_or_default().starts_with("thread"));
    assert_eq!((threads.count(), report.totals.requests), (2, 25), "{report:?}");
}
