use serde_json::Value;

use crate::stage::{Stage, run};

/// A model that reads a file, says what it found, and remembers.
const READER: &str = r#"
    [[rule]]
    name = "remember"
    when = { user = "again", visible = "found: (?P<what>\\w+)" }
    say = "I said it was {{ what }}."
    [[rule]]
    name = "read"
    when = { user = "look", missing = "alpha" }
    say = "I look."
    call = [{ tool = "Read", input = { file_path = "{{ project }}/note.txt" } }]
    [[rule]]
    name = "tell"
    when = { result = "(?P<what>alpha)" }
    say = "found: {{ what }}"
    [[rule]]
    name = "write"
    when = { user = "write", missing = "tool_used" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "tool_used" } }]
"#;

#[test]
fn a_turn_prints_its_answer_on_stdout_and_nothing_else() {
    let stage = Stage::new(READER);
    stage.write("note.txt", "alpha\n");
    let ran = run(stage.cairn().args(["-p", "look at the note"]));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "found: alpha\n", ""));
}

/// LOG-1: a session is one JSONL file below the project's slug, each line with its type, ids, time and place.
#[test]
fn a_session_is_a_file_of_lines_other_programs_understand() {
    let stage = Stage::new(READER);
    stage.write("note.txt", "alpha\n");
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    run(stage.cairn().args(["-p", "look", "--session-id", id]));
    let files = stage.session_files();
    let slug = stage.project().display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    assert_eq!(files, [stage.config().join("projects").join(slug).join(format!("{id}.jsonl"))]);
    let mut types = Vec::new();
    let mut last = Value::Null;
    for line in std::fs::read_to_string(&files[0]).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        for key in ["type", "uuid", "sessionId", "timestamp", "cwd", "version", "gitBranch"] {
            assert!(line[key].is_string(), "{key} in {line}");
        }
        assert_eq!((line["sessionId"].as_str(), line["isSidechain"].as_bool()), (Some(id), Some(false)));
        let kind = line["type"].as_str().unwrap().to_owned();
        if kind != "meta" {
            assert_eq!(line["parentUuid"], last, "{kind}");
            last = line["uuid"].clone();
        }
        if kind == "assistant" {
            assert!(line["message"]["usage"]["output_tokens"].as_u64() > Some(0) && line["message"]["id"].is_string());
        }
        types.push(kind);
    }
    assert_eq!(types, ["meta", "attachment", "attachment", "user", "meta", "assistant", "user", "assistant"]);
}

