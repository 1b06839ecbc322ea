//! Headless runs as scripts for Claude Code start them: messages on stdin, one a line, and the flags they give.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::stage::{Stage, run};

const SCRIPT: &str = r#"
    [[rule]]
    when = { user = "(?P<word>one|two|three)" }
    say = "You said {{ word }}."
    [[rule]]
    when = { user = "wait" }
    call = [{ tool = "Bash", input = { command = "sleep 1000" } }]
    [[rule]]
    when = { user = "write", missing = "tool_used" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "tool_used" } }]
    [[rule]]
    say = "Done."
"#;

const ASKING: &str = r#"
    [[rule]]
    when = { user = "ask", tool = "AskUserQuestion", result = "Which\\?\n→ (?P<said>\\w+)" }
    say = "I heard {{ said }}."
    [[rule]]
    when = { user = "ask", offered = "AskUserQuestion" }
    call = [{ tool = "AskUserQuestion", input = { questions = [{ question = "Which?", header = "W", multiSelect = false,
        options = [{ label = "one", description = "" }, { label = "two", description = "" }] }] } }]
    [[rule]]
    when = { user = "twice|again" }
    times = 4
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "x" } }]
    [[rule]]
    when = { user = "write", tool = "Write", result = "(?P<why>not there)" }
    say = "Refused: {{ why }}"
    [[rule]]
    when = { user = "write", tool = "Write" }
    say = "Well."
    [[rule]]
    when = { user = "write" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "x" } }]
    [[rule]]
    say = "Well."
"#;

pub const FLAGS: [&str; 6] =
    ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--tools"];

pub struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talk {
    /// As the SDKs start it: no `-p`, and a flag with its value in one word.
    pub fn start(stage: &Stage) -> Self {
        Self::start_in(stage, "bypassPermissions")
    }

    fn start_in(stage: &Stage, mode: &str) -> Self {
        let mut command = stage.cairn();
        Self::of(command.args(FLAGS).args(["default", &format!("--permission-mode={mode}")]))
    }

    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { input: child.stdin.take(), child, lines }
    }

    pub fn send(&mut self, line: &Value) {
        writeln!(self.input.as_ref().unwrap(), "{line}").unwrap();
    }

    pub fn say(&mut self, text: &str) {
        let message = json!({"role": "user", "content": text});
        self.send(&json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": "default"}));
    }

    /// Reads until a line of this type comes.
    pub fn until(&mut self, kind: &str) -> Value {
        let lines = self.lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        lines.into_iter().find(|line| line["type"] == kind).unwrap()
    }

    /// Answers what was asked.
    fn answer(&mut self, asked: &Value, response: &Value) {
        let response = json!({"subtype": "success", "request_id": asked["request_id"], "response": response});
        self.send(&json!({"type": "control_response", "response": response}));
    }

    pub fn end(mut self) -> (Vec<Value>, Option<i32>) {
        drop(self.input.take());
        let rest = self.lines.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        (rest, self.child.wait().unwrap().code())
    }
}

/// The end of the input ends no turn: what has come is done first, each message in a turn with a result of its own.
#[test]
fn messages_on_stdin_are_turns_in_the_order_they_come() {
    let stage = Stage::new(SCRIPT);
    let mut talk = Talk::start(&stage);
    ["one", "two", "three"].into_iter().for_each(|text| talk.say(text));
    let (lines, code) = talk.end();
    assert_eq!(code, Some(0));
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "result"].repeat(3));
    let results: Vec<&str> = lines.iter().filter_map(|line| line["result"].as_str()).collect();
    assert_eq!(results, ["You said one.", "You said two.", "You said three."]);
    let session = &lines[0]["session_id"];
    assert!(session.is_string() && lines.iter().all(|line| line["session_id"] == *session && line["uuid"].is_string()));
    for key in ["duration_ms", "duration_api_ms", "num_turns", "total_cost_usd"] {
        assert!(lines[2][key].is_number(), "{key} in {}", lines[2]);
    }
    assert!(lines[8]["total_cost_usd"].as_f64() > lines[2]["total_cost_usd"].as_f64(), "what all of it cost");
    let sent = stage.simulator.requests().pop().unwrap();
    assert_eq!(sent["messages"].as_array().unwrap().len(), 5, "one conversation");
}

#[test]
fn a_message_can_have_blocks() {
    let stage = Stage::new(SCRIPT);
    let mut talk = Talk::start(&stage);
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let content = json!([picture, {"type": "text", "text": "three"}]);
    talk.send(&json!({"type": "user", "message": {"role": "user", "content": content}}));
    assert_eq!(talk.until("result")["result"], "You said three.");
    let sent = stage.simulator.requests().pop().unwrap()["messages"][0]["content"].to_string();
    assert!(sent.contains("image/png"), "{sent}");
    assert_eq!(talk.end().1, Some(0));
}

