//! The input of the custom status line, with Claude Code's keys.
//!
//! Left out is what does not exist here: `effort`, `prompt_cache`, `rate_limits`, `vim`.

use std::collections::HashMap;
use std::time::Duration;

use engine::Event;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use tokio::time::Instant;
use tools::FileChange;
use transcript::{Outcome, Usage};

use super::session_state::SessionState;

/// Above so many tokens some models cost more.
const LONG: u64 = 200_000;

/// Figures since the session was opened.
pub(super) struct SessionFigures {
    opened: Instant,
    /// When the request went out that is under way, and how long the model was waited for in all.
    asked: Option<Instant>,
    waited: Duration,
    /// Usage of the newest reply; none after a compaction.
    usage: Option<Usage>,
    /// Lines that calls under way would add and remove, and those that calls did.
    changing: HashMap<String, (usize, usize)>,
    changed: (usize, usize),
}

impl SessionFigures {
    /// From now on.
    pub(super) fn new() -> Self {
        let (opened, waited) = (Instant::now(), Duration::ZERO);
        Self { opened, asked: None, waited, usage: None, changing: HashMap::new(), changed: (0, 0) }
    }

    /// Takes in what an event tells; says whether there is something new to show.
    pub(super) fn heard(&mut self, event: &Event) -> bool {
        match event {
            Event::RequestSent { .. } => self.asked = Some(Instant::now()),
            Event::Replied { reply } => {
                self.waited += self.asked.take().map(|asked| asked.elapsed()).unwrap_or_default();
                self.usage = Some(reply.usage);
                return true;
            }
            Event::Compacted { .. } => {
                self.usage = Some(Usage::default());
                return true;
            }
            Event::ToolStarted { id, input, .. } => {
                self.changing.extend(changes(input).map(|lines| (id.clone(), lines)));
            }
            Event::ToolEnded { id, output, .. } => {
                let lines = self.changing.remove(id).filter(|_| output.outcome == Outcome::Done);
                let (added, removed) = lines.unwrap_or_default();
                self.changed = (self.changed.0 + added, self.changed.1 + removed);
            }
            Event::ModelChanged { .. } | Event::TurnEnded { .. } => return true,
            _ => {}
        }
        false
    }

    /// All of it.
    pub(super) fn json(&self, session: &SessionState, thinks: bool) -> Value {
        let (status, scope) = (&session.status, &session.scope);
        let window = status.window.size;
        let input = self.usage.map(|usage| usage.total() - usage.output_tokens);
        let used = input.map(|input| (input as f64 * 100.0 / window.max(1) as f64).round() as u64);
        let current = self.usage.map(|usage| {
            json!({
                "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
                "cache_creation_input_tokens": usage.cache_creation_input_tokens,
                "cache_read_input_tokens": usage.cache_read_input_tokens,
            })
        });
        let added: Vec<_> = scope.directories().into_iter().filter(|path| path != scope.project()).collect();
        json!({
            "session_id": status.session, "transcript_path": session.background.folder.with_extension("jsonl"),
            "cwd": scope.directory(),
            "model": {"id": status.model, "display_name": status.model},
            "workspace": {"current_dir": scope.directory(), "project_dir": scope.project(), "added_dirs": added},
            "version": env!("CARGO_PKG_VERSION"), "output_style": {"name": "default"},
            "cost": {
                "total_cost_usd": status.cost().unwrap_or_default(),
                "total_duration_ms": self.opened.elapsed().as_millis() as u64,
                "total_api_duration_ms": self.waited.as_millis() as u64,
                "total_lines_added": self.changed.0, "total_lines_removed": self.changed.1,
            },
            "context_window": {
                "total_input_tokens": input.unwrap_or_default(),
                "total_output_tokens": self.usage.map(|usage| usage.output_tokens).unwrap_or_default(),
                "context_window_size": window, "current_usage": current, "used_percentage": used,
                "remaining_percentage": used.map(|used| 100_u64.saturating_sub(used)),
            },
            "exceeds_200k_tokens": self.usage.is_some_and(|usage| usage.total() > LONG),
            "fast_mode": false, "thinking": {"enabled": thinks},
        })
    }
}

/// Lines that an edit adds and removes.
fn changes(input: &Value) -> Option<(usize, usize)> {
    let change = FileChange::of(input)?;
    let (before, after) = change.texts();
    let diff = TextDiff::from_lines(before, after);
    let count = |tag: ChangeTag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    Some((count(ChangeTag::Insert), count(ChangeTag::Delete)))
}
