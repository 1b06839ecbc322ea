//! Real clients: the official SDKs, Claude Code, and a small model behind llama.cpp.
//!
//! They run only in `./test full`, which installs them below `target` and says so when it cannot.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skipped::{is_full, skipped};
use crate::stage::Stage;

#[path = "clients/agents.rs"]
mod agents;
#[path = "clients/code.rs"]
mod code;
#[path = "clients/commits.rs"]
mod commits;
#[path = "clients/examples.rs"]
mod examples;
#[path = "clients/exchange.rs"]
mod exchange;
#[path = "clients/hooks.rs"]
mod hooks;
#[path = "clients/hooks_life.rs"]
mod hooks_life;
#[path = "clients/llama.rs"]
mod llama;
#[path = "clients/subagents.rs"]
mod subagents;
#[path = "clients/typescript.rs"]
mod typescript;

/// Where the npm packages are.
const PACKAGES: &str = "target/clients";
const CLAUDE_CODE: &str = "node_modules/.bin/claude";
/// Any key will do for the simulator.
const KEY: &str = "sk-test-key";

fn root() -> PathBuf {
    std::fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// A path below the repository, when the tests run in full and it was installed.
fn installed(path: &str) -> Option<PathBuf> {
    let path = root().join(path);
    match (is_full(), path.exists()) {
        (false, _) => skipped("./test full runs it"),
        (true, false) => skipped(&format!("{} is missing; ./test full installs it", path.display())),
        (true, true) => return Some(path),
    }
    None
}

/// Claude Code in the stage's project and config home, talking to the stage's simulator and to nobody else.
fn claude_code(stage: &Stage) -> Option<Command> {
    let mut command = Command::new(installed(&format!("{PACKAGES}/{CLAUDE_CODE}"))?);
    command.current_dir(stage.project()).env_clear().stdin(std::process::Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LANG", "C.UTF-8");
    command.env("HOME", stage.config().parent().unwrap()).env("CLAUDE_CONFIG_DIR", stage.config());
    command.env("ANTHROPIC_BASE_URL", stage.simulator.url()).env("ANTHROPIC_API_KEY", KEY);
    command.env("NO_PROXY", "127.0.0.1");
    for off in ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"] {
        command.env(off, "1");
    }
    Some(command)
}
