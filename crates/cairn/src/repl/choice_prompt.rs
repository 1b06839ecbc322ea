//! Questions of the model's with answers to choose from: keys come in, rows come out, and at the end what was said.

use std::collections::{BTreeMap, BTreeSet};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use engine::plan::ask::{self, Inquiry};
use settings::permission::{CallQuestion, PermissionAnswer};

use super::editor::{Editor, EditorStep};
use super::width::wrap;
use crate::styled_text::{Colour, Span, TextStyle};

/// The answer that is none of those offered.
const OTHER: &str = "something else, in your words";

/// The questions of one call, one after the other.
#[derive(Debug)]
pub(super) struct ChoicePrompt {
    questions: Vec<Inquiry>,
    /// Answers to the questions before this one.
    said: Vec<String>,
    /// The answer under the cursor; one more than there are is in the user's words.
    at: usize,
    /// Those that are ticked, where several can be chosen.
    ticked: BTreeSet<usize>,
    /// The user's own words, while they are being written.
    other: Option<Editor>,
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChoiceStep {
    /// Nothing is decided.
    Not,
    /// The key means nothing here.
    NotMeant,
    /// All is answered, by question.
    Done(BTreeMap<String, String>),
}

impl ChoicePrompt {
    /// The questions that a question is about, if it is about such.
    pub(super) fn of(question: &CallQuestion) -> Option<Self> {
        let questions = (question.tool == ask::NAME).then(|| ask::inquiries(&question.input)).flatten()?;
        Some(Self { questions, said: Vec::new(), at: 0, ticked: BTreeSet::new(), other: None })
    }

    /// All of them.
    pub(super) fn questions(&self) -> &[Inquiry] {
        &self.questions
    }

    /// True if the user is writing an answer of their own.
    pub(super) fn is_writing(&self) -> bool {
        self.other.is_some()
    }

    fn current(&self) -> &Inquiry {
        &self.questions[self.said.len().min(self.questions.len() - 1)]
    }

    /// Does what a key means.
    pub(super) fn key(&mut self, key: KeyEvent) -> ChoiceStep {
        if let Some(editor) = &mut self.other {
            match key.code {
                KeyCode::Esc => self.other = None,
                _ if editor.key(key) == EditorStep::Submit => {
                    let words = editor.take();
                    self.other = None;
                    if !words.trim().is_empty() {
                        return self.say(Some(words.trim()));
                    }
                }
                _ => {}
            }
            return ChoiceStep::Not;
        }
        let (options, several) = (self.current().options.len(), self.current().takes_several());
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1).min(options),
            KeyCode::Left => self.back(),
            KeyCode::Char(' ') if several && self.at < options => self.tick(self.at),
            KeyCode::Enter | KeyCode::Char(' ') if self.at == options => self.other = Some(Editor::default()),
            KeyCode::Enter => return self.say(None),
            KeyCode::Char(digit @ '1'..='9') if !control => {
                let at = digit as usize - '1' as usize;
                if at > options {
                    return ChoiceStep::Not;
                }
                self.at = at;
                match (at == options, several) {
                    (true, _) => self.other = Some(Editor::default()),
                    (false, true) => self.tick(at),
                    (false, false) => return self.say(None),
                }
            }
            KeyCode::Char(_) => return ChoiceStep::NotMeant,
            _ => {}
        }
        ChoiceStep::Not
    }

    fn tick(&mut self, at: usize) {
        if !self.ticked.remove(&at) {
            self.ticked.insert(at);
        }
    }

    /// To the question before, whose answer is asked again.
    fn back(&mut self) {
        if self.said.pop().is_some() {
            (self.at, self.ticked) = (0, BTreeSet::new());
        }
    }

    /// Takes what is ticked, or under the cursor, and the user's own words as the answer.
    fn say(&mut self, words: Option<&str>) -> ChoiceStep {
        let mut chosen: Vec<usize> = self.ticked.iter().copied().collect();
        if chosen.is_empty() && words.is_none() {
            chosen.push(self.at);
        }
        let labels = chosen.iter().filter_map(|&at| self.current().options.get(at));
        let said: Vec<String> = labels.map(|one| one.label.clone()).chain(words.map(str::to_owned)).collect();
        self.said.push(said.join(", "));
        (self.at, self.ticked) = (0, BTreeSet::new());
        if self.said.len() < self.questions.len() {
            return ChoiceStep::Not;
        }
        let questions = self.questions.iter().map(|asked| asked.question.clone());
        ChoiceStep::Done(questions.zip(self.said.clone()).collect())
    }

    /// The rows to draw, and where the cursor is; `keys` says how it is answered.
    pub(super) fn rows(&self, columns: usize, keys: Span, focused: bool) -> (Vec<Vec<Span>>, (usize, usize)) {
        let asked = self.current();
        let place = match self.questions.len() {
            1 => String::new(),
            all => format!("{} of {all} · ", self.said.len() + 1),
        };
        let mut rows =
            wrap(&[Span::new(&place, TextStyle::DIM), Span::new(&asked.question, TextStyle::BOLD)], columns, 2);
        if let Some(editor) = &self.other {
            let (lines, cursor) = editor.rows(&Span::new("your words: ", TextStyle::of(Colour::Yellow)), columns);
            let cursor = (rows.len() + cursor.0, cursor.1);
            rows.extend(lines);
            rows.push(vec![Span::new("Enter answers, Esc goes back", TextStyle::DIM)]);
            return (rows, cursor);
        }
        let mut cursor = (0, 0);
        let labels =
            asked.options.iter().map(|one| (one.label.as_str(), one.description.as_deref().unwrap_or_default()));
        for (at, (label, about)) in labels.chain([(OTHER, "")]).enumerate() {
            let here = at == self.at && focused;
            let (mark, look) = if here { ("› ", TextStyle::of(Colour::Cyan)) } else { ("  ", TextStyle::PLAIN) };
            let tick = match (asked.takes_several() && at < asked.options.len(), self.ticked.contains(&at)) {
                (false, _) => "",
                (true, true) => "[x] ",
                (true, false) => "[ ] ",
            };
            if at == self.at {
                cursor = (rows.len(), 0);
            }
            let about = if about.trim().is_empty() { String::new() } else { format!(" — {about}") };
            let row = [Span::new(&format!("{mark}{} {tick}{label}", at + 1), look), Span::new(&about, TextStyle::DIM)];
            rows.extend(wrap(&row, columns, 4));
        }
        rows.push(vec![keys]);
        (rows, cursor)
    }

    /// The keys that answer it, in words.
    pub(super) fn keys(&self) -> String {
        let tick = if self.current().takes_several() { "Space ticks, Enter answers" } else { "Enter answers" };
        let back = if self.said.is_empty() { "" } else { ", ← goes back" };
        format!("{tick}{back}, Esc stops the turn")
    }
}

