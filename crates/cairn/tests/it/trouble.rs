//! Bad input and bad luck: a clear message, nothing lost, bounded memory.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::stage::{Stage, bare, run};

const HELLO: &str = "[[rule]]\nsay = 'Hello.'";

fn one_call(tool: &str, input: &str) -> String {
    format!(
        "[[rule]]\nwhen = {{ missing = 'tool_result|Exit|lines' }}\ntimes = 1\ncall = [{{ tool = '{tool}', input = {input} }}]\n[[rule]]\nsay = 'Done.'"
    )
}

#[test]
fn a_refused_key_is_an_error_of_its_own_and_is_never_shown() {
    let stage = Stage::new(HELLO);
    let ran = run(stage.cairn().args(["-p", "hi"]).env("ANTHROPIC_API_KEY", "invalid"));
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("error:") && ran.stderr.contains("hint:"), "{ran:?}");
    let secret = "sk-ant-very-secret";
    let ran = run(stage.cairn().args(["-p", "hi"]).env("ANTHROPIC_API_KEY", secret));
    let log = std::fs::read_to_string(stage.session_files().pop().unwrap()).unwrap();
    assert!(![&ran.stdout, &ran.stderr, &log].iter().any(|text| text.contains(secret)));
}

#[test]
fn without_a_key_three_lines_say_what_to_do() {
    let root = tempfile::tempdir().unwrap();
    let ran = run(bare(root.path(), &root.path().join("config")).args(["-p", "hi"]).env("CAIRN_NO_LOCAL_SERVER", "1"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert!(ran.stderr.contains("ANTHROPIC_API_KEY") && ran.stderr.contains("cairn demo"), "{ran:?}");
    assert!(!root.path().join("config").exists(), "nothing is written before there is something to write");
}

#[test]
fn an_unreachable_server_is_named_and_the_prompt_is_kept() {
    let stage = Stage::new(HELLO);
    let ran = run(stage
        .cairn()
        .args(["-p", "keep this"])
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .env("CLAUDE_CODE_MAX_RETRIES", "0"));
    assert_eq!(ran.code, Some(4));
    assert!(ran.stderr.contains("127.0.0.1:9"), "{ran:?}");
    let ran = run(stage.cairn().args(["-p", "and this", "--continue"]));
    assert_eq!(ran.stdout, "Hello.\n");
    let sent = stage.simulator.requests().pop().unwrap();
    assert_eq!(sent["messages"][0]["content"][2]["text"], "keep this");
}

#[test]
fn a_model_that_loops_on_one_tool_is_told_and_then_stopped() {
    let stage = Stage::new("[[rule]]\ncall = [{ tool = 'Glob', input = { pattern = '*' } }]");
    let ran = run(stage.cairn().args(["-p", "go"]));
    assert_eq!(ran.code, Some(5));
    assert!(ran.stderr.contains("same call"), "{ran:?}");
    let requests = stage.simulator.requests();
    assert_eq!(requests.len(), 10);
    assert!(requests[9].to_string().contains("in a row with the same input"));
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

#[test]
fn a_tool_that_prints_a_gigabyte_takes_no_gigabyte() {
    let stage = Stage::new(&one_call("Bash", "{ command = 'yes | head -c 1000000000' }"));
    let mut command = stage.cairn();
    command.args(["-p", "go", "--allowedTools", "Bash"]);
    // The address space of the program is limited to less than what the tool prints.
    let mut limited = Command::new("bash");
    limited.args(["-c", "ulimit -v 900000; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    limited.env_clear().envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let ran = run(limited.current_dir(stage.project()).stdin(Stdio::null()));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{}", ran.stderr);
}

#[test]
fn a_tool_that_never_ends_is_ended() {
    let stage = Stage::new(&one_call("Bash", "{ command = 'sleep 1000', timeout = 300 }"));
    let ran = run(stage.cairn().args(["-p", "go", "--allowedTools", "Bash"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"));
    let told = stage.simulator.requests()[1]["messages"].to_string();
    assert!(told.contains("Timed out"), "{told}");
}

#[test]
fn output_that_is_no_text_does_not_end_a_session() {
    let stage = Stage::new(&one_call("Bash", r#"{ command = 'printf "a\377b"; exit 3' }"#));
    let ran = run(stage.cairn().args(["-p", "go", "--allowedTools", "Bash"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{}", ran.stderr);
    assert!(stage.simulator.requests()[1]["messages"].to_string().contains("a\u{fffd}b"));
}

#[test]
fn a_file_that_is_no_session_is_said_to_be_none() {
    let root = tempfile::tempdir().unwrap();
    let files: [(&str, Vec<u8>); 3] = [
        ("binary.jsonl", (0..=255).cycle().take(100_000).collect()),
        ("foreign.jsonl", b"{\"a\":1}\n{\"b\":[2]}\n".to_vec()),
        ("prose.jsonl", b"Dear diary,\ntoday nothing happened.\n".to_vec()),
    ];
    for (name, bytes) in files {
        std::fs::write(root.path().join(name), bytes).unwrap();
        for command in ["show", "view", "stats", "tokens"] {
            let ran = run(bare(root.path(), &root.path().join("config")).args(["session", command, name]));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(7), ""), "{name} {command}");
            assert!(ran.stderr.contains(name) && ran.stderr.contains("not a session"), "{ran:?}");
        }
    }
}

#[test]
fn a_truncated_session_loads_and_says_what_was_skipped() {
    let stage = Stage::new(HELLO);
    run(stage.cairn().args(["-p", "hi"]));
    let file = stage.session_files().remove(0);
    let text = std::fs::read(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 30]).unwrap();
    let ran = run(stage.cairn().args(["-p", "hi again", "--continue"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"));
    assert!(ran.stderr.contains("torn"), "{ran:?}");
    let after = std::fs::read(&file).unwrap();
    assert_eq!(&after[..text.len() - 30], &text[..text.len() - 30], "nothing is removed");
    let shown = run(stage.cairn().args(["session", "show", "--json"]).arg(&file));
    let messages: Vec<Value> = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(messages.last().unwrap()["content"][0]["text"], "Hello.");
}

#[test]
fn a_transcript_of_a_hundred_megabytes_loads_in_bounded_memory() {
    let root = tempfile::tempdir().unwrap();
    let mut file = std::fs::File::create(root.path().join("large.jsonl")).unwrap();
    let side = "x".repeat(1_000_000);
    for number in 0..100 {
        let parent = (number > 0).then(|| format!("u{}", number - 1));
        let line = json!({
            "type": "user", "uuid": format!("u{number}"), "parentUuid": parent, "version": "2.1.25",
            "message": {"role": "user", "content": format!("message {number}")}, "toolUseResult": {"stdout": side},
        });
        writeln!(file, "{line}").unwrap();
    }
    let mut limited = Command::new("bash");
    limited.args(["-c", "ulimit -v 300000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_cairn")]);
    limited.args(["session", "stats", "large.jsonl", "--json"]).current_dir(root.path());
    limited.env_clear().env("HOME", root.path()).env("PATH", std::env::var_os("PATH").unwrap());
    let ran = run(&mut limited);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let stats: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(stats["lines"].as_u64(), Some(100));
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let stage = Stage::new(HELLO);
    let file = stage.write("in-the-way", "");
    let ran = run(stage.cairn().args(["-p", "hi"]).env("CLAUDE_CONFIG_DIR", file.join("config")));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(7), ""));
    assert!(ran.stderr.contains("in-the-way"), "{ran:?}");
    assert!(stage.simulator.requests().is_empty(), "nothing is sent that could not be written down");
}

#[test]
fn a_full_disk_ends_the_turn_and_loses_nothing_that_was_written() {
    let stage = Stage::new(
        "[[rule]]\nwhen = { missing = 'and now' }\nsay = 'A long answer. '\nsay_bytes = 40000\n[[rule]]\nsay = 'Hello.'",
    );
    let mut command = stage.cairn();
    command.args(["-p", "hi"]);
    // Files may grow to 24 KB: the prologue and the prompt fit, the answer does not.
    let mut limited = Command::new("bash");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 24; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args());
    limited.env_clear().envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let ran = run(limited.current_dir(stage.project()).stdin(Stdio::null()));
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.stderr.contains("could not be written") && ran.stderr.contains(".jsonl"), "{ran:?}");
    let ran = run(stage.cairn().args(["-p", "and now?", "--continue"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{}", ran.stderr);
    let sent = stage.simulator.requests().pop().unwrap();
    assert_eq!(sent["messages"][0]["content"][2]["text"], "hi", "the prompt was written before it was sent");
}

/// LOOP-1: an interrupt leaves a transcript that loads and goes on.
#[test]
fn an_interrupt_leaves_a_valid_transcript() {
    let stage = Stage::new(
        "[[fault]]\nwhen = { user = 'long' }\nstall = true\ncut_after = 4\n[[rule]]\nsay = 'Hello there, friend.'",
    );
    let mut command = stage.cairn();
    command.args(["-p", "a long one", "--output-format", "stream-json", "--include-partial-messages"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The first piece of text has come, and no more will.
    assert!(lines.any(|line| line.unwrap().contains("stream_event")));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let result = lines.map_while(Result::ok).last().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(result.contains("error_during_execution"), "{result}");
    let ran = run(stage.cairn().args(["-p", "go on", "--continue"]));
    assert_eq!(ran.stdout, "Hello there, friend.\n");
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("interrupted this turn"), "{sent}");
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

/// CONF-1: what is wrong in a settings file is named with its place, and the session goes on.
#[test]
fn bad_settings_are_named_with_file_and_place() {
    let stage = Stage::new(HELLO);
    std::fs::create_dir(stage.project().join(".claude")).unwrap();
    stage.write(".claude/settings.json", "{\"model\": 7,\n \"permissions\": {\"deny\": [\"Bash(\"]}}");
    let ran = run(stage.cairn().args(["-p", "hi"]));
    assert_eq!(ran.stdout, "Hello.\n");
    assert!(ran.stderr.contains("settings.json:1:2: model should be a string"), "{ran:?}");
    assert!(ran.stderr.contains("settings.json:2:27: the permission rule `Bash(`"), "{ran:?}");
    stage.write(".claude/settings.json", "{\"model\": ");
    let ran = run(stage.cairn().args(["-p", "hi"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"));
    assert!(ran.stderr.contains("settings.json:1:10: not JSON") && ran.stderr.contains("left out"), "{ran:?}");
}
