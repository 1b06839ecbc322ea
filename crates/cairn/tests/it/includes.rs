//! Instruction files that come into view while a session runs, and would bring in files from outside the project.

use std::path::PathBuf;

use crate::stage::{Stage, piped, run};
use crate::terminal::Terminal;

/// A model that looks at a file, and says what else it was shown.
const LOOKER: &str = r#"
    [[rule]]
    name = "both"
    when = { visible = ["OUTSIDE-ONE", "OUTSIDE-TWO"] }
    say = "I see both."
    [[rule]]
    name = "one"
    when = { visible = "OUTSIDE-ONE" }
    say = "I see one."
    [[rule]]
    name = "none"
    when = { visible = "note text" }
    say = "I see the note alone."
    [[rule]]
    name = "look"
    call = [{ tool = "Read", input = { file_path = "{{ project }}/sub/note.txt" } }]
"#;

/// A project where a nested file and a rule for some files ask for what lies outside, in turn.
struct House {
    stage: Stage,
    outside: PathBuf,
}

impl House {
    fn new(what: What) -> Self {
        let stage = Stage::new(LOOKER);
        let outside = std::fs::canonicalize(stage.project().parent().unwrap()).unwrap().join("outside");
        for folder in ["sub", ".claude/rules"] {
            std::fs::create_dir_all(stage.project().join(folder)).unwrap();
        }
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("one.md"), "OUTSIDE-ONE\n\n@two.md\n").unwrap();
        std::fs::write(outside.join("two.md"), "OUTSIDE-TWO\n").unwrap();
        stage.write("sub/note.txt", "note text\n");
        let include = format!("@{}/one.md\n", outside.display());
        match what {
            What::Nested => stage.write("sub/CLAUDE.md", &format!("Nested.\n\n{include}")),
            What::Rule => stage.write(".claude/rules/notes.md", &format!("---\npaths: ['**/*.txt']\n---\n{include}")),
            What::LinkedRule => {
                std::fs::write(outside.join("rule.md"), "---\npaths: ['**/*.txt']\n---\nOUTSIDE-ONE\n").unwrap();
                std::fs::create_dir_all(stage.project().join("sub/.claude/rules")).unwrap();
                let link = stage.project().join("sub/.claude/rules/linked.md");
                std::os::unix::fs::symlink(outside.join("rule.md"), &link).unwrap();
                link
            }
        };
        Self { stage, outside }
    }

    /// Nothing of what lies outside was ever sent.
    fn is_kept(&self) {
        let sent = format!("{:?}", self.stage.simulator.requests());
        assert!(!sent.contains("OUTSIDE-"), "{sent}");
    }
}

#[derive(Debug, Clone, Copy)]
enum What {
    Nested,
    Rule,
    LinkedRule,
}

/// TRUST-4: what a nested file or a rule for some files brings in from outside is asked about when it comes into view, each
/// file by itself, before anything of it is sent. The yes is kept.
#[test]
fn an_include_from_outside_is_asked_about_when_it_comes_into_view() {
    for what in [What::Nested, What::Rule] {
        let house = House::new(what);
        let mut terminal = Terminal::start(&house.stage);
        terminal.say("look");
        let asked = terminal.until("a question", |screen| screen.contains("yes, now and later")).text();
        assert!(asked.contains("wants to include") && asked.contains("one.md"), "{what:?}: {asked}");
        assert!(asked.contains("it would become instructions for the model"), "{what:?}: {asked}");
        house.is_kept();
        terminal.keys("y");
        terminal
            .until("the next question", |screen| screen.contains("two.md") && screen.contains("yes, now and later"));
        house.is_kept();
        terminal.keys("y");
        terminal.rests("I see both.");
        terminal.leave();
        let ran = run(house.stage.cairn().args(["-p", "look"]));
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("I see both.\n", ""), "{what:?}");
        let listed = run(house.stage.cairn().args(["trust", "list"])).stdout;
        assert!(listed.contains(&format!("include: {}/two.md", house.outside.display())), "{listed}");
    }
}

