//! Asking for permission: what will happen, and three answers.

use std::path::Path;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use engine::permission::{Answer, Question};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use tokio::sync::oneshot;
use tools::Subject;
use tools::permission::{Places, Rule};

use super::editor::{Done, Editor};
use super::width::{Colour, Look, Span};

/// How many lines of a diff or a text are shown.
const SHOWN: usize = 30;
/// The largest file a diff is made of.
const DIFF_LIMIT: u64 = 1_000_000;

/// A question that waits for its answer.
pub(crate) struct Asking {
    question: Question,
    reply: Option<oneshot::Sender<Answer>>,
    detail: Vec<Vec<Span>>,
    always: Option<(String, Rule)>,
    chosen: usize,
    reason: Option<Editor>,
}

/// What a key did.
#[derive(Debug)]
pub(crate) enum Answered {
    /// Nothing is decided.
    Not,
    /// It was answered; a rule that shall hold from now on is to be written down.
    Yes(Option<String>),
    /// It was denied.
    No,
}

impl Asking {
    /// Prepares a question for the screen.
    pub(crate) fn new(question: Question, reply: oneshot::Sender<Answer>, project: &Path) -> Self {
        let detail = detail(&question);
        let always = rule_for(&question, project);
        Self { question, reply: Some(reply), detail, always, chosen: 0, reason: None }
    }

    /// What is asked, in one line.
    pub(crate) fn title(&self) -> String {
        format!("{}: {}", self.question.tool, subject_text(&self.question))
    }

    /// Does what a key means.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Answered {
        if let Some(editor) = &mut self.reason {
            match key.code {
                KeyCode::Esc => self.reason = None,
                _ if editor.key(key) == Done::Submit => {
                    let said = editor.take();
                    let why = match said.trim() {
                        "" => "The user said no.".to_owned(),
                        said => format!("The user said no, and why: {said}"),
                    };
                    return self.answer(Answer::Deny { why });
                }
                _ => {}
            }
            return Answered::Not;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.chosen = (self.chosen + 1).min(2),
            KeyCode::Char('y' | '1') => return self.choose(0),
            KeyCode::Char('a' | '2') => return self.choose(1),
            KeyCode::Char('c') if control => return self.answer(Answer::Deny { why: "The user said no.".to_owned() }),
            KeyCode::Char('n' | '3') | KeyCode::Esc => return self.choose(2),
            KeyCode::Enter => return self.choose(self.chosen),
            _ => {}
        }
        Answered::Not
    }

    fn choose(&mut self, choice: usize) -> Answered {
        self.chosen = choice;
        match (choice, &self.always) {
            (0, _) => self.answer(Answer::Allow),
            (1, Some((_, rule))) => self.answer(Answer::Always(Box::new(rule.clone()))),
            (1, None) => Answered::Not,
            _ => {
                self.reason = Some(Editor::default());
                Answered::Not
            }
        }
    }

    fn answer(&mut self, answer: Answer) -> Answered {
        let answered = match &answer {
            Answer::Allow => Answered::Yes(None),
            Answer::Always(_) => Answered::Yes(self.always.as_ref().map(|(text, _)| text.clone())),
            Answer::Deny { .. } => Answered::No,
        };
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(answer); // the turn may be over already
        }
        answered
    }

    /// The rows to draw, and where the cursor stands.
    pub(crate) fn rows(&self, columns: usize) -> (Vec<Vec<Span>>, (usize, usize)) {
        let mut rows = vec![vec![
            Span::new(&format!("{} ", self.question.tool), Look { bold: true, ..Look::of(Colour::Yellow) }),
            Span::plain(&subject_text(&self.question)),
        ]];
        rows.extend(self.detail.iter().cloned());
        let place = format!("in {} — {}", self.question.directory.display(), self.question.why);
        rows.push(vec![Span::new(&place, Look::DIM)]);
        if let Some(editor) = &self.reason {
            let (lines, cursor) = editor.rows(&Span::new("no, because: ", Look::of(Colour::Yellow)), columns);
            let cursor = (rows.len() + cursor.0, cursor.1);
            rows.extend(lines);
            return (rows, cursor);
        }
        let always = match &self.always {
            Some((text, _)) => format!("2 yes, always for {text} (a)"),
            None => "2 (no pattern fits this call)".to_owned(),
        };
        let options = ["1 yes, once (y)".to_owned(), always, "3 no, and say why (n)".to_owned()];
        for (at, option) in options.iter().enumerate() {
            let (mark, look) = if at == self.chosen { ("› ", Look::of(Colour::Cyan)) } else { ("  ", Look::PLAIN) };
            rows.push(vec![Span::new(mark, look), Span::new(option, look)]);
        }
        let cursor = (rows.len() - 3 + self.chosen, 0);
        (rows, cursor)
    }
}

