//! What happens in sessions, written down for programs: a file of lines, and OpenTelemetry where it is built in.

use serde_json::{Value, json};

use crate::hooks::settings;
use crate::stage::{Stage, run};

const WORKER: &str = r#"
    [[rule]]
    when = { tool = "Bash" }
    say = "secret-of-the-model"
    [[rule]]
    call = [{ tool = "Bash", input = { command = "echo secret-in-a-command; false" } }]
"#;

/// CONF-3: what happens goes to a file, a JSON object a line: names, counts and reasons, and no text.
#[test]
fn events_go_to_a_file() {
    let stage = Stage::new(WORKER);
    let file = stage.config().join("log/events.jsonl");
    settings(&stage, &json!({"eventLog": file, "permissions": {"allow": ["Bash"]}}));
    assert_eq!(run(stage.cairn().args(["-p", "secret-of-the-user"])).stdout, "secret-of-the-model\n");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("secret"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    let expected = [
        "session_started",
        "prompt_submitted",
        "request_sent",
        "replied",
        "tool_started",
        "tool_ended",
        "request_sent",
        "replied",
        "turn_ended",
    ];
    let mut rest = names.iter();
    assert!(expected.iter().all(|name| rest.any(|one| one == name)), "{names:?}");
    let ended = lines.iter().find(|line| line["event"] == "tool_ended").unwrap();
    assert_eq!((&ended["tool"], &ended["failed"]), (&json!("Bash"), &json!(true)));
    let id = stage.session_files()[0].file_stem().unwrap().to_string_lossy().into_owned();
    assert!(lines.iter().all(|line| line["session"] == id && line["time"].is_string()), "{text}");
}

/// CONF-3: what an agent does that was sent out is written down under the session it works for, with who it was.
#[test]
fn what_agents_do_goes_to_the_file() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { user = "^send", tool = "Agent" }
        say = "It is back."
        [[rule]]
        when = { user = "^send" }
        call = [{ tool = "Agent", input = { description = "look", prompt = "look", subagent_type = "general-purpose" } }]
        [[rule]]
        when = { user = "^look", tool = "Glob" }
        say = "Nothing."
        [[rule]]
        when = { user = "^look" }
        call = [{ tool = "Glob", input = { pattern = "*" } }]
    "#,
    );
    let file = stage.config().join("events.jsonl");
    settings(&stage, &json!({"eventLog": file}));
    assert_eq!(run(stage.cairn().args(["-p", "send"])).stdout, "It is back.\n");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let id = stage.session_files()[0].file_stem().unwrap().to_string_lossy().into_owned();
    assert!(lines.iter().all(|line| line["session"] == id), "{text}");
    let agent = lines.iter().find(|line| line["event"] == "agent_started").unwrap()["id"].clone();
    let of = |name: &str| lines.iter().filter(|line| line["event"] == name && line["agent_id"] == agent).count();
    assert_eq!((of("tool_started"), of("tool_ended"), of("replied")), (1, 1, 2), "{text}");
    assert_eq!(lines.iter().filter(|line| line["event"] == "agent_ended").count(), 1, "{text}");
}

/// CONF-3: with the feature the same goes to the collector that the environment names, and to nobody who is not named.
#[cfg(feature = "otel")]
#[test]
fn events_go_to_a_collector() {
    use std::io::{Read, Write};
    let stage = Stage::new(WORKER);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let collector = std::thread::spawn(move || {
        let (mut names, mut first) = (Vec::new(), String::new());
        while !names.iter().any(|name| name == "cairn.turn_ended") {
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = Vec::new();
            let body = loop {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).unwrap();
                assert!(count > 0, "the sender hung up before the end");
                text.extend(&piece[..count]);
                let whole = String::from_utf8_lossy(&text).into_owned();
                if let Some((head, body)) = whole.split_once("\r\n\r\n") {
                    first = head.lines().next().unwrap_or_default().to_owned();
                    let length = head
                        .lines()
                        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
                    if body.len() >= length.unwrap_or_default() {
                        break body.to_owned();
                    }
                }
            };
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").unwrap();
            assert!(!body.contains("secret"), "{body}");
            let body: Value = serde_json::from_str(&body).unwrap();
            let records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().clone();
            names.extend(records.iter().map(|record| record["body"]["stringValue"].as_str().unwrap().to_owned()));
        }
        (first, names)
    });
    let mut command = stage.cairn();
    command.args(["-p", "secret-of-the-user", "--allowedTools", "Bash"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    let ran = run(command.env("CLAUDE_CODE_ENABLE_TELEMETRY", "1"));
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("secret-of-the-model\n", ""));
    let (first, names) = collector.join().unwrap();
    assert!(first.starts_with("POST /v1/logs"), "{first}");
    assert!(names.iter().any(|name| name == "cairn.tool_ended"), "{names:?}");

    // Named and not asked for: nobody is contacted, so nobody is missed.
    let ran = run(stage.cairn().args(["-p", "hello"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", &url));
    assert_eq!(ran.stderr, "");
}
