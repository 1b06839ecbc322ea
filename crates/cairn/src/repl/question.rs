//! Asking for permission: what will happen is printed whole, so that it can be read however long it is; the three answers
//! stand below it. Where the model itself asks, what it offers stands there instead.

use std::path::Path;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mcp::ElicitationRequest;
use serde_json::{Map, Value};
use settings::permission::{PermissionAnswer, Question};
use tokio::sync::oneshot;
use tools::FileChange;
use tools::permission::Mode;

use super::asked_call::{is_plan, show_call};
use super::choice_prompt::{self, ChoicePrompt, ChoiceStep};
use super::editor::{Editor, EditorStep};
use super::form_prompt::{FormPrompt, FormStep};
use super::page::{Page, PagePart};
use super::width::wrap;
use crate::browser;
use crate::question_lines::{self, NO, NO_BECAUSE};
use crate::styled_text::{Colour, Span, TextStyle};

/// A question that waits for its answer.
pub(crate) struct OpenQuestion {
    question: Question,
    reply: Option<oneshot::Sender<PermissionAnswer>>,
    chosen: usize,
    reason: Option<Editor>,
    /// The model's own question, if that is what is asked.
    inquiring: Option<ChoicePrompt>,
    /// The form of a server's question, while it is filled.
    form: Option<FormPrompt>,
    focus: KeyFocus,
}

/// An answer that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerChoice {
    Once,
    /// And edits are accepted in this session.
    Edits,
    Always,
    /// And the answer is kept.
    Kept,
    /// With a reason for the model.
    No,
    /// And the answer is kept. No model hears it.
    Declined,
    /// Answers a server.
    Respond,
    /// Declines to answer a server.
    Decline,
}

/// Recipient of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyFocus {
    /// The question: a letter answers.
    Answers,
    /// The message that the user is typing, until an arrow key shows that the question was seen.
    Message,
}

/// The effect of a key.
#[derive(Debug)]
pub(crate) enum QuestionStep {
    /// Nothing is decided.
    Not,
    /// The key is for the message that the user is typing.
    NotMeant,
    /// It was answered.
    Once,
    /// It was answered; this mode holds from now on.
    Mode(Mode),
    /// It was answered; these rules shall hold from now on and are to be written down.
    Always(Vec<String>),
    /// It was denied.
    No,
    /// It was denied, and the turn shall stop.
    Stop,
}

impl OpenQuestion {
    /// Prepares a question for the screen.
    pub(crate) fn new(question: Question, reply: oneshot::Sender<PermissionAnswer>) -> Self {
        let inquiring = match &question {
            Question::Call(call) => ChoicePrompt::of(call),
            Question::Sender(_) | Question::Include(_) | Question::Server(_) => None,
        };
        let (reply, focus) = (Some(reply), KeyFocus::Answers);
        Self { question, reply, chosen: 0, reason: None, inquiring, form: None, focus }
    }

    /// The id of the call whose change of a file it shows.
    pub(crate) fn changing(&self) -> Option<&str> {
        match &self.question {
            Question::Call(call) => FileChange::of(&call.input).map(|_| call.id.as_str()),
            Question::Sender(_) | Question::Include(_) | Question::Server(_) => None,
        }
    }

