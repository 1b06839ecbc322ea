//! Choosing one of many: a list that is searched by typing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::Editor;
use super::width::{fit, width, wrap};
use crate::styled_text::{Colour, Span, TextStyle};

/// The most choices shown at once.
const SHOWN: usize = 8;

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

    fn fitting(&self) -> Vec<usize> {
        let wanted = self.filter.text().to_lowercase();
        let fits = |choice: &PickerEntry| format!("{} {}", choice.label, choice.about).to_lowercase().contains(&wanted);
        (0..self.choices.len()).filter(|&at| fits(&self.choices[at])).collect()
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
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1).min(fitting.len().saturating_sub(1)),
            _ => {
                self.filter.key(key);
                self.at = 0;
            }
        }
        PickerStep::Open
    }

    /// The rows to draw, and where the cursor stands. A list that is seen whole is not searched until one types.
    pub(crate) fn rows(&self, columns: usize) -> (Vec<Vec<Span>>, (usize, usize)) {
        let fitting = self.fitting();
        let first = self.at.saturating_sub(SHOWN - 1);
        let mut rows = wrap(&[Span::new(&self.title, TextStyle::BOLD)], columns, 0);
        let mut cursor = None;
        if self.choices.len() > SHOWN || !self.filter.text().is_empty() {
            let (search, at) = self.filter.rows(&Span::new("search: ", TextStyle::DIM), columns);
            cursor = Some((rows.len() + at.0, at.1));
            rows.extend(search);
        }
        let top = rows.len();
        let shown: Vec<&PickerEntry> = fitting.iter().skip(first).take(SHOWN).map(|&at| &self.choices[at]).collect();
        let label = shown.iter().map(|choice| width(&choice.label)).max().unwrap_or_default().min(columns * 2 / 3);
        for (place, choice) in shown.into_iter().enumerate() {
            let chosen = first + place == self.at;
            let (mark, look) = if chosen { ("› ", TextStyle::of(Colour::Cyan)) } else { ("  ", TextStyle::PLAIN) };
            let mut row = vec![Span::new(mark, look)];
            row.extend(fit(&[Span::new(&choice.label, look)], label));
            let pad = " ".repeat(label.saturating_sub(width(&choice.label)) + 2);
            row.extend([Span::plain(&pad), Span::new(&choice.about, TextStyle::DIM)]);
            rows.push(row);
        }
        let rest = fitting.len().saturating_sub(first + SHOWN);
        if fitting.is_empty() {
            rows.push(vec![Span::new("  no match", TextStyle::DIM)]);
        } else if rest > 0 {
            rows.push(vec![Span::new(&format!("  … {rest} more"), TextStyle::DIM)]);
        }
        rows.push(vec![Span::new("Enter chooses, Esc closes; type to search", TextStyle::DIM)]);
        (rows, cursor.unwrap_or((top + self.at - first, 0)))
    }
}
