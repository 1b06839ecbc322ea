//! What a headless run prints: text, one JSON object, or one a line.
//!
//! The JSON shapes are those of Claude Code's `--output-format`, so that scripts written for it work here.

use std::io::IsTerminal;
use std::sync::Mutex;

use engine::Event;
use engine::agent::{End, Turn};
use engine::run::Ending;
use serde_json::{Value, json};
use transcript::price::Prices;

use crate::args::OutputFormat;
use crate::exit::Code;
use crate::out::{self, data, talk};
use crate::span::{bold, dim, green, one_line, red};

/// Prints events and the result of a headless run.
#[derive(Debug)]
pub(crate) struct Output {
    format: OutputFormat,
    partial: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    session: String,
    model: String,
    denials: Vec<Value>,
}

/// What is known of a run beside its turn.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// What tokens cost.
    pub(crate) prices: &'a Prices,
    /// How long it took.
    pub(crate) took: std::time::Duration,
}

impl Output {
    /// A printer for a format.
    pub(crate) fn new(format: OutputFormat, partial: bool) -> Self {
        Self { format, partial, state: Mutex::default() }
    }

    /// Shows an event.
    pub(crate) fn event(&self, event: &Event, cwd: &std::path::Path) {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Event::SessionStarted { session, model, .. } = event {
            state.session.clone_from(session);
            state.model.clone_from(model);
        }
        if let Event::ToolDenied { id, tool, input, .. } = event {
            state.denials.push(json!({"tool_name": tool, "tool_use_id": id, "tool_input": input}));
        }
        match self.format {
            OutputFormat::Text => self.progress(event),
            OutputFormat::Json => {}
            OutputFormat::StreamJson => {
                if let Some(line) = self.stream_line(event, &state.session, cwd) {
                    print_line(&line);
                }
            }
        }
    }

    /// What happens, one line each, for a person who watches.
    fn progress(&self, event: &Event) {
        if !out::stderr().is_terminal() {
            return;
        }
        match event {
            Event::ToolEnded { tool, output, .. } => {
                let failed = output.outcome == transcript::Outcome::Failed;
                let mark = if failed { red("✗ ") } else { green("✓ ") };
                talk!([mark, bold(tool), " ", dim(&one_line(&output.summary, 100))]);
            }
            Event::ToolStarted { tool, input, .. } if tool == "Bash" => {
                let command = one_line(input["command"].as_str().unwrap_or_default(), 100);
                talk!([dim(&format!("  $ {command}"))]);
            }
            Event::Retrying { attempt, after, why } => {
                talk!([dim(&format!("attempt {attempt} failed ({why}); again in {:.1} s", after.as_secs_f32()))]);
            }
            Event::Warning(text) => out::warn(text),
            _ => {
                if let Some(text) = crate::told::of_layers(event) {
                    talk!([dim(&text)]);
                }
            }
        }
    }

    fn stream_line(&self, event: &Event, session: &str, cwd: &std::path::Path) -> Option<Value> {
        let line = match event {
            Event::SessionStarted { model, tools, mode, .. } => json!({
                "type": "system", "subtype": "init", "session_id": session, "cwd": cwd, "model": model,
                "tools": tools, "permissionMode": mode, "mcp_servers": [], "slash_commands": [],
            }),
            Event::Replied { reply } => json!({
                "type": "assistant", "session_id": session, "parent_tool_use_id": null,
                "message": {
                    "id": reply.id, "type": "message", "role": "assistant", "model": reply.model,
                    "content": reply.blocks, "stop_reason": reply.stop, "stop_sequence": null, "usage": reply.usage,
                },
            }),
            Event::ToolEnded { id, output, .. } => {
                let result = transcript::Block::tool_result(id, &output.content, output.outcome);
                json!({
                    "type": "user", "session_id": session, "parent_tool_use_id": null,
                    "message": {"role": "user", "content": [result]},
                })
            }
            Event::Text(text) if self.partial => json!({
                "type": "stream_event", "session_id": session, "parent_tool_use_id": null,
                "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            }),
            Event::Thinking(text) if self.partial => json!({
                "type": "stream_event", "session_id": session, "parent_tool_use_id": null,
                "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": text}},
            }),
            Event::Retrying { attempt, after, why } => json!({
                "type": "system", "subtype": "api_retry", "session_id": session,
                "attempt": attempt, "retry_delay_ms": after.as_millis(), "error": why,
            }),
            Event::Compacted { before, after, .. } => json!({
                "type": "system", "subtype": "compact_boundary", "session_id": session,
                "compact_metadata": {"trigger": "auto", "pre_tokens": before, "post_tokens": after},
            }),
            Event::Cleared { results, freed, .. } => json!({
                "type": "system", "subtype": "microcompact_boundary", "session_id": session,
                "microcompact_metadata": {"results": results, "tokens_saved": freed},
            }),
            _ => return None,
        };
        Some(line)
    }

