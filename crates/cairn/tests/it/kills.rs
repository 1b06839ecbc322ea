use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::stage::{Stage, run};

/// A model that counts with a tool, and stops when it is told to.
const COUNTER: &str = r#"
    [[rule]]
    name = "stop"
    when = { user = "stop" }
    say = "Stopped."
    [[rule]]
    name = "count on"
    when = { visible = "(?s).*step (?P<n>\\d+) done" }
    say = "On to {{ n|int + 1 }}."
    call = [
        { tool = "Bash", input = { command = "echo step {{ n|int + 1 }} done" } },
        { tool = "Bash", input = { command = "echo beside" } },
    ]
    [[rule]]
    name = "begin"
    call = [{ tool = "Bash", input = { command = "echo step 1 done" } }]
"#;

const KILLS: u64 = 20;

/// LOG-7, LOG-10: killed at any point, a session has lost no line that was acknowledged (a line is printed after it was
/// written), and goes on with a history the API accepts.
#[test]
fn a_killed_session_has_lost_nothing_and_resumes() {
    for seed in 1..=KILLS {
        let stage = Stage::new(COUNTER);
        let mut child = stage
            .cairn()
            .args(["-p", "count", "--output-format", "stream-json", "--allowedTools", "Bash(echo *)"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // A different point each time: after so many lines, and then somewhere in what follows.
        let wanted = 1 + (seed * 2_654_435_761) % 17;
        let mut acknowledged: Vec<Value> = Vec::new();
        for line in lines.by_ref().take(wanted as usize) {
            acknowledged.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        child.kill().unwrap();
        acknowledged.extend(lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()));
        child.wait().unwrap();

        let file = stage.session_files().remove(0);
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        let kept: HashSet<String> = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .map(|line| line["message"]["content"].to_string())
            .collect();
        for line in acknowledged.iter().filter(|line| line["message"].is_object()) {
            assert!(kept.contains(&line["message"]["content"].to_string()), "kill {seed} lost {line}");
        }
        let ran = run(stage.cairn().args(["-p", "stop", "--continue"]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Stopped.\n"), "kill {seed}: {}", ran.stderr);
        assert_eq!(stage.simulator.report().totals.refused, 0, "kill {seed}");
    }
}

/// A model that starts a daemon, a job and a command, all of which refuse to end.
const STUBBORN: &str = r#"
    [[rule]]
    name = "the command"
    when = { visible = "as bash_1" }
    call = [{ tool = "Bash", input = { command = "trap '' TERM HUP; touch started; sleep {{ vars.mark }}; sleep {{ vars.mark }}" } }]
    [[rule]]
    name = "the job"
    call = [{ tool = "Bash", input = { command = "trap '' TERM HUP; (setsid sleep {{ vars.mark }} &) ; sleep {{ vars.mark }}; true", run_in_background = true } }]
"#;

/// BUDGET-3, TOOL-1: killed without warning, a session leaves no process behind, also none that left it on purpose.
#[test]
fn a_killed_session_leaves_no_process() {
    let mark = format!("3000.{}01", std::process::id());
    let stage = Stage::new(&STUBBORN.replace("{{ vars.mark }}", &mark));
    let mut child = stage.cairn().args(["-p", "go", "--allowedTools", "Bash"]).stdout(Stdio::null()).spawn().unwrap();
    until("the command runs", || stage.project().join("started").exists() && running(&mark).len() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    until("all are gone", || running(&mark).is_empty());
}

/// Looks until it is so, for ten seconds at most.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("not within ten seconds: {what}");
}

/// The processes that sleep for as long as marked, and those that wait for them.
fn running(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.map(|process| std::fs::read(process.path().join("cmdline")).unwrap_or_default());
    commands.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).filter(|line| line.contains(mark)).collect()
}
