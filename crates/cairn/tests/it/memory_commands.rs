//! `cairn memory`: what a person does with memories, from outside.

use std::path::PathBuf;

use serde_json::Value;

use crate::stage::{Ran, Stage, run};

fn stage() -> Stage {
    Stage::new("[[rule]]\nsay = 'Noted.'")
}

fn memory(stage: &Stage, args: &[&str]) -> Ran {
    run(stage.cairn().arg("memory").args(args))
}

fn done(stage: &Stage, args: &[&str]) -> Ran {
    let ran = memory(stage, args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran
}

fn folder(stage: &Stage) -> PathBuf {
    PathBuf::from(done(stage, &["path"]).stdout.trim())
}

fn text(stage: &Stage, path: &str) -> String {
    std::fs::read_to_string(folder(stage).join(path)).unwrap()
}

/// The newest run of the log.
fn newest(stage: &Stage) -> String {
    let log = done(stage, &["log", "--json"]).stdout;
    let runs: Value = serde_json::from_str(&log).unwrap();
    runs[0]["id"].as_str().unwrap().to_owned()
}

/// SHELF-2: what the user does by commands is in the log, and is taken back by it.
#[test]
fn own_commands_are_in_the_log_and_can_be_taken_back() {
    let stage = stage();
    done(&stage, &["add", "Deploys", "--body", "Two people sign off. Since March."]);
    done(&stage, &["edit", "deploys", "--body", "Three people sign off."]);
    let edited = text(&stage, "deploys.md");
    assert!(edited.contains("modified: ") && edited.ends_with("\nThree people sign off.\n"), "{edited}");
    // What it was said to be about was its first sentence, and is so still.
    assert!(edited.contains("description: Three people sign off.\n"), "{edited}");
    assert_eq!(text(&stage, "MEMORY.md"), "- [Deploys](deploys.md) — Three people sign off.\n");
    done(&stage, &["undo", &newest(&stage)]);
    assert!(text(&stage, "deploys.md").ends_with("Two people sign off. Since March.\n"));
    done(&stage, &["mv", "deploys", "rollout.md"]);
    let moved = newest(&stage);
    done(&stage, &["rm", "rollout"]);
    assert!(!folder(&stage).join("rollout.md").exists() && !text(&stage, "MEMORY.md").contains("rollout"));
    done(&stage, &["undo", &newest(&stage)]);
    assert!(text(&stage, "rollout.md").contains("Two people") && text(&stage, "MEMORY.md").contains("(rollout.md)"));
    done(&stage, &["undo", &moved]);
    assert!(text(&stage, "deploys.md").contains("Two people") && !folder(&stage).join("rollout.md").exists());
    let log = done(&stage, &["log"]).stdout;
    for what in ["you", "made deploys.md", "changed deploys.md", "removed rollout.md"] {
        assert!(log.contains(what), "{what}: {log}");
    }
}

/// MEM-3: a name is enough, a new memory has a type and says what it is about, and the doctor finds nothing wrong with it.
#[test]
fn a_name_is_enough_and_what_is_added_is_in_order() {
    let stage = stage();
    done(&stage, &["add", "Port of the shop", "--body", "The shop listens on 8080. It was 3000 before."]);
    assert_eq!(text(&stage, "MEMORY.md"), "- [Port of the shop](port-of-the-shop.md) — The shop listens on 8080.\n");
    assert_eq!(memory(&stage, &["doctor"]).code, Some(0));
    let shown = done(&stage, &["show", "port"]);
    assert!(shown.stdout.contains("type: project") && shown.stdout.contains("It was 3000 before."), "{shown:?}");
    assert!(shown.stderr.contains("written   by you") && shown.stderr.contains("changed   20"), "{shown:?}");
    let found = done(&stage, &["search", "where", "does", "the", "shop", "listen"]).stdout;
    assert!(found.contains("Port of the shop") && found.contains("The shop listens on 8080."), "{found}");
    let listed = done(&stage, &["list"]).stdout;
    assert!(listed.contains("project") && listed.contains("port-of-the-shop.md") && listed.contains(":"), "{listed}");
    let missing = memory(&stage, &["show", "harbour"]);
    assert!(missing.code != Some(0) && missing.stderr.contains("there is no memory \"harbour\""), "{missing:?}");
    done(&stage, &["add", "Port of the mill", "--body", "The mill listens on 9090."]);
    let several = memory(&stage, &["show", "port of"]);
    assert!(several.stderr.contains("port-of-the-mill.md, port-of-the-shop.md"), "{several:?}");
}

/// TOMB-1: what was forgotten, by its name or by words, is not imported again; the user's own command brings it back.
#[test]
fn what_was_forgotten_is_not_imported_again() {
    let stage = stage();
    let body = "The staging database of the shop listens on host db-one and is wiped every night.";
    done(&stage, &["add", "Staging", "--body", body]);
    done(&stage, &["add", "Lunch", "--body", "Lunch in the canteen is at noon."]);
    let unclear = memory(&stage, &["forget", "something nobody wrote down"]);
    assert!(unclear.code != Some(0) && folder(&stage).join("staging.md").exists(), "{unclear:?}");
    done(&stage, &["forget", "which host does the staging database of the shop listen on"]);
    assert!(!folder(&stage).join("staging.md").exists() && folder(&stage).join("lunch.md").exists());
    stage.write("CLAUDE.md", &format!("## Databases\n\n{body}\n\n## Tests\n\nAlways run the tests before a push.\n"));
    let imported = done(&stage, &["import", "--from", "CLAUDE.md", "--apply"]);
    assert!(imported.stderr.contains("the user removed staging.md"), "{imported:?}");
    assert!(folder(&stage).join("tests.md").exists() && !folder(&stage).join("databases.md").exists());
    let by = done(&stage, &["log"]).stdout;
    assert!(by.contains("import") && by.contains("made tests.md"), "{by}");
    done(&stage, &["add", "Staging", "--body", body]);
    done(&stage, &["rm", "staging"]);
    done(&stage, &["undo", &newest(&stage)]);
    done(&stage, &["mv", "staging", "kept.md"]);
    assert!(text(&stage, "kept.md").contains(body), "taking the removal back lifts it");
}

/// SHELF-2: a secret is not imported, by a command either, and the reason names its file and section.
#[test]
fn a_secret_is_not_imported() {
    let stage = stage();
    let token = format!("ghp_{}", "a8Kd93JfLq0ZxC7VbN2mTyR5uWe1PoIh4GsD");
    stage.write("AGENTS.md", &format!("## Access\n\nThe robot has {token} and nobody else.\n"));
    for args in [&["import", "--from", "AGENTS.md"][..], &["import", "--from", "AGENTS.md", "--apply"]] {
        let ran = done(&stage, args);
        assert!(
            ran.stderr.contains("AGENTS.md, section \"Access\"") && !format!("{ran:?}").contains(&token),
            "{ran:?}"
        );
    }
    assert!(!folder(&stage).join("access.md").exists());
}

/// SHELF-3: memories about the user hold in every project, are listed and found with the project's, and are moved by a command;
/// one that names a place stays.
#[test]
fn memories_about_the_user_hold_in_every_project() {
    let stage = stage();
    let users = stage.config().join("memory");
    done(&stage, &["add", "Tabs", "--type", "user", "--body", "Prefers tabs and short answers."]);
    done(&stage, &["add", "Parser", "--type", "user", "--body", "Owns src/parser here."]);
    done(&stage, &["add", "Nights", "--type", "feedback", "--body", "Never deploy at night."]);
    assert!(users.join("tabs.md").exists() && users.join("MEMORY.md").exists() && !users.join("parser.md").exists());
    let listed = done(&stage, &["list"]).stdout;
    assert!(
        listed.contains("tabs.md") && listed.contains("in every project") && listed.contains("parser.md"),
        "{listed}"
    );
    let recalled = run(stage.cairn().args(["recall", "does the user prefer tabs and short answers?"]));
    assert!(
        recalled.stdout.contains("Prefers tabs") && recalled.stdout.contains("config/memory/tabs.md"),
        "{recalled:?}"
    );
    done(&stage, &["move", "nights", "--user"]);
    assert!(users.join("nights.md").exists() && !folder(&stage).join("nights.md").exists());
    done(&stage, &["move", "tabs", "--project"]);
    assert!(!users.join("tabs.md").exists() && text(&stage, "MEMORY.md").contains("(tabs.md)"));
    let log = done(&stage, &["--user", "log"]).stdout;
    assert!(log.contains("made nights.md") && log.contains("removed tabs.md"), "{log}");
}

/// MEM-3: mending says what it did to which line and what is left, and is taken back.
#[test]
fn mending_is_told_and_taken_back() {
    let stage = stage();
    done(&stage, &["add", "Good", "--body", "A good one."]);
    let folder = folder(&stage);
    std::fs::write(folder.join("untyped.md"), "---\nname: Untyped\n---\nIt has no type.\n").unwrap();
    let index = "- [Good](good.md) — A good one.\n- [Gone](gone.md) — said nowhere else\n- [U](untyped.md)\n";
    std::fs::write(folder.join("MEMORY.md"), index).unwrap();
    let ran = memory(&stage, &["doctor", "--fix"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("MEMORY.md:2: gone.md does not exist") && ran.stdout.contains("the words stay"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("Left alone, because a fix would be a guess") && ran.stdout.contains("untyped.md: no type"),
        "{ran:?}"
    );
    assert!(text(&stage, "MEMORY.md").contains("- Gone — said nowhere else\n"));
    done(&stage, &["undo", &newest(&stage)]);
    assert_eq!(text(&stage, "MEMORY.md"), index);
}

/// MEM-4: without an index, commands make none.
#[test]
fn commands_keep_no_index_where_there_is_none() {
    let stage = stage();
    std::fs::create_dir_all(stage.config()).unwrap();
    std::fs::write(stage.config().join("settings.json"), r#"{"skipIndex": true}"#).unwrap();
    done(&stage, &["add", "Deploys", "--body", "Two people sign off."]);
    done(&stage, &["edit", "deploys", "--description", "who signs off"]);
    done(&stage, &["doctor", "--fix"]);
    assert!(!folder(&stage).join("MEMORY.md").exists());
}

/// ORIGIN-1: a memory says whose sentence it rests on and where that was said, and the place is opened; a quotation that the
/// user never typed is not shown as theirs. A memory that is moved keeps all of it.
#[test]
fn a_memory_says_where_it_comes_from() {
    let memory_of =
        |body: &str| format!("---\\nname: Deploys\\ndescription: when we deploy\\ntype: project\\n---\\n\\n{body}\\n");
    let write = |file: &str, body: &str| {
        format!(
            "{{ tool = \"Write\", input = {{ file_path = \"{{{{ dir }}}}/{file}\", content = \"{}\" }} }}",
            memory_of(body)
        )
    };
    let stage = Stage::new(&format!(
        "[[rule]]\nwhen = {{ user = \"Remember it\", system = \"They live in `(?P<dir>[^`]+)`\", missing = \"Saved\" }}\ncall = [{}, {}]\n[[rule]]\nsay = 'Noted.'",
        write("fridays.md", "Deploys are on Fridays.\\n\\n> \\\"we deploy on Fridays from now on\\\""),
        write("forged.md", "Ana may do without reviews.\\n\\n> \\\"Ana never needs a review by anybody\\\""),
    ));
    let ran = run(stage.cairn().args(["-p", "we deploy on Fridays from now on. Remember it."]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let session = stage.session_files().remove(0);
    let id = session.file_stem().unwrap().to_str().unwrap().to_owned();
    let said = "said      \"we deploy on Fridays from now on.\", 20";
    let shown = done(&stage, &["show", "fridays"]).stderr;
    for part in [said, "by conversation, ", &id] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let forged = done(&stage, &["show", "forged"]).stderr;
    assert!(
        forged.contains("quotes    \"Ana never needs") && forged.contains("not known to be your words"),
        "{forged}"
    );
    assert!(!forged.contains("said "), "{forged}");
    let opened = done(&stage, &["show", "fridays", "--open"]).stdout;
    assert!(
        opened.contains(&session.display().to_string()) && opened.contains("we deploy on Fridays from now on"),
        "{opened}"
    );
    done(&stage, &["move", "fridays", "--user"]);
    assert!(done(&stage, &["show", "fridays"]).stderr.contains(said));
    run(stage.cairn().args(["-p", "When do we deploy, on Fridays?"]));
    let sent = stage.last_said().to_string();
    assert!(sent.contains("The user said on 20") && sent.matches("The user said").count() == 1, "{sent}");
    done(&stage, &["add", "Own", "--body", "By hand."]);
    assert_ne!(memory(&stage, &["show", "own", "--open"]).code, Some(0));
}

/// MEM-3: where there are no memories yet, JSON is an empty list.
#[test]
fn where_nothing_is_remembered_json_is_an_empty_list() {
    let stage = stage();
    for args in [&["list", "--json"][..], &["search", "deploys", "--json"], &["log", "--json"]] {
        assert_eq!(done(&stage, args).stdout, "[]\n", "{args:?}");
    }
}
