//! The status line: model, how full the window is, what it cost, what waits.

use engine::Event;
use engine::permission::LiveMode;
use tools::permission::Mode;
use transcript::price::Prices;
use transcript::window::{AutoCompact, Window};

use super::width::width;
use crate::setup::Ready;
use crate::span::{Colour, Look, Span};

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
    /// How much may happen without asking.
    pub(crate) mode: LiveMode,
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
            mode: ready.agent.mode().clone(),
            used: stats.context_tokens,
            cost: stats.cost_usd,
        }
    }

    /// Takes in what an event tells.
    pub(crate) fn heard(&mut self, event: &Event) {
        match event {
            Event::RequestSent { tokens, .. } => self.used = *tokens,
            Event::Compacted { after, .. } => self.used = *after,
            Event::Cleared { freed, .. } | Event::Snipped { freed, .. } => self.used = self.used.saturating_sub(*freed),
            Event::Replied { reply } => {
                self.used = reply.usage.total();
                let cost = self.prices.of(&reply.model).map(|price| price.cost(&reply.usage));
                self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
            }
            _ => {}
        }
    }

    /// The mode it is in now.
    pub(crate) fn mode(&self) -> Mode {
        self.mode.get()
    }

    /// The line. Where the window is too narrow for all of it, what matters least is left out.
    pub(crate) fn row(&self, work: &Work, columns: usize) -> Vec<Span> {
        let fill = self.window.fill(self.used, AutoCompact::On);
        let warned = |on: bool| if on { Look::of(Colour::Red) } else { Look::DIM };
        let yellow = Look::of(Colour::Yellow);
        // Each with its weight: the lightest goes first.
        let mut parts = vec![
            (1, Span::new(&self.model, Look::DIM)),
            (5, Span::new(&format!("{} % context left", fill.percent_left), warned(fill.above_warning))),
        ];
        if let Some(cost) = self.cost {
            parts.push((2, Span::new(&format!("${cost:.4}"), Look::DIM)));
        }
        if self.mode() != Mode::Default {
            parts.push((4, Span::new(mode_name(self.mode()), yellow)));
        }
        if work.background > 0 {
            parts.push((3, Span::new(&format!("{} in the background", work.background), yellow)));
        }
        if work.questions > 1 {
            parts.push((3, Span::new(&format!("{} more questions", work.questions - 1), yellow)));
        }
        const BETWEEN: &str = " · ";
        let wide = |parts: &[(u8, Span)]| {
            parts.iter().map(|(_, span)| width(span.text())).sum::<usize>() + width(BETWEEN) * (parts.len() - 1)
        };
        while parts.len() > 1 && wide(&parts) > columns {
            let weights = parts.iter().enumerate().map(|(at, (weight, _))| (*weight, at));
            if let Some((_, lightest)) = weights.min() {
                parts.remove(lightest);
            }
        }
        let mut row = Vec::new();
        for (at, (_, span)) in parts.into_iter().enumerate() {
            if at > 0 {
                row.push(Span::new(BETWEEN, Look::DIM));
            }
            row.push(span);
        }
        row
    }
}

/// What goes on beside the conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    /// Commands that run in the background.
    pub(crate) background: usize,
    /// Questions that wait.
    pub(crate) questions: usize,
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
