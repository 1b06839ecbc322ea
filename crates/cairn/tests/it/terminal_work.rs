//! What is seen of the agent's work: changes, the output of commands, and all of it in the pager.

use insta::assert_snapshot;

use crate::stage::Stage;
use crate::terminal::{DOWN, ENTER, ESC, SIZES, Terminal, UP, ctrl};

/// A model that edits, runs a command that prints a lot, and one that fails.
const WORKER: &str = r#"
    [[rule]]
    name = "edit"
    when = { user = "edit", visible = "three", missing = "Edited" }
    call = [{ tool = "Edit", input = { file_path = "{{ project }}/list.txt", old_string = "two", new_string = "2\ntwo and a half" } }]
    [[rule]]
    name = "read"
    when = { user = "edit", missing = "three" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
    [[rule]]
    name = "create"
    when = { user = "create", missing = "Created" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "fn main() {\n    one();\n}\n" } }]
    [[rule]]
    name = "count"
    when = { user = "count", missing = "line 1" }
    call = [{ tool = "Bash", input = { command = "seq -f 'line %g' 200; printf '\\033[32mall counted\\033[0m\\n'" } }]
    [[rule]]
    name = "much"
    when = { user = "print much", missing = "persisted-output" }
    call = [{ tool = "Bash", input = { command = "seq -f 'a long line of output with the number %g' 3000" } }]
    [[rule]]
    name = "fail"
    when = { user = "fail", missing = "Exit code" }
    call = [{ tool = "Bash", input = { command = "seq -f 'step %g' 30; echo 'error: it broke' >&2; exit 3" } }]
    [[rule]]
    say = "Finished."
"#;

fn open(stage: &Stage, columns: u16, lines: u16, args: &[&str]) -> Terminal {
    let mut terminal = Terminal::open(stage.cairn().args(args).env("TERM", "xterm-256color"), columns, lines);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
}

/// TERM-1: an edit that nobody was asked about is seen as what it changed, with the number of lines.
#[test]
fn an_accepted_edit_shows_its_change_and_its_counts() {
    for (columns, lines) in SIZES {
        for mode in ["acceptEdits", "bypassPermissions"] {
            let stage = Stage::new(WORKER);
            stage.write("list.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
            let mut terminal = open(&stage, columns, lines, &["--permission-mode", mode]);
            terminal.say("edit it");
            terminal.rests("Finished.");
            let all = terminal.everything();
            for row in ["✓ Edit list.txt — +2 −1\n", "    2 - two\n", "    2 + 2\n", "    3 + two and a half\n"] {
                assert!(all.contains(row), "{row:?} in {mode} at {columns}: {all}");
            }
            terminal.say("create it");
            terminal.until("the second", |screen| screen.contains("✓ Write new.txt") && !screen.is_working());
            let all = terminal.everything();
            assert!(all.contains("✓ Write new.txt — +3\n    1 + fn main() {\n"), "{all}");
        }
    }
}

/// TERM-1: a change that was read in its question is not printed twice.
#[test]
fn an_edit_that_was_asked_about_shows_its_counts_only() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(WORKER);
        stage.write("list.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
        let mut terminal = open(&stage, columns, lines, &[]);
        terminal.say("edit it");
        terminal.shows("Edit wants to change list.txt +2 −1");
        terminal.keys("y");
        terminal.rests("Finished.");
        let all = terminal.everything();
        assert!(all.contains("✓ Edit list.txt — +2 −1\n\nFinished."), "{all}");
        assert_eq!(all.matches("+ two and a half").count(), 1, "{all}");
    }
}

/// TERM-2: of a command the ends of its output are seen, of a failure its end; colours of the command are not printed as
/// letters.
#[test]
fn commands_show_a_few_lines_and_errors_their_end() {
    let stage = Stage::new(WORKER);
    let mut terminal = open(&stage, 80, 24, &["--allowedTools", "Bash"]);
    terminal.say("count");
    terminal.rests("Finished.");
    terminal.say("fail");
    terminal.until("the second", |screen| screen.count("Finished.") == 2 && !screen.is_working());
    assert_snapshot!(terminal.everything());
    let mut terminal = open(&stage, 40, 15, &["--allowedTools", "Bash"]);
    terminal.say("fail");
    let screen = terminal.rests("Finished.");
    let at = screen.rows.iter().position(|row| row.starts_with("✗ Bash seq")).unwrap();
    assert!(screen.rows[at].ends_with("— Exit code 3"), "{}", screen.text());
    assert_eq!(
        screen.rows[at + 1..=at + 5].iter().map(|row| row.trim()).collect::<Vec<_>>(),
        ["… 27 more lines (Ctrl-O)", "step 28", "step 29", "step 30", "error: it broke"]
    );
}

