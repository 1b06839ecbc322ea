//! Input of hooks, key by key as Claude Code has it.
//!
//! Keys without a value are left out and never made up: `effort` if it is not set, `agent_id` outside of subagents.

use std::path::{Path, PathBuf};

use memory::instructions::LoadedInstruction;
use serde_json::{Map, Value, json};
use settings::hook_definitions::HookEvent;
use settings::permission::PermissionUpdate;
use tools::Subject;
use tools::permission::Mode;
use transcript::{Effort, tool_names};

/// An event with its data, as hooks are told of it.
#[derive(Debug, Clone)]
pub struct HookInput {
    /// The hook event.
    pub hook_event: HookEvent,
    /// Names that matchers are applied to; none if the event has nothing to match.
    pub names: Vec<String>,
    /// The call it is about, for `if`.
    pub(super) call: Option<(String, Subject)>,
    /// Fields of this event alone.
    pub(super) fields: Map<String, Value>,
}

/// Fields of every event.
#[derive(Debug, Clone)]
pub struct CommonInput {
    /// The session's id.
    pub session: String,
    /// Its file.
    pub transcript: PathBuf,
    /// The current working directory.
    pub directory: PathBuf,
    /// The last prompt that the user submitted; `None` before the first.
    pub prompt: Option<String>,
    /// The permission mode.
    pub mode: Mode,
    /// Effort of the model, if it is set.
    pub effort: Option<Effort>,
    /// Id and type of the subagent that it happens in, if it is one.
    pub agent: Option<(String, String)>,
}

/// A call, for hooks.
#[derive(Debug, Clone, Copy)]
pub struct HookedCall<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its input.
    pub input: &'a Value,
    /// The call's id.
    pub id: &'a str,
    /// Its subject.
    pub subject: &'a Subject,
}

/// Reason for a session's start.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionStart {
    /// It is new.
    Startup,
    /// It is resumed; the state in which it was left is reported.
    Resume,
    /// It is new, since `/clear` ended the one before.
    Clear,
    /// It continues in a copy.
    Fork,
    /// The conversation was compacted.
    Compact {
        /// The model.
        model: String,
    },
}

/// State in which a session was left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionExit {
    /// Seconds since the last reply.
    pub seconds: i64,
    /// Tokens in view.
    pub tokens: u64,
    /// True if the cached prefix has likely expired.
    pub expired: bool,
    /// Cost of caching it again, in dollars.
    pub cost: Option<f64>,
}

/// Reason for a session's end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExitReason {
    /// For a new session.
    Clear,
    /// For another session.
    Resume,
    /// The user left.
    PromptInputExit,
    /// Anything else.
    #[default]
    Other,
}

impl HookInput {
    fn new(hook_event: HookEvent, name: Option<&str>, fields: Value) -> Self {
        let names = name.into_iter().map(str::to_owned).collect();
        Self { hook_event, names, call: None, fields: Map::new() }.with(fields)
    }

    fn of_call(hook_event: HookEvent, call: HookedCall<'_>, more: Value) -> Self {
        let fields = json!({"tool_name": call.tool, "tool_input": call.input});
        let mut hook_input = Self::new(hook_event, Some(call.tool), fields).with(more);
        if call.tool == tool_names::AGENT {
            hook_input.names.push(tool_names::TASK.to_owned()); // as it was called before
        }
        hook_input.call = Some((call.tool.to_owned(), call.subject.clone()));
        hook_input
    }

    /// Before a call runs.
    pub fn pre_tool_use(call: HookedCall<'_>) -> Self {
        Self::of_call(HookEvent::PreToolUse, call, json!({"tool_use_id": call.id}))
    }

    /// After a call ran.
    pub fn post_tool_use(call: HookedCall<'_>, response: &Value, took: u64) -> Self {
        let more = json!({"tool_response": response, "tool_use_id": call.id, "duration_ms": took});
        Self::of_call(HookEvent::PostToolUse, call, more)
    }

    /// After a call failed.
    pub fn post_tool_use_failure(call: HookedCall<'_>, error: &str, is_interrupt: bool, took: u64) -> Self {
        let more = json!({"tool_use_id": call.id, "error": error, "is_interrupt": is_interrupt, "duration_ms": took});
        Self::of_call(HookEvent::PostToolUseFailure, call, more)
    }

    /// After all calls of a reply: tool, input, id and the result as the model sees it.
    pub fn post_tool_batch(calls: &[(String, Value, String, Value)]) -> Self {
        let calls: Vec<Value> = calls
            .iter()
            .map(|(tool, input, id, response)| {
                json!({"tool_name": tool, "tool_input": input, "tool_use_id": id, "tool_response": response})
            })
            .collect();
        Self::new(HookEvent::PostToolBatch, None, json!({"tool_calls": calls}))
    }

    /// Before a permission request.
    pub fn permission_request(call: HookedCall<'_>, suggestions: &[PermissionUpdate]) -> Self {
        let more = if suggestions.is_empty() { json!({}) } else { json!({"permission_suggestions": suggestions}) };
        Self::of_call(HookEvent::PermissionRequest, call, more)
    }

