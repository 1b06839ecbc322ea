//! Commands in the background: looked at, stopped, and gone with the session.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tools::{Job, JobState, Output, Scope, ToolCall, run_all, standard};
use transcript::block::Outcome;

use super::place::{Place, guard, is_running, marked};

/// How often is looked before a test gives up: ten seconds in all.
const LOOKS: usize = 1000;

fn background(command: &str) -> Value {
    json!({"command": marked(command), "run_in_background": true})
}

fn job(id: &str) -> Value {
    json!({"task_id": id})
}

fn to_its_end(id: &str) -> Value {
    json!({"task_id": id, "block": true, "timeout": 60_000})
}

/// Looks again and again until it is so.
async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to be");
}

/// Looks at a job until it has printed something, and returns what was said then.
async fn once_it_prints(place: &Place, id: &str) -> String {
    for _ in 0..LOOKS {
        let said = place.done("TaskOutput", job(id)).await;
        if !said.ends_with("Nothing new was printed.") {
            return said;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} printed nothing");
}

async fn call_in(scope: &Scope, name: &str, input: Value) -> Output {
    run_all(vec![ToolCall::new(name, input)], &standard(), scope, |_, _| {}).await.remove(0)
}

/// TOOL-1: a command in the background is looked at while it runs; each look shows what is new, and then how it ended.
#[tokio::test]
async fn a_job_is_read_as_it_prints_and_its_exit_code_told() {
    let place = Place::new();
    let waits = "while [ ! -e go ]; do sleep 0.01; done";
    let said = place.done("Bash", background(&format!("echo one; {waits}; echo two >&2; exit 3"))).await;
    assert!(said.starts_with("Running in the background as bash_1. "), "{said}");
    assert_eq!(once_it_prints(&place, "bash_1").await, "bash_1 is running.\none");
    assert_eq!(place.done("TaskOutput", job("bash_1")).await, "bash_1 is running.\nNothing new was printed.");
    let impatient = json!({"task_id": "bash_1", "block": true, "timeout": 1});
    assert_eq!(place.done("TaskOutput", impatient).await, "bash_1 is running.\nNothing new was printed.");
    place.write("go", "");
    // The names of fields that models remember are understood.
    let output = place.call("TaskOutput", json!({"bash_id": "bash_1", "block": true})).await;
    assert_eq!(output.text(), "bash_1 ended with exit code 3.\ntwo");
    assert_eq!((output.outcome, &*output.summary), (Outcome::Done, "bash_1 ended with exit code 3, 1 new line"));
    let said = place.done("TaskOutput", job("bash_1")).await;
    assert_eq!(said, "bash_1 ended with exit code 3.\nNothing new was printed.");
    let said = place.done("TaskStop", json!({"shell_id": "bash_1"})).await;
    assert_eq!(said, "bash_1 had already ended.");
}

#[tokio::test]
async fn a_job_starts_in_the_working_directory_and_does_not_move_it() {
    let place = Place::new();
    std::fs::create_dir(place.path("sub")).unwrap();
    place.done("Bash", json!({"command": "cd sub"})).await;
    place.done("Bash", background("pwd; cd /; cat; kill -9 $$")).await;
    let said = place.done("TaskOutput", to_its_end("bash_1")).await;
    assert_eq!(said, format!("bash_1 ended with exit code 137.\n{}", place.path("sub").display()));
    assert_eq!(place.scope.directory(), place.path("sub"));
}

#[tokio::test]
async fn stopping_a_job_stops_all_it_started() {
    let place = Place::new();
    place.done("Bash", background("(sleep 2000.001; true) & echo started; sleep 2000.001")).await;
    assert_eq!(once_it_prints(&place, "bash_1").await, "bash_1 is running.\nstarted");
    until(|| is_running("2000.001")).await;
    assert!(place.done("TaskStop", job("bash_1")).await.starts_with("Stopped bash_1: (sleep"));
    assert!(!is_running("2000.001"));
    assert!(place.done("TaskOutput", job("bash_1")).await.starts_with("bash_1 was stopped.\n"));
    // Also one who does not listen; what it says to the last is still there.
    place.done("Bash", background("trap 'echo no' TERM; echo up; while true; do sleep 2000.002; done")).await;
    once_it_prints(&place, "bash_2").await;
    place.done("TaskStop", job("bash_2")).await;
    assert!(!is_running("2000.002"));
    let said = place.done("TaskOutput", job("bash_2")).await;
    assert!(said.starts_with("bash_2 was stopped.\n") && said.contains("no"), "{said}");
}

#[tokio::test]
async fn what_a_job_leaves_behind_ends_with_it() {
    let place = Place::new();
    place.done("Bash", background("sleep 2000.003 & echo done")).await;
    let said = place.done("TaskOutput", to_its_end("bash_1")).await;
    let note = "[processes that were still running in the background were stopped]";
    assert_eq!(said, format!("bash_1 ended with exit code 0.\ndone\n{note}"));
    assert!(!is_running("2000.003"));
}

#[tokio::test]
async fn a_job_ends_when_its_time_is_over_and_not_before() {
    let place = Place::new();
    let mut limited = background("echo up; sleep 2000.004");
    limited["timeout"] = json!(300);
    place.done("Bash", limited).await;
    place.done("Bash", background("while [ ! -e go ]; do sleep 0.01; done")).await;
    assert_eq!(place.done("TaskOutput", to_its_end("bash_1")).await, "bash_1 timed out and was stopped.\nup");
    assert!(!is_running("2000.004"));
    assert_eq!(place.scope.jobs().list()[1].state, JobState::Running, "without a limit it takes the time it needs");
}

#[tokio::test]
async fn a_job_that_prints_without_a_reader_costs_a_megabyte() {
    let place = Place::new();
    place.done("Bash", background("echo begin; yes | head -c 50000000; echo end")).await;
    let said = place.done("TaskOutput", to_its_end("bash_1")).await;
    let note = format!("bash_1 ended with exit code 0.\n[… {} bytes left out …]\n", 50_000_010 - 1024 * 1024);
    assert!(said.starts_with(&note), "{said:.200}");
    assert!(said.ends_with("y\nend") && said.len() < 1024 * 1024 + 200, "{}", said.len());
}

#[tokio::test]
async fn a_filter_shows_lines_that_match_and_says_how_many_do_not() {
    let place = Place::new();
    let waits = "while [ ! -e go ]; do sleep 0.01; done";
    place
        .done("Bash", background(&format!("printf 'ok 1\\nerror 2\\nok 3\\nerr'; touch up; {waits}; echo or 4")))
        .await;
    until(|| place.path("up").exists()).await;
    let errors = |block: bool| json!({"task_id": "bash_1", "filter": "^err(or)? \\d", "block": block});
    let said = place.failed("TaskOutput", json!({"task_id": "bash_1", "filter": "("})).await;
    assert!(said.starts_with("`filter`: ") && said.contains("unclosed group"), "{said}");
    // The file may be there a moment before the output is.
    let mut said = place.done("TaskOutput", errors(false)).await;
    for _ in 0..LOOKS {
        if said.contains("error") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        said = place.done("TaskOutput", errors(false)).await;
    }
    assert_eq!(said, "bash_1 is running.\nerror 2\n[2 new lines left out by the filter]");
    // A line is judged when it is whole.
    place.write("go", "");
    assert_eq!(place.done("TaskOutput", errors(true)).await, "bash_1 ended with exit code 0.\nerror 4");
    let said = place.done("TaskOutput", errors(true)).await;
    assert_eq!(said, "bash_1 ended with exit code 0.\nNothing new was printed.");
}

#[tokio::test]
async fn an_unknown_id_is_answered_with_those_there_are() {
    let place = Place::new();
    let said = place.failed("TaskOutput", job("bash_1")).await;
    assert_eq!(said, "There is no command bash_1 in the background. There are none.");
    place.done("Bash", background("true")).await;
    place.done("Bash", background("true")).await;
    for tool in ["TaskOutput", "TaskStop"] {
        let said = place.failed(tool, job("3")).await;
        assert_eq!(said, "There is no command 3 in the background. There are: bash_1, bash_2.");
    }
    assert!(place.failed("Bash", background("a\0b")).await.contains("could not be started"));
    assert_eq!(place.scope.jobs().list().len(), 2, "what was not started is not listed");
}

#[tokio::test]
async fn sixteen_jobs_run_at_the_same_time_and_no_more() {
    let place = Place::new();
    for _ in 0..16 {
        place.done("Bash", background("sleep 2000.005")).await;
    }
    let said = place.failed("Bash", background("sleep 2000.005")).await;
    assert!(said.starts_with("16 commands are running in the background already"), "{said}");
    assert!(said.contains("bash_1, bash_2") && said.contains("TaskStop"), "{said}");
    place.done("TaskStop", job("bash_4")).await;
    place.done("Bash", background("sleep 2000.005")).await;
    let ids: Vec<String> = place.scope.jobs().list().into_iter().map(|job| job.id).collect();
    assert_eq!((ids.len(), &*ids[16]), (17, "bash_17"), "a number is not given twice");
}

#[tokio::test]
async fn jobs_that_ended_long_ago_are_forgotten() {
    let place = Place::new();
    place.done("Bash", background("sleep 2000.006")).await;
    for number in 2..=34 {
        place.done("Bash", background("true")).await;
        place.done("TaskOutput", to_its_end(&format!("bash_{number}"))).await;
    }
    assert_eq!(place.scope.jobs().list().len(), 34);
    place.done("Bash", background("true")).await;
    let ids: Vec<String> = place.scope.jobs().list().into_iter().map(|job| job.id).collect();
    assert_eq!((ids.len(), &*ids[0], &*ids[1]), (34, "bash_1", "bash_3"), "one that runs is not");
}

/// BUDGET-3: no process outlives the session, and neither does what watches it.
#[tokio::test]
async fn stopping_all_jobs_leaves_no_process_and_no_task() {
    let place = Place::new();
    place.done("Bash", background("echo up; sleep 2000.007")).await;
    place.done("Bash", background("trap '' TERM; echo up; sleep 2000.007; sleep 2000.007")).await;
    place.done("Bash", background("exit 5")).await;
    // One who leaves the group on purpose is ended too.
    place.done("Bash", background("setsid sleep 2000.008 & echo up")).await;
    for id in ["bash_1", "bash_2", "bash_4"] {
        once_it_prints(&place, id).await;
    }
    place.done("TaskOutput", to_its_end("bash_3")).await;
    place.done("TaskOutput", to_its_end("bash_4")).await;
    place.scope.jobs().stop_all().await;
    assert!(!is_running("2000.007") && !is_running("2000.008"));
    let states: Vec<JobState> = place.scope.jobs().list().iter().map(|job| job.state).collect();
    let exited = |code| JobState::Exited { code: Some(code) };
    assert_eq!(states, [JobState::Stopped, JobState::Stopped, exited(5), exited(0)]);
    until(|| tokio::runtime::Handle::current().metrics().num_alive_tasks() == 0).await;
}

/// BUDGET-3: a session that is dropped without a word leaves no process either.
#[tokio::test]
async fn dropping_the_last_handle_of_a_scope_kills_its_jobs() {
    let place = Place::new();
    let scope = Scope::new(&place.root, place.scope.temporary()).with_guard(guard());
    let clone = scope.clone().with_home(PathBuf::from("/")).with_cancel(tokio_util::sync::CancellationToken::new());
    call_in(&scope, "Bash", background("trap '' TERM; (sleep 2000.009; true) & sleep 2000.009")).await;
    until(|| is_running("2000.009")).await;
    drop(scope);
    let list = clone.jobs().list();
    assert!(matches!(&list[..], [Job { id, state: JobState::Running, .. }] if id == "bash_1"), "{list:?}");
    drop(clone);
    until(|| !is_running("2000.009")).await;
    until(|| tokio::runtime::Handle::current().metrics().num_alive_tasks() == 0).await;
}

/// BUDGET-3: nor does one whose runtime ends first.
#[test]
fn the_end_of_the_runtime_kills_the_jobs() {
    let place = Place::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        place.done("Bash", background("sleep 2001.001")).await;
        until(|| is_running("2001.001")).await;
    });
    drop(runtime);
    let looking = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    looking.block_on(until(|| !is_running("2001.001")));
}

