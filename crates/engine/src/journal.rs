//! The journal: events of sessions, one JSON object a line, in a file of the user's choice.
//!
//! It holds names, counts, times and reasons, and no text of the user, the model, a file or a command. Reasons are
//! ours, but may quote others: one that contains a secret is left out. A journal that cannot be written stops nothing.

use std::path::PathBuf;
use std::sync::Arc;

use mail::mailbox::IdleReason;
use memory::secrets::{Remarks, scan};
use parking_lot::Mutex;
use serde_json::{Value, json};
use session::World;
use transcript::{Outcome, Usage};

use crate::event::{Event, Listener, TeammateNews};

/// Characters of a reason that are kept.
const LONGEST: usize = 500;

/// The journal of a session. Clones share its file.
#[derive(Debug, Clone)]
pub struct Journal {
    session: String,
    world: World,
    /// The file, if one is configured.
    path: Arc<Mutex<Option<PathBuf>>>,
}

impl Journal {
    /// Creates the journal of a session, in a file if there is to be one.
    pub fn new(session: &str, world: World, path: Option<PathBuf>) -> Self {
        Self { session: session.to_owned(), world, path: Arc::new(Mutex::new(path)) }
    }

    /// Changes the file, or stops writing.
    pub(crate) fn move_to(&self, path: Option<PathBuf>) {
        *self.path.lock() = path;
    }

    /// Wraps a listener, so that the journal receives every event first.
    pub fn hearing(&self, listener: Listener) -> Listener {
        let journal = self.clone();
        Arc::new(move |event| {
            journal.add(&event);
            listener(event);
        })
    }

    /// Appends an event.
    fn add(&self, event: &Event) {
        let path = self.path.lock().clone();
        if let Some(path) = path
            && let Some((name, mut line)) = entry(event)
        {
            line["time"] = json!(self.world.now().to_string());
            line["session"] = json!(self.session);
            line["event"] = json!(name);
            let _ = files::add_line(path, line.to_string().as_bytes()); // it is no part of the work
        }
    }
}

