//! Hooks of the embedding program: each is called back by its id, and answers with an object.
//!
//! They run among the others, with the same rights. Such a hook speaks for whoever started the program.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use settings::hook_definitions::{Hook, HookEvent, HookRepetition, HookWait, Kind, Matcher, OnFailure};
use settings::{SettingsSource, ValueOrigin};

use super::hook_output::HookOutput;

/// A program whose hooks can be called back.
pub trait HookCallbacks: Send + Sync {
    /// Passes an event, and the call it is about, to the hook with an id; waits for its answer.
    fn call_back(&self, id: &str, input: &Value, call: Option<&str>) -> BoxFuture<'_, CallbackReply>;
}

/// Result of calling a hook back.
#[derive(Debug, Clone, PartialEq)]
pub enum CallbackReply {
    /// Its answer.
    Answered(Value),
    /// It failed, for this reason.
    Failed(String),
    /// The program is gone.
    Gone,
}

/// Hooks that a program registers in its greeting, by event, with warnings about them.
pub fn registered_hooks(hooks: &Map<String, Value>) -> (Vec<Hook>, Vec<String>) {
    let (mut asked, mut told) = (Vec::new(), Vec::new());
    for (name, groups) in hooks {
        let Some(hook_event) = HookEvent::by_name(name) else {
            told.push(format!("there is no hook event {name}; the program's hooks for it never run"));
            continue;
        };
        for group in groups.as_array().into_iter().flatten() {
            let matcher_text = group["matcher"].as_str();
            let (matcher, wrong) = Matcher::parse(matcher_text);
            told.extend(wrong.map(|why| format!("a {name} hook: its matcher cannot be understood ({why})")));
            let on_failure = if group["onFailure"] == "block" { OnFailure::Block } else { OnFailure::Continue };
            let timeout = group["timeout"].as_f64().filter(|seconds| *seconds > 0.0);
            let ids = group["hookCallbackIds"].as_array().into_iter().flatten().filter_map(Value::as_str);
            asked.extend(ids.map(|id| Hook {
                hook_event,
                matcher: matcher.clone(),
                matcher_text: matcher_text.unwrap_or_default().to_owned(),
                kind: Kind::Callback { id: id.to_owned(), on_failure },
                condition: None,
                times: HookRepetition::Always,
                waiting: HookWait::Yes,
                timeout: timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
                status: None,
                origin: ValueOrigin { source: SettingsSource::Flag, file: None, line: 1, column: 1 },
                variables: BTreeMap::new(),
            }));
        }
    }
    (asked, told)
}

/// Output of such a hook.
pub(super) fn output_of(on_failure: OnFailure, hook_event: HookEvent, back: CallbackReply) -> HookOutput {
    let said = match back {
        CallbackReply::Answered(object) => HookOutput::of_object(hook_event, &object),
        CallbackReply::Failed(why) => HookOutput::failed(why),
        CallbackReply::Gone if on_failure == OnFailure::Continue => HookOutput::default(),
        CallbackReply::Gone => HookOutput::failed("the program is gone"),
    };
    match (on_failure, said.failed) {
        (OnFailure::Block, Some(why)) => {
            HookOutput::refusing(hook_event, format!("a hook that has to agree failed: {why}"))
        }
        (_, failed) => HookOutput { failed, ..said },
    }
}

#[cfg(test)]
mod tests {
    use super::super::hook_output::HookVerdict;
    use super::*;
    use serde_json::json;

    /// HOOK-2: a program's hooks are registered by event and matcher; a blocking one denies when it fails.
    #[test]
    fn a_programs_hooks_are_read_as_the_sdks_send_them() {
        let asked = json!({
            "PreToolUse": [{"matcher": "Bash|Write", "hookCallbackIds": ["a", "b"], "timeout": 5, "onFailure": "block"}],
            "SubagentStop": [{"matcher": null, "hookCallbackIds": ["c"]}],
            "Setup": [{"hookCallbackIds": ["d"]}],
        });
        let (hooks, told) = registered_hooks(asked.as_object().unwrap());
        let shown: Vec<String> =
            hooks.iter().map(|hook| format!("{} {}", hook.hook_event.name(), hook.shown())).collect();
        assert_eq!(shown, ["PreToolUse callback a", "PreToolUse callback b", "SubagentStop callback c"]);
        assert_eq!(hooks[0].limit(), Duration::from_secs(5));
        assert!(told.len() == 1 && told[0].contains("Setup"), "{told:?}");

        let (hook_event, deny) = (HookEvent::PreToolUse, json!({"decision": "block", "reason": "no"}));
        for on_failure in [OnFailure::Continue, OnFailure::Block] {
            assert_eq!(
                output_of(on_failure, hook_event, CallbackReply::Answered(deny.clone())).verdict,
                Some(HookVerdict::Deny)
            );
            assert_eq!(output_of(on_failure, hook_event, CallbackReply::Answered(json!({}))), HookOutput::default());
        }
        assert_eq!(output_of(OnFailure::Continue, hook_event, CallbackReply::Gone), HookOutput::default());
        assert!(output_of(OnFailure::Continue, hook_event, CallbackReply::Failed("x".into())).failed.is_some());
        for back in [CallbackReply::Gone, CallbackReply::Failed("x".into())] {
            assert_eq!(output_of(OnFailure::Block, hook_event, back).verdict, Some(HookVerdict::Deny));
        }
    }

    struct Program;

    impl HookCallbacks for Program {
        fn call_back(&self, _: &str, _: &Value, _: Option<&str>) -> BoxFuture<'_, CallbackReply> {
            Box::pin(async { CallbackReply::Gone })
        }
    }

    /// HOOK-1: changed settings leave a program's hooks in place, unless an organisation allows only its own.
    #[test]
    fn a_programs_hooks_outlive_a_change_of_settings() {
        use super::super::Hooks;
        use settings::hook_definitions::{HookSettings, HooksOf};
        let of = |whose| Hooks::new(HookSettings { whose, ..HookSettings::default() });
        let asked = json!({"Stop": [{"hookCallbackIds": ["a"]}]});
        let hooks = || registered_hooks(asked.as_object().unwrap()).0;
        let before = Hooks::default().driven(hooks(), std::sync::Arc::new(Program));
        assert!(before.any(HookEvent::Stop) && before.let_a_programs_run());
        assert!(!of(HooksOf::Nobody).let_a_programs_run());
        assert!(Hooks::default().instead_of(&before).any(HookEvent::Stop));
        assert!(!of(HooksOf::Managed).instead_of(&before).any(HookEvent::Stop));
        assert!(!of(HooksOf::Managed).driven(hooks(), std::sync::Arc::new(Program)).any(HookEvent::Stop));
    }
}