/// The answer to a line of text, where lines are all there is: numbers, or the user's own words.
pub(super) fn answer_in(asked: &Inquiry, line: &str) -> Option<String> {
    let line = line.trim();
    let numbers: Option<Vec<usize>> = line.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers {
        _ if line.is_empty() => None,
        Some(numbers) if numbers.len() == 1 || asked.takes_several() => {
            let labels: Option<Vec<&str>> =
                numbers.iter().map(|number| Some(asked.options.get(number.checked_sub(1)?)?.label.as_str())).collect();
            Some(labels.map_or_else(|| line.to_owned(), |labels| labels.join(", ")))
        }
        _ => Some(line.to_owned()),
    }
}

/// The permission answer that follows from the user's answers.
pub(super) fn answer(question: &CallQuestion, answers: &BTreeMap<String, String>) -> PermissionAnswer {
    PermissionAnswer::With { input: Some(ask::answered(&question.input, answers)), permissions: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn choice_prompt(several: bool) -> ChoicePrompt {
        let one = |text: &str| {
            json!({"question": text, "header": "h", "multiSelect": several,
                   "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]})
        };
        let input = json!({"questions": [one("Which?"), one("And then?")]});
        let questions = ask::inquiries(&input).unwrap();
        ChoicePrompt { questions, said: Vec::new(), at: 0, ticked: BTreeSet::new(), other: None }
    }

    fn press(asked: &mut ChoicePrompt, keys: &str) -> ChoiceStep {
        let mut step = ChoiceStep::Not;
        for key in keys.chars() {
            let code = match key {
                '⏎' => KeyCode::Enter,
                '↓' => KeyCode::Down,
                '←' => KeyCode::Left,
                '⎋' => KeyCode::Esc,
                other => KeyCode::Char(other),
            };
            step = asked.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        step
    }

    fn done(first: &str, second: &str) -> ChoiceStep {
        let pair = |question: &str, said: &str| (question.to_owned(), said.to_owned());
        ChoiceStep::Done(BTreeMap::from([pair("Which?", first), pair("And then?", second)]))
    }

    /// PLAN-1: arrows and numbers choose, one can go back, and say something else.
    #[test]
    fn answers_are_chosen_or_written() {
        assert_eq!(press(&mut choice_prompt(false), "↓⏎1"), done("blue", "red"));
        assert_eq!(press(&mut choice_prompt(false), "1←22"), done("blue", "blue"));
        assert_eq!(press(&mut choice_prompt(false), "3green⏎↓↓⏎none 1⏎"), done("green", "none 1"));
        assert_eq!(press(&mut choice_prompt(false), "3gre⎋↓1"), ChoiceStep::Not, "words that were given up are none");
        assert_eq!(press(&mut choice_prompt(false), "x"), ChoiceStep::NotMeant);
        assert_eq!(press(&mut choice_prompt(false), "9"), ChoiceStep::Not);
    }

    /// PLAN-1: several answers to one question, with words of one's own.
    #[test]
    fn several_are_ticked() {
        assert_eq!(press(&mut choice_prompt(true), "12⏎1 ⏎"), done("red, blue", "red"), "ticked twice is not ticked");
        assert_eq!(press(&mut choice_prompt(true), " 3green⏎⏎"), done("red, green", "red"));
    }

    /// PLAN-1: where lines are all there is.
    #[test]
    fn a_line_is_numbers_or_words() {
        let one = &choice_prompt(false).questions[0];
        let several = &choice_prompt(true).questions[0];
        assert_eq!(answer_in(one, " 2 ").as_deref(), Some("blue"));
        assert_eq!(answer_in(several, "1, 2").as_deref(), Some("red, blue"));
        assert_eq!(answer_in(one, "1, 2").as_deref(), Some("1, 2"));
        assert_eq!(answer_in(one, "9").as_deref(), Some("9"));
        assert_eq!((answer_in(one, "green").as_deref(), answer_in(one, " ")), (Some("green"), None));
    }
}
