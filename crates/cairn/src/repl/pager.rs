//! Reading what does not fit: rows over the whole window, scrolled, until a key closes them.
//!
//! It prints nothing into the scrollback and answers nothing: every key moves or closes.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::width::fit;
use crate::styled_text::{Colour, Span, TextStyle};

/// Rows below the text: a blank one and the keys.
const FOOTER: usize = 2;
/// Rows that two windows of text have in common, so that the eye finds its place.
const OVERLAP: usize = 2;

/// Rows being read.
#[derive(Debug)]
pub(super) struct Pager {
    rows: Vec<Vec<Span>>,
    top: usize,
    lines: usize,
}

/// The effect of a key on a pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PagerStep {
    Open,
    Closed,
}

impl Pager {
    /// Rows, with this one at the top if there is enough below it.
    pub(super) fn new(rows: Vec<Vec<Span>>, at: usize) -> Self {
        Self { rows, top: at, lines: usize::MAX }
    }

    /// The window has so many lines from now on.
    pub(super) fn set_lines(&mut self, lines: usize) {
        self.lines = lines;
        self.scroll_to(self.top);
    }

    /// Other rows: what is read stays as far from the end as it was.
    pub(super) fn replace(&mut self, rows: Vec<Vec<Span>>) {
        let below = self.rows.len().saturating_sub(self.top);
        self.rows = rows;
        self.scroll_to(self.rows.len().saturating_sub(below));
    }

    fn room(&self) -> usize {
        self.lines.saturating_sub(FOOTER).max(1)
    }

    fn scroll_to(&mut self, at: usize) {
        self.top = at.min(self.rows.len().saturating_sub(self.room()));
    }

    /// Does what a key means.
    pub(super) fn key(&mut self, key: KeyEvent) -> PagerStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = self.room().saturating_sub(OVERLAP).max(1);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return PagerStep::Closed,
            KeyCode::Char('c' | 'd' | 'o') if control => return PagerStep::Closed,
            KeyCode::Up | KeyCode::Char('k') => self.scroll_to(self.top.saturating_sub(1)),
            KeyCode::Down | KeyCode::Enter | KeyCode::Char('j') => self.scroll_to(self.top + 1),
            KeyCode::PageUp | KeyCode::Char('b') => self.scroll_to(self.top.saturating_sub(page)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_to(self.top + page),
            KeyCode::Home | KeyCode::Char('g') => self.scroll_to(0),
            KeyCode::End | KeyCode::Char('G') => self.scroll_to(usize::MAX),
            _ => {}
        }
        PagerStep::Open
    }

    /// The window: what is read, and the keys; `waiting` is something that waits below.
    pub(super) fn window(&self, columns: usize, waiting: Option<&str>) -> Vec<Vec<Span>> {
        let room = self.room();
        let shown = self.rows.iter().skip(self.top).take(room);
        let mut window: Vec<Vec<Span>> = shown.map(|row| fit(row, columns)).collect();
        window.resize(room + FOOTER - 1, Vec::new());
        let last = (self.top + room).min(self.rows.len());
        let keys = format!("{last} of {} lines · q closes · ↑ ↓ PgUp PgDn Home End", self.rows.len());
        let mut row = vec![Span::new(&keys, TextStyle::DIM)];
        if let Some(waiting) = waiting {
            row.insert(0, Span::new(&format!("{waiting} · "), TextStyle::of(Colour::Yellow)));
        }
        window.push(fit(&row, columns));
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::{Colours, paint};

    fn pager(rows: usize, at: usize) -> Pager {
        let mut pager = Pager::new((1..=rows).map(|n| vec![Span::plain(&format!("row {n}"))]).collect(), at);
        pager.set_lines(7);
        pager
    }

    fn shown(pager: &Pager) -> Vec<String> {
        pager.window(60, None).iter().map(|row| paint(row, Colours::Off)).collect()
    }

    #[test]
    fn rows_scroll_and_keep_their_place() {
        let mut pager = pager(20, 9);
        assert_eq!(shown(&pager)[..5], ["row 10", "row 11", "row 12", "row 13", "row 14"]);
        for (code, first) in [
            (KeyCode::PageDown, "row 13"),
            (KeyCode::Down, "row 14"),
            (KeyCode::End, "row 16"),
            (KeyCode::Down, "row 16"),
            (KeyCode::PageUp, "row 13"),
            (KeyCode::Home, "row 1"),
        ] {
            assert_eq!(pager.key(KeyEvent::from(code)), PagerStep::Open);
            assert_eq!(shown(&pager)[0], first, "{code:?}");
        }
        assert_eq!(pager.key(KeyEvent::from(KeyCode::Char('q'))), PagerStep::Closed);
    }

    #[test]
    fn a_short_text_begins_at_the_top() {
        let window = shown(&pager(2, 1));
        assert_eq!(window[..2], ["row 1", "row 2"]);
        assert!(window[6].starts_with("2 of 2 lines"), "{window:?}");
    }
}
