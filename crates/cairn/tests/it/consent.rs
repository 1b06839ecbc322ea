//! What a session asks about that is no call: who may write to it, and which files from outside become instructions of a
//! teammate.

use serde_json::{Value, json};

use crate::stage::{Stage, run};
use crate::teammates::lead;
use crate::terminal::Terminal;

/// A model that says what others wrote.
const CHAT: &str = r#"
    [[rule]]
    when = { visible = "(?s).*<agent-message from=\"(?P<from>[^\"]+)\">\\n(?P<text>[^\\n]+)\\n" }
    say = "{{ from }} says {{ text }}."
    [[rule]]
    say = "Hello."
"#;

/// MSG-1, MSG-2: a message wakes an idle session; it is shown with its sender, after the user agreed, who is asked once. The
/// socket is the user's alone, and goes with the session.
#[test]
fn a_message_wakes_an_idle_session_once_the_user_agrees() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new(CHAT);
    let mut terminal = Terminal::start(&stage);
    let sockets = stage.config().join("sockets");
    let socket = sockets.read_dir().unwrap().next().unwrap().unwrap().path();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&sockets), mode(&socket)), (0o700, 0o600));
    let id = socket.file_stem().unwrap().to_str().unwrap().to_owned();
    let listed = run(stage.cairn().args(["send", "--list"]));
    assert_eq!(listed.stdout, format!("{id}  session\n"));
    let send = |text: &str| run(stage.cairn().args(["send", &id[..18], text]));
    let sent = send("the tests are red");
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    terminal.until("a question", |screen| {
        screen.contains("another session: shell wants to write to this session:")
            && screen.contains("the tests are red")
            && screen.contains("yes, now and later")
    });
    terminal.keys("y");
    terminal.until("an answer", |screen| screen.contains("another session: shell says the tests are red."));
    terminal.until("a sender", |screen| screen.contains("✉ another session: shell"));
    assert_eq!(send("now green").code, Some(0));
    terminal.until("no second question", |screen| screen.contains("shell says now green."));
    let inbox = run(stage.cairn().args(["inbox", "--json"]));
    let inbox: Value = serde_json::from_str(&inbox.stdout).unwrap();
    assert_eq!((inbox[0]["text"].clone(), inbox[0]["read"].clone()), (json!("the tests are red"), json!(true)));
    terminal.keys("\u{4}");
    assert_eq!(terminal.ended(), 0);
    assert!(!socket.exists());
    let gone = send("anybody?");
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("is not running; nobody can be written to"), "{}", gone.stderr);
}

/// MSG-2: in plain lines another session is asked about as one that writes, not as a tool that wants to run.
#[test]
fn plain_lines_ask_about_a_sender() {
    let stage = Stage::new(CHAT);
    let mut terminal = Terminal::open(stage.cairn().arg("--plain").env("TERM", "dumb"), 80, 24);
    terminal.shows(">");
    let socket = stage.config().join("sockets").read_dir().unwrap().next().unwrap().unwrap().path();
    let id = socket.file_stem().unwrap().to_str().unwrap().to_owned();
    assert_eq!(run(stage.cairn().args(["send", &id, "the tests are red"])).code, Some(0));
    let screen = terminal.shows("Allow it from now on? Your answer is remembered. y or n:");
    assert!(screen.contains("another session: shell wants to write to this session:"), "{}", screen.text());
    assert!(screen.contains("  the tests are red") && !screen.contains("wants to run"), "{}", screen.text());
    terminal.keys("y\r");
    terminal.shows("another session: shell says the tests are red.");
}

/// A scout that looks at a file whose folder includes instructions from outside the project.
const INCLUDES: &str = r#"
    [[rule]]
    when = { system = "You are scout", visible = "OUTSIDE-ONE" }
    say = "it sees the outside"
    [[rule]]
    when = { system = "You are scout", tool = "Read" }
    say = "it sees the note alone"
    [[rule]]
    when = { system = "You are scout" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/sub/note.txt" } }]
    [[rule]]
    when = { visible = "said last: (?P<said>[^\n]+)" }
    say = "I heard that {{ said }}"
    [[rule]]
    when = { missing = "works in a process" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "Look.", name = "scout", team_name = "us" } }]
    [[rule]]
    say = "I wait."
"#;

/// TRUST-4, AGENT-2: what a teammate's instruction files bring in from outside is asked about at the lead, as what it is and for
/// whom. Where nobody is there nothing of it is read, and no answer is kept.
#[test]
fn an_include_of_a_teammate_is_asked_about_at_the_lead() {
    let stage = Stage::new(INCLUDES);
    let outside = std::fs::canonicalize(stage.project().parent().unwrap()).unwrap().join("outside.md");
    std::fs::write(&outside, "OUTSIDE-ONE\n").unwrap();
    std::fs::create_dir(stage.project().join("sub")).unwrap();
    stage.write("sub/note.txt", "note\n");
    stage.write("sub/CLAUDE.md", &format!("Nested.\n\n@{}\n", outside.display()));
    let ran = run(&mut lead(&stage, &["-p", "go"]));
    assert!(ran.stdout.contains("it sees the note alone"), "{ran:?}");
    assert_eq!(run(stage.cairn().args(["trust", "list"])).stdout, "", "nobody has answered");
    let mut command = lead(&stage, &[]);
    let mut terminal = Terminal::open(command.env("TERM", "xterm-256color"), 160, 40);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("go");
    terminal.until("word of it", |screen| screen.contains("scout asks something") && !screen.is_working());
    terminal.until("the question", |screen| {
        screen.contains("sub/CLAUDE.md wants to include")
            && screen.contains("for the teammate scout")
            && screen.contains("yes, now and later")
    });
    terminal.keys("y");
    terminal.until("what came of it", |screen| screen.contains("I heard that it sees the outside"));
    terminal.leave();
    assert!(run(stage.cairn().args(["trust", "list"])).stdout.contains("outside.md"));
}
