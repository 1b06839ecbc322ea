//! What was shown in one line, shown whole.

use super::conversation::Conversation;
use super::page::Part;
use super::width::{Look, Span};

/// How many calls can be expanded.
const REMEMBERED: usize = 20;
/// How many lines of a call or a command's output are shown.
const SHOWN_LINES: usize = 200;

/// A call that was shown in one line and can be shown whole.
pub(super) struct Shown {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: serde_json::Value,
    pub(super) text: Option<String>,
}

impl Conversation {
    /// Keeps what can be shown whole later.
    pub(super) fn remember(&mut self, shown: Shown) {
        self.shown.push_back(shown);
        if self.shown.len() > REMEMBERED {
            self.shown.pop_front();
        }
    }

    /// Shows the newest call that was not shown whole yet.
    pub(super) fn expand(&mut self) {
        let Some(shown) = self.shown.pop_back() else {
            self.hint = Some("no tool call to expand".into());
            return;
        };
        self.page.begin(Part::Note);
        self.page.line(&[Span::new(&shown.tool, Look::BOLD), Span::new(" was called with", Look::DIM)], 2);
        for (key, value) in shown.input.as_object().into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let mut lines = text.lines();
            let first = lines.next().unwrap_or_default();
            self.page.line(&[Span::new(&format!("  {key}: "), Look::DIM), Span::plain(first)], 4);
            self.show_lines(&lines.collect::<Vec<_>>());
        }
        self.page.line(&[Span::new("and gave", Look::DIM)], 2);
        let text = shown.text.unwrap_or_else(|| "(it still runs)".into());
        self.show_lines(&text.lines().collect::<Vec<_>>());
    }

    /// Lines of a text, up to a limit.
    pub(super) fn show_lines(&mut self, lines: &[&str]) {
        for line in lines.iter().take(SHOWN_LINES) {
            self.page.line(&[Span::plain("  "), Span::plain(line)], 2);
        }
        self.say_rest(lines.len(), SHOWN_LINES);
    }

    /// How many lines were not shown.
    pub(super) fn say_rest(&mut self, lines: usize, shown: usize) {
        if lines > shown {
            self.page.line(&[Span::new(&format!("  … {} more lines", lines - shown), Look::DIM)], 2);
        }
    }
}