    /// Prints the result and says how the program ends.
    pub(crate) fn result(&self, turn: &Turn, facts: &Facts<'_>) -> Code {
        let (subtype, code, trouble) = verdict(&turn.end);
        let state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let cost = facts.prices.of(&state.model).map(|price| price.cost(&turn.usage));
        match self.format {
            OutputFormat::Text => {
                if !turn.text.trim().is_empty() && code != Code::Interrupted {
                    let _ = data!("{}", turn.text.trim_end()); // whoever has gone needs no answer
                }
                if let Some(trouble) = trouble {
                    let error = match &turn.end {
                        End::Failed(error) => anyhow::Error::from(error.clone()),
                        _ => anyhow::anyhow!(trouble),
                    };
                    crate::error::print(&error);
                }
            }
            OutputFormat::Json | OutputFormat::StreamJson => print_line(&json!({
                "type": "result",
                "subtype": subtype,
                "is_error": code != Code::Success,
                "duration_ms": facts.took.as_millis(),
                "num_turns": turn.rounds,
                "result": if code == Code::Success { turn.text.as_str() } else { trouble.as_deref().unwrap_or_default() },
                "session_id": state.session,
                "total_cost_usd": cost,
                "usage": turn.usage,
                "permission_denials": state.denials,
            })),
        }
        code
    }
}

/// How a turn's end is called, which code it gives, and what a person is told if it went wrong.
fn verdict(end: &End) -> (&'static str, Code, Option<String>) {
    let limit = |subtype, text: &str| (subtype, Code::Limit, Some(text.to_owned()));
    match end {
        End::Ended(Ending::Answered) => ("success", Code::Success, None),
        End::Ended(Ending::OutputLimit) => limit("error_output_limit", "the answer was cut at the output limit"),
        End::Ended(Ending::WindowFull) => limit("error_window_full", "the model's window is full"),
        End::Ended(Ending::MaxRounds) => {
            limit("error_max_turns", "the limit of --max-turns was reached; --continue goes on")
        }
        End::Ended(Ending::Looping) => {
            limit("error_looping", "the model made the same call again and again, so the turn was ended")
        }
        End::Ended(Ending::Refused) => {
            ("error_refused", Code::Refused, Some("the model declined to answer".to_owned()))
        }
        End::Cancelled => ("error_interrupted", Code::Interrupted, Some("interrupted".to_owned())),
        End::Failed(error) => ("error_during_execution", Code::of_provider(error), Some(error.to_string())),
        End::NoRoom(why) => ("error_window_full", Code::Limit, Some(why.clone())),
        End::NotWritten(error) => {
            let text = format!("the session could not be written: {error}; what was written before is safe");
            ("error_during_execution", Code::Files, Some(text))
        }
    }
}

/// One JSON line. A reader that went away is no error of ours.
fn print_line(value: &Value) {
    let _ = data!("{value}");
}
