//! The Agent SDKs drive this program and its agents.

use std::process::Command;

use super::{PACKAGES, installed, root};
use crate::stage::{Ran, Stage, run};

pub const AGENTS: &str = include_str!("../../clients/agents.toml");

/// Runs a script of theirs on a stage: it is told where the model, the program, the project and the config home are.
fn ran(stage: &Stage, program: &mut Command) -> Ran {
    std::fs::create_dir_all(stage.config()).unwrap();
    program.arg(stage.simulator.url()).arg(env!("CARGO_BIN_EXE_cairn"));
    program.arg(stage.project()).arg(stage.config());
    program.env("HOME", stage.config().parent().unwrap()).env("CLAUDE_CONFIG_DIR", stage.config());
    run(program.env("NO_PROXY", "127.0.0.1"))
}

/// AGENT-1, AGENT-2: the Python Agent SDK defines agents, hears of them by hooks and messages, answers their questions, stops
/// them and the turn, reads what all of it cost, and finds what they said in the files.
#[test]
fn the_python_agent_sdk_works_with_agents() {
    let Some(python) = installed("target/python-agent/bin/python") else { return };
    let stage = Stage::new(AGENTS);
    let ran = ran(&stage, Command::new(python).arg(root().join("crates/cairn/tests/clients/agents.py")));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "25 passed, 0 failed\n"), "{ran:?}");
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

/// AGENT-1, AGENT-2: the same for the TypeScript Agent SDK, with a hook that has to agree, and an agent that is sent to the
/// background while it works.
#[test]
fn the_typescript_agent_sdk_works_with_agents() {
    if installed(&format!("{PACKAGES}/node_modules/@anthropic-ai/claude-agent-sdk")).is_none() {
        return;
    }
    let stage = Stage::new(AGENTS);
    // A module is looked for from where the script lies.
    let script = root().join(PACKAGES).join("agents.mjs");
    std::fs::copy(root().join("crates/cairn/tests/clients/agents.mjs"), &script).unwrap();
    let ran = ran(&stage, Command::new("node").arg(script));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "15 passed, 0 failed\n"), "{ran:?}");
    assert_eq!(stage.simulator.report().totals.refused, 0);
}
