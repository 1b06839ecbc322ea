//! Running several calls: what runs at the same time, what in order, and what happens when things go wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tools::{Access, CONCURRENT, Limit, Output, Scope, Subject, Tool, ToolCall, run_all, standard};
use transcript::block::Outcome;
use transcript::message::ToolDefinition;

use super::place::Place;

/// A tool whose calls are what the test makes of them.
struct Act {
    name: &'static str,
    access: Access,
    act: Box<dyn Fn(Value, Scope) -> BoxFuture<'static, Output> + Send + Sync>,
}

impl Tool for Act {
    fn name(&self) -> &str {
        self.name
    }
    fn definition(&self) -> ToolDefinition {
        ToolDefinition { name: self.name.to_owned(), description: String::new(), input_schema: json!({}) }
    }
    fn access(&self, _: &Value) -> Access {
        self.access
    }
    fn subject(&self, _: &Value, _: &Scope) -> Subject {
        Subject::Whole
    }
    fn limit(&self) -> Limit {
        Limit::Unlimited
    }
    fn run(&self, input: Value, scope: Scope) -> BoxFuture<'static, Output> {
        (self.act)(input, scope)
    }
}

fn call(name: &str, input: Value) -> ToolCall {
    ToolCall::new(name, input)
}

/// TOOL-1: read-only calls run at the same time, at most ten; the barrier opens only if ten really do.
#[tokio::test]
async fn ten_read_only_calls_run_at_the_same_time_and_no_more() {
    let barrier = Arc::new(Barrier::new(CONCURRENT));
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let look = Act {
        name: "Look",
        access: Access::ReadOnly,
        act: Box::new(move |input, _| {
            let (barrier, running, most) = (barrier.clone(), running.clone(), most.clone());
            Box::pin(async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                barrier.wait().await;
                running.fetch_sub(1, Ordering::SeqCst);
                Output::done(input.to_string(), "")
            })
        }),
    };
    let place = Place::new();
    let calls = (0..2 * CONCURRENT).map(|number| call("Look", json!(number))).collect();
    let outputs = run_all(calls, &[Arc::new(look)], &place.scope, |_, _| {}).await;
    assert_eq!(seen.load(Ordering::SeqCst), CONCURRENT);
    let texts: Vec<String> = outputs.iter().map(Output::text).collect();
    assert_eq!(texts, (0..2 * CONCURRENT).map(|number| number.to_string()).collect::<Vec<_>>());
}

/// TOOL-1: calls that change something run one by one, in order, and what follows sees what they did.
#[tokio::test]
async fn changes_run_alone_and_in_order() {
    let place = Place::new();
    let path = place.write("a", "0");
    let mut calls = vec![call("Read", json!({"file_path": path}))];
    for number in 0..5 {
        let (old, new) = (number.to_string(), (number + 1).to_string());
        calls.push(call("Edit", json!({"file_path": path, "old_string": old, "new_string": new})));
        calls.push(call("Read", json!({"file_path": path})));
        calls.push(call("Grep", json!({"pattern": new, "path": path, "output_mode": "content", "-n": false})));
    }
    let ended = Mutex::new(Vec::new());
    let outputs = run_all(calls, &standard(), &place.scope, |index, _| ended.lock().unwrap().push(index)).await;
    assert!(outputs.iter().all(|output| output.outcome == Outcome::Done));
    for number in 0..5 {
        assert_eq!(outputs[number * 3 + 2].text(), format!("     1\t{}", number + 1));
        assert_eq!(outputs[number * 3 + 3].text(), format!("a:{}", number + 1));
    }
    let mut ended = ended.into_inner().unwrap();
    ended.sort_unstable();
    assert_eq!(ended, (0..outputs.len()).collect::<Vec<_>>(), "each is reported once");
}

#[tokio::test]
async fn an_unknown_tool_and_a_panic_are_failed_outputs() {
    let place = Place::new();
    let broken = Act {
        name: "Broken",
        access: Access::Changes,
        act: Box::new(|_, _| Box::pin(async { panic!("out of {}", "luck") })),
    };
    let mut tools = standard();
    tools.push(Arc::new(broken));
    let calls = vec![call("Cat", json!({})), call("Broken", json!({})), call("Bash", json!({"command": "echo fine"}))];
    let outputs = run_all(calls, &tools, &place.scope, |_, _| {}).await;
    let texts: Vec<String> = outputs.iter().map(Output::text).collect();
    assert_eq!(
        texts,
        [
            "There is no tool named Cat. The tools are: Read, Write, Edit, Grep, Glob, Bash, TaskOutput, TaskStop, Broken.",
            "Broken broke down: out of luck",
            "fine"
        ]
    );
}

#[tokio::test]
async fn cancelling_answers_every_call_that_has_not_ended() {
    let place = Place::new();
    let cancels = Act {
        name: "Cancels",
        access: Access::Changes,
        act: Box::new(|_, scope| {
            Box::pin(async move {
                scope.cancel().cancel();
                Output::done("did what it was asked", "")
            })
        }),
    };
    let mut tools = standard();
    tools.push(Arc::new(cancels));
    let calls = vec![
        call("Bash", json!({"command": "echo before"})),
        call("Cancels", json!({})),
        call("Bash", json!({"command": "touch after"})),
        call("Read", json!({"file_path": "x"})),
    ];
    let outputs = run_all(calls, &tools, &place.scope, |_, _| {}).await;
    let texts: Vec<String> = outputs.iter().map(Output::text).collect();
    assert_eq!(texts, ["before", "did what it was asked", "cancelled by the user", "cancelled by the user"]);
    assert!(!place.path("after").exists());
}

#[tokio::test]
async fn a_fork_knows_what_was_read_and_goes_its_own_way() {
    let place = Place::new();
    place.write("a", "x");
    place.write("b", "x");
    place.done("Read", json!({"file_path": "a"})).await;
    let fork = place.scope.fork();
    assert!(fork.seen(&place.path("a")).is_some());
    let reading = vec![call("Read", json!({"file_path": "b"})), call("Bash", json!({"command": "cd /"}))];
    run_all(reading, &standard(), &fork, |_, _| {}).await;
    assert!(fork.seen(&place.path("b")).is_some() && place.scope.seen(&place.path("b")).is_none());
    assert_eq!(place.scope.directory(), place.root);
}
