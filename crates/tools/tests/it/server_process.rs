//! Servers beside a session: what they hear and say, what they are told of the environment, and their end.

use std::collections::BTreeMap;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tools::Environment;
use tools::program::Program;
use tools::server_process::{ServerProcess, ServerProgram};

use super::place::{Place, is_running, marked};

fn started(place: &Place, script: &str) -> (ServerProcess, BufReader<tokio::net::UnixStream>) {
    let given = [("PLAIN", "plain"), ("GIVEN_TOKEN", "secret")];
    let named = [("NAMED_TOKEN", "named")];
    let owned = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let program = ServerProgram {
        words: Program::shell(&marked(script)),
        directory: &place.root,
        variables: owned(&named),
        environment: &Environment { given: owned(&given), ..Environment::default() },
        guard: place.scope.guard(),
    };
    let (process, socket) = program.start().unwrap();
    (process, BufReader::new(socket))
}

async fn line(socket: &mut BufReader<tokio::net::UnixStream>) -> String {
    let mut line = String::new();
    socket.read_line(&mut line).await.unwrap();
    line
}

/// MCP-1: a server hears what is written and answers as long as it runs, with a guard and without; the end of either side
/// is noticed by the other.
#[tokio::test]
async fn a_server_hears_and_answers_until_either_side_ends() {
    for place in [Place::new(), Place::unguarded()] {
        let (process, mut socket) = started(&place, "while read -r word; do echo \"got $word\"; done; echo bye");
        for word in ["one", "two"] {
            socket.get_mut().write_all(format!("{word}\n").as_bytes()).await.unwrap();
            assert_eq!(line(&mut socket).await, format!("got {word}\n"));
        }
        assert!(process.is_running());
        socket.get_mut().shutdown().await.unwrap();
        assert_eq!(line(&mut socket).await, "bye\n");
        assert_eq!(line(&mut socket).await, "", "its end is the end of the stream");
        let (process, mut socket) = started(&place, "echo oh no >&2; exit 7");
        assert_eq!(line(&mut socket).await, "");
        while process.is_running() {
            tokio::task::yield_now().await;
        }
        assert_eq!(process.last_words()().await, "oh no\n");
        assert_eq!(process.end().await, "it ended with exit code 7");
    }
}

/// MCP-1, BUDGET-3: what a server started goes with it, also what left its group and its session.
#[tokio::test]
async fn nothing_is_left_of_a_server() {
    let place = Place::new();
    let script = "(setsid sleep 1003.001 &) ; sleep 1003.002 & echo up; wait";
    let (process, mut socket) = started(&place, script);
    assert_eq!(line(&mut socket).await, "up\n");
    assert_eq!(process.end().await, "it was stopped");
    assert!(!is_running("1003.001") && !is_running("1003.002"));
    let (process, mut socket) = started(&place, script);
    assert_eq!(line(&mut socket).await, "up\n");
    drop(process);
    assert_eq!(line(&mut socket).await, "", "dropping it ends it");
}

/// MCP-1: a server gets the variables that its entry names, and no other that looks like a credential.
#[tokio::test]
async fn a_server_gets_no_credential_but_its_own() {
    let place = Place::new();
    let (process, mut socket) = started(&place, "echo \"$PLAIN,$GIVEN_TOKEN,$NAMED_TOKEN\"");
    assert_eq!(line(&mut socket).await, "plain,,named\n");
    process.end().await;
}