#[tokio::test]
async fn cancelling_a_turn_ends_the_waiting_and_not_the_job() {
    let place = Place::new();
    let turn = tokio_util::sync::CancellationToken::new();
    let scope = place.scope.clone().with_cancel(turn.clone());
    call_in(&scope, "Bash", background("while [ ! -e go ]; do sleep 0.01; done; echo went on")).await;
    let waiting = call_in(&scope, "TaskOutput", to_its_end("bash_1"));
    let (output, ()) = futures_util::join!(waiting, async { turn.cancel() });
    assert_eq!(output.text(), "bash_1 is running.\nNothing new was printed.");
    place.write("go", "");
    let said = place.done("TaskOutput", to_its_end("bash_1")).await;
    assert_eq!(said, "bash_1 ended with exit code 0.\nwent on");
}

#[tokio::test]
async fn a_fork_has_jobs_of_its_own_under_other_names() {
    let place = Place::new();
    place.done("Bash", background("sleep 2001.002")).await;
    let fork = place.scope.fork();
    let said = call_in(&fork, "TaskStop", job("bash_1")).await.text();
    assert_eq!(said, "There is no command bash_1 in the background. There are none.");
    assert!(call_in(&fork, "Bash", background("sleep 2001.003")).await.text().contains("as bash_2."));
    until(|| is_running("2001.003")).await;
    drop(fork);
    until(|| !is_running("2001.003")).await;
    assert_eq!(place.scope.jobs().list().len(), 1);
    assert_eq!(place.scope.jobs().list()[0].state, JobState::Running);
}
