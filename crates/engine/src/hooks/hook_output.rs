//! Output of hooks: that of one by its exit code and printed text, and the consequence of several.
//!
//! A broken answer decides nothing and is reported. Of several answers the stricter one wins; of two that change the
//! same thing, the later one in the order of the settings.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use settings::hook_definitions::{Block, Hook, HookAuthor, HookEvent};
use tools::program::{EndedProgram, ProgramEnd};
use transcript::Usage;

/// A hook's verdict on a call, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookVerdict {
    /// It may run, as far as no rule says otherwise.
    Allow,
    /// The user is to be asked.
    Ask,
    /// It may not run.
    Deny,
}

/// Output of one hook.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookOutput {
    /// Verdict on a call.
    pub verdict: Option<HookVerdict>,
    /// Reason to block something; if it has already happened, the model is told.
    pub block: Option<String>,
    /// Reason to end the turn.
    pub stop: Option<String>,
    /// Context for the model.
    pub context: Vec<String>,
    /// Message for the user.
    pub message: Option<String>,
    /// Replacement for the call's input.
    pub input: Option<Value>,
    /// Replacement for the call's output, as the model sees it.
    pub output: Option<Value>,
    /// Rules and modes to apply from now on.
    pub permissions: Vec<Value>,
    /// Files to watch from now on.
    pub watch: Vec<PathBuf>,
    /// Reason for its failure.
    pub failed: Option<String>,
    /// Its author, if that is not the author of the hook.
    pub author: Option<HookAuthor>,
    /// Model and usage, if it asked one.
    pub used: Option<(String, Usage)>,
}

impl HookOutput {
    /// The author of the output of this hook.
    pub fn author_of(&self, hook: &Hook) -> HookAuthor {
        self.author.unwrap_or_else(|| hook.author())
    }

    /// Output of a hook that failed.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { failed: Some(why.into()), ..Self::default() }
    }

    /// Output of a command.
    pub fn of_command(hook_event: HookEvent, ran: &EndedProgram, limit: std::time::Duration) -> Self {
        let code = match ran.end {
            ProgramEnd::Exited(code) => code,
            ProgramEnd::TimedOut => return Self::failed(format!("it took longer than {} s", limit.as_secs_f64())),
            ProgramEnd::Cancelled => return Self::failed("it was stopped"),
        };
        let reason = ran.err.trim();
        match code {
            0 => Self::of_text(hook_event, &ran.out),
            2 => {
                let reason = if reason.is_empty() { "it gave no reason" } else { reason };
                Self::refusing(hook_event, reason.to_owned())
            }
            code => match object(&ran.out) {
                Some(object) => Self::of_object(hook_event, &object),
                None => Self::failed(format!("exit code {code}{}", colon(reason))),
            },
        }
    }

    /// Output of a hook that refuses.
    pub fn refusing(hook_event: HookEvent, reason: String) -> Self {
        match hook_event.block() {
            Block::Prevents | Block::Tells => {
                let denies = matches!(hook_event, HookEvent::PreToolUse | HookEvent::PermissionRequest);
                Self { verdict: denies.then_some(HookVerdict::Deny), block: Some(reason), ..Self::default() }
            }
            Block::Nothing => Self::failed(format!("exit code 2, which has no effect at this event{}", colon(&reason))),
        }
    }

    /// Output of a hook that succeeded.
    pub fn of_text(hook_event: HookEvent, text: &str) -> Self {
        let text = text.trim();
        match object(text) {
            Some(object) => Self::of_object(hook_event, &object),
            None if text.starts_with('{') => {
                Self::failed("its output begins like JSON but is not JSON, so it is ignored")
            }
            None if hook_event.takes_plain_text() && !text.is_empty() => {
                Self { context: vec![text.to_owned()], ..Self::default() }
            }
            None => Self::default(),
        }
    }

    /// Parses an output object.
    pub fn of_object(hook_event: HookEvent, object: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let own = &object["hookSpecificOutput"];
        let own = match own["hookEventName"].as_str() {
            Some(name) if name != hook_event.name() => {
                return Self::failed(format!("its hookSpecificOutput is for {name}, so it is ignored"));
            }
            _ => own,
        };
        let mut said = Self { message: text(&object["systemMessage"]), ..Self::default() };
        if object["continue"] == false {
            said.stop = Some(text(&object["stopReason"]).unwrap_or_else(|| "it gave no reason".to_owned()));
        }
        let reason = text(&object["reason"]);
        match object["decision"].as_str() {
            Some("block" | "deny") => {
                let refusing =
                    Self::refusing(hook_event, reason.clone().unwrap_or_else(|| "it gave no reason".to_owned()));
                (said.verdict, said.block, said.failed) = (refusing.verdict, refusing.block, refusing.failed);
            }
            Some("approve" | "allow") if hook_event == HookEvent::PreToolUse => said.verdict = Some(HookVerdict::Allow),
            _ => {}
        }
        said.context.extend(text(&own["additionalContext"]));
        match hook_event {
            HookEvent::PreToolUse => {
                let verdict = match own["permissionDecision"].as_str() {
                    Some("deny") => Some(HookVerdict::Deny),
                    Some("ask" | "defer") => Some(HookVerdict::Ask),
                    Some("allow") => Some(HookVerdict::Allow),
                    _ => None,
                };
                said.verdict = said.verdict.max(verdict);
                if let Some(why) = text(&own["permissionDecisionReason"]) {
                    said.block = Some(why);
                }
                said.input = changed(&own["updatedInput"]);
            }
            HookEvent::PermissionRequest => {
                let decision = &own["decision"];
                match decision["behavior"].as_str() {
                    Some("allow") => {
                        said.verdict = said.verdict.max(Some(HookVerdict::Allow));
                        said.input = changed(&decision["updatedInput"]);
                        said.permissions = decision["updatedPermissions"].as_array().cloned().unwrap_or_default();
                    }
                    Some("deny") => {
                        said.verdict = Some(HookVerdict::Deny);
                        let why = text(&decision["message"]).unwrap_or_else(|| "it gave no reason".to_owned());
                        if decision["interrupt"] == true {
                            said.stop = Some(why.clone());
                        }
                        said.block = Some(why);
                    }
                    _ => {}
                }
            }
            HookEvent::PostToolUse => {
                let output = &own["updatedToolOutput"];
                said.output = (!output.is_null()).then(|| output.clone());
            }
            HookEvent::SessionStart => {
                let paths = own["watchPaths"].as_array().into_iter().flatten();
                said.watch = paths.filter_map(|path| path.as_str().map(PathBuf::from)).collect();
            }
            _ => {}
        }
        said
    }
}

