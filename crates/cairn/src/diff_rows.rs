//! A change of a text as rows with line numbers and signs, and the number of lines it adds and removes.
//!
//! It says nothing about the file and reads none. A change that takes too long to compare is shown coarser, never late.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::code_colours::CodeColours;
use crate::styled_text::{Colour, Span, TextStyle};

/// Unchanged lines around a change.
const AROUND: usize = 2;
/// Time for a comparison. Beyond it, the rest counts as replaced: typing must not wait.
const COMPARING: Duration = Duration::from_millis(50);

/// A change, line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DiffRows {
    /// The changed lines, with a few around them.
    pub(crate) rows: Vec<Vec<Span>>,
    /// Number of added lines.
    pub(crate) added: usize,
    /// Number of removed lines.
    pub(crate) removed: usize,
}

impl DiffRows {
    /// The change from one text to another.
    pub(crate) fn of(before: &str, after: &str) -> Self {
        Self::coloured(before, after, None)
    }

    /// The change of a file, in the colours of its language. What is taken out stays red as a whole.
    pub(crate) fn of_file(before: &str, after: &str, path: &Path) -> Self {
        let ending = path.extension().or(path.file_name()).and_then(OsStr::to_str).unwrap_or_default();
        Self::coloured(before, after, Some(ending))
    }

    fn coloured(before: &str, after: &str, language: Option<&str>) -> Self {
        let diff = TextDiff::configure().timeout(COMPARING).diff_lines(before, after);
        let mut all = Self::default();
        for (at, group) in diff.grouped_ops(AROUND).iter().enumerate() {
            if at > 0 {
                all.rows.push(vec![Span::new("  …", TextStyle::DIM)]);
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let (sign, look) = match change.tag() {
                    ChangeTag::Delete => ("-", TextStyle::of(Colour::Red)),
                    ChangeTag::Insert => ("+", TextStyle::of(Colour::Green)),
                    ChangeTag::Equal => (" ", TextStyle::DIM),
                };
                all.added += usize::from(change.tag() == ChangeTag::Insert);
                all.removed += usize::from(change.tag() == ChangeTag::Delete);
                let number = change.new_index().or(change.old_index()).map_or(0, |index| index + 1);
                let line = change.value().trim_end_matches(['\n', '\r']);
                let mut row = vec![Span::new(&format!("{number:>5} {sign} "), look)];
                // A line stands for itself here: what began above it is not in view.
                match language.and_then(CodeColours::of).filter(|_| change.tag() == ChangeTag::Insert) {
                    Some(mut colours) => row.extend(colours.line(line, look)),
                    None => row.push(Span::new(line, look)),
                }
                all.rows.push(row);
            }
        }
        all
    }

    /// The number of lines it adds and removes, as `+3 −1`.
    pub(crate) fn counts(&self) -> String {
        match (self.added, self.removed) {
            (0, 0) => "no line changed".to_owned(),
            (added, 0) => format!("+{added}"),
            (0, removed) => format!("−{removed}"),
            (added, removed) => format!("+{added} −{removed}"),
        }
    }

    /// At most so many rows; `more` says where the rest is to be seen.
    pub(crate) fn capped(mut self, most: usize, more: &str) -> Vec<Vec<Span>> {
        let rest = self.rows.len().saturating_sub(most);
        self.rows.truncate(most);
        if rest > 0 {
            self.rows.push(vec![Span::new(&format!("  … {rest} more lines{more}"), TextStyle::DIM)]);
        }
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::{Colours, paint};

    #[test]
    fn lines_are_numbered_counted_and_capped() {
        let diff = DiffRows::of("a\nb\nc\n", "a\nB\nBB\nc\n");
        assert_eq!(diff.counts(), "+2 −1");
        let rows: Vec<String> = diff.capped(3, " (Ctrl-O)").iter().map(|row| paint(row, Colours::Off)).collect();
        assert_eq!(rows, ["    1   a", "    2 - b", "    2 + B", "  … 2 more lines (Ctrl-O)"]);
        assert_eq!(DiffRows::of("", "x\n").counts(), "+1");
        assert_eq!(DiffRows::of("x\n", "").counts(), "−1");
        assert_eq!(DiffRows::of("x", "x").counts(), "no line changed");
    }
}
