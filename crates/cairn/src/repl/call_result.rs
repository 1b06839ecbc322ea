//! The end of a call as it is shown: its row, and below it the change it made or a few lines of what it printed.
//!
//! It decides how much is shown without asking; all of it is a key away. It knows no screen.

use std::path::Path;

use tools::{PRINTED_NOTHING, TextRewrite};
use transcript::{Outcome, tool_names};

use super::page::Page;
use crate::diff_rows::DiffRows;
use crate::event_text;
use crate::styled_text::{Colour, Span, TextStyle, without_escapes};

/// Lines of a command's output: with these a test run's last words can be read, and ten commands fit a window.
const OUTPUT: usize = 5;
/// Of these, lines of the beginning of an output that is cut; an error is in the end.
const HEAD: usize = 2;
/// Rows of a change.
const CHANGE: usize = 40;
/// Columns of a line's number and sign in a change.
const BESIDE_NUMBERS: usize = 8;
/// Prefix of the tools of other servers, whose output nobody has summarised.
const FOREIGN: &str = "mcp__";
/// Beginning of the summary of a command that runs on in the background.
const RUNS_ON: &str = "Running as ";
/// Place of the rest.
const REST: &str = " (Ctrl-O)";
const REST_IN_LINES: &str = " (/expand)";

/// A change was shown when it was asked about, or is shown now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeDisplay {
    Already,
    Not,
}

/// Prints the end of a call.
pub(super) fn show(page: &mut Page, tool: &str, what: &str, output: &tools::Output, change: ChangeDisplay) {
    let (mark, look) = match output.outcome {
        Outcome::Done => ("✓ ", TextStyle::of(Colour::Green)),
        Outcome::Failed => ("✗ ", TextStyle::of(Colour::Red)),
    };
    let mark = Span::new(mark, look);
    if let Some(rewrite) = &output.rewrite {
        let diff = diff_of(rewrite, output);
        page.call(mark, tool, what, &diff.counts());
        if change == ChangeDisplay::Not {
            diff.capped(CHANGE, REST).iter().for_each(|row| page.line(row, BESIDE_NUMBERS));
        }
        return;
    }
    let lines = printed(tool, output);
    let wide = lines.first().map_or(0, |line| super::width::width(line));
    if lines.is_empty() || (output.outcome == Outcome::Done && lines.len() == 1 && wide < page.columns() / 2) {
        return page.call(mark, tool, what, &event_text::ended(output));
    }
    page.call(mark, tool, what, if output.outcome == Outcome::Failed { &output.summary } else { "" });
    for row in preview(&lines, output.outcome, REST) {
        page.cut(&[Span::new(&format!("    {row}"), TextStyle::DIM)]);
    }
}

/// The change of a file, in the colours of its language.
pub(super) fn diff_of(rewrite: &TextRewrite, output: &tools::Output) -> DiffRows {
    let path = output.changed.as_deref().unwrap_or(Path::new(""));
    DiffRows::of_file(&rewrite.before, &rewrite.after, path)
}

/// The rows below the end of a call, where nothing is cut to a width: its change, or a few lines of what it printed.
pub(super) fn rows_below(tool: &str, output: &tools::Output) -> Vec<Vec<Span>> {
    if let Some(rewrite) = &output.rewrite {
        return diff_of(rewrite, output).capped(CHANGE, REST_IN_LINES);
    }
    let lines = printed(tool, output);
    if output.outcome == Outcome::Done && lines.len() == 1 {
        return Vec::new(); // it was said
    }
    preview(&lines, output.outcome, REST_IN_LINES).iter().map(|line| vec![Span::plain(&format!("  {line}"))]).collect()
}

/// The lines that a call printed, if it is one whose output is shown.
fn printed(tool: &str, output: &tools::Output) -> Vec<String> {
    if tool != tool_names::BASH && !tool.starts_with(FOREIGN) {
        return Vec::new();
    }
    let text = without_escapes(&output.text());
    // Of one in the background the rest is for the model.
    if text == PRINTED_NOTHING || output.summary.starts_with(RUNS_ON) {
        return Vec::new();
    }
    let lines = text.lines().skip(usize::from(output.outcome == Outcome::Failed));
    lines.filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// A few of these lines: both ends, or the end of an error.
fn preview(lines: &[String], outcome: Outcome, rest: &str) -> Vec<String> {
    if lines.len() <= OUTPUT {
        return lines.to_vec();
    }
    let (head, tail) = match outcome {
        Outcome::Done => (HEAD, OUTPUT - HEAD - 1),
        Outcome::Failed => (0, OUTPUT - 1),
    };
    let left = lines.len() - head - tail;
    let gap = format!("… {left} more lines{rest}");
    lines[..head].iter().cloned().chain([gap]).chain(lines[lines.len() - tail..].iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::{Colours, paint};

    fn rows(output: &tools::Output) -> Vec<String> {
        let mut page = Page::new(40);
        show(&mut page, "Bash", "run", output, ChangeDisplay::Not);
        page.take().iter().map(|row| paint(row, Colours::Off)).collect()
    }

    #[test]
    fn an_output_shows_its_ends_and_an_error_its_end() {
        let lines: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
        let done = tools::Output::done(lines.join("\n"), "line 20");
        assert_eq!(
            rows(&done),
            ["✓ Bash run", "    line 1", "    line 2", "    … 16 more lines (Ctrl-O)", "    line 19", "    line 20"]
        );
        let failed = tools::Output::failed(format!("Exit code 2\n{}", lines.join("\n")));
        assert_eq!(
            rows(&failed),
            [
                "✗ Bash run — Exit code 2",
                "    … 16 more lines (Ctrl-O)",
                "    line 17",
                "    line 18",
                "    line 19",
                "    line 20"
            ]
        );
        assert_eq!(rows(&tools::Output::done("short", "short")), ["✓ Bash run — short"]);
        let coloured = "\u{1b}[31mred\u{1b}[0m\nover\rwritten\n";
        assert_eq!(rows(&tools::Output::done(coloured, "x")), ["✓ Bash run", "    red", "    written"]);
    }
}