/// What is not understood is answered, also while a turn runs, and named in the answer.
#[test]
fn an_interrupt_stops_the_turn_and_other_requests_are_answered() {
    let stage = Stage::new(SCRIPT);
    let mut talk = Talk::start(&stage);
    talk.say("wait");
    talk.until("assistant");
    talk.send(&json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "get_usage"}}));
    let answer = talk.until("control_response");
    assert_eq!(
        (answer["response"]["subtype"].as_str(), &answer["response"]["request_id"]),
        (Some("error"), &json!("r1"))
    );
    assert!(answer["response"]["error"].as_str().unwrap().contains("get_usage"), "{answer}");
    talk.say("two");
    talk.send(&json!({"type": "control_request", "request_id": "r2", "request": {"subtype": "interrupt"}}));
    assert_eq!(talk.until("control_response")["response"]["subtype"], "success");
    let stopped = talk.until("result");
    assert_eq!(
        (stopped["subtype"].as_str(), stopped["is_error"].as_bool()),
        (Some("error_during_execution"), Some(true))
    );
    assert_eq!(talk.until("result")["result"], "You said two.", "what waited is done");
    assert_eq!(talk.end().1, Some(0));
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

#[test]
fn input_that_is_no_message_is_named_by_its_line() {
    let stage = Stage::new(SCRIPT);
    let path = stage.write("input", "\n{\"type\":\"keep_alive\"}\nhello\n");
    let ran = run(stage.cairn().args(FLAGS).arg("default").stdin(std::fs::File::open(path).unwrap()));
    assert!(ran.code == Some(1) && ran.stderr.contains("line 3 on stdin cannot be read"), "{ran:?}");
    let ran = run(stage.cairn().args(["--input-format", "stream-json"]));
    assert!(ran.code == Some(1) && ran.stderr.contains("needs --output-format stream-json"), "{ran:?}");
}

/// As the SDKs begin: a greeting, and an empty system prompt, which is no empty block for the API. What cannot be had is
/// named rather than passed over.
#[test]
fn a_greeting_is_answered() {
    let stage = Stage::new(SCRIPT);
    let mut command = stage.cairn();
    command.args(FLAGS).args(["default", "--system-prompt", ""]);
    let mut talk = Talk::of(&mut command);
    let greeting = |more: Value| json!({"type": "control_request", "request_id": "r1", "request": more});
    talk.send(&greeting(json!({"subtype": "initialize", "hooks": null})));
    assert_eq!(talk.until("control_response")["response"]["subtype"], "success");
    talk.send(&greeting(json!({"subtype": "initialize", "toolAliases": {"Bash": "Shell"}})));
    let refused = talk.until("control_response")["response"].clone();
    assert!(refused["subtype"] == "error" && refused["error"].as_str().unwrap().contains("toolAliases"), "{refused}");
    talk.say("one");
    assert_eq!(talk.until("result")["result"], "You said one.");
    assert_eq!(talk.end().1, Some(0));
}

/// HOOK-2: a program's own hooks are called back with what happens and the call it is about, and have the say that any hook
/// has; one that has to agree denies by failing. Who is gone is not waited for.
#[test]
fn a_programs_hooks_are_called_back() {
    let stage = Stage::new(ASKING);
    let mut talk = Talk::start(&stage);
    let hooks = json!({
        "PreToolUse": [{"matcher": "Write", "hookCallbackIds": ["look"], "onFailure": "block"}],
        "Stop": [{"matcher": null, "hookCallbackIds": ["stop"]}], "SessionEnd": [{"hookCallbackIds": ["end"]}],
    });
    let request = json!({"subtype": "initialize", "hooks": hooks});
    talk.send(&json!({"type": "control_request", "request_id": "r1", "request": request}));
    let answer = talk.until("control_response")["response"]["response"].clone();
    assert_eq!((&answer["hooks_applied"], &answer["hook_on_failure_supported"]), (&json!(true), &json!(true)));
    for broken in [false, true] {
        talk.say("write");
        let call = talk.until("assistant")["message"]["content"][0]["id"].clone();
        let asked = talk.until("control_request");
        let request = &asked["request"];
        assert_eq!((&request["subtype"], &request["callback_id"]), (&json!("hook_callback"), &json!("look")));
        assert_eq!((&request["tool_use_id"], &request["input"]["tool_name"]), (&call, &json!("Write")));
        if broken {
            let response = json!({"subtype": "error", "request_id": asked["request_id"], "error": "it broke"});
            talk.send(&json!({"type": "control_response", "response": response}));
        } else {
            let deny = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not here"});
            talk.answer(&asked, &json!({"hookSpecificOutput": deny}));
        }
        let told = talk.until("user")["message"]["content"][0].to_string();
        assert!(told.contains(if broken { "it broke" } else { "not here" }), "{told}");
        let asked = talk.until("control_request");
        assert_eq!(asked["request"]["callback_id"], "stop");
        talk.answer(&asked, &json!({}));
        talk.until("result");
    }
    assert!(!stage.project().join("new.txt").exists());
    assert_eq!(talk.end().1, Some(0), "nobody is waited for at the end");
}

