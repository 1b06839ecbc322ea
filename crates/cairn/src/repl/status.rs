//! The status line: model, how full the window is, what it cost, what waits.

use engine::Event;
use tools::permission::Mode;
use transcript::price::Prices;
use transcript::window::{AutoCompact, Window};

use super::width::{Colour, Look, Span};
use crate::setup::Ready;

/// What the status line knows.
#[derive(Debug)]
pub(crate) struct Status {
    /// The session's id.
    pub(crate) session: String,
    /// The model's name.
    pub(crate) model: String,
    /// What tokens cost.
    pub(crate) prices: Prices,
    /// The model's window.
    pub(crate) window: Window,
    mode: Mode,
    used: u64,
    cost: Option<f64>,
}

impl Status {
    /// At the start of a session.
    pub(crate) fn of(ready: &Ready) -> Self {
        let log = ready.agent.session().log();
        let stats = engine::stats::Stats::of(log, &ready.prices);
        Self {
            session: ready.agent.session().id().to_owned(),
            model: log.view().prologue().map(|known| known.model.clone()).unwrap_or_default(),
            prices: ready.prices.clone(),
            window: ready.window,
            mode: ready.mode,
            used: stats.context_tokens,
            cost: stats.cost_usd,
        }
    }

    /// Takes in what an event tells.
    pub(crate) fn heard(&mut self, event: &Event) {
        match event {
            Event::RequestSent { tokens, .. } => self.used = *tokens,
            Event::Replied { reply } => {
                self.used = reply.usage.total();
                let cost = self.prices.of(&reply.model).map(|price| price.cost(&reply.usage));
                self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
            }
            _ => {}
        }
    }

    /// The mode has changed.
    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// The mode.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// The line.
    pub(crate) fn row(&self, questions: usize) -> Vec<Span> {
        let fill = self.window.fill(self.used, AutoCompact::On);
        let mut spans = vec![Span::new(&self.model, Look::DIM)];
        let context = format!(" · {} % context left", fill.percent_left);
        let look = if fill.above_error { Look::of(Colour::Red) } else { Look::DIM };
        spans.push(Span::new(&context, look));
        if let Some(cost) = self.cost {
            spans.push(Span::new(&format!(" · ${cost:.4}"), Look::DIM));
        }
        if self.mode != Mode::Default {
            spans.push(Span::new(&format!(" · {}", mode_name(self.mode)), Look::of(Colour::Yellow)));
        }
        if questions > 1 {
            spans.push(Span::new(&format!(" · {} more questions", questions - 1), Look::of(Colour::Yellow)));
        }
        spans
    }
}

/// A mode as flags and settings name it.
pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "default",
        Mode::AcceptEdits => "acceptEdits",
        Mode::Plan => "plan",
        Mode::BypassPermissions => "bypassPermissions",
    }
}
