//! How much may happen without asking, changed by a key; and the terminal left to others for a while.

use std::process::Command;

use crate::stage::{Stage, piped};
use crate::terminal::{ENTER, Screen, Terminal, ctrl};

const SHIFT_TAB: &str = "\x1b[Z";

/// A model that waits at a gate, and then writes a file.
const WRITER: &str = r#"
    [[rule]]
    name = "told"
    when = { result = "plan mode" }
    say = "I make a plan."
    [[rule]]
    name = "done"
    when = { result = "Created" }
    say = "Written."
    [[rule]]
    name = "write"
    when = { result = "opened" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "x" } }]
    [[rule]]
    name = "wait"
    when = { user = "wait" }
    call = [{ tool = "Bash", input = { command = "cat gate" } }]
    [[rule]]
    name = "watch"
    when = { user = "watch", missing = "bash_1" }
    call = [{ tool = "Bash", input = { command = "echo listening; sleep 1000", run_in_background = true } }]
    [[rule]]
    say = "Hello."
"#;

/// A gate at which `cat` waits until the test opens it.
fn gate(stage: &Stage) -> impl FnOnce() {
    let path = stage.project().join("gate");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    move || std::fs::write(path, "opened\n").unwrap()
}

#[test]
fn shift_tab_goes_through_the_modes() {
    let stage = Stage::new(WRITER);
    let mut terminal = Terminal::start(&stage);
    for mode in ["acceptEdits", "plan", "default", "acceptEdits"] {
        terminal.keys(SHIFT_TAB);
        terminal.shows(&format!("{mode}: "));
    }
    // The hint goes with the next key; the status line still says it.
    terminal.keys("x");
    let screen =
        terminal.until("the status line", |screen| screen.contains("acceptEdits") && !screen.contains("edits in"));
    assert!(screen.contains("context left"), "{}", screen.text());
    terminal.keys(&ctrl('u'));
    terminal.keys(&format!("/mode plan{ENTER}"));
    terminal.rests("the mode is plan");
    terminal.keys(&format!("/clear{ENTER}"));
    terminal.rests("the one before is in");
    assert!(terminal.screen().contains("plan · "), "{}", terminal.screen().text());
    terminal.leave();

    let mut terminal = Terminal::start_with(&stage, &["--dangerously-skip-permissions"]);
    for mode in ["default", "acceptEdits", "plan", "bypassPermissions"] {
        terminal.keys(SHIFT_TAB);
        terminal.shows(&format!("{mode}: "));
    }
}

/// S-4: a change holds for the next call that is judged, in the turn that runs.
#[test]
fn the_mode_changes_while_a_turn_runs() {
    for (presses, answer, written) in [(1, "Written.", true), (2, "I make a plan.", false)] {
        let stage = Stage::new(WRITER);
        let open = gate(&stage);
        let mut terminal = Terminal::start_with(&stage, &["--allowedTools", "Bash(cat:*)"]);
        terminal.say("wait");
        terminal.shows("Bash cat gate");
        for _ in 0..presses {
            terminal.keys(SHIFT_TAB);
        }
        terminal.shows(if presses == 1 { "acceptEdits: " } else { "plan: " });
        open();
        terminal.rests(answer);
        assert_eq!(stage.project().join("new.txt").exists(), written);
    }
}

/// An answer to a question about an edit: this one, and those that follow in this session.
#[test]
fn edits_can_be_accepted_for_the_session() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { missing = "tool_result" }
        times = 1
        call = [
            { tool = "Write", input = { file_path = "{{ project }}/one.txt", content = "1" } },
            { tool = "Write", input = { file_path = "{{ project }}/two.txt", content = "2" } },
            { tool = "Write", input = { file_path = "{{ project }}/.git/hooks/x", content = "3" } },
        ]
        [[rule]]
        say = "Done."
    "#,
    );
    let mut terminal = Terminal::start(&stage);
    terminal.say("write");
    terminal.shows("yes, and accept edits in this session");
    terminal.keys("a");
    // What decides what may run is still asked about.
    let screen = terminal.shows(".git/hooks/x");
    assert!(stage.project().join("two.txt").exists() && !screen.contains("accept edits"), "{}", screen.text());
    terminal.keys("n");
    terminal.keys(ENTER);
    let screen = terminal.rests("Done.");
    assert!(screen.contains("acceptEdits"), "{}", screen.text());
    assert!(!stage.project().join(".claude").exists(), "nothing is written down");
}

/// The program in a shell that has job control, as an interactive one does.
fn in_shell(stage: &Stage) -> Terminal {
    let cairn = stage.cairn();
    let mut shell = Command::new("bash");
    let script = "set -m; \"$0\" \"$@\"; echo SHELL; read -r line; fg; echo END";
    shell.args(["-c", script]).arg(cairn.get_program()).args(["--allowedTools", "Bash(cat:*)"]);
    shell.env_clear().envs(cairn.get_envs().filter_map(|(key, value)| Some((key, value?)))).env("TERM", "xterm");
    Terminal::open(shell.current_dir(stage.project()), 80, 24)
}