/// TRUST-4: a rule that is a link to a file outside is asked about as well, and then is a rule like any other.
#[test]
fn a_rule_that_is_a_link_is_asked_about() {
    let house = House::new(What::LinkedRule);
    let mut terminal = Terminal::start(&house.stage);
    terminal.say("look");
    terminal.until("a question", |screen| screen.contains("rule.md") && screen.contains("yes, now and later"));
    house.is_kept();
    terminal.keys("y");
    terminal.rests("I see one.");
    terminal.leave();
}

/// TRUST-4: a no is kept too, is not asked again, and nothing of the file is sent, whatever the mode.
#[test]
fn an_include_that_was_declined_is_not_asked_about_again() {
    let house = House::new(What::Nested);
    let mut terminal = Terminal::start_with(&house.stage, &["--dangerously-skip-permissions"]);
    terminal.say("look");
    terminal.until("a question", |screen| screen.contains("yes, now and later"));
    terminal.keys("n");
    terminal.rests("I see the note alone.");
    assert!(terminal.everything().contains("outside the project, skipped"));
    terminal.leave();
    let mut terminal = Terminal::start(&house.stage);
    terminal.say("look");
    terminal.rests("I see the note alone.");
    terminal.leave();
    house.is_kept();
    let listed = run(house.stage.cairn().args(["trust", "list"])).stdout;
    assert!(listed.contains("one.md (declined)"), "{listed}");
}

/// TRUST-4: in plain lines an include is asked about as what it is, with the file, and the answer is kept.
#[test]
fn plain_lines_ask_about_an_include() {
    let house = House::new(What::Nested);
    let printed = piped(&house.stage, &[], "look\ny\ny\n");
    let file = house.outside.join("one.md");
    let asked = format!(
        "sub/CLAUDE.md wants to include a file from outside the project, as instructions for the model:\n  {}\n\
         Allow it from now on? Your answer is remembered. y or n: ",
        file.display()
    );
    assert!(printed.contains(&asked), "{printed}");
    assert!(printed.contains("I see both.") && !printed.contains("wants to run"), "{printed}");
}

/// INSTR-4: a session says that an instruction file is long: once, on the screen, and on stderr of a run without one.
#[test]
fn a_long_instruction_file_is_told_of_once() {
    let stage = Stage::new("[[rule]]\nsay = \"Yes.\"");
    stage.write("CLAUDE.md", &"Use tabs. ".repeat(4_500));
    let long = "CLAUDE.md: has 44999 characters (over 40000)";
    let ran = run(stage.cairn().args(["-p", "hello"]));
    assert_eq!((ran.stdout.as_str(), ran.stderr.matches(long).count()), ("Yes.\n", 1), "{ran:?}");
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm-256color"), 200, 40);
    terminal.until("a prompt", |screen| screen.has_prompt());
    for words in ["hello", "again"] {
        terminal.say(words);
        terminal.rests("Yes.");
    }
    let all = terminal.everything();
    assert_eq!(all.matches(long).count(), 1, "{all}");
}

/// TRUST-4: a turn that is stopped at the question has no answer: nothing is sent, and it is asked another time.
#[test]
fn a_turn_that_is_stopped_is_no_answer() {
    let house = House::new(What::Nested);
    for _ in 0..2 {
        let mut terminal = Terminal::start(&house.stage);
        terminal.say("look");
        terminal.until("a question", |screen| screen.contains("yes, now and later"));
        terminal.keys("\x1b");
        terminal.until("a prompt", |screen| !screen.contains("yes, now and later") && screen.has_prompt());
        terminal.leave();
    }
    house.is_kept();
}

/// TRUST-4: headless nobody can be asked: it is refused with a note, with `--trust` too, and no answer is kept.
#[test]
fn an_include_from_outside_is_refused_headless() {
    for args in [&["-p", "look"][..], &["-p", "look", "--trust"]] {
        for what in [What::Nested, What::Rule, What::LinkedRule] {
            let house = House::new(what);
            let ran = run(house.stage.cairn().args(args));
            assert_eq!(ran.stdout, "I see the note alone.\n", "{what:?}");
            assert!(ran.stderr.contains("outside the project, skipped"), "{what:?}: {ran:?}");
            house.is_kept();
            assert_eq!(run(house.stage.cairn().args(["trust", "list"])).stdout, "");
        }
    }
}
