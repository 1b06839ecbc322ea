//! Memories that subagents write into the directories of the conversation that sent them out.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use simulator::Options;

use crate::stage::{Homes, Stage, run};

const TOKEN: &str = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD2fG4";

/// A model that sends somebody out, who first saves a token and then what the task says, as if the user had said it.
fn model() -> String {
    let memory = |body: &str| {
        format!(
            "---\\nname: Staging\\ndescription: What the staging database is called\\ntype: project\\n---\\n\\n{body}\\n"
        )
    };
    let write = |body: &str| {
        format!(
            "call = [{{ tool = \"Write\", input = {{ file_path = \"{{{{ dir }}}}/staging.md\", content = \"{}\" }} }}]",
            memory(body)
        )
    };
    let token = write(&format!("It is ghp_{TOKEN}."));
    let quoted = write("The staging database is called heron.\\n\\n> \\\"the staging database is called heron\\\"");
    format!(
        r##"
[[rule]]
when = {{ user = "Write it into", result = "Saved" }}
say = "Written down."
[[rule]]
when = {{ user = "Write it into `(?P<dir>[^`]+)`", visible = "Not saved" }}
{quoted}
[[rule]]
when = {{ user = "Write it into `(?P<dir>[^`]+)`" }}
{token}
[[rule]]
when = {{ user = "send somebody", result = "Written down" }}
say = "Done."
[[rule]]
when = {{ user = "send somebody", system = "They live in `(?P<dir>[^`]+)`" }}
call = [{{ tool = "Agent", input = {{ description = "note", prompt = "Mind that the staging database is called heron. Write it into `{{{{ dir }}}}`.", subagent_type = "general-purpose" }} }}]
[[rule]]
say = "Good."
"##
    )
}

fn saved_by_a_subagent(homes: Homes) {
    let stage = Stage::with(&model(), Options::default());
    if homes == Homes::Linked {
        stage.put_behind_links();
    }
    let cairn = |args: &[&str]| {
        let ran = run(stage.cairn().args(args));
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran
    };
    assert_eq!(cairn(&["-p", "Please send somebody to write it down."]).stdout, "Done.\n");
    let requests = stage.simulator.requests();
    assert!(requests.iter().any(|request| request.to_string().contains("Not saved: the text holds")));
    let file = PathBuf::from(cairn(&["memory", "path"]).stdout.trim()).join("staging.md");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("called heron") && text.contains("agent: conversation") && !text.contains(TOKEN), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(file.with_file_name("MEMORY.md")).unwrap().contains("(staging.md)"));
    cairn(&["-p", "What is the staging database called?"]);
    let shown = stage.last_said().to_string();
    assert!(shown.contains("The staging database is called heron") && !shown.contains("The user said"), "{shown}");
    assert!(!cairn(&["memory", "show", "staging"]).stderr.contains("said      "));
    let log = cairn(&["memory", "log", "--json"]).stdout;
    let runs: serde_json::Value = serde_json::from_str(&log).unwrap();
    cairn(&["memory", "undo", runs[0]["id"].as_str().unwrap()]);
    assert!(!file.exists());
}

/// SHELF-2, ORIGIN-1: what a subagent saves is checked, kept in the log and undone like everything else; its task is not the
/// user's word.
#[test]
fn a_subagents_saves_are_checked_and_quote_nobody() {
    saved_by_a_subagent(Homes::Plain);
}

/// MEM-7, SEC-1: the same where the home and the config home are links.
#[test]
fn a_subagents_saves_are_checked_and_quote_nobody_behind_links() {
    saved_by_a_subagent(Homes::Linked);
}