    /// After a call was denied.
    pub fn permission_denied(call: HookedCall<'_>, reason: &str) -> Self {
        Self::of_call(HookEvent::PermissionDenied, call, json!({"tool_use_id": call.id, "reason": reason}))
    }

    /// Before a prompt is sent.
    pub fn user_prompt_submit(prompt: &str) -> Self {
        Self::new(HookEvent::UserPromptSubmit, None, json!({"prompt": prompt}))
    }

    /// When a session starts.
    pub fn session_start(start: &SessionStart) -> Self {
        let (source, model) = match start {
            SessionStart::Startup => ("startup", None),
            SessionStart::Resume => ("resume", None),
            SessionStart::Clear => ("clear", None),
            SessionStart::Fork => ("fork", None),
            SessionStart::Compact { model } => ("compact", Some(model)),
        };
        let mut fields = json!({"source": source});
        if let Some(model) = model {
            fields["model"] = json!(model);
        }
        Self::new(HookEvent::SessionStart, Some(source), fields)
    }

    /// Adds the state in which a resumed session was left: how long ago, how many tokens, and the cost of caching them
    /// again.
    #[must_use]
    pub fn left(self, left: &SessionExit) -> Self {
        let mut fields = json!({
            "seconds_since_last_response": left.seconds, "context_tokens": left.tokens,
            "prompt_cache_likely_expired": left.expired,
        });
        if let Some(cost) = left.cost {
            fields["estimated_cache_write_usd"] = json!((cost * 10_000.0).round() / 10_000.0);
        }
        self.with(fields)
    }

    /// When a session ends.
    pub fn session_end(leaving: ExitReason) -> Self {
        let reason = match leaving {
            ExitReason::Clear => "clear",
            ExitReason::Resume => "resume",
            ExitReason::PromptInputExit => "prompt_input_exit",
            ExitReason::Other => "other",
        };
        Self::new(HookEvent::SessionEnd, Some(reason), json!({"reason": reason}))
    }

    /// When the model has answered.
    pub fn stop(again: bool, answer: &str, jobs: &[tools::Job]) -> Self {
        let running = jobs.iter().filter(|job| job.state == tools::JobState::Running);
        let tasks: Vec<Value> = running
            .map(|job| {
                json!({
                    "id": job.id, "type": "shell", "status": "running", "description": job.command,
                    "command": job.command,
                })
            })
            .collect();
        let fields = json!({
            "stop_hook_active": again, "last_assistant_message": answer, "background_tasks": tasks,
            "session_crons": [],
        });
        Self::new(HookEvent::Stop, None, fields)
    }

    /// When a subagent starts.
    pub fn subagent_start(id: &str, kind: &str) -> Self {
        Self::new(HookEvent::SubagentStart, Some(kind), json!({"agent_id": id, "agent_type": kind}))
    }

    /// When a subagent has answered: its type, and its transcript.
    pub fn subagent_stop(again: bool, answer: &str, jobs: &[tools::Job], (kind, file): (&str, &Path)) -> Self {
        let stop = Self::stop(again, answer, jobs);
        let mut hook_input = Self::new(HookEvent::SubagentStop, Some(kind), json!({"agent_transcript_path": file}));
        hook_input.fields.extend(stop.fields);
        hook_input
    }

    /// When a turn ends with an error.
    pub fn stop_failure(error: &str, details: &str) -> Self {
        let fields = json!({"error": error, "last_assistant_message": details});
        Self::new(HookEvent::StopFailure, Some(error), fields)
    }

    /// Before a compaction.
    pub fn pre_compact(trigger: &str, instructions: Option<&str>) -> Self {
        let fields = json!({"trigger": trigger, "custom_instructions": instructions});
        Self::new(HookEvent::PreCompact, Some(trigger), fields)
    }

    /// After a compaction.
    pub fn post_compact(trigger: &str, summary: &str) -> Self {
        Self::new(HookEvent::PostCompact, Some(trigger), json!({"trigger": trigger, "compact_summary": summary}))
    }

    /// When an instruction file is loaded; `trigger` is the file that was touched.
    pub fn instructions_loaded(file: &LoadedInstruction, trigger: Option<&Path>) -> Self {
        let reason = file.reason.name();
        let mut fields = json!({"file_path": file.path, "memory_type": file.owner.name(), "load_reason": reason});
        if !file.globs.is_empty() {
            fields["globs"] = json!(file.globs);
        }
        if let Some(trigger) = trigger {
            fields["trigger_file_path"] = json!(trigger);
        }
        if let Some(parent) = &file.parent {
            fields["parent_file_path"] = json!(parent);
        }
        Self::new(HookEvent::InstructionsLoaded, Some(reason), fields)
    }

    /// When a settings file changes.
    pub fn config_change(source: &str, file: &Path) -> Self {
        Self::new(HookEvent::ConfigChange, Some(source), json!({"source": source, "file_path": file}))
    }

