//! Events as JSON lines.

use std::path::Path;

use engine::Event;
use engine::event::{SubagentNews, TeammateNews};
use engine::subagent::{Subagent, SubagentPhase};
use mail::mailbox::IdleReason;
use serde_json::{Value, json};
use session::stats::SessionUse;
use tools::JobState;
use transcript::tool_names;

/// The version of Claude Code whose lines these are: programs look whether it is new enough for them.
const SPEAKS: &str = "2.1.325";

/// The line about an event, if there is one; without the fields that every line has.
pub(super) fn of(event: &Event, directory: &Path, partial: bool) -> Option<Value> {
    let delta = |delta: Value| {
        json!({
            "type": "stream_event", "parent_tool_use_id": null,
            "event": {"type": "content_block_delta", "index": 0, "delta": delta},
        })
    };
    Some(match event {
        Event::SessionStarted { model, tools, mode, .. } => {
            // Claude Code calls it by its older name there, and programs look for that.
            let tools: Vec<&str> =
                tools.iter().map(|tool| if tool == tool_names::AGENT { tool_names::TASK } else { tool }).collect();
            json!({
                "type": "system", "subtype": "init", "cwd": directory, "model": model, "tools": tools,
                "permissionMode": mode, "mcp_servers": [], "slash_commands": [], "agents": [],
                "skills": [], "plugins": [],
                "claude_code_version": SPEAKS,
            })
        }
        Event::Replied { reply } => json!({
            "type": "assistant", "parent_tool_use_id": null,
            "message": {
                "id": reply.id, "type": "message", "role": "assistant", "model": reply.model,
                "content": reply.blocks, "stop_reason": reply.stop, "stop_sequence": null, "usage": reply.usage,
            },
        }),
        Event::ToolEnded { id, output, .. } => {
            let result = transcript::Block::tool_result(id, &output.content, output.outcome);
            let mut line = json!({
                "type": "user", "parent_tool_use_id": null,
                "message": {"role": "user", "content": [result]},
            });
            if let Some(about) = output.for_programs() {
                line["tool_use_result"] = about;
            }
            line
        }
        Event::Agent { subagent, news } => return of_agent(subagent, news, directory),
        Event::Teammate { name, session, news, used } => of_teammate(name, session, news, used),
        Event::Text(text) if partial => delta(json!({"type": "text_delta", "text": text})),
        Event::Thinking(text) if partial => delta(json!({"type": "thinking_delta", "thinking": text})),
        Event::MessageArrived { from, text } => json!({
            "type": "system", "subtype": "message", "from": from, "text": text,
        }),
        Event::Retrying { attempt, after, why } => json!({
            "type": "system", "subtype": "api_retry",
            "attempt": attempt, "retry_delay_ms": after.as_millis(), "error": why,
        }),
        Event::Compacted { before, after, .. } => json!({
            "type": "system", "subtype": "compact_boundary",
            "compact_metadata": {"trigger": "auto", "pre_tokens": before, "post_tokens": after},
        }),
        Event::Snipped { messages, freed } => json!({
            "type": "system", "subtype": "snip_boundary",
            "snip_metadata": {"messages": messages, "tokens_saved": freed},
        }),
        Event::Collapsed { messages, freed } => json!({
            "type": "system", "subtype": "collapse_boundary",
            "collapse_metadata": {"messages": messages, "tokens_saved": freed},
        }),
        Event::Cleared { results, freed, .. } => json!({
            "type": "system", "subtype": "microcompact_boundary",
            "microcompact_metadata": {"results": results, "tokens_saved": freed},
        }),
        _ => return None,
    })
}

/// The line about news of a teammate: as of an agent, with its session and usage.
fn of_teammate(name: &str, session: &str, news: &TeammateNews, used: &SessionUse) -> Value {
    let mut line = json!({"type": "system", "task_id": name, "task_type": "teammate", "teammate_session_id": session});
    let usage = json!({"total_tokens": used.tokens, "replies": used.replies, "cost_usd": used.cost_usd});
    let (subtype, status) = match news {
        TeammateNews::Started => ("task_started", "running"),
        TeammateNews::Labelled(_) => ("task_progress", "running"),
        TeammateNews::Rests(IdleReason::Interrupted) => ("task_progress", "interrupted"),
        TeammateNews::Rests(_) => ("task_progress", "idle"),
        TeammateNews::Ended(JobState::Exited { code: Some(0) }) => ("task_notification", "completed"),
        TeammateNews::Ended(JobState::Stopped) => ("task_notification", "stopped"),
        TeammateNews::Ended(_) => ("task_notification", "failed"),
    };
    (line["subtype"], line["status"], line["usage"]) = (json!(subtype), json!(status), usage);
    line["description"] = match news {
        TeammateNews::Labelled(label) => json!(label),
        _ => json!(format!("teammate {name}")),
    };
    line
}

/// The line about news of a subagent, in Claude Code's format.
fn of_agent(subagent: &Subagent, news: &SubagentNews, directory: &Path) -> Option<Value> {
    let progress = subagent.progress();
    let took = progress.took.as_millis();
    let usage = json!({"total_tokens": progress.tokens, "tool_uses": progress.calls, "duration_ms": took});
    let task = |subtype: &str| json!({"type": "system", "subtype": subtype, "task_id": subagent.id, "tool_use_id": subagent.call});
    Some(match news {
        SubagentNews::Started => {
            let mut line = task("task_started");
            line["description"] = json!(subagent.description);
            line["task_type"] = json!("local_agent");
            line["subagent_type"] = json!(subagent.kind);
            line["is_backgrounded"] = json!(subagent.is_background());
            line
        }
        // What it says and does itself carries the call that sent it out; the rest is of no use outside.
        SubagentNews::Does(event) => match &**event {
            Event::Replied { .. } | Event::ToolEnded { .. } => {
                let mut line = of(event, directory, false)?;
                line["parent_tool_use_id"] = json!(subagent.call);
                line
            }
            Event::ToolStarted { tool, .. } => {
                let mut line = task("task_progress");
                line["description"] = json!(progress.label.as_ref().unwrap_or(&subagent.description));
                line["usage"] = usage;
                line["last_tool_name"] = json!(tool);
                line
            }
            _ => return None,
        },
        SubagentNews::Labelled => {
            let mut line = task("task_progress");
            line["description"] = json!(progress.label.as_ref().unwrap_or(&subagent.description));
            line["usage"] = usage;
            line["last_tool_name"] = json!(progress.tool);
            line
        }
        SubagentNews::Backgrounded => {
            let mut line = task("task_updated");
            line["patch"] = json!({"status": "running", "is_backgrounded": true});
            line
        }
        SubagentNews::Asks => return None,
        SubagentNews::Ended => {
            let SubagentPhase::Ended(ended) = subagent.phase() else { return None };
            let mut line = task("task_notification");
            line["status"] = json!(ended.how.status());
            line["output_file"] = json!(subagent.file);
            line["summary"] = json!(subagent.description);
            line["usage"] = usage;
            line
        }
    })
}
