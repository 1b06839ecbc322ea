//! Plans and tasks in the terminal.

use insta::assert_snapshot;

use crate::stage::{Stage, piped, run};
use crate::terminal::{DOWN, ENTER, ESC, SIZES, Terminal, ctrl};

const PLANNER: &str = r##"
    [[rule]]
    when = { user = "begin", tool = "ExitPlanMode", result = "approved" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/made.txt", content = "x" } }]
    [[rule]]
    when = { user = "begin", tool = "ExitPlanMode" }
    say = "It was not approved."
    [[rule]]
    when = { user = "begin", tool = "Write" }
    say = "It is carried out."
    [[rule]]
    when = { user = "begin", offered = "ExitPlanMode" }
    call = [{ tool = "ExitPlanMode", input = { plan = "# Steps\n1. write the file" } }]
    [[rule]]
    when = { user = "list", tool = "TaskUpdate" }
    say = "It is on the list."
    [[rule]]
    when = { user = "list", tool = "TaskCreate" }
    call = [{ tool = "TaskUpdate", input = { taskId = "1", status = "in_progress" } }]
    [[rule]]
    when = { user = "list", offered = "TaskCreate" }
    call = [
        { tool = "TaskCreate", input = { subject = "mend the roof", description = "tiles", activeForm = "mending the roof" } },
        { tool = "TaskCreate", input = { subject = "paint the door", description = "blue" } },
    ]
    [[rule]]
    when = { user = "ask", tool = "AskUserQuestion", result = "(?s)The user answers:(?P<said>.*)" }
    say = "I heard: {{ said }}"
    [[rule]]
    when = { user = "ask", tool = "AskUserQuestion" }
    say = "Nobody answered."
    [[rule]]
    when = { user = "ask", offered = "AskUserQuestion" }
    call = [{ tool = "AskUserQuestion", input = { answers = { "Which colour?" = "black" }, questions = [
        { question = "Which colour?", header = "Colour", multiSelect = false, options = [
            { label = "red", description = "like the old one" }, { label = "blue", description = "colder" } ] },
        { question = "Which rooms?", header = "Rooms", multiSelect = true, options = [
            { label = "hall", description = "" }, { label = "kitchen", description = "" } ] },
    ] } }]
    [[rule]]
    say = "Well."
"##;

/// PLAN-1: a plan is shown whole and approved of; then it is carried out, in the mode that was chosen with it.
#[test]
fn a_plan_is_approved_and_carried_out() {
    let stage = Stage::new(PLANNER);
    let args = ["--permission-mode", "plan"];
    let mut terminal = Terminal::open(stage.cairn().args(args).env("TERM", "xterm-256color"), 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("begin");
    terminal.until("the plan", |screen| screen.text().contains("1. write the file"));
    terminal.keys("a");
    terminal.rests("It is carried out.");
    assert!(stage.project().join("made.txt").exists());
    terminal.leave();
}

/// TERM-14: a plan is rendered, and its answers are those of a plan: the third goes on planning, with a word on why.
#[test]
fn a_plan_is_rendered_and_can_be_kept_planning() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(PLANNER);
        let args = ["--permission-mode", "plan"];
        let mut terminal = Terminal::open(stage.cairn().args(args).env("TERM", "xterm-256color"), columns, lines);
        terminal.until("a prompt", |screen| screen.has_prompt());
        terminal.say("begin");
        let screen = terminal.shows("keep planning");
        assert!(screen.contains("1 approve (y)") && screen.contains("2 approve, and accept edits (a)"));
        let all = terminal.everything();
        assert!(all.contains("The model proposes this plan:\n\n  Steps\n  ━━━━━\n  1. write the file\n"), "{all}");
        assert!(!all.contains("ExitPlanMode") && !all.contains("# Steps"), "{all}");
        terminal.keys(&format!("nmore tests{ENTER}"));
        terminal.rests("It was not approved.");
        let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
        assert!(sent.contains("more tests"), "{sent}");
        assert!(terminal.screen().rows.iter().any(|row| row.starts_with("plan · ")), "it is planning still");
        terminal.leave();
    }
}

