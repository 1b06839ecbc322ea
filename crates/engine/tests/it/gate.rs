//! The gate: what hooks can and cannot have a say in.

use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, ready};
use proptest::prelude::*;
use serde_json::{Value, json};
use settings::permission::{Approver, CallQuestion, PermissionAnswer, Question};
use tools::permission::Mode;

use crate::stage::{Stage, call, say};

/// A model that makes three calls at once and is done; itself, or an agent that it sends out.
const TOUCHER: &str = r#"
    [[rule]]
    when = { tool = "Agent" }
    say = "Done."
    [[rule]]
    when = { user = "^send" }
    call = [{ tool = "Agent", input = { description = "go", prompt = "go", subagent_type = "general-purpose" } }]
    [[rule]]
    when = { user = "^go" }
    times = 1
    call = [
        { tool = "Bash", input = { command = "touch free" } },
        { tool = "Bash", input = { command = "touch denied" } },
        { tool = "Bash", input = { command = "touch asked" } },
    ]
    [[rule]]
    when = { user = "^fine" }
    say = '{"ok": true}'
    [[rule]]
    when = { user = "^look", result = "." }
    say = '{"ok": true}'
    [[rule]]
    when = { user = "^look", offered = "Glob" }
    call = [{ tool = "Glob", input = { pattern = "*" } }]
    [[rule]]
    when = { user = "^look" }
    say = '{"ok": true}'
    [[rule]]
    when = { user = "^bad" }
    say = '{"ok": false, "reason": "bad"}'
    [[rule]]
    say = "Done."
"#;

/// Says no to everything, and remembers what it was asked.
#[derive(Default)]
struct No(Mutex<Vec<CallQuestion>>);

impl Approver for No {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        self.0.lock().unwrap().push(call(question));
        Box::pin(ready(PermissionAnswer::Deny { why: "no".into() }))
    }
}

/// A hook that asks a model or an agent, whose answer is yes or no.
fn asking() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![Just("prompt"), Just("agent")];
    let question = prop_oneof![Just("fine"), Just("look"), Just("bad")];
    (kind, question).prop_map(|(kind, question)| json!({"hooks": [{"type": kind, "prompt": question}]}))
}

/// A hook that prints an object.
fn saying(answer: &Value) -> Value {
    let text = answer.to_string().replace('\'', r"'\''");
    json!({"hooks": [{"type": "command", "command": format!("printf %s '{text}'")}]})
}

fn commands() -> impl Strategy<Value = Option<&'static str>> {
    proptest::option::of(prop_oneof![
        Just("touch free"),
        Just("touch denied"),
        Just("touch asked"),
        Just("true && touch denied"),
        Just("bash -c 'touch asked'"),
        Just("touch free; touch asked"),
    ])
}

/// What a hook that looks at every call may say.
fn before() -> impl Strategy<Value = Value> {
    let decision = prop_oneof![Just(Value::Null), Just(json!("allow")), Just(json!("ask")), Just(json!("deny"))];
    (decision, commands(), any::<bool>()).prop_map(|(decision, command, approve)| {
        let mut own = json!({"hookEventName": "PreToolUse", "permissionDecision": decision});
        if let Some(command) = command {
            own["updatedInput"] = json!({"command": command});
        }
        let mut answer = json!({"hookSpecificOutput": own});
        if approve {
            answer["decision"] = json!("approve");
        }
        answer
    })
}

/// What a hook that answers questions may say.
fn request() -> impl Strategy<Value = Value> {
    let changes = prop_oneof![
        Just(json!([])),
        Just(json!([{"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash"}]}])),
        Just(json!([{"type": "setMode", "mode": "bypassPermissions"}, {"type": "setMode", "mode": "acceptEdits"}])),
        Just(json!([{"type": "removeRules", "behavior": "deny", "rules": [{"toolName": "Bash"}]}])),
    ];
    (any::<bool>(), commands(), changes).prop_map(|(allow, command, changes)| {
        let mut decision = json!({"behavior": if allow { "allow" } else { "deny" }, "updatedPermissions": changes});
        if let Some(command) = command {
            decision["updatedInput"] = json!({"command": command});
        }
        json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
    })
}

/// A hook that looks at every call, of any kind.
fn looking() -> impl Strategy<Value = Value> {
    prop_oneof![2 => before().prop_map(|answer| saying(&answer)), 1 => asking()]
}

