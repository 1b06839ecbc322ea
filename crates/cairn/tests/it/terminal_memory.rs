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
    terminal.shows("Which memory or instruction file?");
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
    terminal.shows("Which memory or instruction file?");
    terminal.keys(&format!("{DOWN}{ESC}"));
    terminal.until("it is closed", |screen| !screen.contains("Which memory or instruction file?"));
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
    let screen = terminal.shows("q closes");
    for text in ["deploys.md from ~/config/projects/", "saved today", "Deploying takes **two approvals**."] {
        assert!(screen.contains(text), "{text} in {}", screen.text());
    }
    assert!(!screen.contains("<memory>"), "{}", screen.text());
}

/// A session with an editor that adds a line, and the files that `/memory` offers in it.
fn editing(stage: &Stage) -> Terminal {
    let editor = stage.write("edit", "#!/bin/sh\ntest -t 0 || exit 3\necho 'And spell it out.' >> \"$1\"\n");
    let command = format!("sh {}", editor.display());
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm").env("EDITOR", command), 100, 30);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
}

/// Chooses the first file that fits, and edits it.
fn edit(terminal: &mut Terminal, which: &str) {
    terminal.keys(&format!("/memory{ENTER}"));
    terminal.shows("Which memory or instruction file?");
    terminal.keys(which);
    terminal.until("one", |screen| screen.rows.iter().filter(|row| row.contains(which)).count() >= 2);
    terminal.keys(ENTER);
    terminal.shows("What do you want to do with it?");
    terminal.keys(&format!("{DOWN}{ENTER}"));
    terminal.rests("was changed");
}

/// PLUGIN-1, INSTR-5: `/memory` opens an instruction file in the user's editor; what was changed is in the next request, once,
/// and what was sent before stays as it was.
#[test]
fn an_instruction_file_is_edited_and_read_again() {
    let stage = Stage::new(MODEL);
    stage.write("CLAUDE.md", "Use tabs.\n");
    let mut terminal = editing(&stage);
    terminal.say("hello");
    terminal.rests("Hello.");
    edit(&mut terminal, "CLAUDE.md");
    assert_eq!(std::fs::read_to_string(stage.project().join("CLAUDE.md")).unwrap(), "Use tabs.\nAnd spell it out.\n");
    for words in ["once more", "and again"] {
        terminal.say(words);
        terminal.until(words, |screen| screen.contains(words) && !screen.is_working() && screen.has_prompt());
    }
    let requests = stage.simulator.requests();
    let texts: Vec<String> = requests.iter().map(|request| request["messages"].to_string()).collect();
    assert!(!texts[0].contains("spell it out"), "{}", texts[0]);
    for text in &texts[1..] {
        assert_eq!(text.matches("And spell it out.").count(), 1, "{text}");
        assert!(text.contains("This takes the place of what you were shown"), "{text}");
    }
    terminal.leave();
}

/// PLUGIN-1, RECALL-1: a memory is edited the same way, and is recalled as it is now; a file that is not there yet is made.
#[test]
fn a_memory_is_edited_and_instructions_are_made() {
    let stage = remembering();
    let mut terminal = editing(&stage);
    edit(&mut terminal, "Deploys");
    edit(&mut terminal, "for this project");
    terminal.say("how many approvals does deploying take?");
    terminal.rests("1 memory recalled: deploys.md");
    let sent: Vec<String> = stage.simulator.requests().iter().map(|request| request["messages"].to_string()).collect();
    let sent = sent.iter().find(|sent| sent.contains("# Instructions")).unwrap();
    assert!(sent.contains("one from Ada\\nAnd spell it out."), "{sent}");
    assert!(sent.contains("CLAUDE.md (the project's, checked in):\\n\\nAnd spell it out."), "{sent}");
    terminal.leave();
}
