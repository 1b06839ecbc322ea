//! Choosing one of many: a list that is searched by typing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::Editor;
use super::fuzzy;
use super::width::{fit, width, wrap};
use crate::styled_text::{Colour, Span, TextStyle};

/// The fewest and the most choices shown at once.
const SHOWN: std::ops::RangeInclusive<usize> = 3..=20;
/// Rows around the choices: the title, the search, the count, the keys.
const AROUND: usize = 4;

/// Choices that PageUp and PageDown pass.
const PAGE: usize = 8;

/// A list to choose from.
#[derive(Debug)]
pub(crate) struct Picker {
    title: String,
    choices: Vec<PickerEntry>,
    filter: Editor,
    at: usize,
}

/// One of the choices.
#[derive(Debug, Clone)]
pub(crate) struct PickerEntry {
    /// Its name.
    pub(crate) label: String,
    /// Its description.
    pub(crate) about: String,
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickerStep {
    /// Nothing is decided.
    Open,
    /// This one, by its place in the list that was given.
    Chosen(usize),
    /// None of them.
    Closed,
}

impl Picker {
    /// A list under a title.
    pub(crate) fn new(title: impl Into<String>, choices: Vec<PickerEntry>) -> Self {
        Self { title: title.into(), choices, filter: Editor::default(), at: 0 }
    }

    /// The same with a search begun.
    pub(crate) fn searching(mut self, text: &str) -> Self {
        self.filter.set(text);
        self
    }

    /// The choices that fit what was typed: those that contain it, then those whose name has its letters.
    fn fitting(&self) -> Vec<usize> {
        let wanted = self.filter.text().to_lowercase();
        let contains =
            |choice: &PickerEntry| format!("{} {}", choice.label, choice.about).to_lowercase().contains(&wanted);
        let (mut fits, rest): (Vec<_>, Vec<_>) = (0..self.choices.len()).partition(|&at| contains(&self.choices[at]));
        let named = rest.into_iter().map(|at| (at, self.choices[at].label.as_str()));
        fits.extend(fuzzy::best(&wanted, named, |(_, label)| label, usize::MAX).into_iter().map(|(at, _)| at));
        fits
    }

    /// Does what a key means.
    pub(crate) fn key(&mut self, key: KeyEvent) -> PickerStep {
        let fitting = self.fitting();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return PickerStep::Closed,
            KeyCode::Char('c' | 'd') if control => return PickerStep::Closed,
            KeyCode::Enter => return fitting.get(self.at).map_or(PickerStep::Open, |&at| PickerStep::Chosen(at)),
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Char('p') if control => self.at = self.at.saturating_sub(1),
            KeyCode::PageUp => self.at = self.at.saturating_sub(PAGE),
            KeyCode::PageDown => self.at = (self.at + PAGE).min(fitting.len().saturating_sub(1)),
            KeyCode::Char('n' | 'r') if control => self.at = (self.at + 1).min(fitting.len().saturating_sub(1)),
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1).min(fitting.len().saturating_sub(1)),
            _ => {
                self.filter.key(key);
                self.at = 0;
            }
        }
        PickerStep::Open
    }

    /// The rows to draw, and where the cursor is. A list that is seen whole is not searched until one types.
    pub(crate) fn rows(&self, columns: usize, room: usize) -> (Vec<Vec<Span>>, (usize, usize)) {
        let fitting = self.fitting();
        let most = room.saturating_sub(AROUND).clamp(*SHOWN.start(), *SHOWN.end());
        let first = self.at.saturating_sub(most - 1);
        let mut rows = wrap(&[Span::new(&self.title, TextStyle::BOLD)], columns, 0);
        let mut cursor = None;
        if self.choices.len() > most || !self.filter.text().is_empty() {
            let (search, at) = self.filter.rows(&Span::new("search: ", TextStyle::DIM), columns);
            cursor = Some((rows.len() + at.0, at.1));
            rows.extend(search);
        }
        let top = rows.len();
        let shown: Vec<&PickerEntry> = fitting.iter().skip(first).take(most).map(|&at| &self.choices[at]).collect();
        let label = shown.iter().map(|choice| width(&choice.label)).max().unwrap_or_default().min(columns * 2 / 3);
        for (place, choice) in shown.into_iter().enumerate() {
            let chosen = first + place == self.at;
            let chosen_look = TextStyle { bold: true, ..TextStyle::of(Colour::Cyan) };
            let (mark, look) = if chosen { ("› ", chosen_look) } else { ("  ", TextStyle::PLAIN) };
            let mut row = vec![Span::new(mark, look)];
            row.extend(fit(&[Span::new(&choice.label, look)], label));
            let pad = " ".repeat(label.saturating_sub(width(&choice.label)) + 2);
            row.extend([Span::plain(&pad), Span::new(&choice.about, TextStyle::DIM)]);
            rows.push(row);
        }
        if fitting.is_empty() {
            rows.push(vec![Span::new("  no match", TextStyle::DIM)]);
        } else if fitting.len() > most {
            rows.push(vec![Span::new(&format!("  {} of {} · ↑ ↓", self.at + 1, fitting.len()), TextStyle::DIM)]);
        }
        rows.push(vec![Span::new("Enter chooses, Esc closes; type to search", TextStyle::DIM)]);
        (rows, cursor.unwrap_or((top + self.at - first, 0)))
    }
}