/// PLAN-1: what is to be done stands above the prompt; nothing was asked.
#[test]
fn tasks_stand_above_the_prompt() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(PLANNER);
        let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm-256color"), columns, lines);
        terminal.until("a prompt", |screen| screen.has_prompt());
        terminal.say("list");
        terminal.rests("It is on the list.");
        terminal.until("tasks", |screen| {
            let text = screen.text();
            text.contains("▶ mending the roof") && text.contains("☐ paint the door")
        });
        terminal.keys(&ctrl('t'));
        terminal.until("no tasks", |screen| !screen.contains("☐ paint the door"));
        terminal.keys(&ctrl('t'));
        terminal.shows("☐ paint the door");
        terminal.leave();
    }
}

/// PLAN-1: the model asks, with answers to choose from: by an arrow, several ticked, with words of one's own. What the
/// model wrote as an answer itself is none. In no mode is it spared.
#[test]
fn the_model_asks_and_is_answered() {
    let stage = Stage::new(PLANNER);
    let args = ["--dangerously-skip-permissions"];
    let mut terminal = Terminal::open(stage.cairn().args(args).env("TERM", "xterm-256color"), 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("ask");
    terminal.shows("1 of 2 · Which colour?");
    assert_snapshot!(terminal.everything());
    terminal.keys(DOWN);
    terminal.keys(ENTER);
    terminal.shows("2 of 2 · Which rooms?");
    terminal.keys("1");
    terminal.shows("[x] hall");
    terminal.keys("3");
    terminal.shows("your words:");
    terminal.keys("attic");
    terminal.keys(ENTER);
    terminal.rests("I heard:");
    let said = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(said.contains("Which colour?\\n→ blue\\nWhich rooms?\\n→ hall, attic"), "{said}");
    assert_snapshot!(terminal.everything());
    terminal.leave();
}

/// PLAN-1: Esc answers nothing and stops the turn; the session goes on.
#[test]
fn a_question_can_be_left_unanswered() {
    let stage = Stage::new(PLANNER);
    let mut terminal = Terminal::start(&stage);
    terminal.say("ask");
    terminal.shows("Which colour?");
    terminal.keys(ESC);
    terminal.rests("stopped");
    terminal.say("hello");
    terminal.rests("Well.");
    terminal.leave();
}

/// PLAN-1: in plain lines a number or words answer, and an empty line answers nothing.
#[test]
fn in_plain_lines_questions_are_numbered() {
    let stage = Stage::new(PLANNER);
    let shown = piped(&stage, &[], "ask\n2\nhall and attic\nask\n\n\n");
    assert!(
        shown.contains("The model asks: Which colour?\n  1. red — like the old one\n  2. blue — colder\n"),
        "{shown}"
    );
    assert!(shown.contains("→ blue") && shown.contains("→ hall and attic"), "{shown}");
    assert!(shown.contains("Nobody answered."), "{shown}");
}

/// PLAN-1: `/tasks` shows the whole list; the plan that was approved is there again after a compaction.
#[test]
fn tasks_are_listed_and_the_plan_outlives_a_compaction() {
    let stage = Stage::new(PLANNER);
    let shown = piped(&stage, &[], "/tasks\nlist\n/tasks\n");
    assert!(shown.contains("there are no tasks"), "{shown}");
    assert!(shown.contains("▶ mending the roof") && shown.contains("☐ paint the door"), "{shown}");

    let stage = Stage::new(PLANNER);
    let shown = piped(&stage, &["--permission-mode", "plan"], "begin\ny\ny\n/compact\nso?\n");
    assert!(shown.contains("It is carried out."), "{shown}");
    let sent = stage.last_said()["messages"].to_string();
    assert!(sent.contains("The plan that the user has approved") && sent.contains("1. write the file"), "{sent}");
}

/// PLAN-1: none of it is offered where nobody can be asked.
#[test]
fn headless_there_are_no_plans() {
    let stage = Stage::new(PLANNER);
    assert_eq!(run(stage.cairn().args(["-p", "begin"])).stdout, "Well.\n");
    let offered = stage.simulator.requests().pop().unwrap()["tools"].to_string();
    assert!(!offered.contains("PlanMode") && !offered.contains("TaskCreate"), "{offered}");
    assert!(!offered.contains("AskUserQuestion"), "{offered}");
}