fn changed(input: &Value) -> Option<Value> {
    input.is_object().then(|| input.clone())
}

fn colon(reason: &str) -> String {
    match reason.lines().next().unwrap_or_default() {
        "" => String::new(),
        line => format!(": {line}"),
    }
}

fn object(text: &str) -> Option<Value> {
    serde_json::from_str::<Value>(text.trim()).ok().filter(Value::is_object)
}

/// Outputs of all hooks of an event, in the order of the settings.
#[derive(Debug, Clone, Default)]
pub struct HookOutputs(pub Vec<(Arc<Hook>, HookOutput)>);

/// A hook's text, with its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookMessage {
    /// The hook event.
    pub hook_event: HookEvent,
    /// The author.
    pub author: HookAuthor,
    /// The text.
    pub text: String,
}

impl HookOutputs {
    fn word(hook: &Hook, said: &HookOutput, text: &str) -> HookMessage {
        HookMessage { hook_event: hook.hook_event, author: said.author_of(hook), text: text.to_owned() }
    }

    /// The strictest verdict on a call, with the reason of the first hook that gave it.
    pub fn verdict(&self) -> Option<(HookVerdict, HookMessage)> {
        let strictest = self.0.iter().filter_map(|(_, said)| said.verdict).max()?;
        let (hook, said) = self.0.iter().find(|(_, said)| said.verdict == Some(strictest))?;
        Some((strictest, Self::word(hook, said, said.block.as_deref().unwrap_or_default())))
    }

    /// The first reason to block something.
    pub fn block(&self) -> Option<HookMessage> {
        let (hook, said) = self.0.iter().find(|(_, said)| said.block.is_some())?;
        Some(Self::word(hook, said, said.block.as_deref()?))
    }

    /// All reasons why something should not have happened.
    pub fn blocks(&self) -> Vec<HookMessage> {
        self.0.iter().filter_map(|(hook, said)| Some(Self::word(hook, said, said.block.as_deref()?))).collect()
    }

    /// The reason to end the turn.
    pub fn stop(&self) -> Option<String> {
        self.0.iter().find_map(|(_, said)| said.stop.clone())
    }

    /// Context for the model.
    pub fn context(&self) -> Vec<HookMessage> {
        let of = |(hook, said): &(Arc<Hook>, HookOutput)| -> Vec<HookMessage> {
            said.context.iter().map(|text| Self::word(hook, said, text)).collect()
        };
        self.0.iter().flat_map(of).collect()
    }