/// A change of mode holds for the next call that is judged.
#[test]
fn the_mode_can_be_changed_on_stdin() {
    let stage = Stage::new(SCRIPT);
    let mut talk = Talk::start_in(&stage, "default");
    for (id, mode, answer) in [("r1", "acceptEdits", "success"), ("r2", "bypassPermissions", "error")] {
        let request = json!({"subtype": "set_permission_mode", "mode": mode});
        talk.send(&json!({"type": "control_request", "request_id": id, "request": request}));
        assert_eq!(talk.until("control_response")["response"]["subtype"], answer);
    }
    talk.say("write");
    assert_eq!(talk.until("result")["result"], "Done.");
    assert!(stage.project().join("new.txt").exists());
    assert_eq!(talk.end().1, Some(0));
}

/// The mode that asks nothing can be chosen later by those who started with leave to, unless the settings disable it.
#[test]
fn leave_to_skip_permissions_counts_later() {
    let stage = Stage::new(SCRIPT);
    let answer = |stage: &Stage| {
        let mut command = stage.cairn();
        let mut talk = Talk::of(command.args(FLAGS).args(["default", "--allow-dangerously-skip-permissions"]));
        talk.say("write");
        talk.until("result");
        assert!(!stage.project().join("new.txt").exists(), "it does not begin there");
        let request = json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"});
        talk.send(&json!({"type": "control_request", "request_id": "r", "request": request}));
        let answer = talk.until("control_response")["response"]["subtype"].clone();
        assert_eq!(talk.end().1, Some(0));
        answer
    };
    assert_eq!(answer(&stage), "success");
    crate::hooks::settings(&stage, &json!({"permissions": {"disableBypassPermissionsMode": "disable"}}));
    assert_eq!(answer(&stage), "error");
}

/// PLAN-1: a program that drives the session is asked, and answers with the input as it is to be; without the flag it is
/// not, and the model is offered nothing that would need it.
#[test]
fn a_program_can_be_asked() {
    let stage = Stage::new(ASKING);
    crate::hooks::settings(&stage, &json!({"permissions": {"deny": ["Edit(**/secret.txt)", "Write(**/secret.txt)"]}}));
    let mut command = stage.cairn();
    let mut talk = Talk::of(command.args(FLAGS).args(["default", "--permission-prompt-tool", "stdio"]));
    talk.say("ask");
    let asked = talk.until("control_request");
    let request = &asked["request"];
    assert_eq!((&request["subtype"], &request["tool_name"]), (&json!("can_use_tool"), &json!("AskUserQuestion")));
    assert!(request["tool_use_id"].as_str().is_some_and(|id| !id.is_empty()), "{asked}");
    let mut input = request["input"].clone();
    input["answers"] = json!({"Which?": "two"});
    talk.answer(&asked, &json!({"behavior": "allow", "updatedInput": input}));
    assert_eq!(talk.until("result")["result"], "I heard two.");

    talk.say("write");
    let asked = talk.until("control_request");
    assert_eq!(asked["request"]["blocked_path"], json!(stage.project().join("new.txt")));
    talk.answer(&asked, &json!({"behavior": "deny", "message": "not there"}));
    assert_eq!(talk.until("result")["result"], "Refused: not there");
    assert!(!stage.project().join("new.txt").exists());

    // What the program makes of a call is judged by the rules once more.
    talk.say("write");
    let asked = talk.until("control_request");
    let mut input = asked["request"]["input"].clone();
    input["file_path"] = json!(stage.project().join("secret.txt"));
    talk.answer(&asked, &json!({"behavior": "allow", "updatedInput": input}));
    talk.until("result");
    assert!(!stage.project().join("secret.txt").exists());

    // A turn that stops withdraws its question; an answer that comes too late counts for nothing.
    talk.say("again");
    let asked = talk.until("control_request");
    talk.send(&json!({"type": "control_request", "request_id": "r", "request": {"subtype": "interrupt"}}));
    assert_eq!(talk.until("control_cancel_request")["request_id"], asked["request_id"]);
    talk.answer(&asked, &json!({"behavior": "allow"}));
    talk.until("result");
    talk.say("again");
    let asked = talk.until("control_request");
    talk.answer(&asked, &json!({"behavior": "deny", "message": "enough", "interrupt": true}));
    assert_eq!(talk.until("result")["subtype"], "error_during_execution");
    assert!(!stage.project().join("new.txt").exists());

    // Nobody answers who is gone, however often.
    talk.say("twice");
    talk.until("control_request");
    assert_eq!(talk.end().1, Some(0));
    assert!(!stage.project().join("new.txt").exists());

    let ran = run(stage.cairn().args(["-p", "ask"]));
    assert_eq!(ran.stdout, "Well.\n", "{ran:?}");
}

