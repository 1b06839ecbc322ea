//! Bash: bounded output, no process left, the directory kept.

use serde_json::{Value, json};
use tools::Environment;
use transcript::block::Outcome;

use super::place::{Place, is_running, marked};

fn command(command: &str) -> Value {
    json!({"command": marked(command)})
}

fn limited(command: &str, timeout: u64) -> Value {
    json!({"command": marked(command), "timeout": timeout})
}

#[tokio::test]
async fn both_outputs_come_in_order_and_the_exit_code_first() {
    let place = Place::new();
    assert_eq!(place.done("Bash", command("echo 1; echo 2 >&2; echo 3")).await, "1\n2\n3");
    assert_eq!(place.failed("Bash", command("echo no; exit 3")).await, "Exit code 3\nno");
    assert_eq!(place.failed("Bash", command("exit 4")).await, "Exit code 4");
    assert_eq!(place.failed("Bash", command("kill -9 $$")).await, "Exit code 137 (ended by signal 9)");
    assert_eq!(place.done("Bash", command("true")).await, "The command succeeded and printed nothing.");
    assert!(place.failed("Bash", command("if")).await.starts_with("Exit code 2\nbash: "));
    assert_eq!(place.done("Bash", command("printf 'caf\\351'")).await, "caf\u{fffd}");
    assert!(place.failed("Bash", command("a\0b")).await.contains("could not be started"));
    assert_eq!(place.done("Bash", command("cat; echo $?")).await, "0", "there is no input");
    let output = place.call("Bash", command("echo first; echo second")).await;
    assert_eq!(output.summary, "second", "the last line is where commands sum up");
}

#[tokio::test]
async fn the_directory_is_kept_and_variables_are_not() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("it's a dir")).unwrap();
    place.done("Bash", command("cd \"it's a dir\"; X=1; set -o noclobber")).await;
    let said = place.done("Bash", command("pwd; echo [$X]")).await;
    assert_eq!(said, format!("{}\n[]", place.path("it's a dir").display()));
    // Relative paths of the other tools follow.
    place.done("Write", json!({"file_path": "x", "content": "1"})).await;
    assert!(place.path("it's a dir/x").exists());
    // Also when the command fails, and not from a subshell.
    place.failed("Bash", command("cd ..; false")).await;
    place.done("Bash", command("(cd /)")).await;
    assert_eq!(place.scope.directory(), place.root);
    place.done("Bash", command("mkdir gone && cd gone && rmdir ../gone")).await;
    place.done("Bash", command("mkdir gone && cd gone")).await;
    std::fs::remove_dir(place.path("gone")).unwrap();
    let said = place.done("Bash", command("pwd")).await;
    assert!(said.starts_with(&format!("{}\n[", place.root.display())) && said.contains("no longer exists"), "{said}");
    assert!(std::fs::read_dir(place.scope.temporary()).unwrap().next().is_none(), "nothing is left behind");
}

#[tokio::test]
async fn a_gigabyte_of_output_costs_two_megabytes() {
    let place = Place::new();
    let text = place.done("Bash", command("echo begin; yes | head -c 1000000000; echo end")).await;
    assert!(text.len() < 2 * 1024 * 1024 + 100, "{}", text.len());
    assert!(text.starts_with("begin\ny\n") && text.ends_with("y\nend"));
    assert!(text.contains(&format!("[… {} bytes left out …]", 1_000_000_010 - 2 * 1024 * 1024)));
}

#[tokio::test]
async fn a_command_that_does_not_end_is_ended_with_all_it_started() {
    let place = Place::new();
    let said = place.failed("Bash", limited("echo started; sleep 1000.001 & sleep 1000.001", 300)).await;
    assert_eq!(said, "Timed out after 300 ms and was stopped\nstarted");
    assert!(!is_running("1000.001"));
    // One that prints without end is not saved by it.
    assert!(place.failed("Bash", limited("yes 1000.002", 300)).await.starts_with("Timed out"));
    assert!(!is_running("1000.002"));
}

