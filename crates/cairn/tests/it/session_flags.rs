use serde_json::Value;

use crate::stage::{Stage, run};

/// A model that goes on calling tools.
const BUSY: &str = r#"
    [[rule]]
    name = "once more"
    call = [{ tool = "Bash", input = { command = "echo on" } }]
"#;

const SAYS: &str = r#"
    [[rule]]
    name = "answer"
    say = "yes"
"#;

fn result(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// SDK-2: a session ends when it has cost as much as the flag allows, after the request that reached it.
#[test]
fn a_session_ends_when_it_has_cost_what_it_may() {
    let busy = |budget: &str| {
        let stage = Stage::new(BUSY); // nothing of another run is in the cache
        let args = ["-p", "work", "--output-format", "json", "--dangerously-skip-permissions", "--max-turns", "8"];
        result(&run(stage.cairn().args(args).args(["--max-budget-usd", budget])).stdout)
    };
    let rich = busy("1000");
    assert_eq!((rich["subtype"].as_str(), rich["num_turns"].as_u64()), (Some("error_max_turns"), Some(8)));
    let cost = rich["total_cost_usd"].as_f64().unwrap();
    let half = busy(&format!("{:.6}", cost / 2.0));
    assert_eq!(half["subtype"].as_str(), Some("error_max_budget_usd"), "{half}");
    let rounds = half["num_turns"].as_u64().unwrap();
    assert!((1..8).contains(&rounds) && half["total_cost_usd"].as_f64() >= Some(cost / 2.0), "{half}");
}

/// SDK-2: an amount that cannot be held is refused before anything is sent.
#[test]
fn a_budget_that_cannot_be_held_is_refused() {
    let stage = Stage::new(SAYS);
    for (args, why) in [
        (&["--max-budget-usd", "0"][..], "0 is not an amount of dollars above zero"),
        (&["--max-budget-usd", "much"][..], "much is not an amount of dollars above zero"),
        (&["--max-budget-usd", "1", "--model", "nobodys-model"][..], "the price of nobodys-model is not known"),
    ] {
        let ran = run(stage.cairn().args(["-p", "hello"]).args(args));
        assert!(ran.code != Some(0) && ran.stderr.contains(why), "{why}: {ran:?}");
    }
    assert!(stage.simulator.requests().is_empty());
}

/// SDK-2, TRUST-2: of user, project and local only the sources that the flag names count, with their instruction
/// files and agents; naming the project's does not trust them.
#[test]
fn only_the_named_sources_count() {
    let stage = Stage::new(SAYS);
    std::fs::create_dir_all(stage.project().join(".claude/agents")).unwrap();
    stage.write("CLAUDE.md", "the project's words\n");
    stage.write("CLAUDE.local.md", "the checkout's words\n");
    stage.write(".claude/agents/theirs.md", "---\nname: theirs\ndescription: of the project\n---\nDo.\n");
    let write = |name: &str, text: &str| {
        let path = stage.config().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("CLAUDE.md", "the user's words\n");
    write("agents/mine.md", "---\nname: mine\ndescription: of the user\n---\nDo.\n");
    write("settings.json", r#"{"language": "Finnish"}"#);
    stage.write(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(touch *)"]}}"#);
    let seen = |sources: &str| {
        run(stage.cairn().args(["-p", "hello", &format!("--setting-sources={sources}")]));
        let sent = stage.simulator.requests().last().unwrap().to_string();
        let all = ["user's words", "project's words", "checkout's words", "theirs", "mine", "Finnish"];
        all.map(|words| sent.contains(words))
    };
    assert_eq!(seen("user,project,local"), [true; 6]);
    assert_eq!(seen("user"), [true, false, false, false, true, true]);
    assert_eq!(seen("project"), [false, true, false, true, false, false]);
    assert_eq!(seen(" local "), [false, false, true, false, false, false]);
    assert_eq!(seen(""), [false; 6]);
    let ran = run(stage.cairn().args(["-p", "hello", "--setting-sources", "project"]));
    assert!(ran.stderr.contains("trust"), "what the project asks for is left out, and said: {ran:?}");
    let ran = run(stage.cairn().args(["-p", "hello", "--setting-sources", "mine"]));
    assert!(ran.code == Some(2) && ran.stderr.contains("there is no source mine"), "{ran:?}");
}
