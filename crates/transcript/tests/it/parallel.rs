//! Calls that run side by side, and the orders in which their results can come.

use serde_json::{Value, json};
use transcript::block::Kind;
use transcript::{Log, Role};

use crate::pairing::fault;
use crate::session::read;

/// What the model sees, in short: calls as `?a`, results as `a=text`.
fn seen(log: &Log) -> Vec<String> {
    assert_eq!(fault(&log.view().messages()), None);
    let short = |(_, role, block): (usize, Role, &transcript::Block)| match block.kind() {
        Kind::ToolUse { id, .. } => format!("?{id}"),
        Kind::ToolResult { id, .. } => format!("{id}={}", block.result_text()),
        _ => format!("{role:?}: {}", block.as_text().unwrap_or_default()),
    };
    log.view().blocks().map(short).collect()
}

fn load(lines: &[Value]) -> Log {
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    read(text.join("\n").as_bytes())
}

fn user(id: &str, parent: &str, text: &str) -> Value {
    json!({"type": "user", "uuid": id, "parentUuid": parent, "message": {"role": "user", "content": text}})
}

fn call(id: &str, parent: &str, message: &str, call: &str) -> Value {
    json!({"type": "assistant", "uuid": id, "parentUuid": parent, "message": {"id": message, "role": "assistant", "model": "m",
           "content": [{"type": "tool_use", "id": call, "name": "Read", "input": {}}]}})
}

fn said(id: &str, parent: &str, message: &str, text: &str) -> Value {
    json!({"type": "assistant", "uuid": id, "parentUuid": parent, "message": {"id": message, "role": "assistant", "model": "m",
           "content": [{"type": "text", "text": text}]}})
}

fn result(id: &str, parent: &str, call: &str) -> Value {
    json!({"type": "user", "uuid": id, "parentUuid": parent, "message": {"role": "user",
           "content": [{"type": "tool_result", "tool_use_id": call, "content": "ok"}]}})
}

/// LOG-2, LOG-13: three calls in three lines, whose results hang on their own calls and come in another order, are one
/// reply with its results in the order of the calls.
#[test]
fn results_stand_in_the_order_of_their_calls() {
    let log = load(&[
        user("1", "0", "go"),
        call("a1", "1", "m1", "a"),
        call("a2", "a1", "m1", "b"),
        call("a3", "a2", "m1", "c"),
        result("r3", "a3", "c"),
        result("r1", "a1", "a"),
        result("r2", "a2", "b"),
        said("4", "r2", "m2", "done"),
    ]);
    let all = ["User: go", "?a", "?b", "?c", "a=ok", "b=ok", "c=ok", "Assistant: done"];
    assert_eq!(seen(&log), all);
}

/// LOG-13: a result that stands between two lines of one reply, and words the user said before the last result came, move
/// behind the reply and its results.
#[test]
fn what_comes_between_stands_behind_the_results() {
    let log = load(&[
        user("1", "0", "go"),
        call("a1", "1", "m1", "a"),
        result("r1", "a1", "a"),
        call("a2", "r1", "m1", "b"),
        user("2", "a2", "wait"),
        result("r2", "2", "b"),
        said("4", "r2", "m2", "done"),
    ]);
    assert_eq!(seen(&log), ["User: go", "?a", "?b", "a=ok", "b=ok", "User: wait", "Assistant: done"]);
}

/// LOG-9: a call whose result never came is answered by a failure that says so; its neighbour keeps its own.
#[test]
fn of_two_calls_the_one_without_a_result_is_closed() {
    let log = load(&[
        user("1", "0", "go"),
        call("a1", "1", "m1", "a"),
        call("a2", "a1", "m1", "b"),
        result("r2", "a2", "b"),
        user("2", "r2", "stop"),
        said("4", "2", "m2", "stopped"),
    ]);
    let seen = seen(&log);
    assert!(seen[3].starts_with("a=[No result"), "{seen:?}");
    assert_eq!(seen[4..], ["b=ok", "User: stop", "Assistant: stopped"]);
}

/// LOG-9: a result that comes only after the next reply belongs to its call all the same: it is a live line.
#[test]
fn a_late_result_belongs_to_its_call() {
    let log = load(&[
        user("1", "0", "go"),
        call("a1", "1", "m1", "a"),
        call("a2", "a1", "m1", "b"),
        result("r1", "a2", "a"),
        said("3", "r1", "m2", "one is missing"),
        result("r2", "3", "b"),
        said("4", "r2", "m3", "now it is there"),
    ]);
    let all = ["User: go", "?a", "?b", "a=ok", "b=ok", "Assistant: one is missing", "Assistant: now it is there"];
    assert_eq!(seen(&log), all);
}

/// LOG-9: a second result for one call, and one for a call nobody made, are dropped.
#[test]
fn a_result_too_many_is_dropped() {
    let log = load(&[
        user("1", "0", "go"),
        call("a1", "1", "m1", "a"),
        result("r1", "a1", "a"),
        result("r2", "r1", "a"),
        result("r3", "r2", "nobody"),
        said("4", "r3", "m2", "done"),
    ]);
    assert_eq!(seen(&log), ["User: go", "?a", "a=ok", "Assistant: done"]);
}