/// LOG-10: a resumed session sends what it sent before, reads it all from the cache, and remembers what it has read.
#[test]
fn a_resumed_session_goes_on_where_it_was() {
    let stage = Stage::new(&format!(
        r#"{READER}
        [[rule]]
        name = "edit"
        when = {{ user = "edit", missing = "was edited|Edited|beta" }}
        call = [{{ tool = "Edit", input = {{ file_path = "{{{{ project }}}}/note.txt", old_string = "alpha", new_string = "beta" }} }}]
        "#
    ));
    stage.write("note.txt", "alpha\n");
    run(stage.cairn().args(["-p", "look"]));
    let ran = run(stage.cairn().args(["-p", "say it again", "--continue"]));
    assert_eq!(ran.stdout, "I said it was alpha.\n");
    let report = stage.simulator.report();
    assert_eq!(report.totals.breaks, 0);
    let last = report.requests.last().unwrap();
    assert!(last.input.read >= report.requests[1].input.total(), "{last:?}");
    // Edit needs a file that was read: the first run did.
    let ran = run(stage.cairn().args(["-p", "edit it", "--continue", "--permission-mode", "acceptEdits"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_to_string(stage.project().join("note.txt")).unwrap(), "beta\n");
    assert_eq!(stage.session_files().len(), 1);
}

#[test]
fn json_output_is_one_object_a_script_can_read() {
    let stage = Stage::new(READER);
    stage.write("note.txt", "alpha\n");
    let ran = run(stage.cairn().args(["-p", "look", "--output-format", "json"]));
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((result["type"].as_str(), result["subtype"].as_str()), (Some("result"), Some("success")));
    assert_eq!((result["result"].as_str(), result["num_turns"].as_u64()), (Some("found: alpha"), Some(2)));
    assert!(result["total_cost_usd"].as_f64() > Some(0.0) && result["usage"]["output_tokens"].as_u64() > Some(0));
}

#[test]
fn stream_json_tells_what_happens_as_it_happens() {
    let stage = Stage::new(READER);
    stage.write("note.txt", "alpha\n");
    let ran = run(stage.cairn().args(["-p", "look", "--output-format", "stream-json", "--include-partial-messages"]));
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    types.dedup();
    assert_eq!(types, ["system", "stream_event", "assistant", "user", "stream_event", "assistant", "result"]);
    let session = &lines[0]["session_id"];
    assert!(session.is_string() && lines.iter().all(|line| line["session_id"] == *session));
    assert!(lines[0]["tools"].as_array().unwrap().contains(&Value::from("Bash")));
}

/// TOOL-2: what needs asking is denied where nobody can be asked, allowed by a rule or a mode, and denied by a rule
/// whatever the mode.
#[test]
fn permissions_hold_without_a_terminal() {
    let stage = Stage::new(READER);
    let new = stage.project().join("new.txt");
    let ran = run(stage.cairn().args(["-p", "write it", "--output-format", "json"]));
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["permission_denials"][0]["tool_name"].as_str(), Some("Write"));
    assert!(!new.exists());
    let denied = ["--permission-mode", "bypassPermissions", "--disallowedTools", "Write(new.*)"];
    run(stage.cairn().args(["-p", "write it"]).args(denied));
    assert!(!new.exists());
    run(stage.cairn().args(["-p", "write it", "--permission-mode", "plan", "--allowedTools", "Write"]));
    assert!(!new.exists());
    run(stage.cairn().args(["-p", "write it", "--allowedTools", "Edit(new.txt)"]));
    assert!(new.exists());
    std::fs::remove_file(&new).unwrap();
    let settings = r#"{"permissions": {"allow": ["Write"]}}"#;
    run(stage.cairn().args(["-p", "write it", "--settings", settings]));
    assert!(new.exists());
}

#[test]
fn text_from_a_pipe_is_part_of_the_prompt() {
    let stage = Stage::new("[[rule]]\nwhen = { user = '(?s)piped text.*what is it' }\nsay = 'I see both.'");
    let path = stage.write("piped", "piped text");
    let ran = run(stage.cairn().args(["-p", "what is it?"]).stdin(std::fs::File::open(path).unwrap()));
    assert_eq!(ran.stdout, "I see both.\n");
}

#[test]
fn the_limit_of_turns_ends_a_run_with_its_own_code() {
    let stage = Stage::new(READER);
    stage.write("note.txt", "alpha\n");
    let ran = run(stage.cairn().args(["-p", "look", "--max-turns", "1"]));
    assert_eq!(ran.code, Some(5));
    assert!(ran.stderr.contains("--max-turns"), "{ran:?}");
}

#[test]
fn an_appended_prompt_and_the_model_reach_the_request() {
    let stage =
        Stage::new("[[rule]]\nwhen = { system = 'only in verse', model = 'claude-opus-5' }\nsay = 'Roses are red.'");
    let ran =
        run(stage.cairn().args(["-p", "hi", "--append-system-prompt", "Answer only in verse.", "--model", "opus"]));
    assert_eq!(ran.stdout, "Roses are red.\n");
}

/// The two commands of the README: the demo reaches its end, whatever the terminal.
#[test]
fn the_demo_reaches_its_end() {
    let root = tempfile::tempdir().unwrap();
    let ran = run(crate::stage::bare(root.path(), &root.path().join("config")).args(["demo", "--fast"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("4 tests pass")
            && ran.stdout.contains("earlier session")
            && ran.stdout.contains("But you said “Keep every log.”")
            && ran.stdout.contains("0 prefix breaks"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains('\x1b'), "no colours in a pipe");
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0, "nothing is left behind");
}

/// The tools the model was offered in the last request.
fn offered(stage: &Stage) -> Vec<String> {
    let request = stage.simulator.requests().pop().unwrap();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// TOOL-2: a tool of which no call may run is not offered; one of which some may is.
#[test]
fn tools_that_may_never_run_are_not_offered() {
    let stage = Stage::new("[[rule]]\nsay = 'Yes.'");
    run(stage.cairn().args(["-p", "hello"]));
    let all = offered(&stage);
    assert!(all.len() > 5 && all.contains(&"Bash".to_owned()), "{all:?}");
    run(stage.cairn().args(["-p", "hello", "--disallowedTools", "Bash", "Read(.env)"]));
    assert_eq!(
        offered(&stage),
        all.iter()
            .filter(|name| !["Bash", "TaskOutput", "TaskStop"].contains(&name.as_str()))
            .cloned()
            .collect::<Vec<_>>()
    );
    let settings = r#"{"permissions": {"deny": ["Edit", "Bash(rm *)"]}}"#;
    run(stage.cairn().args(["-p", "hello", "--settings", settings]));
    assert_eq!(
        offered(&stage),
        all.iter().filter(|name| !["Edit", "Write"].contains(&name.as_str())).cloned().collect::<Vec<_>>()
    );
}

#[test]
fn the_offer_can_be_limited_to_some_tools() {
    let stage = Stage::new("[[rule]]\nsay = 'Yes.'");
    for (named, offer) in [("Grep,Read", vec!["Read", "Grep", "History"]), ("", vec![])] {
        let ran = run(stage.cairn().args(["--tools", named, "-p", "hello"]));
        assert_eq!((ran.code, offered(&stage)), (Some(0), offer.into_iter().map(str::to_owned).collect()), "{named}");
    }
    run(stage.cairn().args(["--tools", "default", "-p", "hello"]));
    assert!(offered(&stage).len() > 5);
    let ran = run(stage.cairn().args(["--tools", "Reed", "-p", "hello"]));
    assert!(ran.code != Some(0) && ran.stderr.contains("no tool called Reed; there are Read, Write"), "{}", ran.stderr);
}
