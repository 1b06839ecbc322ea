//! Text on a terminal: how wide it is, where it wraps, how it is styled.
//!
//! A [`Span`] is text in one style. Wrapping works on spans, so that colours never confuse widths; only the last step
//! turns them into escape sequences. Text from outside has its control characters taken out on the way in.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A run of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// The text, without control characters.
    pub(crate) text: String,
    /// How it looks.
    pub(crate) look: Look,
}

/// How text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Bold.
    pub(crate) bold: bool,
    /// Dim.
    pub(crate) dim: bool,
    /// Italic.
    pub(crate) italic: bool,
    /// Struck through.
    pub(crate) struck: bool,
    /// A colour of the terminal's palette.
    pub(crate) colour: Option<Colour>,
}

/// The colours used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
}

impl Look {
    pub(crate) const PLAIN: Self = Self { bold: false, dim: false, italic: false, struck: false, colour: None };
    pub(crate) const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub(crate) const DIM: Self = Self { dim: true, ..Self::PLAIN };

    /// A colour.
    pub(crate) const fn of(colour: Colour) -> Self {
        Self { colour: Some(colour), ..Self::PLAIN }
    }

    fn codes(self) -> Vec<String> {
        let flags = [(self.bold, "1"), (self.dim, "2"), (self.italic, "3"), (self.struck, "9")];
        let flags = flags.into_iter().filter(|(on, _)| *on).map(|(_, code)| code.to_owned());
        flags.chain(self.colour.map(|colour| (colour as u8).to_string())).collect()
    }
}

impl Span {
    /// Text in a style; tabs become spaces, other control characters vanish.
    pub(crate) fn new(text: &str, look: Look) -> Self {
        Self { text: clean(text), look }
    }

    /// Text as it is.
    pub(crate) fn plain(text: &str) -> Self {
        Self::new(text, Look::PLAIN)
    }
}

/// Text without control characters, which could move the cursor or worse.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            c if c.is_control() || turns_text_around(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Characters that change the direction of what follows, so that a command can look like another one.
fn turns_text_around(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text without control characters but line ends.
pub(crate) fn clean_lines(text: &str) -> String {
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

/// Columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Columns spans take together.
pub(crate) fn spans_width(spans: &[Span]) -> usize {
    spans.iter().map(|span| width(&span.text)).sum()
}

/// Spans as one string with escape sequences, or without where colours are off.
pub(crate) fn paint(spans: &[Span], colours: bool) -> String {
    let mut out = String::new();
    for span in spans {
        let codes = span.look.codes();
        if colours && !codes.is_empty() {
            out.push_str(&format!("\x1b[{}m{}\x1b[0m", codes.join(";"), span.text));
        } else {
            out.push_str(&span.text);
        }
    }
    out
}

/// Breaks spans into rows of at most `columns`, at blanks where there are some; later rows are indented.
pub(crate) fn wrap(spans: &[Span], columns: usize, indent: usize) -> Vec<Vec<Span>> {
    let columns = columns.max(indent + 2).max(2);
    let mut rows: Vec<Vec<Span>> = Vec::new();
    let mut row = Row::default();
    for span in spans {
        for word in span.text.split_inclusive(' ') {
            let wide = width(word.trim_end_matches(' '));
            // A word that fits no row is broken where it stands.
            if row.used + wide > columns && row.used > row.start && indent + wide <= columns {
                rows.push(row.end());
                row = Row::indented(indent);
            }
            for part in word.graphemes(true) {
                let wide = width(part);
                if row.used + wide > columns {
                    if part == " " {
                        continue; // a blank at the edge is the break itself
                    }
                    rows.push(row.end());
                    row = Row::indented(indent);
                }
                row.push(part, wide, span.look);
            }
        }
    }
    rows.push(row.end());
    rows
}

#[derive(Default)]
struct Row {
    spans: Vec<Span>,
    used: usize,
    start: usize,
}

impl Row {
    fn indented(indent: usize) -> Self {
        let spans = if indent > 0 { vec![Span::plain(&" ".repeat(indent))] } else { Vec::new() };
        Self { spans, used: indent, start: indent }
    }

    fn push(&mut self, part: &str, wide: usize, look: Look) {
        match self.spans.last_mut() {
            Some(last) if last.look == look => last.text.push_str(part),
            _ => self.spans.push(Span { text: part.to_owned(), look }),
        }
        self.used += wide;
    }

    fn end(mut self) -> Vec<Span> {
        if let Some(last) = self.spans.last_mut() {
            last.text.truncate(last.text.trim_end_matches(' ').len());
        }
        self.spans
    }
}

/// Cuts spans to so many columns, with an ellipsis where something was cut.
pub(crate) fn fit(spans: &[Span], columns: usize) -> Vec<Span> {
    if spans_width(spans) <= columns {
        return spans.to_vec();
    }
    let mut row = Row::default();
    'all: for span in spans {
        for part in span.text.graphemes(true) {
            let wide = width(part);
            if row.used + wide + 1 > columns {
                break 'all;
            }
            row.push(part, wide, span.look);
        }
    }
    if columns > 0 {
        row.push("…", 1, Look::DIM);
    }
    row.spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, columns: usize, indent: usize) -> Vec<String> {
        wrap(&[Span::plain(text)], columns, indent).iter().map(|row| paint(row, false)).collect()
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
        assert_eq!(paint(&fit(&[Span::plain("日本語")], 4), false), "日…");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\x07\tc\u{9b}d\u{202e}e"), "a[31mb    cde");
    }
}