/// A hook that answers questions, of any kind.
fn answering() -> impl Strategy<Value = Value> {
    prop_oneof![2 => request().prop_map(|answer| saying(&answer)), 1 => asking()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// HOOK-1, AGENT-2: no sequence of hook answers, of commands, models or agents, makes a call run that a deny rule names,
    /// or one that an ask rule names without that somebody was asked; neither in a session nor in an agent it sends out.
    #[test]
    fn no_hook_gets_a_call_past_a_rule(
        looking in proptest::collection::vec(looking(), 0..3),
        answering in proptest::collection::vec(answering(), 0..3),
        elsewhere in proptest::collection::vec(asking(), 0..2),
        mode in prop_oneof![Just(Mode::Default), Just(Mode::AcceptEdits), Just(Mode::BypassPermissions), Just(Mode::Plan)],
        words in prop_oneof![Just("go"), Just("send")],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut stage = Stage::new(TOUCHER).await;
            stage.mode = mode.into();
            stage.agents = crate::children::agents(json!({}));
            stage.settings = json!({
                "permissions": {"deny": ["Bash(touch denied)"], "ask": ["Bash(touch asked)"]},
                "hooks": {
                    "PreToolUse": looking, "PermissionRequest": answering, "PostToolUse": elsewhere,
                    "SubagentStart": elsewhere, "SubagentStop": elsewhere,
                },
            });
            let no = Arc::new(No::default());
            stage.approver = no.clone();
            say(&mut stage.agent(None), words).await;
            prop_assert!(!stage.project().join("denied").exists());
            prop_assert!(!stage.project().join("asked").exists());
            Ok(())
        })?;
    }
}

/// HOOK-1, AGENT-2: what the property above says nothing of where nothing runs: calls of an agent that was sent out do run
/// where hooks of every kind let them, and each was asked about.
#[tokio::test]
async fn hooks_of_every_kind_are_asked_about_the_calls_of_an_agent() {
    let mut stage = Stage::new(TOUCHER).await;
    stage.agents = crate::children::agents(json!({}));
    let hooks: Vec<Value> =
        ["prompt", "agent"].iter().map(|kind| json!({"hooks": [{"type": kind, "prompt": "look"}]})).collect();
    stage.settings = json!({
        "permissions": {"deny": ["Bash(touch denied)"], "ask": ["Bash(touch asked)"]}, "hooks": {"PreToolUse": hooks},
    });
    stage.approver = Arc::new(No::default());
    say(&mut stage.agent(None), "send").await;
    let made = |name: &str| stage.project().join(name).exists();
    assert!(made("free") && !made("denied") && !made("asked"));
    let asked = stage.simulator.requests().iter().filter(|request| request.to_string().contains("look\\n\\n{")).count();
    assert_eq!(asked, 4 * (1 + 2), "four calls, for each a model's word and an agent's look and word");
}

/// HOOK-1: a hook's yes spares a question that no rule asks, and a hook's no always counts.
#[tokio::test]
async fn a_yes_spares_a_question_and_a_no_always_counts() {
    let allow = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    let mut stage = Stage::new(TOUCHER).await;
    stage.mode = Mode::Default.into();
    stage.settings = json!({"permissions": {"ask": ["Bash(touch asked)"]}, "hooks": {"PreToolUse": [saying(&allow)]}});
    let no = Arc::new(No::default());
    stage.approver = no.clone();
    say(&mut stage.agent(None), "go").await;
    let made = |stage: &Stage, name: &str| stage.project().join(name).exists();
    assert!(made(&stage, "free") && made(&stage, "denied") && !made(&stage, "asked"));
    let asked: Vec<String> = no.0.lock().unwrap().iter().map(|asked| asked.input["command"].to_string()).collect();
    assert_eq!(asked, ["\"touch asked\""]);

    let deny = json!({"decision": "block", "reason": "not today"});
    let mut stage = Stage::new(TOUCHER).await;
    stage.settings = json!({"hooks": {"PreToolUse": [saying(&allow), saying(&deny)]}});
    say(&mut stage.agent(None), "go").await;
    assert!(!made(&stage, "free"), "in the mode that asks nothing");
    let request = stage.simulator.requests().pop().unwrap().to_string();
    assert!(request.contains("A PreToolUse hook of the user's says:\\nnot today"), "{request}");
}

/// HOOK-1: a hook that says to ask has somebody asked, also about what is allowed.
#[tokio::test]
async fn a_hook_can_have_somebody_asked() {
    let ask = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}});
    let mut stage = Stage::new(TOUCHER).await;
    stage.settings = json!({"hooks": {"PreToolUse": [saying(&ask)]}});
    let no = Arc::new(No::default());
    stage.approver = no.clone();
    say(&mut stage.agent(None), "go").await;
    assert_eq!(no.0.lock().unwrap().len(), 3);
    assert!(no.0.lock().unwrap()[0].why.contains("a hook says to ask"));
}

/// HOOK-1: of two hooks that change the input the later one counts, and that is said.
#[tokio::test]
async fn the_later_change_counts_and_that_is_said() {
    let change = |command: &str| {
        let own = json!({"hookEventName": "PreToolUse", "updatedInput": {"command": command}});
        saying(&json!({"hookSpecificOutput": own}))
    };
    let mut stage = Stage::new(TOUCHER).await;
    stage.settings = json!({"hooks": {"PreToolUse": [change("touch first"), change("touch second")]}});
    say(&mut stage.agent(None), "go").await;
    let made = |name: &str| stage.project().join(name).exists();
    assert!(made("second") && !made("first") && !made("free"));
    let told = format!("{:?}", stage.events.lock().unwrap());
    assert!(told.contains("several hooks changed this call"), "{told}");
}
