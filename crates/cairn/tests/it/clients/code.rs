//! Claude Code against the simulator.

use super::claude_code;
use crate::stage::{Stage, run};

const MENDER: &str = include_str!("../../clients/mend.toml");

/// It reads, runs and edits as the scripted model says; nothing it sends is refused, and every request after the first
/// reads all of the one before from the cache.
#[test]
fn claude_code_works_with_tools_against_the_simulator() {
    let stage = Stage::new(MENDER);
    let Some(mut claude) = claude_code(&stage) else { return };
    let note = stage.write("note.txt", "alpha\n");
    let ran = run(claude.args(["-p", "mend the note", "--allowedTools", "Read", "Edit", "Bash"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "The note says beta now.\n"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(note).unwrap(), "beta\n");
    let report = stage.simulator.report();
    let rules: Vec<&str> = report.requests.iter().filter_map(|line| line.rule.as_deref()).collect();
    assert_eq!(rules, ["read", "run", "edit", "tell"]);
    assert_eq!((report.totals.refused, report.totals.breaks), (0, 0), "{report:?}");
    for pair in report.requests.windows(2) {
        assert_eq!(pair[1].input.read, pair[0].input.total(), "{pair:?}");
    }
}

/// It looks for a tool that it was not told of in full, and is not charged for the prefix again.
#[test]
fn claude_code_finds_a_deferred_tool_without_a_break() {
    let stage = Stage::new(MENDER);
    let Some(mut claude) = claude_code(&stage) else { return };
    let ran = run(claude.args(["-p", "find a tool that fetches pages"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "WebFetch is there.\n"), "{ran:?}");
    let totals = stage.simulator.report().totals;
    assert_eq!((totals.requests, totals.refused, totals.breaks), (2, 0, 0), "{:?}", stage.simulator.report());
}