/// The shell gets its terminal back as it was, and the program draws itself anew when it comes back.
#[test]
fn ctrl_z_leaves_the_terminal_to_the_shell() {
    let stage = Stage::new(WRITER);
    let open = gate(&stage);
    let mut terminal = in_shell(&stage);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("wait");
    terminal.shows("Bash cat gate");
    terminal.types("half a message");
    terminal.keys(&ctrl('z'));
    terminal.skip_to("SHELL", |_| {});
    assert!(terminal.is_cooked() && !terminal.emulated().bracketed_paste());
    assert!(!terminal.screen().contains("context left"), "{}", terminal.screen().text());
    terminal.keys("\n");
    let screen = terminal.holds("half a message");
    assert!(screen.contains("Bash cat gate") && !terminal.is_cooked(), "{}", screen.text());
    assert_eq!(screen.text().matches("context left").count(), 1, "{}", screen.text());
    open();
    terminal.shows("wants to create");
    terminal.keys("\x1b");
    terminal.rests("stopped");
    terminal.keys(&format!("{}{}", ctrl('c'), ctrl('d')));
    terminal.skip_to("END", |_| {});
}

/// A program that was stopped from elsewhere finds a terminal that somebody else had meanwhile.
#[test]
fn a_program_that_was_stopped_comes_back_drawn() {
    let stage = Stage::new(WRITER);
    let mut terminal = in_shell(&stage);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.types("half a message");
    let shell = terminal.process();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    assert!(Command::new("kill").args(["-STOP", children.trim()]).status().unwrap().success());
    terminal.skip_to("SHELL", |_| {});
    terminal.keys("\n");
    terminal.until("the prompt again", |screen| screen.has_prompt() && screen.typed() == "half a message");
    assert!(!terminal.is_cooked());
    terminal.keys(" more");
    terminal.holds("half a message more");
    terminal.keys(&format!("{}{}", ctrl('u'), ctrl('d')));
    terminal.skip_to("END", |_| {});
}

/// Keys that come just when it goes on are keys of the prompt, not of a line that the terminal edits.
#[test]
fn keys_right_after_a_stop_are_not_lost() {
    let stage = Stage::new(WRITER);
    let mut terminal = Terminal::start(&stage);
    let program = terminal.process().to_string();
    for _ in 0..40 {
        terminal.types("half a message");
        for signal in ["-STOP", "-CONT"] {
            assert!(Command::new("kill").args([signal, &program]).status().unwrap().success());
        }
        terminal.keys(&ctrl('u'));
        terminal.holds("");
    }
    terminal.leave();
}

/// Where no shell could ever continue it, Ctrl-Z changes nothing.
#[test]
fn ctrl_z_without_a_shell_is_nothing() {
    let stage = Stage::new(WRITER);
    let mut terminal = Terminal::start(&stage);
    terminal.types("half");
    terminal.keys(&ctrl('z'));
    terminal.types("half a message");
    terminal.say("");
    terminal.rests("Hello.");
}

#[test]
fn the_prompt_can_be_written_in_an_editor() {
    let stage = Stage::new(WRITER);
    let editor = stage.write("edit", "#!/bin/sh\ntest -t 0 || exit 3\nprintf '%s\\nand a line\\n' \"$2\" >> \"$1\"\n");
    let mut terminal =
        Terminal::open(stage.cairn().env("TERM", "xterm").env("EDITOR", format!("sh {}", editor.display())), 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.types("first");
    terminal.keys(&ctrl('g'));
    terminal.shows("and a line");
    terminal.keys(ENTER);
    terminal.rests("Hello.");
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("first\\nand a line"), "{sent}");

    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm").env("VISUAL", "false"), 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.types("kept");
    terminal.keys(&ctrl('g'));
    terminal.shows("the prompt stays as it was");
    terminal.holds("kept");
    let mut terminal = Terminal::start(&stage);
    terminal.keys(&ctrl('g'));
    terminal.shows("set VISUAL or EDITOR");
}

#[test]
fn background_jobs_can_be_seen_and_stopped() {
    let stage = Stage::new(WRITER);
    let mut terminal = Terminal::start_with(&stage, &["--allowedTools", "Bash"]);
    terminal.keys(&format!("/jobs{ENTER}"));
    terminal.shows("nothing is running in the background");
    terminal.say("watch");
    terminal.rests("Hello.");
    terminal.shows("1 in the background");
    terminal.keys(&format!("/bashes{ENTER}"));
    terminal.rests("bash_1  running      echo listening; sleep 1000");
    // It may not have come that far yet.
    let printed = |screen: &Screen| screen.contains("  listening");
    let answered = |screen: &Screen| printed(screen) || screen.contains("printed nothing");
    terminal.keys(&format!("/jobs bash_1{ENTER}"));
    while !printed(&terminal.until("an answer", answered)) {
        terminal.keys(&format!("/jobs bash_1{ENTER}"));
    }
    terminal.keys(&format!("/jobs bash_7{ENTER}"));
    terminal.shows("There is no command bash_7");
    terminal.keys(&format!("/jobs stop bash_1{ENTER}"));
    terminal.shows("stopping bash_1");
    terminal.until("no job", |screen| !screen.contains("in the background"));
    terminal.keys(&format!("/jobs{ENTER}"));
    terminal.rests("bash_1  stopped");
}

#[test]
fn modes_and_jobs_are_there_in_plain_lines() {
    let stage = Stage::new(WRITER);
    let text = piped(&stage, &[], "/mode\n/mode acceptEdits\n/mode nonsense\n/jobs\n");
    for line in
        ["the mode is default: ", "the mode is acceptEdits", "modes: default", "nothing is running in the background"]
    {
        assert!(text.contains(line), "{line} in {text}");
    }
}