fn subject_text(question: &Question) -> String {
    match &question.subject {
        Subject::Command(command) => super::first_line(command, 200),
        Subject::Path { named, .. } => named.display().to_string(),
        Subject::Whole => super::first_line(&question.input.to_string(), 200),
    }
}

/// What will happen: the lines of a command, the diff of an edit, the text of a new file.
fn detail(question: &Question) -> Vec<Vec<Span>> {
    let input = &question.input;
    let text = |key: &str| input[key].as_str();
    match (&question.subject, text("content"), text("old_string").zip(text("new_string"))) {
        (Subject::Command(command), _, _) if command.lines().count() > 1 => {
            capped(command.lines().map(|line| vec![Span::plain("  "), Span::plain(line)]).collect())
        }
        (Subject::Path { real, .. }, Some(content), _) => diff(&current(real), content),
        (Subject::Path { real, .. }, None, Some((old, new))) => {
            let before = current(real);
            let every = input["replace_all"] == Value::Bool(true);
            let after = if every { before.replace(old, new) } else { before.replacen(old, new, 1) };
            diff(&before, &after)
        }
        _ => Vec::new(),
    }
}

fn current(path: &Path) -> String {
    files::read(path, DIFF_LIMIT).map(|file| String::from_utf8_lossy(&file.bytes).into_owned()).unwrap_or_default()
}

fn diff(before: &str, after: &str) -> Vec<Vec<Span>> {
    let diff = TextDiff::from_lines(before, after);
    let mut rows = Vec::new();
    for (at, group) in diff.grouped_ops(2).iter().enumerate() {
        if at > 0 {
            rows.push(vec![Span::new("  …", Look::DIM)]);
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, look) = match change.tag() {
                ChangeTag::Delete => ("-", Look::of(Colour::Red)),
                ChangeTag::Insert => ("+", Look::of(Colour::Green)),
                ChangeTag::Equal => (" ", Look::DIM),
            };
            let number = change.new_index().or(change.old_index()).map_or(0, |index| index + 1);
            let line = change.value().trim_end_matches(['\n', '\r']);
            rows.push(vec![Span::new(&format!("{number:>5} {sign} "), look), Span::new(line, look)]);
        }
    }
    capped(rows)
}

fn capped(mut rows: Vec<Vec<Span>>) -> Vec<Vec<Span>> {
    let rest = rows.len().saturating_sub(SHOWN);
    rows.truncate(SHOWN);
    if rest > 0 {
        rows.push(vec![Span::new(&format!("  … {rest} more lines"), Look::DIM)]);
    }
    rows
}

/// A rule that covers this call and others like it: the command's first words, the file's folder.
fn rule_for(question: &Question, project: &Path) -> Option<(String, Rule)> {
    let places = Places { directory: project.to_owned(), settings: project.to_owned(), home: None };
    let texts: Vec<String> = match &question.subject {
        Subject::Command(command) => {
            let words: Vec<&str> = command.split_whitespace().collect();
            let two = words
                .get(1)
                .is_some_and(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'))
                && !words.get(1).is_some_and(|word| word.starts_with('-'));
            let prefix = words.iter().take(if two { 2 } else { 1 }).copied().collect::<Vec<_>>().join(" ");
            vec![format!("Bash({prefix}:*)"), format!("Bash({command})")]
        }
        Subject::Path { real, .. } => {
            let folder = real.parent()?;
            let tool = if question.tool == "Write" { "Edit" } else { question.tool.as_str() };
            match folder.strip_prefix(project) {
                Ok(inside) if inside.as_os_str().is_empty() => vec![format!("{tool}(/**)")],
                Ok(inside) => vec![format!("{tool}(/{}/**)", inside.display())],
                Err(_) => vec![format!("{tool}(/{}/**)", folder.display())],
            }
        }
        Subject::Whole => vec![question.tool.clone()],
    };
    texts.into_iter().find_map(|text| {
        let rule = Rule::parse(&text, &places).ok()?;
        let rules = tools::permission::Rules { allow: vec![rule.clone()], ..Default::default() };
        let allows = rules.decide(&question.tool, &question.subject) == tools::permission::Verdict::Allow;
        allows.then_some((text, rule))
    })
}
