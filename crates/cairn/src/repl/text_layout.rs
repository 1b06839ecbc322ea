//! The rows of a text in a window of a certain width: broken at blanks where there are some, and where a place in the text is
//! in them.

use unicode_segmentation::UnicodeSegmentation;

use super::width::width;
use crate::styled_text::clean;

/// A row: its bytes in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VisualRow {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The rows of a text.
#[derive(Debug)]
pub(super) struct TextLayout<'t> {
    text: &'t str,
    rows: Vec<VisualRow>,
}

impl<'t> TextLayout<'t> {
    /// In rows of so many columns.
    pub(super) fn new(text: &'t str, columns: usize) -> Self {
        let mut rows = Vec::new();
        let mut start = 0;
        for line in text.split('\n') {
            let end = start + line.len();
            break_line(text, start, end, columns, &mut rows);
            start = end + 1;
        }
        Self { text, rows }
    }

    /// The rows; there is always one.
    pub(super) fn rows(&self) -> &[VisualRow] {
        &self.rows
    }

    /// The row and column of a place.
    pub(super) fn place_of(&self, at: usize) -> (usize, usize) {
        let row = self.rows.iter().rposition(|row| row.start <= at).unwrap_or_default();
        (row, shown_width(&self.text[self.rows[row].start..at]))
    }

    /// The place in a row that is nearest to a column.
    pub(super) fn at(&self, row: usize, column: usize) -> usize {
        let VisualRow { start, end } = self.rows[row];
        let mut used = 0;
        for (at, part) in self.text[start..end].grapheme_indices(true) {
            if used >= column {
                return start + at;
            }
            used += shown_width(part);
        }
        // The end of a row that goes on belongs to the next one.
        let goes_on = self.rows.get(row + 1).is_some_and(|next| next.start == end);
        if !goes_on {
            return end;
        }
        self.text[start..end].grapheme_indices(true).next_back().map_or(start, |(at, _)| start + at)
    }
}

fn break_line(text: &str, start: usize, end: usize, columns: usize, rows: &mut Vec<VisualRow>) {
    let (mut row, mut used, mut blank) = (start, 0, None);
    for (at, part) in text[start..end].grapheme_indices(true) {
        let (at, wide) = (start + at, shown_width(part));
        if used + wide > columns {
            // A blank at the edge hangs over it, and the next row begins with a word.
            if part == " " {
                blank = Some(at + 1);
                used += wide;
                continue;
            }
            let cut = blank.filter(|cut| *cut > row && *cut <= at).unwrap_or(at);
            rows.push(VisualRow { start: row, end: cut });
            (row, used, blank) = (cut, shown_width(&text[cut..at]), None);
        }
        used += wide;
        if part == " " {
            blank = Some(at + 1);
        }
    }
    rows.push(VisualRow { start: row, end });
    // After a full row the cursor is where the next character will.
    if used >= columns && end > row {
        rows.push(VisualRow { start: end, end });
    }
}

fn shown_width(text: &str) -> usize {
    width(&clean(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, columns: usize) -> Vec<&str> {
        let layout = TextLayout::new(text, columns);
        layout.rows().iter().map(|row| &text[row.start..row.end]).collect()
    }

    #[test]
    fn rows_break_at_words_and_long_words_where_they_must() {
        assert_eq!(rows("one two three", 8), ["one two ", "three"]);
        assert_eq!(rows("one two three", 7), ["one two ", "three"]);
        assert_eq!(rows("abcdefghij k", 4), ["abcd", "efgh", "ij k", ""]);
        assert_eq!(rows("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(rows("日本語 abc", 6), ["日本語 ", "abc"]);
        assert_eq!(rows("", 4), [""]);
    }

    #[test]
    fn a_place_is_found_and_found_again() {
        let text = "one two three four";
        let layout = TextLayout::new(text, 8);
        assert_eq!(layout.place_of(9), (1, 1));
        assert_eq!(layout.place_of(text.len()), (2, 4));
        assert_eq!((layout.at(0, 1), layout.at(1, 99), layout.at(2, 99)), (1, 13, 18));
        for at in 0..=text.len() {
            let (row, column) = layout.place_of(at);
            assert_eq!(layout.at(row, column), at, "{at}");
        }
    }
}