    /// The changed input, its author, and a warning if several hooks changed it.
    pub fn input(&self) -> Option<(Value, HookAuthor, Option<String>)> {
        let mut changing = self.0.iter().filter(|(_, said)| said.input.is_some());
        let (last, said) = changing.next_back()?;
        let others: Vec<String> = changing.map(|(hook, _)| hook.shown()).collect();
        let note = (!others.is_empty()).then(|| {
            format!(
                "several hooks changed this call; the change of {} counts, that of {} does not",
                last.shown(),
                others.join(", ")
            )
        });
        Some((said.input.clone()?, said.author_of(last), note))
    }

    /// The changed output, as the model is to see it.
    pub fn output(&self) -> Option<Value> {
        self.0.iter().rev().find_map(|(_, said)| said.output.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn said(hook_event: HookEvent, code: i32, out: &str, err: &str) -> HookOutput {
        let ran = EndedProgram { end: ProgramEnd::Exited(code), out: out.into(), err: err.into() };
        HookOutput::of_command(hook_event, &ran, Duration::from_secs(1))
    }

    /// HOOK-2: exit code 0 succeeds, 2 blocks with standard error as the reason, any other is a warning unless the
    /// output can be parsed.
    #[test]
    fn exit_codes_mean_what_they_mean() {
        use HookEvent::*;
        assert_eq!(said(PreToolUse, 0, "all well", ""), HookOutput::default());
        let denied = said(PreToolUse, 2, "{\"ignored\": 1}", "not here\n");
        assert_eq!((denied.verdict, denied.block.as_deref()), (Some(HookVerdict::Deny), Some("not here")));
        assert_eq!(said(PreToolUse, 1, "", "oh\nno").failed.as_deref(), Some("exit code 1: oh"));
        let decided = said(PreToolUse, 1, r#"{"hookSpecificOutput": {"permissionDecision": "ask"}}"#, "");
        assert_eq!((decided.verdict, decided.failed), (Some(HookVerdict::Ask), None));
        for &hook_event in HookEvent::ALL {
            let refused = said(hook_event, 2, "", "why");
            match hook_event.block() {
                Block::Nothing => assert!(refused.failed.is_some() && refused.block.is_none(), "{hook_event:?}"),
                _ => assert_eq!(refused.block.as_deref(), Some("why"), "{hook_event:?}"),
            }
        }
    }

    /// HOOK-2: text becomes context for events that take it; a broken object never does.
    #[test]
    fn text_is_context_for_prompts_and_starts_alone() {
        for &hook_event in HookEvent::ALL {
            let plain = said(hook_event, 0, "the branch is main\n", "");
            let expected: &[&str] = if hook_event.takes_plain_text() { &["the branch is main"] } else { &[] };
            assert_eq!(plain.context, expected, "{hook_event:?}");
            let broken = said(hook_event, 0, "{\"continue\": fals", "");
            assert!(broken.failed.is_some() && broken.context.is_empty() && broken.stop.is_none(), "{hook_event:?}");
        }
        assert!(said(HookEvent::Stop, 0, "[1]", "").failed.is_none(), "not an object: text");
    }

    /// HOOK-2: the fields of an object, which must name the right event.
    #[test]
    fn an_object_decides() {
        let own = |own: Value| json!({"hookSpecificOutput": own}).to_string();
        let said_pre = said(
            HookEvent::PreToolUse,
            0,
            &own(json!({
                "hookEventName": "PreToolUse", "permissionDecision": "allow", "permissionDecisionReason": "known",
                "updatedInput": {"command": "ls"}, "additionalContext": "careful",
            })),
            "",
        );
        assert_eq!(said_pre.verdict, Some(HookVerdict::Allow));
        assert_eq!((said_pre.input, said_pre.context), (Some(json!({"command": "ls"})), vec!["careful".to_owned()]));
        let other =
            said(HookEvent::PreToolUse, 0, &own(json!({"hookEventName": "Stop", "permissionDecision": "deny"})), "");
        assert!(other.failed.is_some() && other.verdict.is_none());
        let stop =
            said(HookEvent::Stop, 0, r#"{"decision": "block", "reason": "tests fail", "systemMessage": "hm"}"#, "");
        assert_eq!((stop.block.as_deref(), stop.message.as_deref()), (Some("tests fail"), Some("hm")));
        let over = said(HookEvent::PostToolUse, 0, r#"{"continue": false, "stopReason": "enough"}"#, "");
        assert_eq!(over.stop.as_deref(), Some("enough"));
        let asked = said(
            HookEvent::PermissionRequest,
            0,
            &own(json!({"decision": {"behavior": "deny", "message": "no", "interrupt": true}})),
            "",
        );
        assert_eq!((asked.verdict, asked.stop.as_deref()), (Some(HookVerdict::Deny), Some("no")));
    }
}