/// HOOK-2: hooks that see the results of calls at the same time run at the same time; a result waits for its own hook and
/// for no other.
#[test]
fn results_do_not_wait_for_the_hooks_of_others() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { tool = "Read" }
        say = "Well."
        [[rule]]
        call = [{ tool = "Read", input = { file_path = "{{ project }}/a.txt" } },
                { tool = "Read", input = { file_path = "{{ project }}/b.txt" } }]
    "#,
    );
    ["a.txt", "b.txt"].iter().for_each(|name| drop(stage.write(name, "x\n")));
    let go = stage.project().join("go");
    // The first call's hook waits for a file that is only made when the second call's result has come.
    let waits = format!("grep -q a.txt && until [ -e {} ]; do read -rt 0.05 <> <(:); done; true", go.display());
    crate::hooks::settings(&stage, &json!({"hooks": {"PostToolUse": [crate::hooks::command(&waits)]}}));
    let mut talk = Talk::start(&stage);
    talk.say("read");
    let named = |line: &Value| line["message"]["content"][0]["tool_use_id"].clone();
    let asked = talk.until("assistant")["message"]["content"].clone();
    assert_eq!(named(&talk.until("user")), asked[1]["id"]);
    std::fs::write(go, "").unwrap();
    assert_eq!(named(&talk.until("user")), asked[0]["id"]);
    assert_eq!(talk.until("result")["result"], "Well.");
    assert_eq!(talk.end().1, Some(0));
}

/// A program that reads results hears of trouble in one.
#[test]
fn a_run_that_cannot_begin_has_a_result_too() {
    let stage = Stage::new(SCRIPT);
    for format in ["json", "stream-json"] {
        let ran = run(stage.cairn().args(["-p", "hi", "--output-format", format, "--resume", "nothing"]));
        let result: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert!(ran.code != Some(0) && result["is_error"] == true, "{ran:?}");
        assert!(result["errors"][0].as_str().unwrap().contains("no session nothing"), "{result}");
    }
}

/// LOOP-1: a line that cannot be read ends the input and no turn: what came before it is done, and then the program is
/// told, in a result that names the session and what it has cost.
#[test]
fn a_line_that_cannot_be_read_ends_no_turn() {
    let stage = Stage::new(SCRIPT);
    let mut talk = Talk::start(&stage);
    ["one", "two"].into_iter().for_each(|text| talk.say(text));
    talk.send(&json!("neither an object nor a message"));
    let (lines, code) = talk.end();
    let results: Vec<&Value> = lines.iter().filter(|line| line["type"] == "result").collect();
    let [one, two, told] = results[..] else { panic!("{results:?}") };
    assert_eq!((&one["result"], &two["result"]), (&json!("You said one."), &json!("You said two.")));
    assert!(told["errors"][0].as_str().unwrap().starts_with("line 3 on stdin cannot be read"), "{told}");
    assert_eq!((&told["session_id"], &told["total_cost_usd"]), (&two["session_id"], &two["total_cost_usd"]));
    assert!(code == Some(1) && two["total_cost_usd"].as_f64() > Some(0.0), "{code:?} {two}");
}

/// As scripts for Claude Code give them.
#[test]
fn permissions_can_be_skipped_by_the_long_flag() {
    let stage = Stage::new(SCRIPT);
    let ran = run(stage.cairn().args(["-p", "write", "--dangerously-skip-permissions", "--verbose"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"));
    assert!(stage.project().join("new.txt").exists());
    assert!(ran.stderr.contains("✓ Write"), "what happens is told: {}", ran.stderr);
}

/// A pipe that nobody writes to, as programs inherit them, holds up no prompt for long.
#[test]
fn a_silent_pipe_is_left_out() {
    let stage = Stage::new(SCRIPT);
    let mut command = stage.cairn();
    let mut child = command.args(["-p", "one"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let silent = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "You said one.\n");
    drop(silent);
}

/// A path in what a pipe brings is text, whoever wrote it.
#[test]
fn pictures_named_in_a_pipe_are_not_sent() {
    let stage = Stage::new(SCRIPT);
    let picture = stage.project().join("secret.png");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\n0000").unwrap();
    let path = stage.write("piped", &format!("look at {0} and @{0}", picture.display()));
    run(stage.cairn().args(["-p", "one"]).stdin(std::fs::File::open(path).unwrap()));
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("secret.png") && !sent.contains("base64"), "{sent}");
    run(stage.cairn().args(["-p", "one @secret.png"]));
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("base64"), "{sent}");
}
