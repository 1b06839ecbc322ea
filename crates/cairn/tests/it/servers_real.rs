//! Servers that others have written, in a session from end to end, in the full run.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::skipped::{is_full, skipped};
use crate::stage::{Stage, run};
use crate::teammates::until;
use crate::terminal::{ENTER, Terminal};

const PACKAGES: &str = "target/clients/node_modules";
const PYTHON: &str = "target/python-mcp/bin/python";
const EVERYTHING: &str = "@modelcontextprotocol/server-everything/dist/index.js";

/// Calls of tools, one after the other, and what is said of the last result.
const CALLS: [(&str, &str); 6] = [
    ("echo", r#"{ message = "hello" }"#),
    ("get-sum", "{ a = 2, b = 40 }"),
    ("get-env", "{}"),
    ("get-tiny-image", "{}"),
    ("get-structured-content", r#"{ location = "Chicago" }"#),
    ("get-resource-links", "{ count = 2 }"),
];

fn installed(path: &str) -> Option<PathBuf> {
    let path = std::fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap().join(path);
    match (is_full(), path.exists()) {
        (false, _) => skipped("./test full runs it"),
        (true, false) => skipped(&format!("{} is missing; ./test full installs it", path.display())),
        (true, true) => return Some(path),
    }
    None
}

/// A model that loads every tool it calls, and calls one after the other.
fn script() -> String {
    let mut rules = String::new();
    let last = CALLS.last().unwrap().0;
    rules += &format!("[[rule]]\nwhen = {{ tool = \"mcp__everything__{last}\" }}\nsay = \"All done.\"\n");
    for (at, (tool, input)) in CALLS.iter().enumerate() {
        let before = match at {
            0 => "ToolSearch".to_owned(),
            at => format!("mcp__everything__{}", CALLS[at - 1].0),
        };
        rules += &format!(
            "[[rule]]\nwhen = {{ tool = \"{before}\" }}\ncall = [{{ tool = \"mcp__everything__{tool}\", input = {input} }}]\n"
        );
    }
    let names: Vec<String> = CALLS.iter().map(|(tool, _)| format!("mcp__everything__{tool}")).collect();
    rules += &format!(
        "[[rule]]\nwhen = {{ user = \"all\", visible = \"mcp__everything__echo\" }}\ncall = [{{ tool = \"ToolSearch\", input = {{ query = \"select:{}\", max_results = 20 }} }}]\n",
        names.join(",")
    );
    rules + "[[rule]]\nsay = \"Nothing there.\"\n"
}

/// Ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn works(stage: &Stage, entry: &Value) {
    let servers = json!({"mcpServers": {"everything": entry}}).to_string();
    let mut cairn = stage.cairn();
    cairn.env("OTHER_SECRET_TOKEN", "t-other").env("ANTHROPIC_API_KEY", "sk-never").env("PLAIN", "p-plain");
    cairn.args(["--mcp-config", &servers, "--allowedTools", "mcp__everything", "-p"]);
    let ran = run(cairn.arg("all of @everything:demo://resource/static/document/architecture.md"));
    assert_eq!(ran.stdout.trim(), "All done.", "{ran:?}");
    let requests = stage.simulator.requests();
    let lines = stage.simulator.report().requests;
    // The first picture in a conversation breaks it, as the provider documents; nothing else does.
    let is_of_picture = |broke: &str| broke.contains("images false") && broke.contains("images true");
    let is_held = |broke: Option<String>| broke.is_none_or(|broke| is_of_picture(&broke));
    let broke = lines.iter().map(|line| line.broke.as_ref().map(|broke| format!("{broke:?}")));
    assert!(broke.clone().all(is_held) && broke.flatten().count() == 1, "the cached prefix holds: {lines:?}");
    let last = requests.last().unwrap();
    let said = last["messages"].to_string();
    for wanted in [
        "Echo: hello",
        "42",
        r#""media_type":"image/png""#,
        "temperature",
        "link to the resource demo://",
        "a resource of an MCP server",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!said.contains("t-other") && !said.contains("sk-never"), "{said}");
}

/// MCP-1: the protocol's own test server works in a session, as a program: its tools, pictures, structured content and
/// resources, and it sees no credential. Its prompts and its questions work in the terminal.
#[test]
fn server_everything_works_as_a_program() {
    let Some(packages) = installed(PACKAGES) else { return };
    let script_file = packages.join(EVERYTHING);
    let entry = json!({"command": packages.join(".bin/node"), "args": [script_file, "stdio"]});
    let stage = Stage::new(&script());
    works(&stage, &entry);
    assert!(stage.simulator.requests().last().unwrap().to_string().contains("p-plain"), "others it sees");

    let asks = r#"
        [[rule]]
        when = { tool = "mcp__everything__trigger-elicitation-request", result = "Ada" }
        say = "The server heard a name."
        [[rule]]
        when = { tool = "mcp__everything__get-roots-list", result = "(?s)(?P<what>.*project.*)" }
        say = "It knows the folder."
        [[rule]]
        when = { user = "roots" }
        call = [{ tool = "mcp__everything__get-roots-list", input = {} }]
        [[rule]]
        when = { user = "ask me" }
        call = [{ tool = "mcp__everything__trigger-elicitation-request", input = {} }]
        [[rule]]
        when = { user = "long" , missing = "completed" }
        call = [{ tool = "mcp__everything__trigger-long-running-operation", input = { duration = 3, steps = 3 } }]
        [[rule]]
        say = "Well."
    "#;
    let stage = Stage::new(asks);
    let mut entry = entry;
    entry["alwaysLoad"] = true.into();
    let servers = json!({"mcpServers": {"everything": entry}}).to_string();
    let mut command = stage.cairn();
    command.args(["--mcp-config", &servers, "--allowedTools", "mcp__everything"]).env("TERM", "xterm-256color");
    let mut terminal = Terminal::open(&command, 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("/mcp__everything__args-prompt Berlin");
    terminal.rests("Well.");
    assert!(stage.last_said()["messages"].to_string().contains("Berlin?"), "{}", stage.last_said()["messages"]);
    terminal.say("ask me");
    terminal.shows("2 decline (n)");
    terminal.keys("y");
    terminal.shows("Enter goes on, Esc goes back");
    terminal.keys(&format!("Ada{ENTER}"));
    // The form has many more fields, none of which has to be filled.
    for _ in 0..20 {
        let screen = terminal.screen();
        if !screen.contains("Enter goes on, Esc goes back") {
            break;
        }
        let shown = screen.text();
        terminal.keys(ENTER);
        terminal.until("the next field", |screen| screen.text() != shown);
    }
    terminal.rests("The server heard a name.");
    terminal.say("roots");
    terminal.rests("It knows the folder.");
    terminal.say("long");
    terminal.shows("1 of 3");
    terminal.rests("Well.");
    let process = terminal.process();
    terminal.leave();
    until("no process of it is left", || !Path::new("/proc").join(process.to_string()).exists());
}

/// MCP-1: the same server works over HTTP.
#[test]
fn server_everything_works_over_http() {
    let Some(packages) = installed(PACKAGES) else { return };
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(packages.join(".bin/node"));
    command.arg(packages.join(EVERYTHING)).arg("streamableHttp").env("PORT", port.to_string());
    let mut child = Server(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("listening")));
    std::thread::spawn(move || lines.for_each(drop));
    works(&Stage::new(&script()), &json!({"type": "http", "url": format!("http://127.0.0.1:{port}/mcp")}));
}

/// MCP-2: the official suite's authorization server, and `cairn mcp login` as people use it: the address is opened elsewhere,
/// and the one it ends at is typed in. The tokens are in a file of mode 0600, until the logout.
#[test]
fn a_login_by_command_satisfies_the_conformance_suite() {
    let Some(packages) = installed(PACKAGES) else { return };
    let stage = Stage::new("[[rule]]\nsay = 'Hello.'");
    let path = std::env::var("PATH").unwrap();
    let browser = r#"exec 9> back; read -r where < pages; curl -s -o /dev/null -w '%{redirect_url}\n' "$where" >&9"#;
    let cairn = format!(
        "env -i PATH='{path}' HOME='{home}' CLAUDE_CONFIG_DIR='{config}' NO_PROXY=localhost,127.0.0.1 '{program}' mcp",
        home = stage.config().parent().unwrap().display(),
        config = stage.config().display(),
        program = env!("CARGO_BIN_EXE_cairn"),
    );
    let client = stage.write(
        "client.sh",
        &format!(
            "cd '{}'\nmkfifo pages back\n({browser}) &\n{cairn} add c \"${{@: -1}}\"\n{cairn} check c > before\n\
             {cairn} login c --no-browser < back > pages 2> told\n{cairn} check c > after\n\
             stat -c %a '{}'/cairn/mcp-logins/* > mode\n{cairn} logout c\nls '{}'/cairn/mcp-logins > left\n",
            stage.project().display(),
            stage.config().display(),
            stage.config().display(),
        ),
    );
    let mut suite = Command::new(packages.join(".bin/node"));
    suite.arg(packages.join("@modelcontextprotocol/conformance/dist/index.js"));
    suite.args(["client", "--scenario", "auth/metadata-default", "--spec-version", "2025-11-25", "--timeout", "90000"]);
    let output = suite.arg("--command").arg(format!("bash {}", client.display())).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let written = |file: &str| std::fs::read_to_string(stage.project().join(file)).unwrap_or_default();
    assert!(output.status.success(), "{said}{}", written("told"));
    assert!(written("before").contains("needs a login: cairn mcp login c"), "{}", written("before"));
    assert!(written("after").contains("connected, with 1 tool"), "{}", written("after"));
    assert_eq!((written("mode").trim(), written("left").as_str()), ("600", ""), "{}", written("told"));
}

/// MCP-1: a server from the Python package index works in a session.
#[test]
fn a_server_from_the_package_index_works() {
    let Some(python) = installed(PYTHON) else { return };
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { tool = "mcp__time__convert_time", result = "(?s)(?P<what>.+)" }
        say = "It said: {{ what }}"
        [[rule]]
        when = { tool = "ToolSearch" }
        call = [{ tool = "mcp__time__convert_time", input = { source_timezone = "UTC", time = "12:00", target_timezone = "Asia/Tokyo" } }]
        [[rule]]
        when = { user = "time", visible = "mcp__time__convert_time" }
        call = [{ tool = "ToolSearch", input = { query = "convert time" } }]
    "#,
    );
    let entry = json!({"command": python, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]});
    let servers = json!({"mcpServers": {"time": entry}}).to_string();
    let ran = run(stage.cairn().args(["--mcp-config", &servers, "--allowedTools", "mcp__time", "-p", "time"]));
    assert!(ran.stdout.contains("21:00") && ran.stdout.contains("Asia/Tokyo"), "{ran:?}");
    let checked = run(stage.cairn().args([
        "mcp",
        "add",
        "clock",
        "--",
        entry["command"].as_str().unwrap(),
        "-m",
        "mcp_server_time",
    ]));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let checked = run(stage.cairn().args(["mcp", "check", "clock"]));
    assert!(checked.code == Some(0) && checked.stdout.contains("mcp__clock__get_current_time"), "{checked:?}");
}