/// Name and content of the entry for an event; `None` for parts of replies and for what only the screen needs.
pub fn entry(event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::SessionStarted { model, tools, mode, .. } => {
            ("session_started", json!({"model": model, "tools": tools.len(), "mode": mode}))
        }
        Event::PromptSubmitted { text, .. } => ("prompt_submitted", json!({"characters": text.chars().count()})),
        Event::ModelChanged { model, window } => ("model_changed", json!({"model": model, "window": window.size})),
        Event::RequestSent { round, tokens } => ("request_sent", json!({"round": round, "tokens": tokens})),
        Event::Retrying { attempt, after, why } => {
            let after = after.as_millis() as u64;
            ("retrying", json!({"attempt": attempt, "after_ms": after, "why": reason(why)}))
        }
        Event::Restarted => ("restarted", json!({})),
        Event::Replied { reply } => ("replied", json!({"model": reply.model, "usage": used(&reply.usage)})),
        Event::ToolStarted { id, tool, .. } => ("tool_started", json!({"id": id, "tool": tool})),
        Event::ToolDenied { id, tool, why, .. } => ("tool_denied", json!({"id": id, "tool": tool, "why": reason(why)})),
        Event::ToolEnded { id, tool, output } => {
            let (failed, characters) = (output.outcome == Outcome::Failed, output.text().chars().count());
            ("tool_ended", json!({"id": id, "tool": tool, "failed": failed, "characters": characters}))
        }
        Event::Spilled { results, freed } => ("spilled", json!({"results": results, "freed": freed})),
        Event::Snipped { messages, freed } => ("snipped", json!({"messages": messages, "freed": freed})),
        Event::Collapsed { messages, freed } => ("collapsed", json!({"messages": messages, "freed": freed})),
        Event::Cleared { results, freed, why } => {
            ("cleared", json!({"results": results, "freed": freed, "why": reason(why)}))
        }
        Event::Regretted { figures } => (
            "regretted",
            json!({
                "regrets": figures.regrets, "regrets_usd": figures.regrets_usd,
                "rewriting_usd": figures.rewriting_usd, "saved_usd": figures.saved_usd,
            }),
        ),
        Event::Compacting { tokens } => ("compacting", json!({"tokens": tokens})),
        Event::Compacted { before, after, .. } => ("compacted", json!({"before": before, "after": after})),
        Event::CompactionFailed { why } => ("compaction_failed", json!({"why": reason(why)})),
        Event::NotesUpdated { usage, failed, .. } => {
            ("notes_updated", json!({"usage": used(usage), "failed": failed.as_deref().map(reason)}))
        }
        Event::CacheBroke(broke) => {
            let why = reason(&serde_json::to_string(&broke.cause).unwrap_or_default());
            ("cache_broke", json!({"expected": broke.expected, "read": broke.read, "why": why}))
        }
        Event::TurnEnded { usage } => ("turn_ended", json!({"usage": used(usage)})),
        Event::Recalled { memories } => ("recalled", json!({"memories": memories.len()})),
        Event::InstructionsLoaded { files } => ("instructions_loaded", json!({"files": files.len()})),
        Event::MemorySaved { .. } => ("memory_saved", json!({})),
        Event::MemoryForgotten { .. } => ("memory_forgotten", json!({})),
        Event::TeammateAsks { name, tool } => ("teammate_asks", json!({"name": name, "tool": tool})),
        Event::Teammate { name, news, used, .. } => {
            let named = match news {
                TeammateNews::Started => "teammate_started",
                TeammateNews::Labelled(_) => "teammate_progress",
                TeammateNews::Rests(IdleReason::Interrupted) => "teammate_interrupted",
                TeammateNews::Rests(_) => "teammate_idle",
                TeammateNews::Ended(_) => "teammate_ended",
            };
            (named, json!({"name": name, "replies": used.replies, "tokens": used.tokens, "usd": used.cost_usd}))
        }
        Event::MessageArrived { .. } => ("message_arrived", json!({})),
        Event::Dream(progress) => {
            let (phase, calls) = (progress.phase.word(), progress.tools.values().sum::<u32>());
            let mut line =
                json!({"phase": phase, "rounds": progress.rounds, "calls": calls, "touched": progress.touched.len()});
            if let Some(figures) = &progress.figures {
                line["usage"] = used(&figures.usage);
                (line["saved"], line["saved_team"]) = (json!(figures.saved), json!(figures.saved_team));
                line["removed"] = json!(figures.removed);
                (line["denied"], line["denied_writes"]) = (json!(figures.denied), json!(figures.denied_writes));
                line["duration_ms"] = json!(figures.took.as_millis() as u64);
            }
            ("dream", line)
        }
        Event::TeamMemory { changed, .. } => ("team_memory", json!({"changed": changed.len()})),
        Event::Extracted(outcome) => {
            let (saved, saved_team) = outcome.tally.counted();
            (
                "extracted",
                json!({
                    "model": outcome.model, "messages": outcome.messages, "rounds": outcome.rounds,
                    "usage": used(&outcome.usage), "first_request": used(&outcome.first), "saved": saved,
                    "saved_team": saved_team, "removed": outcome.tally.removed.len(), "denied": outcome.tally.denied,
                    "denied_writes": outcome.tally.denied_writes, "duration_ms": outcome.took.as_millis() as u64,
                    "failed": outcome.failed.as_ref().map(|failure| reason(&failure.why)),
                }),
            )
        }
        Event::HooksStarted { hook_event, .. } => ("hooks_started", json!({"moment": hook_event.name()})),
        Event::HookMessage { hook_event, .. } => ("hook_said", json!({"moment": hook_event.name()})),
        Event::Agent { subagent, news } => of_agent(subagent, news)?,
        Event::Attached { files } => {
            let attached = files.iter().filter(|file| file.outcome.is_ok()).count();
            ("attached", json!({"files": attached, "left_out": files.len() - attached}))
        }
        Event::Warning(text) => ("warning", json!({"why": reason(text)})),
        Event::Text(_) | Event::Thinking(_) | Event::CallWriting { .. } | Event::SignalsChanged(_) => return None,
    })
}