#[tokio::test]
async fn one_who_ignores_the_request_to_end_is_killed() {
    let place = Place::new();
    let stubborn = "trap '' TERM; (sleep 1000.003; sleep 1000.003) & sleep 1000.003; sleep 1000.003";
    assert!(place.failed("Bash", limited(stubborn, 300)).await.starts_with("Timed out"));
    assert!(!is_running("1000.003"));
    let forked = "((sleep 1000.004 &) &) ; sleep 1000.004";
    assert!(place.failed("Bash", limited(forked, 300)).await.starts_with("Timed out"));
    assert!(!is_running("1000.004"));
}

#[tokio::test]
async fn a_child_in_the_background_neither_hangs_the_call_nor_outlives_it() {
    let place = Place::new();
    let said = place.done("Bash", command("sleep 1000.005 & echo done")).await;
    assert_eq!(said, "done\n[processes that were still running in the background were stopped]");
    assert!(!is_running("1000.005"));
    // Not even one that has let go of the pipe.
    place.done("Bash", command("sleep 1000.006 >/dev/null 2>&1 & echo done")).await;
    assert!(!is_running("1000.006"));
    // What is written in passing is still read.
    assert_eq!(place.done("Bash", command("echo through > >(sleep 0.1; cat)")).await, "through");
}

#[tokio::test]
async fn without_a_guard_one_who_leaves_the_group_runs_on_but_does_not_hang_the_call() {
    let place = Place::unguarded();
    let said = place.done("Bash", command("setsid sleep 3.007 & echo done")).await;
    assert_eq!(said, "done");
    assert!(is_running("3.007"));
}

#[tokio::test]
async fn without_a_guard_the_group_is_ended_with_the_shell() {
    let place = Place::unguarded();
    let said = place.done("Bash", command("sleep 1000.011 & echo done")).await;
    assert_eq!(said, "done\n[processes that were still running in the background were stopped]");
    let stubborn = "trap '' TERM; (sleep 1000.011; sleep 1000.011) & sleep 1000.011; sleep 1000.011";
    assert!(place.failed("Bash", limited(stubborn, 300)).await.starts_with("Timed out"));
    assert!(!is_running("1000.011"));
    assert_eq!(place.failed("Bash", command("kill -9 $$")).await, "Exit code 137 (ended by signal 9)");
    assert!(place.failed("Bash", command("a\0b")).await.contains("could not be started"));
}

#[tokio::test]
async fn cancelling_ends_the_command_and_keeps_what_it_said() {
    let place = Place::new();
    let cancel = place.scope.cancel().clone();
    let watched = place.path("started");
    let stop = async {
        while !watched.exists() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let call = place.call("Bash", command("echo so far; touch started; sleep 1000.008"));
    let (output, ()) = futures_util::join!(call, stop);
    assert_eq!(output.text(), "cancelled by the user\nso far");
    assert_eq!(output.outcome, Outcome::Failed);
    assert!(!is_running("1000.008"));
}

#[tokio::test]
async fn dropping_the_call_kills_the_command() {
    let place = Place::new();
    let watched = place.path("started");
    let started = async {
        while !watched.exists() {
            tokio::task::yield_now().await;
        }
    };
    {
        let call = place.call("Bash", command("touch started; sleep 1000.009"));
        tokio::select! {
            _ = call => panic!("it does not end"),
            () = started => {}
        }
    }
    while is_running("1000.009") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn there_is_no_pager_no_editor_and_no_terminal() {
    let place = Place::new();
    let said = place.done("Bash", command("env; tty || true")).await;
    for line in ["TERM=dumb", "GIT_PAGER=cat", "GIT_EDITOR=true", "not a tty"] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
}

/// TRUST-5: a variable that holds a key is kept from commands, whoever sets it; what the settings give is there.
#[tokio::test]
async fn commands_do_not_see_the_keys_of_providers() {
    let mut place = Place::new();
    let given = [("GIVEN".to_owned(), "yes".to_owned()), ("WORK_KEY".to_owned(), "secret".to_owned())];
    let environment = Environment {
        given: given.into(),
        hidden: ["WORK_KEY".to_owned(), "PATH_KEY".to_owned()].into(),
        ..Default::default()
    };
    place.scope = place.scope.with_environment(environment);
    let seen = place.done("Bash", json!({"command": "echo \"$GIVEN\"; env | grep -c _KEY= || true"})).await;
    assert_eq!(seen.trim(), "yes\n0");
}