    /// True if somebody still waits for the answer: an agent in the background does, whatever turn has ended.
    pub(crate) fn is_wanted(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| !reply.is_closed())
    }

    /// Prints once and in full what will happen: the call, the change, the place.
    pub(crate) fn show(&self, page: &mut Page, short: impl Fn(&Path) -> String) {
        if self.inquiring.is_some() {
            return; // its questions stand with their answers, and stay with what was said
        }
        page.begin(PagePart::Note);
        if let Question::Server(_) = &self.question {
            let rows = question_lines::rows(&self.question);
            return rows.iter().for_each(|row| page.line(&[Span::plain(row)], 2));
        }
        let asker = match &self.question {
            // Nobody knows the tool by which a plan is handed in.
            Question::Call(call) if is_plan(call) && call.agent.is_none() => "The model",
            question => question.asker(),
        };
        let asker = Span::new(asker, TextStyle { bold: true, ..TextStyle::of(Colour::Yellow) });
        let place = match &self.question {
            Question::Call(call) => {
                show_call(call, asker, page, &short);
                if is_plan(call) {
                    return;
                }
                format!("in {} — ", short(&call.directory))
            }
            Question::Sender(sender) => {
                let to = question_lines::session(sender.teammate.as_deref());
                page.line(&[asker, Span::plain(&format!(" wants to write to {to}:"))], 2);
                for line in sender.message.lines() {
                    page.line(&[Span::plain("  "), Span::plain(line)], 2);
                }
                String::new()
            }
            Question::Include(include) => {
                let file = Span::new(&short(&include.file), TextStyle::BOLD);
                page.line(&[asker, Span::plain(" wants to include "), file], 2);
                include.teammate.as_ref().map(|name| format!("for the teammate {name} — ")).unwrap_or_default()
            }
            Question::Server(_) => String::new(),
        };
        page.line(&[Span::new(&format!("  {place}{}", self.question.why()), TextStyle::DIM)], 2);
    }

    /// Does what a key means.
    pub(crate) fn key(&mut self, key: KeyEvent) -> QuestionStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if matches!(key.code, KeyCode::Char('c') if control) {
            return self.stop();
        }
        if let Some(editor) = &mut self.reason {
            match key.code {
                KeyCode::Esc => self.reason = None,
                _ if editor.key(key) == EditorStep::Submit => {
                    let said = editor.take();
                    let why = match said.trim() {
                        "" => NO.to_owned(),
                        said => format!("{NO_BECAUSE}{said}"),
                    };
                    self.answer(PermissionAnswer::Deny { why });
                    return QuestionStep::No;
                }
                _ => {}
            }
            return QuestionStep::Not;
        }
        if let Some(form) = &mut self.form {
            return match form.key(key) {
                FormStep::Not => QuestionStep::Not,
                FormStep::Left => {
                    self.form = None;
                    QuestionStep::Not
                }
                FormStep::Done(values) => self.respond(values),
            };
        }
        let writing = self.inquiring.as_ref().is_some_and(ChoicePrompt::is_writing);
        match (key.code, self.focus) {
            (KeyCode::Esc, _) if !writing => return self.stop(),
            (KeyCode::Up | KeyCode::Down | KeyCode::Tab, KeyFocus::Message) => self.focus = KeyFocus::Answers,
            (_, KeyFocus::Message) => return QuestionStep::NotMeant,
            _ if self.inquiring.is_some() => return self.inquire(key),
            (KeyCode::Up, _) => self.chosen = self.chosen.saturating_sub(1),
            (KeyCode::Down | KeyCode::Tab, _) => self.chosen = (self.chosen + 1).min(self.choices().len() - 1),
            (KeyCode::Enter, _) => return self.choose_at(self.chosen),
            (KeyCode::Char('y'), _) if !control => return self.choose_at(0),
            (KeyCode::Char('a'), _) if !control && self.choices().len() > 2 => return self.choose_at(1),
            (KeyCode::Char('n'), _) if !control => return self.choose_at(self.choices().len() - 1),
            (KeyCode::Char(digit @ '1'..='9'), _) => return self.choose_at(digit as usize - '1' as usize),
            // No answer begins so: whoever presses it is typing, and what follows is no answer either.
            (KeyCode::Char(_), _) => {
                if !control {
                    self.leave();
                }
                return QuestionStep::NotMeant;
            }
            _ => {}
        }
        QuestionStep::Not
    }

    /// A key for what the model asks.
    fn inquire(&mut self, key: KeyEvent) -> QuestionStep {
        match self.inquiring.as_mut().map(|inquiring| inquiring.key(key)) {
            Some(ChoiceStep::Done(answers)) => {
                if let Question::Call(call) = &self.question {
                    let answer = choice_prompt::answer(call, &answers);
                    self.answer(answer);
                }
                QuestionStep::Once
            }
            Some(ChoiceStep::NotMeant) => {
                if !key.modifiers.contains(KeyModifiers::CONTROL) {
                    self.leave();
                }
                QuestionStep::NotMeant
            }
            Some(ChoiceStep::Not) | None => QuestionStep::Not,
        }
    }

    /// The user is typing: keys are for the message, until an arrow key comes back.
    pub(crate) fn leave(&mut self) {
        self.focus = KeyFocus::Message;
    }

    /// True if keys go to the message.
    pub(crate) fn is_left(&self) -> bool {
        self.focus == KeyFocus::Message && self.reason.is_none() && self.form.is_none()
    }

    /// The answers there are: edits are accepted for a session rather than by a rule, and a call that no pattern covers
    /// cannot be allowed for always.
    fn choices(&self) -> &'static [AnswerChoice] {
        let call = match &self.question {
            Question::Call(call) => call,
            Question::Server(_) => return &[AnswerChoice::Respond, AnswerChoice::Decline],
            Question::Sender(_) | Question::Include(_) => return &[AnswerChoice::Kept, AnswerChoice::Declined],
        };
        match (call.allowed_in_mode, call.always.as_slice()) {
            (Some(_), _) => &[AnswerChoice::Once, AnswerChoice::Edits, AnswerChoice::No],
            (None, []) => &[AnswerChoice::Once, AnswerChoice::No],
            (None, _) => &[AnswerChoice::Once, AnswerChoice::Always, AnswerChoice::No],
        }
    }

    fn choose_at(&mut self, at: usize) -> QuestionStep {
        self.choices().get(at).copied().map_or(QuestionStep::Not, |choice| self.choose(choice))
    }

    fn choose(&mut self, choice: AnswerChoice) -> QuestionStep {
        let (allowed_in_mode, always) = match &self.question {
            Question::Call(call) => (call.allowed_in_mode, call.always.clone()),
            Question::Sender(_) | Question::Include(_) | Question::Server(_) => (None, Vec::new()),
        };
        match choice {
            AnswerChoice::Once | AnswerChoice::Kept => {
                self.answer(PermissionAnswer::Allow);
                QuestionStep::Once
            }
            AnswerChoice::Respond => match &self.question {
                Question::Server(request) => {
                    self.form = FormPrompt::of(request);
                    if let ElicitationRequest::Url { url, .. } = &**request {
                        browser::open(url);
                    }
                    if self.form.is_some() { QuestionStep::Not } else { self.respond(Map::new()) }
                }
                _ => QuestionStep::Not,
            },
            AnswerChoice::Declined | AnswerChoice::Decline => {
                self.answer(PermissionAnswer::Deny { why: NO.to_owned() });
                QuestionStep::No
            }
            AnswerChoice::Edits => {
                self.answer(PermissionAnswer::Allow);
                allowed_in_mode.map_or(QuestionStep::Once, QuestionStep::Mode)
            }
            AnswerChoice::Always => {
                let (texts, rules) = always.into_iter().unzip();
                self.answer(PermissionAnswer::Always(rules));
                QuestionStep::Always(texts)
            }
            AnswerChoice::No => {
                self.chosen = self.choices().len() - 1;
                self.reason = Some(Editor::default());
                QuestionStep::Not
            }
        }
    }

    /// The turn is to stop: that is no answer.
    fn stop(&mut self) -> QuestionStep {
        self.answer(PermissionAnswer::Unanswered { why: NO.to_owned() });
        QuestionStep::Stop
    }

    /// What a server asked is answered.
    fn respond(&mut self, values: Map<String, Value>) -> QuestionStep {
        self.form = None;
        self.answer(PermissionAnswer::With { input: Some(Value::Object(values)), permissions: Vec::new() });
        QuestionStep::Once
    }

    fn answer(&mut self, answer: PermissionAnswer) {
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(answer); // the turn may be over already
        }
    }

    /// The rows to draw, and where the cursor is; `escape` says what Esc does.
    pub(crate) fn rows(&self, columns: usize, escape: &str) -> (Vec<Vec<Span>>, (usize, usize)) {
        if let Some(editor) = &self.reason {
            let (mut rows, cursor) = editor.rows(&Span::new("no, because: ", TextStyle::of(Colour::Yellow)), columns);
            rows.push(vec![Span::new("Enter tells the model, Esc goes back", TextStyle::DIM)]);
            return (rows, cursor);
        }
        if let Some(form) = &self.form {
            return form.rows(columns);
        }
        let (keys, look) = match (self.focus, &self.inquiring) {
            (KeyFocus::Message, _) => {
                ("you were typing: press an arrow key, then answer".to_owned(), TextStyle::of(Colour::Yellow))
            }
            (KeyFocus::Answers, Some(inquiring)) => (inquiring.keys(), TextStyle::DIM),
            (KeyFocus::Answers, None) => (format!("Enter answers, Esc {escape}"), TextStyle::DIM),
        };
        let keys = Span::new(&keys, look);
        if let Some(inquiring) = &self.inquiring {
            return inquiring.rows(columns, keys, self.focus == KeyFocus::Answers);
        }
        let is_plan = matches!(&self.question, Question::Call(call) if is_plan(call));
        let mut rows = Vec::new();
        let mut cursor = (0, 0);
        for (at, choice) in self.choices().iter().enumerate() {
            let option = match choice {
                AnswerChoice::Once if is_plan => "approve (y)".to_owned(),
                AnswerChoice::Edits if is_plan => "approve, and accept edits (a)".to_owned(),
                AnswerChoice::No if is_plan => "keep planning, and say what to change (n)".to_owned(),
                AnswerChoice::Once => "yes, once (y)".to_owned(),
                AnswerChoice::Edits => "yes, and accept edits in this session (a)".to_owned(),
                AnswerChoice::Kept => "yes, now and later (y)".to_owned(),
                AnswerChoice::Declined => "no, now and later (n)".to_owned(),
                AnswerChoice::Respond => match &self.question {
                    Question::Server(request) if matches!(**request, ElicitationRequest::Url { .. }) => {
                        "open it in your browser (y)".to_owned()
                    }
                    _ => "answer (y)".to_owned(),
                },
                AnswerChoice::Decline => "decline (n)".to_owned(),
                AnswerChoice::Always => {
                    let always = match &self.question {
                        Question::Call(call) => call.always.as_slice(),
                        Question::Sender(_) | Question::Include(_) | Question::Server(_) => &[],
                    };
                    let rules = always.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>();
                    format!("yes, and always for {} (a)", rules.join(" and "))
                }
                AnswerChoice::No => "no, and say why (n)".to_owned(),
            };
            let chosen = at == self.chosen && self.focus == KeyFocus::Answers;
            let (mark, look) = if chosen { ("› ", TextStyle::of(Colour::Cyan)) } else { ("  ", TextStyle::PLAIN) };
            if at == self.chosen {
                cursor = (rows.len(), 0);
            }
            rows.extend(wrap(&[Span::new(mark, look), Span::new(&format!("{} {option}", at + 1), look)], columns, 4));
        }
        rows.push(vec![keys]);
        (rows, cursor)
    }
}

/// Why a call was denied, as the one reads it who denied it.
pub(crate) fn reason_shown(why: &str) -> String {
    match why.strip_prefix(NO_BECAUSE) {
        Some(said) => format!("you said no: {said}"),
        None if why == NO => "you said no".to_owned(),
        None => why.to_owned(),
    }
}