fn used(usage: &Usage) -> Value {
    json!({
        "input": usage.input_tokens, "output": usage.output_tokens, "cache_read": usage.cache_read_input_tokens,
        "cache_write": usage.cache_creation_input_tokens,
    })
}

fn reason(text: &str) -> String {
    if scan(text.as_bytes(), "", Remarks::Ignored).is_empty() {
        text.chars().take(LONGEST).collect()
    } else {
        "(left out: there is a secret in it)".to_owned()
    }
}

/// Entry for a subagent: its type, its calls, its usage.
fn of_agent(subagent: &crate::subagent::Subagent, news: &crate::event::SubagentNews) -> Option<(&'static str, Value)> {
    use crate::event::SubagentNews;
    let (id, kind, used) = (&subagent.id, &subagent.kind, subagent.progress());
    Some(match news {
        SubagentNews::Started => {
            ("agent_started", json!({"id": id, "agent": kind, "background": subagent.is_background()}))
        }
        // What happens to it, as it would be written of a session of its own.
        SubagentNews::Does(event) => {
            let (name, mut line) = entry(event)?;
            (line["agent_id"], line["agent"]) = (json!(id), json!(kind));
            (name, line)
        }
        SubagentNews::Backgrounded => ("agent_in_background", json!({"id": id, "agent": kind})),
        SubagentNews::Asks => ("agent_asks", json!({"id": id, "agent": kind, "tool": subagent.waits_for()})),
        SubagentNews::Labelled => ("agent_progress", json!({"id": id, "agent": kind, "calls": used.calls})),
        SubagentNews::Ended => {
            let how = match subagent.phase() {
                crate::subagent::SubagentPhase::Ended(ended) => ended.how.status(),
                _ => return None,
            };
            let used = json!({"requests": used.requests, "calls": used.calls, "tokens": used.tokens});
            ("agent_ended", json!({"id": id, "agent": kind, "how": how, "used": used}))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CONF-3: every event is written down and passed on, whoever sends it, a dream or team memory included; and from
    /// the moment the file changes, elsewhere or nowhere.
    #[test]
    fn whatever_is_told_is_written_down_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let journal = Journal::new("s", World::real(), Some(path.clone()));
        let heard = Arc::new(Mutex::new(0));
        let counting = heard.clone();
        let listener = journal.hearing(Arc::new(move |_| *counting.lock() += 1));
        let mut progress = learning::dream::progress::DreamProgress::default();
        progress.touched.push("a-secret-name.md".into());
        listener(Event::Dream(Box::new(progress)));
        listener(Event::TeamMemory { sentences: vec!["secret".into()], changed: Vec::new() });
        journal.move_to(None);
        listener(Event::Restarted);
        let text = String::from_utf8(files::read(&path, 10_000).unwrap().bytes).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let names: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!((names, *heard.lock()), (vec!["dream", "team_memory"], 3));
        assert_eq!((&lines[0]["phase"], &lines[0]["touched"]), (&json!("starting"), &json!(1)));
        assert!(!text.contains("secret"), "{text}");
    }

    /// CONF-3: an event contains no text of others, and a reason no secret.
    #[test]
    fn events_hold_no_text_and_no_secret() {
        let key = format!("sk-ant-api03-{}AA", "aB3x".repeat(23) + "q");
        let (name, line) = entry(&Event::Warning(format!("the server said: bad key {key}"))).unwrap();
        assert_eq!((name, line["why"].as_str()), ("warning", Some("(left out: there is a secret in it)")));
        let (_, line) = entry(&Event::PromptSubmitted { line: None, text: format!("my key is {key}") }).unwrap();
        assert!(!line.to_string().contains("key"), "{line}");
        let input = json!({"command": format!("export KEY={key}")});
        let started = Event::ToolStarted { id: "toolu_1".into(), tool: "Bash".into(), input };
        assert_eq!(entry(&started).unwrap().1, json!({"id": "toolu_1", "tool": "Bash"}));
        assert!(entry(&Event::Text(key)).is_none());
    }
}
