//! The example programs of the Python Agent SDK, unchanged, with this program by its path.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{installed, root};
use crate::stage::{Ran, Stage, run};

const MODEL: &str = include_str!("../../clients/examples.toml");
/// The source of the package, which has the examples.
const SOURCE: &str = "target/agent-examples";

/// An example, its exit code (the same with Claude Code 2.1.325), what it prints if all went well, and what its model did.
struct Example(&'static str, i32, &'static str, &'static [&'static str]);

/// That of budgets ends with the error that its session ended with: the SDK raises it, and nothing there catches it.
const EXAMPLES: [Example; 15] = [
    Example("agents", 0, "Claude: The agent says that it is fine.", &["agent", "agent is back", "looks"]),
    Example("filesystem_agents", 0, "'test-agent'", &[]),
    Example(
        "hooks",
        0,
        "Security policy blocks writes to important files",
        &["command", "this command", "told", "write"],
    ),
    Example("include_partial_messages", 0, "StreamEvent(", &[]),
    Example("max_budget_usd", 1, "Status: error_max_budget_usd", &["read"]),
    Example("mcp_calculator", 0, "Claude: 15 + 27 = 42", &["add", "look for the calculator", "the sum is there"]),
    Example("plugin_example", 0, "- demo-plugin (path: ", &[]),
    Example("quick_start", 0, "Cost: $0.", &["hello.txt", "told"]),
    Example("setting_sources", 0, "✓ /commit is available (expected)", &[]),
    Example("stderr_callback_example", 0, "Captured 0 stderr lines", &[]),
    Example("streaming_mode", 0, "✓ Interrupt sent successfully", &["echo", "hello.txt", "sleep", "told"]),
    Example("streaming_mode_trio", 0, "Four.", &[]),
    Example("system_prompt", 0, "Four.", &[]),
    Example(
        "tool_permission_callback",
        0,
        "✅ Task completed!",
        &["create", "run", "three steps: list, create, run", "told"],
    ),
    Example("tools_option", 0, "Tools from system message: ['Read', ", &[]),
];

/// The folder that the examples expect around them, with a command and an agent in it.
fn furnish(stage: &Stage) {
    let project = stage.project();
    symlink(root().join(SOURCE).join("examples"), project.join("examples")).unwrap();
    for (path, text) in [
        ("README.md", "An example.\n"),
        (".claude/agents/test-agent.md", "---\nname: test-agent\ndescription: Says hello.\n---\nSay hello.\n"),
        (".claude/commands/commit.md", "---\ndescription: Commits.\n---\nCommit.\n"),
    ] {
        std::fs::create_dir_all(project.join(path).parent().unwrap()).unwrap();
        stage.write(path, text);
    }
    std::fs::create_dir_all(stage.config()).unwrap();
}

fn ran(example: &str, stage: &Stage, python: &Path) -> Ran {
    furnish(stage);
    let mut program = Command::new(python);
    program.arg(root().join("crates/cairn/tests/clients/examples.py")).arg(env!("CARGO_BIN_EXE_cairn"));
    program.arg(stage.project().join(format!("examples/{example}.py")));
    program.current_dir(stage.project()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    program.env("LANG", "C.UTF-8").env("HOME", stage.config().parent().unwrap());
    program.env("CLAUDE_CONFIG_DIR", stage.config()).env("NO_PROXY", "127.0.0.1");
    program.env("ANTHROPIC_BASE_URL", stage.simulator.url()).env("ANTHROPIC_API_KEY", super::KEY);
    // One asks about tools that it does not know.
    let yes = stage.config().join("yes");
    std::fs::write(&yes, "y\n".repeat(100)).unwrap();
    run(program.stdin(Stdio::from(File::open(yes).unwrap())))
}

/// SDK-2: every example of the SDK starts and ends here as with Claude Code, and its model got to do what it was asked for.
#[test]
fn the_examples_of_the_python_agent_sdk_end_as_they_should() {
    let Some(python) = installed("target/python-agent/bin/python") else { return };
    if installed(&format!("{SOURCE}/examples")).is_none() {
        return;
    }
    let found: BTreeSet<String> = std::fs::read_dir(root().join(SOURCE).join("examples"))
        .unwrap()
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".py")?.to_owned()))
        // Snippets for a notebook, and no program.
        .filter(|name| name != "streaming_mode_ipython")
        .collect();
    assert_eq!(found, EXAMPLES.iter().map(|example| example.0.to_owned()).collect());
    let look = |Example(name, code, says, did): &Example| {
        let stage = Stage::new(MODEL);
        let ran = ran(name, &stage, &python);
        let report = stage.simulator.report();
        let rules: BTreeSet<&str> = report.requests.iter().filter_map(|line| line.rule.as_deref()).collect();
        let rules: Vec<&str> = rules.into_iter().filter(|rule| !rule.is_empty()).collect();
        assert!(ran.code == Some(*code) && ran.stdout.contains(says), "{name}: {ran:?}");
        assert_eq!((rules.as_slice(), report.totals.refused), (*did, 0), "{name}: {ran:?}");
    };
    // One of them waits for most of a minute.
    std::thread::scope(|scope| {
        let running: Vec<_> = EXAMPLES.iter().map(|example| scope.spawn(move || look(example))).collect();
        running.into_iter().for_each(|one| one.join().unwrap());
    });
}
