//! Activity of a turn, as it is shown above the prompt while it lasts: a row for the turn, the end of what a command prints,
//! and a row for each agent it waits for.
//!
//! Nothing of it stays in the scrollback.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::Event;
use engine::subagent::Subagent;
use tokio::time::Instant;
use tools::ForegroundCommand;

use super::width::{fit, spans_width, width, wrap};
use crate::event_text::short_tokens;
use crate::styled_text::{Colour, Span, TextStyle, without_escapes};

/// Frames of the spinner.
const SPINNER: [&str; 6] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇"];
/// The most characters of the end of a thought that are kept for the screen.
const THOUGHT: usize = 400;
/// Lines of the end of what a command prints.
const TAIL: usize = 3;
/// The most rows of agents.
const AGENTS: usize = 6;
/// Columns of a window in which an agent's tokens are shown beside what it does.
const ROOM_FOR_TOKENS: usize = 60;
/// Time after which seconds are shown: what is quicker needs no clock.
const SLOW: Duration = Duration::from_secs(1);
/// Columns from which the row of a retry names the key that stops it.
const ROOM_FOR_KEY: usize = 60;
/// Facts of a turn that give way in a narrow window, by their place: tokens, then the key for the background.
const GIVE_WAY: [usize; 2] = [1, 3];
/// Bytes of a token of English or code, roughly: the true number comes with the end of the reply.
const BYTES_PER_TOKEN: u64 = 4;

/// Activity of a turn.
#[derive(Debug)]
pub(super) struct TurnActivity {
    started: Instant,
    doing: String,
    /// The end of what the model thinks.
    thought: String,
    /// Last action of each agent, by its id.
    agents: BTreeMap<String, String>,
    /// Tokens of finished replies, and bytes of the one that is being written.
    written: u64,
    writing: u64,
    retry: Option<AwaitedRetry>,
}

/// A request that failed and is sent again.
#[derive(Debug)]
struct AwaitedRetry {
    attempt: u32,
    why: String,
    at: Instant,
}

impl TurnActivity {
    /// From now on.
    pub(super) fn new(doing: &str, now: Instant) -> Self {
        Self {
            started: now,
            doing: doing.to_owned(),
            thought: String::new(),
            agents: BTreeMap::new(),
            written: 0,
            writing: 0,
            retry: None,
        }
    }

    /// It does something else now.
    pub(super) fn does(&mut self, what: &str) {
        if self.doing != what {
            what.clone_into(&mut self.doing);
            self.thought.clear();
        }
    }

    /// An agent does something else now.
    pub(super) fn agent_does(&mut self, id: &str, what: String) {
        self.agents.insert(id.to_owned(), what);
    }

    /// The last line of a thought is shown while it is thought.
    pub(super) fn thinks(&mut self, piece: &str) {
        self.thought.push_str(piece);
        if let Some(end) = self.thought.trim_end().rfind('\n') {
            self.thought.drain(..=end);
        }
        if self.thought.len() > 2 * THOUGHT {
            let from = self.thought.len() - THOUGHT;
            let from = (from..).find(|&at| self.thought.is_char_boundary(at)).unwrap_or_default();
            self.thought.drain(..from);
        }
    }