    /// When the working directory changes.
    pub fn cwd_changed(old: &Path, new: &Path) -> Self {
        Self::new(HookEvent::CwdChanged, None, json!({"old_cwd": old, "new_cwd": new}))
    }

    /// When a file changes: `change`, `add` or `unlink`.
    pub fn file_changed(file: &Path, event: &str) -> Self {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self::new(HookEvent::FileChanged, Some(&name), json!({"file_path": file, "event": event}))
    }

    /// When a person is waited for.
    pub fn notification(message: &str, kind: &str) -> Self {
        let fields = json!({"message": message, "notification_type": kind});
        Self::new(HookEvent::Notification, Some(kind), fields)
    }

    /// A sample to try hooks with, about a tool, a source or whatever else matchers are applied to.
    pub fn sample(hook_event: HookEvent, name: Option<&str>) -> Self {
        let input = json!({"command": "echo hello", "description": "Say hello"});
        let subject = Subject::Command("echo hello".to_owned());
        let call = HookedCall { tool: name.unwrap_or("Bash"), input: &input, id: "toolu_0123", subject: &subject };
        let file = Path::new("/tmp/example.txt");
        let mut sample = match hook_event {
            HookEvent::PreToolUse => Self::pre_tool_use(call),
            HookEvent::PostToolUse => {
                let response = json!({
                    "stdout": "hello", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
                });
                Self::post_tool_use(call, &response, 5)
            }
            HookEvent::PostToolUseFailure => Self::post_tool_use_failure(call, "Exit code 1", false, 5),
            HookEvent::PostToolBatch => {
                Self::post_tool_batch(&[(call.tool.to_owned(), input.clone(), call.id.to_owned(), json!("hello"))])
            }
            HookEvent::PermissionRequest => Self::permission_request(call, &[]),
            HookEvent::PermissionDenied => Self::permission_denied(call, "Bash is denied here."),
            HookEvent::UserPromptSubmit => Self::user_prompt_submit("hello"),
            HookEvent::SessionStart => Self::session_start(&SessionStart::Startup),
            HookEvent::SessionEnd => Self::session_end(ExitReason::Other),
            HookEvent::Stop => Self::stop(false, "Done.", &[]),
            HookEvent::SubagentStart => Self::subagent_start("0123456789ab", name.unwrap_or("Explore")),
            HookEvent::SubagentStop => {
                let file = Path::new("/tmp/subagents/agent-0123456789ab.jsonl");
                let kind = name.unwrap_or("Explore");
                let who = json!({"agent_id": "0123456789ab", "agent_type": kind});
                Self::subagent_stop(false, "Done.", &[], (kind, file)).with(who)
            }
            HookEvent::StopFailure => Self::stop_failure("server_error", "the server failed"),
            HookEvent::PreCompact => Self::pre_compact("manual", Some("")),
            HookEvent::PostCompact => Self::post_compact("manual", "What was said."),
            HookEvent::InstructionsLoaded => Self::new(
                hook_event,
                Some("session_start"),
                json!({"file_path": file, "memory_type": "Project", "load_reason": "session_start"}),
            ),
            HookEvent::ConfigChange => Self::config_change("user_settings", file),
            HookEvent::CwdChanged => Self::cwd_changed(Path::new("/tmp"), Path::new("/tmp/sub")),
            HookEvent::FileChanged => Self::file_changed(file, "change"),
            HookEvent::Notification => Self::notification("Cairn waits for you", "idle_prompt"),
        };
        if let Some(name) = name.filter(|_| !sample.names.is_empty()) {
            sample.names = vec![name.to_owned()];
        }
        sample
    }

    /// Replaces or adds fields.
    #[must_use]
    pub fn with(mut self, fields: Value) -> Self {
        if let Value::Object(fields) = fields {
            self.fields.extend(fields);
        }
        self
    }

    /// The tool and its input, if it is about a call.
    pub(super) fn tool(&self) -> Option<(&str, &Value)> {
        Some((self.fields.get("tool_name")?.as_str()?, self.fields.get("tool_input")?))
    }

    /// The complete input of a hook.
    pub fn json(&self, common: &CommonInput) -> Value {
        let mut all = Map::new();
        all.insert("session_id".into(), json!(common.session));
        all.insert("transcript_path".into(), json!(common.transcript));
        all.insert("cwd".into(), json!(common.directory));
        if let Some(prompt) = &common.prompt {
            all.insert("prompt_id".into(), json!(prompt));
        }
        if self.hook_event.tells_mode() {
            all.insert("permission_mode".into(), json!(common.mode));
        }
        if let Some(effort) = common.effort {
            all.insert("effort".into(), json!({"level": effort}));
        }
        if let Some((id, kind)) = &common.agent {
            all.insert("agent_id".into(), json!(id));
            all.insert("agent_type".into(), json!(kind));
        }
        all.insert("hook_event_name".into(), json!(self.hook_event.name()));
        all.extend(self.fields.clone());
        Value::Object(all)
    }
}
