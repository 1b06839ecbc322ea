//! A form that a server wants filled: one field after the other, typed; where there is a choice, by name or number.

use crossterm::event::{KeyCode, KeyEvent};
use mcp::{ElicitationRequest, FieldKind, FormField, form_fields, form_values};
use serde_json::{Map, Value};

use super::editor::{Editor, EditorStep};
use super::width::wrap;
use crate::styled_text::{Colour, Span, TextStyle};

/// The fields of one form.
pub(super) struct FormPrompt {
    fields: Vec<FormField>,
    filled: Vec<(String, Option<Value>)>,
    editor: Editor,
    /// Why the last value was not taken.
    trouble: Option<String>,
}

/// The effect of a key.
#[derive(Debug, PartialEq)]
pub(super) enum FormStep {
    /// Nothing is decided.
    Not,
    /// The user went back to before the first field.
    Left,
    /// All fields are filled.
    Done(Map<String, Value>),
}

impl FormPrompt {
    /// The form of a question, if it has fields.
    pub(super) fn of(request: &ElicitationRequest) -> Option<Self> {
        let ElicitationRequest::Form { schema, .. } = request else { return None };
        let fields = form_fields(schema);
        let empty = Self { fields, filled: Vec::new(), editor: Editor::default(), trouble: None };
        (!empty.fields.is_empty()).then_some(empty)
    }

    fn current(&self) -> &FormField {
        &self.fields[self.filled.len().min(self.fields.len() - 1)]
    }

    /// Does what a key means.
    pub(super) fn key(&mut self, key: KeyEvent) -> FormStep {
        if key.code == KeyCode::Esc {
            self.trouble = None;
            self.editor = Editor::default();
            return if self.filled.pop().is_some() { FormStep::Not } else { FormStep::Left };
        }
        if self.editor.key(key) != EditorStep::Submit {
            return FormStep::Not;
        }
        let typed = self.editor.take();
        self.say(&typed)
    }

    /// Takes what was typed as the value of the field.
    pub(super) fn say(&mut self, typed: &str) -> FormStep {
        match self.current().value(typed) {
            Ok(value) => {
                self.trouble = None;
                self.filled.push((self.current().key.clone(), value));
            }
            Err(why) => self.trouble = Some(why),
        }
        if self.filled.len() < self.fields.len() {
            return FormStep::Not;
        }
        FormStep::Done(form_values(std::mem::take(&mut self.filled)))
    }

    /// True if the last value was not taken.
    pub(super) fn has_trouble(&self) -> bool {
        self.trouble.is_some()
    }

    /// The rows above the line that is typed.
    pub(super) fn lines(&self) -> Vec<Vec<Span>> {
        let field = self.current();
        let place = match self.fields.len() {
            1 => String::new(),
            all => format!("{} of {all} · ", self.filled.len() + 1),
        };
        let about = field.about.as_deref().filter(|about| !about.trim().is_empty());
        let about = about.map(|about| format!(" — {about}")).unwrap_or_default();
        let hint = match (&field.default, field.required) {
            (Some(default), _) => format!(" (empty: {default})"),
            (None, true) => String::new(),
            (None, false) => " (may stay empty)".to_owned(),
        };
        let mut lines = vec![vec![
            Span::new(&place, TextStyle::DIM),
            Span::new(&field.label, TextStyle::BOLD),
            Span::new(&format!("{about}{hint}"), TextStyle::DIM),
        ]];
        if let FieldKind::One(options) | FieldKind::Several(options) = &field.kind {
            let option =
                |(at, option): (usize, &mcp::FieldOption)| vec![Span::plain(&format!("  {} {}", at + 1, option.label))];
            lines.extend(options.iter().enumerate().map(option));
        }
        let trouble = self.trouble.iter().map(|why| vec![Span::new(why, TextStyle::of(Colour::Red))]);
        lines.extend(trouble);
        lines
    }

    /// The word before the line that is typed.
    pub(super) fn prompt(&self) -> &'static str {
        match self.current().kind {
            FieldKind::Text => "text: ",
            FieldKind::Number | FieldKind::Integer => "number: ",
            FieldKind::One(_) => "name or number: ",
            FieldKind::Several(_) => "names or numbers, with commas: ",
        }
    }

    /// The rows to draw, and where the cursor stands.
    pub(super) fn rows(&self, columns: usize) -> (Vec<Vec<Span>>, (usize, usize)) {
        let mut rows: Vec<Vec<Span>> = self.lines().iter().flat_map(|line| wrap(line, columns, 4)).collect();
        let (lines, cursor) = self.editor.rows(&Span::new(self.prompt(), TextStyle::of(Colour::Yellow)), columns);
        let cursor = (rows.len() + cursor.0, cursor.1);
        rows.extend(lines);
        rows.push(vec![Span::new("Enter goes on, Esc goes back", TextStyle::DIM)]);
        (rows, cursor)
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;
    use serde_json::json;

    use super::*;

    fn form() -> FormPrompt {
        let schema = json!({"required": ["name"], "properties": {
            "name": {"type": "string", "title": "Name"},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "green"},
        }});
        let (server, message) = ("db".to_owned(), "Who?".to_owned());
        FormPrompt::of(&ElicitationRequest::Form { server, message, schema }).unwrap()
    }

    fn press(form: &mut FormPrompt, keys: &str) -> FormStep {
        let mut step = FormStep::Not;
        for key in keys.chars() {
            let code = match key {
                '⏎' => KeyCode::Enter,
                '⎋' => KeyCode::Esc,
                other => KeyCode::Char(other),
            };
            step = form.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        step
    }

    /// MCP-1: fields are filled one after the other; a value that does not fit is asked again, and Esc goes back.
    #[test]
    fn a_form_is_filled_field_by_field() {
        let done = |name: &str, colour: &str| {
            FormStep::Done(json!({"name": name, "colour": colour}).as_object().cloned().unwrap())
        };
        assert_eq!(press(&mut form(), "Ada⏎1⏎"), done("Ada", "red"));
        assert_eq!(press(&mut form(), "Ada⏎⏎"), done("Ada", "green"));
        assert_eq!(press(&mut form(), "⏎Ada⏎blue⏎green⏎"), done("Ada", "green"));
        assert_eq!(press(&mut form(), "Ada⏎⎋Eva⏎2⏎"), done("Eva", "green"));
        assert_eq!(press(&mut form(), "Ada⎋"), FormStep::Left);
        let mut asked = form();
        press(&mut asked, "⏎");
        let shown: String = asked.rows(60).0.concat().iter().map(Span::text).collect();
        assert!(shown.contains("1 of 2 · Name") && shown.contains("it has to be filled"), "{shown}");
    }
}