    /// Takes in what an event says of tokens and failed attempts.
    pub(super) fn heard(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Text(text) | Event::Thinking(text) => self.writing += text.len() as u64,
            Event::Replied { reply } => {
                self.written += reply.usage.output_tokens;
                self.writing = 0;
            }
            Event::Retrying { attempt, after, why } => {
                let at = now + *after;
                self.retry = Some(AwaitedRetry { attempt: *attempt, why: why.clone(), at });
                return;
            }
            Event::Restarted => self.writing = 0,
            _ => return,
        }
        self.retry = None;
    }

    /// The rows: of the turn, of the commands it waits for, and of its agents, which count by the clock on the wall.
    pub(super) fn rows(
        &self,
        commands: &[ForegroundCommand],
        agents: &[Arc<Subagent>],
        (tick, now, wall): (usize, Instant, jiff::Timestamp),
        columns: usize,
    ) -> Vec<Vec<Span>> {
        let spin = SPINNER[tick % SPINNER.len()];
        let mut rows = vec![match self.retry.as_ref() {
            Some(retry) => retry.row(spin, now, columns),
            None => self.own_row((spin, now), commands, agents, columns),
        }];
        if !self.thought.is_empty() {
            let italic = TextStyle { italic: true, ..TextStyle::DIM };
            let wrapped = wrap(&[Span::plain("  "), Span::new(&self.thought, italic)], columns, 2);
            rows.extend(wrapped.into_iter().next_back());
        }
        for command in commands {
            let text = without_escapes(&command.recent);
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let tail = &lines[lines.len().saturating_sub(TAIL)..];
            rows.extend(tail.iter().map(|line| fit(&[Span::new(&format!("    {line}"), TextStyle::DIM)], columns)));
        }
        if agents.len() > 1 {
            rows.extend(agents.iter().take(AGENTS).map(|agent| self.agent_row(agent, wall, columns)));
            if agents.len() > AGENTS {
                let more = format!("    and {} more: /tasks", agents.len() - AGENTS);
                rows.push(vec![Span::new(&more, TextStyle::DIM)]);
            }
        }
        rows
    }

    fn own_row(
        &self,
        (spin, now): (&str, Instant),
        commands: &[ForegroundCommand],
        agents: &[Arc<Subagent>],
        columns: usize,
    ) -> Vec<Span> {
        let doing = match agents {
            [] => self.doing.clone(),
            [agent] => self.agents.get(&agent.id).unwrap_or(&self.doing).clone(),
            many => format!("{} agents at work", many.len()),
        };
        let elapsed = now.saturating_duration_since(self.started);
        let tokens = self.written + self.writing / BYTES_PER_TOKEN;
        let is_slow = elapsed >= SLOW;
        let can_move = commands.iter().any(|command| command.running >= SLOW) || (!agents.is_empty() && is_slow);
        // In the order in which they stand; where there is no room, the later of these give way first.
        let mut facts = [
            is_slow.then(|| short_time(elapsed)),
            (is_slow && tokens > 0).then(|| format!("{} tokens", short_tokens(tokens))),
            Some("Esc stops".to_owned()),
            can_move.then(|| "Ctrl-B: background".to_owned()),
        ];
        let text = |facts: &[Option<String>]| {
            let facts: Vec<&str> = facts.iter().flatten().map(String::as_str).collect();
            format!("  ({})", facts.join(" · "))
        };
        for dropped in GIVE_WAY {
            if width(&text(&facts)) > columns * 2 / 3 {
                facts[dropped] = None;
            }
        }
        let facts = Span::new(&text(&facts), TextStyle::DIM);
        let room = columns.saturating_sub(spans_width(std::slice::from_ref(&facts)));
        let look = match agents {
            [agent] if look_of(agent).colour.is_some() => look_of(agent),
            _ => TextStyle::of(Colour::Cyan),
        };
        let mut row = fit(&[Span::new(&format!("{spin} {doing}"), look)], room);
        row.push(facts);
        row
    }

    fn agent_row(&self, agent: &Subagent, wall: jiff::Timestamp, columns: usize) -> Vec<Span> {
        let progress = agent.progress();
        let started = format!("{}: {}", agent.kind, agent.description);
        let doing = self.agents.get(&agent.id).unwrap_or(&started);
        let seconds = wall.duration_since(agent.since).as_secs().max(0).unsigned_abs();
        let mut facts = vec![short_time(Duration::from_secs(seconds))];
        let has_room = columns >= ROOM_FOR_TOKENS && progress.tokens > 0;
        facts.extend(has_room.then(|| format!("{} tokens", short_tokens(progress.tokens))));
        let facts = Span::new(&format!("  {}", facts.join(" · ")), TextStyle::DIM);
        let room = columns.saturating_sub(spans_width(std::slice::from_ref(&facts)));
        // What it does begins with its type, which has the colour.
        let rest = doing.strip_prefix(agent.kind.as_str()).unwrap_or(doing);
        let kind = &doing[..doing.len() - rest.len()];
        let mut row = fit(&[Span::plain("    "), Span::new(kind, look_of(agent)), Span::plain(rest)], room);
        row.push(facts);
        row
    }
}

