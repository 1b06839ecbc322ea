//! Plans and tasks in the terminal.

use crate::stage::{Stage, run};
use crate::terminal::Terminal;

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

/// PLAN-1: what is to be done stands above the prompt; nothing was asked.
#[test]
fn tasks_stand_above_the_prompt() {
    let stage = Stage::new(PLANNER);
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm-256color"), 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("list");
    terminal.rests("It is on the list.");
    terminal.until("tasks", |screen| {
        let text = screen.text();
        text.contains("▶ mending the roof") && text.contains("☐ paint the door")
    });
    terminal.leave();
}

/// PLAN-1: none of it is offered where nobody can be asked.
#[test]
fn headless_there_are_no_plans() {
    let stage = Stage::new(PLANNER);
    assert_eq!(run(stage.cairn().args(["-p", "begin"])).stdout, "Well.\n");
    let offered = stage.simulator.requests().pop().unwrap()["tools"].to_string();
    assert!(!offered.contains("PlanMode") && !offered.contains("TaskCreate"), "{offered}");
}
