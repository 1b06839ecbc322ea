//! The status line: model, how full the window is, what it cost, what waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Event;
use learning::ledger::{self, Day, Ledger};
use settings::permission::SharedMode;
use tools::permission::Mode;
use transcript::price::Prices;
use transcript::window::{AutoCompact, Window};

use super::modes;
use super::width::width;
use crate::event_text::count;
use crate::setup::PreparedSession;
use crate::styled_text::{Colour, Span, TextStyle};

/// The content of the status line.
#[derive(Debug)]
pub(crate) struct StatusLine {
    /// The session's id.
    pub(crate) session: String,
    /// The model's name.
    pub(crate) model: String,
    /// Prices of tokens.
    pub(crate) prices: Prices,
    /// The model's window.
    pub(crate) window: Window,
    /// The permission mode.
    pub(crate) mode: SharedMode,
    /// True if nothing is learnt from what is said.
    pub(crate) private: bool,
    used: u64,
    /// Cost of the session before this process resumed it.
    before: Option<f64>,
    /// Costs of teammates, by their sessions.
    teammates: BTreeMap<String, Option<f64>>,
    ledger: Arc<Ledger>,
    /// Spending of today, and whether background work may go on.
    today: Day,
    paused: bool,
}

impl StatusLine {
    /// At the start of a session.
    pub(crate) fn of(ready: &PreparedSession) -> Self {
        let log = ready.agent.session().log();
        let stats = session::stats::Stats::of(log, &ready.prices);
        let teammates = session::stats::teammates(ready.agent.session().path(), log, &ready.prices);
        Self {
            session: ready.agent.session().id().to_owned(),
            model: log.view().prologue().map(|known| known.model.clone()).unwrap_or_default(),
            prices: ready.prices.clone(),
            window: ready.window,
            mode: ready.agent.mode().clone(),
            private: learning::extract::private(ready.agent.session()),
            used: stats.context_tokens,
            before: stats.cost_usd.zip(ready.agent.ledger().here()).map(|(all, here)| all - here),
            teammates: teammates.into_iter().map(|mate| (mate.session, mate.used.cost_usd)).collect(),
            today: ready.agent.ledger().today(),
            paused: is_paused(ready.agent.ledger()),
            ledger: ready.agent.ledger().clone(),
        }
    }

    /// Takes in what an event tells.
    pub(crate) fn heard(&mut self, event: &Event) {
        match event {
            Event::ModelChanged { model, window } => (self.model, self.window) = (model.clone(), *window),
            Event::RequestSent { tokens, .. } => self.used = *tokens,
            Event::Compacted { after, .. } => self.used = *after,
            Event::Cleared { freed, .. } | Event::Snipped { freed, .. } | Event::Collapsed { freed, .. } => {
                self.used = self.used.saturating_sub(*freed);
            }
            Event::Replied { reply } => {
                self.used = reply.usage.total();
            }
            Event::Teammate { session, used, .. } if used.replies > 0 => {
                self.teammates.insert(session.clone(), used.cost_usd);
            }
            Event::TurnEnded { .. } | Event::Extracted(_) | Event::Dream(_) => {
                self.today = self.ledger.today();
                self.paused = is_paused(&self.ledger);
            }
            _ => {}
        }
    }

