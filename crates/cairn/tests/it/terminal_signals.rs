//! What a session shows and tells beside the conversation: a line of the user's own, and that somebody is waited for.

use serde_json::{Value, json};

use crate::hooks::{command, settings};
use crate::stage::Stage;
use crate::terminal::Terminal;

const TALKER: &str = r#"
    [[rule]]
    when = { user = "write", tool = "Write" }
    say = "Written."
    [[rule]]
    when = { user = "write" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "one\ntwo\n" } }]
    [[rule]]
    say = "Well."
"#;

fn line(command: &str) -> Value {
    json!({"statusLine": {"type": "command", "command": command}})
}

fn open(stage: &Stage, args: &[&str]) -> Terminal {
    let mut terminal = Terminal::open(stage.cairn().args(args).env("TERM", "xterm-256color"), 80, 24);
    terminal.until("a prompt", |screen| screen.contains("›"));
    terminal
}

/// Reads until a text is there and nothing is under way. With a line of one's own the prompt is not the last row but one.
fn rests(terminal: &mut Terminal, text: &str) {
    terminal.until(text, |screen| screen.contains(text) && !screen.is_working());
}

/// CONF-2: a line of the user's own, by a command that is given what Claude Code gives, key by key as it was recorded.
#[test]
fn a_status_line_by_a_command() {
    let stage = Stage::new(TALKER);
    let given = stage.config().join("given");
    let shows = format!(
        "cat > {0}.new; mv {0}.new {0}; printf '\\033[31mmine\\033[0m %s' \"$(grep -o 'lines_added\":[0-9]*' {0})\"",
        given.display()
    );
    settings(&stage, &line(&shows));
    let mut terminal = open(&stage, &["--permission-mode", "acceptEdits"]);
    terminal.shows("mine lines_added\":0");
    terminal.say("write");
    rests(&mut terminal, "Written.");
    terminal.shows("mine lines_added\":2");
    terminal.leave();
    let given: Value = serde_json::from_str(&std::fs::read_to_string(given).unwrap()).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        keys(&given),
        "session_id transcript_path cwd model workspace version output_style cost context_window exceeds_200k_tokens \
         fast_mode thinking"
    );
    assert_eq!(keys(&given["workspace"]), "current_dir project_dir added_dirs");
    assert_eq!(
        keys(&given["cost"]),
        "total_cost_usd total_duration_ms total_api_duration_ms total_lines_added total_lines_removed"
    );
    let window = &given["context_window"];
    assert_eq!(
        keys(window),
        "total_input_tokens total_output_tokens context_window_size current_usage used_percentage remaining_percentage"
    );
    assert_eq!(given["transcript_path"], json!(stage.session_files()[0]));
    assert_eq!(given["workspace"]["project_dir"], json!(stage.project()));
    let used = &window["current_usage"];
    let total = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let total: u64 = total.iter().map(|key| used[*key].as_u64().unwrap()).sum();
    assert_eq!(window["total_input_tokens"], total);
}

/// AGENT-1: the agent that sets up the status line writes it into the user's settings, and the session that is open shows it.
#[test]
fn an_agent_sets_up_the_status_line() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { user = "^Show my", tool = "Write" }
        say = "Done."
        [[rule]]
        when = { user = "^Show my", system = "user's settings, `(?P<settings>[^`]+)`" }
        call = [{ tool = "Write", input = { file_path = "{{ settings }}", content = "{\"statusLine\": {\"type\": \"command\", \"command\": \"echo my own line\"}}" } }]
        [[rule]]
        when = { user = "set up my status line", tool = "Agent" }
        say = "It is set up."
        [[rule]]
        when = { user = "set up my status line" }
        call = [{ tool = "Agent", input = { description = "line", prompt = "Show my line.", subagent_type = "statusline-setup" } }]
        [[rule]]
        say = "Well."
    "#,
    );
    let mut terminal = open(&stage, &["--permission-mode", "bypassPermissions"]);
    terminal.keys("/statusline\r");
    terminal.until("the line", |screen| screen.contains("It is set up.") && screen.contains("my own line"));
    terminal.leave();
}

/// CONF-2: one that fails is told of once, one that hangs holds up nothing; both can be changed while the session runs.
#[test]
fn a_broken_status_line_is_said_once() {
    let stage = Stage::new(TALKER);
    settings(&stage, &line("echo oh no >&2; exit 3"));
    let mut terminal = open(&stage, &[]);
    terminal.shows("the command of your status line failed: exit code 3: oh no");
    terminal.say("hello");
    rests(&mut terminal, "Well.");
    settings(&stage, &line("echo again; sleep 1004.001 & setsid sleep 1004.001 & sleep 1004.001"));
    terminal.say("hello");
    rests(&mut terminal, "Well.");
    settings(&stage, &line("echo mended"));
    terminal.say("hello");
    terminal.shows("mended");
    let told = terminal.everything().matches("the command of your status line failed").count();
    terminal.leave();
    assert_eq!(told, 1);
    assert!(!crate::hooks_hostile::runs("sleep 1004.001"));
}

/// TRUST-2: a project's line runs once it is trusted, as its hooks do.
#[test]
fn a_projects_status_line_needs_trust() {
    let stage = Stage::new(TALKER);
    std::fs::create_dir(stage.project().join(".claude")).unwrap();
    let own = line("touch ran; echo theirs").to_string();
    std::fs::write(stage.project().join(".claude/settings.json"), own).unwrap();
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm-256color"), 80, 24);
    terminal.skip_to("q quit: ", |_| {});
    assert!(terminal.screen().text().contains("statusLine: touch ran; echo theirs"));
    terminal.keys("g\r");
    terminal.until("a prompt", |screen| screen.contains("›"));
    terminal.say("hello");
    rests(&mut terminal, "Well.");
    terminal.leave();
    assert!(!stage.project().join("ran").exists());
    let mut terminal = open(&stage, &["--trust"]);
    terminal.shows("theirs");
    terminal.leave();
}

/// HOOK-1: hooks hear when somebody is waited for, for an answer and for a word, in Claude Code's form.
#[test]
fn hooks_hear_that_somebody_is_waited_for() {
    let stage = Stage::new(TALKER);
    let told = stage.config().join("told");
    let writes = command(&format!("printf '%s\\n' \"$(cat)\" >> {}", told.display()));
    settings(
        &stage,
        &json!({"hooks": {"Notification": [writes]}, "messageIdleNotifThresholdMs": 50,
                "preferredNotifChannel": "terminal_bell"}),
    );
    let heard = |kind: &str| -> Value {
        let began = std::time::Instant::now();
        loop {
            let text = std::fs::read_to_string(&told).unwrap_or_default();
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(told) = lines.into_iter().find(|told| told["notification_type"] == kind) {
                return told;
            }
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "{kind} never came: {text}");
            std::thread::yield_now();
        }
    };
    let mut terminal = open(&stage, &[]);
    terminal.say("write");
    terminal.shows("yes, once");
    let asked = heard("permission_prompt");
    terminal.keys("y");
    rests(&mut terminal, "Written.");
    let idle = heard("idle_prompt");
    assert_eq!(asked["message"], "Cairn needs your permission");
    assert_eq!(idle["message"], "Cairn is waiting for your input");
    for told in [asked, idle] {
        let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
        let expected = ["session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name", "message"];
        assert_eq!(keys, [&expected[..], &["notification_type"]].concat());
    }
    terminal.leave();
}
