//! The menu below the prompt: what the word before the cursor can become.
//!
//! It is as high as there is room, and scrolls. The chosen row has a mark as well as a colour.

use super::complete::Completion;
use super::fuzzy;
use super::width::{fit, width};
use crate::styled_text::{Colour, Span, TextStyle};

/// The most rows at once.
const SHOWN: usize = 8;
/// The least room in which a candidate's description is shown.
const LEAST_ABOUT: usize = 20;

/// Completions of the word before the cursor.
#[derive(Debug, Default)]
pub(super) struct CompletionMenu {
    /// Bytes before the cursor that a candidate replaces.
    pub(super) replaces: usize,
    candidates: Vec<Completion>,
    /// The chosen one; none until an arrow key was pressed, where nothing was typed yet.
    at: Option<usize>,
}

impl CompletionMenu {
    /// The candidates for a word of so many bytes, the first of them chosen.
    pub(super) fn new(replaces: usize, candidates: Vec<Completion>) -> Self {
        let at = (!candidates.is_empty()).then_some(0);
        Self { replaces, candidates, at }
    }

    /// The same with none chosen: Enter sends what stands there.
    pub(super) fn offering(replaces: usize, candidates: Vec<Completion>) -> Self {
        Self { replaces, candidates, at: None }
    }

    /// Keeps the candidates that fit the word still, while others are looked for.
    pub(super) fn narrow(&mut self, replaces: usize, word: &str) {
        self.candidates.retain(|candidate| fuzzy::score(word, &candidate.text).is_some());
        self.at = (!self.candidates.is_empty()).then_some(0);
        self.replaces = replaces;
    }

    /// True if there is something to choose.
    pub(super) fn is_open(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// Nothing to choose any more.
    pub(super) fn close(&mut self) {
        *self = Self::default();
    }

    /// The chosen candidate.
    pub(super) fn chosen(&self) -> Option<&Completion> {
        self.candidates.get(self.at?)
    }

    /// The candidate that Tab takes: the chosen one, or the first.
    pub(super) fn first(&self) -> Option<&Completion> {
        self.candidates.get(self.at.unwrap_or_default())
    }

    /// So many rows down, or up; at an end it goes on at the other.
    pub(super) fn step(&mut self, down: bool) {
        let last = self.candidates.len().saturating_sub(1);
        self.at = Some(match (self.at, down) {
            (None, true) => 0,
            (Some(at), true) => {
                if at == last {
                    0
                } else {
                    at + 1
                }
            }
            (None, false) => last,
            (Some(at), false) => at.checked_sub(1).unwrap_or(last),
        });
    }

    /// The rows to draw where there is room for so many.
    pub(super) fn rows(&self, columns: usize, room: usize) -> Vec<Vec<Span>> {
        let all = self.candidates.len();
        // One row says how many there are, where not all are seen.
        let most = room.clamp(2, SHOWN + 1);
        let shown = if all <= most { all } else { most - 1 };
        let at = self.at.unwrap_or_default();
        let first = (at + 1).saturating_sub(shown);
        let visible = self.candidates.iter().enumerate().skip(first).take(shown);
        let widest = visible.clone().map(|(_, candidate)| width(&candidate.text)).max().unwrap_or_default();
        let mut rows = Vec::new();
        for (at, candidate) in visible {
            let (mark, look) = match self.at == Some(at) {
                true => ("› ", TextStyle { bold: true, ..TextStyle::of(Colour::Cyan) }),
                false => ("  ", TextStyle::PLAIN),
            };
            let mut row = vec![Span::new(&format!("{mark}{}", candidate.text), look)];
            if widest + LEAST_ABOUT < columns && !candidate.about.is_empty() {
                let pad = " ".repeat(widest - width(&candidate.text) + 2);
                row.push(Span::new(&format!("{pad}{}", candidate.about), TextStyle::DIM));
            }
            rows.push(fit(&row, columns));
        }
        if shown < all {
            let place = self.at.map_or_else(|| format!("{all}"), |at| format!("{} of {all}", at + 1));
            rows.push(vec![Span::new(&format!("  {place} · ↑ ↓"), TextStyle::DIM)]);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::{Colours, paint};

    fn shown(menu: &CompletionMenu, room: usize) -> Vec<String> {
        menu.rows(30, room).iter().map(|row| paint(row, Colours::Off)).collect()
    }

    fn menu(count: usize) -> CompletionMenu {
        let candidate = |n| Completion { text: format!("/c{n}"), about: String::new() };
        CompletionMenu::new(1, (1..=count).map(candidate).collect())
    }

    #[test]
    fn a_long_menu_scrolls_and_says_where_it_is() {
        let mut menu = menu(20);
        assert_eq!(shown(&menu, 4), ["› /c1", "  /c2", "  /c3", "  1 of 20 · ↑ ↓"]);
        for _ in 0..4 {
            menu.step(true);
        }
        assert_eq!(shown(&menu, 4), ["  /c3", "  /c4", "› /c5", "  5 of 20 · ↑ ↓"]);
        menu.step(false);
        assert_eq!(menu.chosen().unwrap().text, "/c4");
        for _ in 0..4 {
            menu.step(false);
        }
        assert_eq!(shown(&menu, 4), ["  /c18", "  /c19", "› /c20", "  20 of 20 · ↑ ↓"]);
        assert_eq!(shown(&menu, 100).len(), SHOWN + 1);
    }

    #[test]
    fn a_short_menu_is_seen_whole_and_nothing_need_be_chosen() {
        assert_eq!(shown(&menu(3), 8), ["› /c1", "  /c2", "  /c3"]);
        let mut menu = CompletionMenu::offering(0, menu(2).candidates);
        assert_eq!((menu.chosen(), shown(&menu, 8)), (None, vec!["  /c1".to_owned(), "  /c2".to_owned()]));
        menu.step(true);
        assert_eq!(menu.chosen().unwrap().text, "/c1");
    }
}
