//! A call that is asked about, printed whole: its command, its change of a file, its plan or its input.

use std::path::Path;

use settings::permission::CallQuestion;
use tools::{FileChange, Subject};

use super::markdown::Markdown;
use super::page::Page;
use crate::diff_rows::DiffRows;
use crate::styled_text::{Colour, Span, TextStyle};

/// The most lines of a diff or a text that are shown.
const SHOWN: usize = 300;
/// Columns before the rows of a plan.
const PLAN_INDENT: usize = 2;
/// The largest file a diff is made of.
const DIFF_LIMIT: u64 = 1_000_000;

/// True if it is a plan that is asked about.
pub(super) fn is_plan(call: &CallQuestion) -> bool {
    call.input["plan"].is_string() && call.subject == Subject::Whole
}

/// A call, with what it would do.
pub(super) fn show_call(call: &CallQuestion, asker: Span, page: &mut Page, short: impl Fn(&Path) -> String) {
    match &call.subject {
        Subject::Command(command) => {
            page.line(&[asker, Span::plain(" wants to run")], 2);
            for (at, line) in command.lines().enumerate() {
                page.line(&[Span::new(if at == 0 { "  $ " } else { "    " }, TextStyle::DIM), Span::plain(line)], 4);
            }
        }
        Subject::Path { named, real } => {
            let change = FileChange::of(&call.input);
            let verb = match (change.is_some(), files::stamp(real).is_ok()) {
                (true, true) => " wants to change ",
                (true, false) => " wants to create ",
                (false, _) => " wants to look at ",
            };
            let (counts, rows) = change.map(|change| detail(&change, real)).unwrap_or_default();
            let file = Span::new(&short(named), TextStyle::BOLD);
            page.line(&[asker, Span::plain(verb), file, Span::new(&counts, TextStyle::DIM)], 2);
            for row in rows {
                page.line(&row, 8);
            }
        }
        Subject::Whole if is_plan(call) => {
            page.line(&[asker, Span::plain(" proposes this plan:")], 2);
            let mut markdown = Markdown::new(page.columns().saturating_sub(PLAN_INDENT));
            let mut rows = vec![Vec::new()];
            rows.extend(markdown.push(call.input["plan"].as_str().unwrap_or_default()));
            rows.extend(markdown.finish());
            let indent = Span::plain(&" ".repeat(PLAN_INDENT));
            page.rows(rows.into_iter().map(|row| [vec![indent.clone()], row].concat()).collect());
        }
        Subject::Name(_) | Subject::Whole => {
            page.line(&[asker, Span::plain(" wants to run")], 2);
            page.line(&[Span::plain("  "), Span::plain(&call.input.to_string())], 2);
        }
    }
}

/// The change of a file, its size and its lines: the diff of an edit, the text of a new file.
fn detail(change: &FileChange, file: &Path) -> (String, Vec<Vec<Span>>) {
    let before = current(file);
    match change.applied(&before) {
        Ok(after) => {
            let diff = DiffRows::of_file(&before, &after, file);
            (format!(" {}", diff.counts()), diff.capped(SHOWN, ""))
        }
        Err(why) => {
            let why = Span::new(&format!("  This edit would fail: {why}"), TextStyle::of(Colour::Red));
            (String::new(), vec![vec![why]])
        }
    }
}

fn current(path: &Path) -> String {
    files::read(path, DIFF_LIMIT).map(|file| String::from_utf8_lossy(&file.bytes).into_owned()).unwrap_or_default()
}
