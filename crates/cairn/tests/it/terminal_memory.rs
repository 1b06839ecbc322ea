//! Memory in the session: what there is, and what was recalled.

use crate::stage::{Stage, run};
use crate::terminal::{DOWN, ENTER, ESC, Terminal, ctrl};

const MODEL: &str = r#"
    [[rule]]
    say = "Hello."
"#;

/// A project that remembers two things.
fn remembering() -> Stage {
    let stage = Stage::new(MODEL);
    for (name, kind, text) in [
        ("Deploys", "project", "Deploying takes **two approvals**.\n\n- one from Ada"),
        ("Tabs", "feedback", "Indent Makefiles with tabs."),
    ] {
        let description = format!("all about {}", name.to_lowercase());
        let args = ["memory", "add", name, "--type", kind, "--description", &description, "--body", text];
        assert_eq!(run(stage.cairn().args(args)).code, Some(0));
    }
    stage
}

#[test]
fn memories_are_listed_and_one_is_shown_by_choosing_or_by_name() {
    let stage = remembering();
    let mut terminal = Terminal::start(&stage);
    terminal.keys(&format!("/memory{ENTER}"));
    terminal.shows("Show which memory?");
    let screen = terminal.until("both", |screen| screen.contains("Deploys") && screen.contains("Tabs"));
    for text in ["project, today  all about deploys", "feedback, today  all about tabs"] {
        assert!(screen.contains(text), "{}", screen.text());
    }
    terminal.keys("tabs");
    terminal.until("one", |screen| screen.contains("Tabs") && !screen.contains("Deploys"));
    terminal.keys(ENTER);
    terminal.rests("Indent Makefiles with tabs.");
    terminal.keys(&format!("/memory depl{ENTER}"));
    let screen = terminal.rests("Deploying takes two approvals.");
    assert!(screen.contains("Deploys  project, today") && screen.contains("/memory/deploys.md"), "{}", screen.text());
    terminal.keys(&format!("/memory nonsense{ENTER}"));
    terminal.shows("there is no memory called nonsense");
    terminal.keys(&format!("/memory{ENTER}"));
    terminal.shows("Show which memory?");
    terminal.keys(&format!("{DOWN}{ESC}"));
    terminal.until("it is closed", |screen| !screen.contains("Show which memory?"));
    assert_eq!(stage.simulator.requests().len(), 0, "nobody was asked");
}

#[test]
fn no_memories_and_no_memory_are_said() {
    let stage = Stage::new(MODEL);
    let mut terminal = Terminal::start(&stage);
    terminal.keys(&format!("/memory{ENTER}"));
    terminal.shows("there are no memories in");
    drop(terminal);
    let mut terminal =
        Terminal::open(stage.cairn().env("TERM", "xterm").env("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"), 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.keys(&format!("/memory{ENTER}"));
    terminal.shows("memory is off");
}

#[test]
fn what_was_recalled_can_be_expanded() {
    let stage = remembering();
    let mut terminal = Terminal::start_with(&stage, &["how many approvals does deploying take?"]);
    let screen = terminal.rests("Hello.");
    assert!(screen.contains("1 memory recalled: deploys.md"), "{}", screen.text());
    terminal.keys(&ctrl('o'));
    let screen = terminal.rests("one from Ada");
    for text in ["deploys.md from ~/config/projects/", "saved today", "Deploying takes **two approvals**."] {
        assert!(screen.contains(text), "{text} in {}", screen.text());
    }
    assert!(!screen.contains("<memory>"), "{}", screen.text());
    terminal.keys(&format!("/expand{ENTER}"));
    terminal.shows("nothing to expand");
}
