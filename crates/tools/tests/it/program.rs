//! Programs of the user's own: their input, their two streams, their end.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tools::Environment;
use tools::program::{EndedProgram, Program, ProgramEnd};

use super::place::{Place, is_running, marked};

async fn ran(place: &Place, script: &str, input: &str, limit: u64, cancel: &CancellationToken) -> EndedProgram {
    let program = Program {
        words: Program::shell(&marked(script)),
        input: input.to_owned(),
        directory: &place.root,
        environment: &Environment::default(),
        confinement: None,
        guard: place.scope.guard(),
        limit: Duration::from_millis(limit),
    };
    program.run(cancel).await.unwrap()
}

/// HOOK-2: a program reads its input, and its two streams are told apart, with a guard and without.
#[tokio::test]
async fn input_goes_in_and_two_streams_come_out() {
    for place in [Place::new(), Place::unguarded()] {
        let cancel = CancellationToken::new();
        let input = "x".repeat(3_000_000);
        let said = ran(&place, "wc -c; echo oh >&2; exit 3", &input, 60_000, &cancel).await;
        assert_eq!((said.end, said.out.trim(), said.err.as_str()), (ProgramEnd::Exited(3), "3000000", "oh\n"));
        let unread = ran(&place, "echo done", &input, 60_000, &cancel).await;
        assert_eq!((unread.end, unread.out.as_str()), (ProgramEnd::Exited(0), "done\n"));
    }
}

/// HOOK-2, BUDGET-3: one that hangs, leaves its group or prints without end is ended, and nothing is left of it.
#[tokio::test]
async fn nothing_is_left_of_one_that_misbehaves() {
    let place = Place::new();
    let cancel = CancellationToken::new();
    let hung = ran(&place, "setsid sleep 1002.001 & sleep 1002.001", "", 300, &cancel).await;
    assert_eq!(hung.end, ProgramEnd::TimedOut);
    assert!(!is_running("1002.001"));
    let daemon =
        ran(&place, "setsid bash -c '(setsid sleep 1002.002 &) & disown' <&- >&- 2>&-; echo up", "", 60_000, &cancel);
    assert_eq!(daemon.await.out, "up\n");
    assert!(!is_running("1002.002"));
    let loud = ran(&place, "head -c 1000000000 /dev/zero; head -c 50000000 /dev/zero >&2", "", 120_000, &cancel).await;
    assert_eq!(loud.end, ProgramEnd::Exited(0));
    assert!(loud.out.len() < 3_000_000 && loud.err.len() < 3_000_000);
    cancel.cancel();
    assert_eq!(ran(&place, "sleep 1002.003", "", 60_000, &cancel).await.end, ProgramEnd::Cancelled);
    assert!(!is_running("1002.003"));
}

/// HOOK-2: one that closes its input, or reads a part of it, holds nobody up.
#[tokio::test]
async fn one_that_does_not_read_to_the_end_holds_nobody_up() {
    let (place, cancel) = (Place::new(), CancellationToken::new());
    let large = "x".repeat(10_000_000);
    for script in ["exec <&-; echo done", "head -c 1 > /dev/null; echo done", "exec < /dev/null; cat; echo done"] {
        let said = ran(&place, script, &large, 60_000, &cancel).await;
        assert_eq!((said.end, said.out.as_str()), (ProgramEnd::Exited(0), "done\n"), "{script}");
    }
}