/// TERM-2: Ctrl-O shows all of it in the order in which it came, over the window, and nothing of it stays in the
/// scrollback.
#[test]
fn the_pager_shows_everything_in_reading_order() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(WORKER);
        stage.write("list.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
        let mut terminal = open(&stage, columns, lines, &["--permission-mode", "bypassPermissions"]);
        terminal.say("edit it");
        terminal.rests("Finished.");
        terminal.say("count");
        terminal.until("the second", |screen| {
            screen.contains("all counted") && screen.contains("Finished.") && !screen.is_working()
        });
        let before = terminal.everything();
        terminal.keys(&ctrl('o'));
        let screen = terminal.until("the newest call", |screen| screen.contains("q closes"));
        assert!(screen.rows[0].starts_with("Bash — all counted"), "{}", screen.text());
        assert_eq!(screen.rows.len(), usize::from(lines));
        terminal.keys(&format!("{UP}{UP}"));
        terminal.until("what precedes it", |screen| screen.rows[0].starts_with("› count"));
        terminal.keys("g");
        let screen = terminal.until("the beginning", |screen| screen.rows[0].starts_with("› edit it"));
        assert!(screen.rows[2].starts_with("Read — Read 6 lines"), "{}", screen.text());
        terminal.keys("G");
        terminal.until("the end", |screen| screen.contains("all counted") && screen.contains("line 200"));
        terminal.resize(columns + 10, lines + 2, crate::terminal::Reflow::No);
        terminal.until("the end in a larger window", |screen| {
            screen.contains("all counted") && screen.rows[usize::from(lines) + 1].contains("q closes")
        });
        terminal.resize(columns, lines, crate::terminal::Reflow::No);
        terminal.until("the old window", |screen| screen.rows[usize::from(lines) - 1].contains("q closes"));
        terminal.keys("x y");
        terminal.keys(ESC);
        terminal.until("the prompt", |screen| screen.has_prompt() && screen.typed().is_empty());
        assert_eq!(terminal.everything(), before, "nothing was typed, nothing was printed");
        terminal.keys(DOWN);
        terminal.say("count again");
        terminal.until("the third", |screen| screen.contains("› count again") && !screen.is_working());
    }
}

/// TERM-2: of an output that is kept in a file the pager names it.
#[test]
fn the_pager_names_the_file_of_a_long_output() {
    let stage = Stage::new(WORKER);
    let mut terminal = open(&stage, 80, 24, &["--allowedTools", "Bash"]);
    terminal.say("print much");
    terminal.rests("Finished.");
    terminal.keys(&ctrl('o'));
    terminal.until("the call", |screen| screen.contains("q closes"));
    terminal.keys("G");
    let screen = terminal.until("its end", |screen| screen.contains("1000 more lines; all of it: "));
    let text = screen.rows.join("");
    let path = text.split("all of it: ").nth(1).unwrap().split(" lines").next().unwrap().replace(' ', "");
    let path = path.split(".txt").next().unwrap();
    let path = format!("{}.txt", path.replacen('~', &stage.config().parent().unwrap().display().to_string(), 1));
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(kept.lines().count(), 3000);
    terminal.keys("q");
    terminal.until("the prompt", |screen| screen.has_prompt());
    terminal.keys(&format!("/expand{ENTER}"));
    terminal.until("the pager", |screen| screen.contains("q closes"));
}

/// TERM-1: without a screen, the same in lines; and without colours the signs say it.
#[test]
fn changes_and_output_are_seen_in_plain_lines_too() {
    let stage = Stage::new(WORKER);
    stage.write("list.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    let args = ["--permission-mode", "bypassPermissions"];
    let text = crate::stage::piped(&stage, &args, "edit it\ncount\nfail\n/expand\n");
    for row in [
        "Edit done: +2 −1",
        "    3 + two and a half",
        "Bash done: all counted",
        "  … 197 more lines (/expand)",
        "Bash failed: Exit code 3",
        "  error: it broke",
        "  line 150",
    ] {
        assert!(text.lines().any(|line| line == row), "{row:?} in {text}");
    }
    let mut terminal =
        Terminal::open(stage.cairn().args(args).env("TERM", "xterm-256color").env("NO_COLOR", "1"), 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("create it");
    terminal.rests("Finished.");
    assert!(terminal.everything().contains("    2 +     one();"));
    assert!(!String::from_utf8_lossy(&terminal.written).contains("\x1b[32m"), "no colours");
}

/// TERM-16: code in replies and in changes has the colours of its language; without colours it is the same text.
#[test]
fn code_is_coloured() {
    let script = r#"
        [[rule]]
        when = { user = "write", missing = "Created" }
        call = [{ tool = "Write", input = { file_path = "{{ project }}/new.rs", content = "fn main() { // why\n    one(\"x\", 12);\n}\n" } }]
        [[rule]]
        say = """```python
        def f(): # why
        ```
        ```
        plain def
        ```"""
    "#
    .replace("\n        ", "\n");
    for colours in [true, false] {
        let stage = Stage::new(&script);
        let mut command = stage.cairn();
        command.args(["--permission-mode", "acceptEdits"]).env("TERM", "xterm-256color");
        if !colours {
            command.env("NO_COLOR", "1");
        }
        let mut terminal = Terminal::open(&command, 40, 15);
        terminal.until("a prompt", |screen| screen.has_prompt());
        terminal.say("write it");
        let screen = terminal.rests("plain def");
        assert!(
            screen.contains("    1 + fn main() { // why") && screen.contains("  def f(): # why"),
            "{}",
            screen.text()
        );
        let written = String::from_utf8_lossy(&terminal.written).into_owned();
        for painted in ["\x1b[35mfn\x1b[0m", "\x1b[33m12", "\x1b[35mdef\x1b[0m", "\x1b[2;3m# why"] {
            assert_eq!(written.contains(painted), colours, "{painted:?}");
        }
        assert!(!written.contains("\x1b[35mdef\x1b[0m plain"), "no language, no colours");
    }
}