    /// Cost of the session, with background work and teammates, if it is known.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.teammates.values().copied().chain([self.before, self.ledger.here()]).sum()
    }

    /// The ledger of what is spent.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The mode it is in now.
    pub(crate) fn mode(&self) -> Mode {
        self.mode.get()
    }

    /// The line. Where the window is too narrow for all of it, what matters least is left out.
    pub(crate) fn row(&self, work: &BackgroundWork, columns: usize) -> Vec<Span> {
        let (label, teammate_label) = (&work.label, &work.teammate_label);
        // That something runs matters more than what it does: the words for that give way, one after the other.
        let with = |(label, teammate_label): (&Option<String>, &Option<String>)| {
            fitted(
                self.parts(&BackgroundWork {
                    label: label.clone(),
                    teammate_label: teammate_label.clone(),
                    ..work.clone()
                }),
                columns,
            )
        };
        let says = |row: &[(u8, Span)], part: &str| row.iter().any(|(_, span)| span.text().contains(part));
        let is_whole = |row: &Vec<(u8, Span)>| {
            (label.is_none() || says(row, BACKGROUND)) && (teammate_label.is_none() || says(row, AT_WORK))
        };
        let ways = [(label, teammate_label), (label, &None), (&None, teammate_label)];
        let shown = ways.into_iter().map(with).find(is_whole).unwrap_or_else(|| with((&None, &None)));
        let mut row = Vec::new();
        for (at, (_, span)) in shown.into_iter().enumerate() {
            if at > 0 {
                row.push(Span::new(BETWEEN, TextStyle::DIM));
            }
            row.push(span);
        }
        row
    }

    /// All that could stand in it, each with its weight.
    fn parts(&self, work: &BackgroundWork) -> Vec<(u8, Span)> {
        let fill = self.window.fill(self.used, AutoCompact::On);
        let warned = |on: bool| if on { TextStyle::of(Colour::Red) } else { TextStyle::DIM };
        let yellow = TextStyle::of(Colour::Yellow);
        let said = |label: &Option<String>| label.as_ref().map(|label| format!(": {label}")).unwrap_or_default();
        let mut parts = Vec::new();
        // What may happen unasked stands first, and goes last.
        if self.mode() != Mode::Default {
            let look = TextStyle { bold: true, ..TextStyle::of(modes::colour(self.mode())) };
            parts.push((7, Span::new(self.mode().name(), look)));
        }
        parts.extend([
            (1, Span::new(&self.model, TextStyle::DIM)),
            // While there is plenty, what is under way matters more.
            (
                if fill.above_warning { 5 } else { 2 },
                Span::new(&format!("{} % context left", fill.percent_left), warned(fill.above_warning)),
            ),
        ]);
        if let Some(cost) = self.cost() {
            parts.push((1, Span::new(&format!("${cost:.4}"), TextStyle::DIM)));
        }
        let (today, background) = (self.today.total().usd, self.today.background.usd);
        // Where it says no more than the session's own cost, it says nothing.
        if today >= self.cost().unwrap_or_default() + 0.01 || background > 0.0 {
            let part = if background > 0.0 { format!(", ${background:.2} background") } else { String::new() };
            parts.push((0, Span::new(&format!("today ${today:.2}{part}"), TextStyle::DIM)));
        }
        if self.paused {
            parts.push((3, Span::new("background paused: the day's budget is spent", yellow)));
        }
        if self.private {
            parts.push((4, Span::new("private", yellow)));
        }
        if work.background > 0 {
            let text = format!("{} {BACKGROUND}{}", work.background, said(&work.label));
            parts.push((3, Span::new(&text, yellow)));
        }
        if let Some(dream) = &work.dream {
            parts.push((3, Span::new(dream, yellow)));
        }
        if work.waiting > 0 {
            let text = match (work.waiting, &work.asks) {
                (1, Some(name)) => format!("{name} asks: /tasks {name}"),
                (1, None) => "an agent asks: /tasks".to_owned(),
                (many, _) => format!("{many} agents ask: /tasks"),
            };
            parts.push((6, Span::new(&text, yellow)));
        }
        if work.teammates > 0 {
            let all = count(work.teammates, "teammate", "teammates");
            let text = format!("{all}, {} {AT_WORK}{}", work.busy, said(&work.teammate_label));
            parts.push((3, Span::new(&text, yellow)));
        }
        if work.questions > 1 {
            parts.push((3, Span::new(&format!("{} more questions", work.questions - 1), yellow)));
        }
        parts
    }
}

const BETWEEN: &str = " · ";
const BACKGROUND: &str = "in the background";
const AT_WORK: &str = "at work";

/// As many as fit: the lightest goes first.
fn fitted(mut parts: Vec<(u8, Span)>, columns: usize) -> Vec<(u8, Span)> {
    let wide = |parts: &[(u8, Span)]| {
        parts.iter().map(|(_, span)| width(span.text())).sum::<usize>() + width(BETWEEN) * (parts.len() - 1)
    };
    while parts.len() > 1 && wide(&parts) > columns {
        let weights = parts.iter().enumerate().map(|(at, (weight, _))| (*weight, at));
        if let Some((_, lightest)) = weights.min() {
            parts.remove(lightest);
        }
    }
    parts
}

/// Background work.
#[derive(Debug, Clone, Default)]
pub(crate) struct BackgroundWork {
    /// Commands and agents that run in the background.
    pub(crate) background: usize,
    /// Teammates that are there.
    pub(crate) teammates: usize,
    /// Those of them that work.
    pub(crate) busy: usize,
    /// Questions that wait.
    pub(crate) questions: usize,
    /// Agents in the background that wait for an answer.
    pub(crate) waiting: usize,
    /// A teammate among these.
    pub(crate) asks: Option<String>,
    /// Progress of the running dream.
    pub(crate) dream: Option<String>,
    /// Label of the newest of them.
    pub(crate) label: Option<String>,
    /// Label of the newest teammate at work.
    pub(crate) teammate_label: Option<String>,
}

/// True if the day's budget for background work is spent.
fn is_paused(ledger: &Ledger) -> bool {
    ledger.allows(ledger::NOTES).is_err()
}