impl AwaitedRetry {
    fn row(&self, spin: &str, now: Instant, columns: usize) -> Vec<Span> {
        let left = self.at.saturating_duration_since(now).as_secs_f32().ceil();
        let when = if left > 0.0 { format!("again in {left} s") } else { "trying again".to_owned() };
        // In a narrow window the reason matters more than the key.
        let key = if columns >= ROOM_FOR_KEY { "  (Esc stops)" } else { "" };
        let facts = Span::new(&format!("; {when}{key}"), TextStyle::DIM);
        let room = columns.saturating_sub(spans_width(std::slice::from_ref(&facts)));
        let text = format!("{spin} attempt {} failed: {}", self.attempt, self.why);
        let mut row = fit(&[Span::new(&text, TextStyle::of(Colour::Yellow))], room);
        row.push(facts);
        row
    }
}

/// The look of an agent's type: its colour, if its definition names one.
pub(super) fn look_of(agent: &Subagent) -> TextStyle {
    TextStyle { colour: agent.color.as_deref().and_then(Colour::named), ..TextStyle::PLAIN }
}

/// A time, as `12 s` or `2 min 5 s`.
fn short_time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::{Colours, paint};

    fn shown(activity: &TurnActivity, commands: &[ForegroundCommand], now: Instant, columns: usize) -> Vec<String> {
        let rows = activity.rows(commands, &[], (0, now, jiff::Timestamp::UNIX_EPOCH), columns);
        rows.iter().map(|row| paint(row, Colours::Off)).collect()
    }

    #[test]
    fn time_tokens_and_the_end_of_the_output_are_shown() {
        let start = Instant::now();
        let mut activity = TurnActivity::new("Bash cargo test", start);
        assert_eq!(shown(&activity, &[], start, 60), ["⠋ Bash cargo test  (Esc stops)"]);
        activity.heard(&Event::Text("x".repeat(8_000)), start);
        let command = ForegroundCommand {
            call: None,
            command: "cargo test".to_owned(),
            running: Duration::from_secs(64),
            recent: "one\ntwo\n\u{1b}[32mthree\u{1b}[0m\nfour\n".to_owned(),
        };
        let now = start + Duration::from_secs(65);
        assert_eq!(
            shown(&activity, std::slice::from_ref(&command), now, 120),
            [
                "⠋ Bash cargo test  (1 min 5 s · 2.0k tokens · Esc stops · Ctrl-B: background)",
                "    two",
                "    three",
                "    four"
            ]
        );
        assert_eq!(shown(&activity, &[command], now, 40)[0], "⠋ Bash cargo t…  (1 min 5 s · Esc stops)");
    }

    #[test]
    fn a_retry_counts_down_in_one_row() {
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut activity = TurnActivity::new("waiting for the model", start);
        let retrying = Event::Retrying { attempt: 3, after: Duration::from_secs(9), why: "busy (529)".to_owned() };
        activity.heard(&retrying, start);
        assert_eq!(
            shown(&activity, &[], after(2_500), 60),
            ["⠋ attempt 3 failed: busy (529); again in 7 s  (Esc stops)"]
        );
        assert_eq!(
            shown(&activity, &[], after(9_500), 60),
            ["⠋ attempt 3 failed: busy (529); trying again  (Esc stops)"]
        );
        activity.heard(&Event::Text("x".to_owned()), after(9_500));
        assert!(shown(&activity, &[], after(9_500), 60)[0].starts_with("⠋ waiting for the model"));
    }
}
