//! The guard: nothing stays behind, and a command sees nothing of it.

use serde_json::{Value, json};
use std::path::PathBuf;
use tools::Scope;

use super::place::{Place, is_running, marked};

fn command(command: &str) -> Value {
    json!({"command": marked(command)})
}

fn limited(command: &str, timeout: u64) -> Value {
    json!({"command": marked(command), "timeout": timeout})
}

/// BUDGET-3: no process outlives its call, whatever it left: its group, its session, its parent.
#[tokio::test]
async fn whoever_leaves_everything_is_still_ended_with_the_command() {
    let place = Place::new();
    let said = place.done("Bash", command("setsid sleep 1001.001 & echo done")).await;
    assert_eq!(said, "done\n[processes that were still running in the background were stopped]");
    assert!(!is_running("1001.001"));
    let daemon = "setsid bash -c '(setsid sleep 1001.002 &) & disown' </dev/null >/dev/null 2>&1; echo up";
    assert!(place.done("Bash", command(daemon)).await.starts_with("up\n["));
    assert!(!is_running("1001.002"));
    let nohup =
        "trap '' TERM HUP INT; setsid nohup bash -c 'trap \"\" TERM; sleep 1001.003; sleep 1001.003' & sleep 1001.003";
    assert!(place.failed("Bash", limited(nohup, 300)).await.starts_with("Timed out"));
    assert!(!is_running("1001.003"));
    // Stopped ones cannot be asked.
    assert!(
        place
            .failed("Bash", limited("setsid bash -c 'kill -STOP $$; sleep 1001.004' & sleep 1001.004", 300))
            .await
            .starts_with("Timed out")
    );
    assert!(!is_running("1001.004"));
}

/// BUDGET-3: two that start one another anew whenever one of them is gone have no chance.
#[tokio::test]
async fn those_who_revive_one_another_are_ended() {
    let place = Place::new();
    place.write(
        "hydra.sh",
        "trap '' TERM\nwhile :; do setsid bash -c 'trap \"\" TERM; exec -a hydra-1001.005 sleep 1' & wait $!; done\n"
            .replace("1001.005", &marked("1001.005")),
    );
    let said = place.failed("Bash", limited("setsid bash hydra.sh & setsid bash hydra.sh & sleep 1001.005", 300)).await;
    assert!(said.starts_with("Timed out"), "{said}");
    assert!(!is_running("1001.005") && !is_running("hydra.sh"));
}

/// TOOL-1: a command ends as it ended, also by a signal that has no name.
#[tokio::test]
async fn an_exit_status_is_passed_on_exactly() {
    let place = Place::new();
    for code in [1, 2, 126, 127, 128, 137, 200, 255] {
        assert_eq!(place.failed("Bash", command(&format!("exit {code}"))).await, format!("Exit code {code}"));
    }
    for signal in [1, 2, 6, 9, 15, 34, 64] {
        let said = place.failed("Bash", command(&format!("kill -{signal} $$; sleep 1001.006"))).await;
        assert!(said.starts_with(&format!("Exit code {} (ended by signal {signal})", 128 + signal)), "{said}");
    }
    assert!(!is_running("1001.006"));
}

/// TOOL-1: a command gets three descriptors, no blocked signal, and a group of its own.
#[tokio::test]
async fn a_command_sees_nothing_of_its_guard() {
    let place = Place::new();
    let open = place
        .done(
            "Bash",
            command("cd /proc/self/fd; exec python3 -c 'import os; print(sorted(os.listdir(\"/proc/self/fd\")))'"),
        )
        .await;
    assert_eq!(open, "['0', '1', '2', '3']", "and the one through which they are listed");
    let blocked = place.done("Bash", command("grep ^SigBlk /proc/self/status")).await;
    assert_eq!(blocked, "SigBlk:\t0000000000000000");
    // Its own group is all that is hit.
    assert_eq!(place.failed("Bash", command("echo bye; kill -9 0")).await, "Exit code 137 (ended by signal 9)\nbye");
    assert_eq!(place.done("Bash", command("trap '' TERM; kill 0; echo still here")).await, "still here");
}

/// TOOL-1: who asks the guard to end gets what it asks for, and who kills it hears of it.
#[tokio::test]
async fn a_guard_that_is_told_to_end_ends_all() {
    let place = Place::new();
    let said = place.failed("Bash", command("kill $PPID; sleep 1001.007; sleep 1001.007")).await;
    // The shell may have had time to say that its child was ended; on a busy machine it needs the second signal.
    let ended = ["Exit code 143 (ended by signal 15)", "Exit code 137 (ended by signal 9)"];
    assert!(ended.iter().any(|end| said.starts_with(end)), "{said}");
    assert!(!is_running("1001.007"));
    let said = place.failed("Bash", command("sleep 1001.008 & kill -9 $PPID; sleep 1001.008")).await;
    assert_eq!(said, "The command was lost: its guard was killed.");
    assert!(!is_running("1001.008"), "and nobody of it runs on");
}

#[tokio::test]
async fn a_command_that_cannot_be_started_says_why() {
    let (place, mut missing) = (Place::new(), Place::new());
    missing.scope = Scope::new(&missing.root, missing.scope.temporary()).with_guard(PathBuf::from("/nowhere/guard"));
    let said = missing.failed("Bash", command("true")).await;
    assert_eq!(said, "The command could not be started: No such file or directory (os error 2).");
    let said = place.failed("Bash", command(&format!("true {}", "x".repeat(200_000)))).await;
    assert_eq!(said, "The command could not be started: Argument list too long (os error 7).");
}
