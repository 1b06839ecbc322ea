//! Text on a terminal: how wide it is, and where it wraps.
//!
//! Wrapping works on spans, so that colours never confuse widths; only the last step turns them into escape sequences.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::styled_text::{Span, TextStyle};

/// Columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Columns spans take together.
pub(crate) fn spans_width(spans: &[Span]) -> usize {
    spans.iter().map(|span| width(span.text())).sum()
}

/// Breaks spans into rows of at most `columns`, at blanks where there are some; later rows are indented.
pub(crate) fn wrap(spans: &[Span], columns: usize, indent: usize) -> Vec<Vec<Span>> {
    let columns = columns.max(indent + 2).max(2);
    let mut rows: Vec<Vec<Span>> = Vec::new();
    let mut row = WidthRow::default();
    for span in spans {
        for word in span.text().split_inclusive(' ') {
            let wide = width(word.trim_end_matches(' '));
            // A word that fits no row is broken where it is.
            if row.used + wide > columns && row.used > row.start && indent + wide <= columns {
                rows.push(row.end());
                row = WidthRow::indented(indent);
            }
            for part in word.graphemes(true) {
                let wide = width(part);
                if row.used + wide > columns {
                    if part == " " {
                        continue; // a blank at the edge is the break itself
                    }
                    rows.push(row.end());
                    row = WidthRow::indented(indent);
                }
                row.push(part, wide, span);
            }
        }
    }
    rows.push(row.end());
    rows
}

#[derive(Default)]
struct WidthRow {
    spans: Vec<Span>,
    used: usize,
    start: usize,
}

impl WidthRow {
    fn indented(indent: usize) -> Self {
        let spans = if indent > 0 { vec![Span::plain(&" ".repeat(indent))] } else { Vec::new() };
        Self { spans, used: indent, start: indent }
    }

    /// Adds text that looks like a span.
    fn push(&mut self, part: &str, wide: usize, like: &Span) {
        match self.spans.last_mut() {
            Some(last) if last.is_like(like) => last.push(part),
            _ => self.spans.push(like.with_text(part)),
        }
        self.used += wide;
    }

    fn end(mut self) -> Vec<Span> {
        if let Some(last) = self.spans.last_mut() {
            last.trim_end();
        }
        self.spans
    }
}

/// Cuts spans to so many columns, with an ellipsis where something was cut.
pub(crate) fn fit(spans: &[Span], columns: usize) -> Vec<Span> {
    if spans_width(spans) <= columns {
        return spans.to_vec();
    }
    let mut row = WidthRow::default();
    'all: for span in spans {
        for part in span.text().graphemes(true) {
            let wide = width(part);
            if row.used + wide + 1 > columns {
                break 'all;
            }
            row.push(part, wide, span);
        }
    }
    if columns > 0 {
        row.push("…", 1, &Span::new("", TextStyle::DIM));
    }
    row.spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::{Colours, paint};

    fn rows(text: &str, columns: usize, indent: usize) -> Vec<String> {
        wrap(&[Span::plain(text)], columns, indent).iter().map(|row| paint(row, Colours::Off)).collect()
    }

    #[test]
    fn text_wraps_at_blanks_and_long_words_are_broken() {
        assert_eq!(rows("one two three", 7, 0), ["one two", "three"]);
        assert_eq!(rows("one two three", 7, 2), ["one two", "  three"]);
        assert_eq!(rows("abcdefghij", 4, 0), ["abcd", "efgh", "ij"]);
        assert_eq!(rows("file /a/b/c/d/e", 8, 2), ["file /a/", "  b/c/d/", "  e"]);
        assert_eq!(rows("", 4, 0), [""]);
    }

    #[test]
    fn wide_characters_count_twice_and_are_never_halved() {
        assert_eq!(rows("日本語です", 5, 0), ["日本", "語で", "す"]);
        assert_eq!(rows("ok 👩‍👩‍👧 yes", 5, 0), ["ok 👩‍👩‍👧", "yes"]);
        assert_eq!(paint(&fit(&[Span::plain("日本語")], 4), Colours::Off), "日…");
    }
}
