//! Rows printed above the prompt for good, waiting for the next draw, and the space between their parts.
//!
//! Whoever prints names the kind of row; a blank row separates different kinds. So nobody else has to think about
//! spacing, and rows are wrapped in one place.

use super::width::{fit, spans_width, wrap};
use crate::styled_text::{Colour, Span, TextStyle};

/// A kind of thing that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PagePart {
    /// Nothing yet.
    Nothing,
    /// The user's message.
    Said,
    /// The model's reply.
    Reply,
    /// The agent's calls, a line each.
    Calls,
    /// Messages of this program.
    Note,
}

/// Rows on their way to the screen.
#[derive(Debug)]
pub(crate) struct Page {
    waiting: Vec<Vec<Span>>,
    part: PagePart,
    columns: usize,
}

impl Page {
    /// For a screen of so many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Self { waiting: Vec::new(), part: PagePart::Nothing, columns }
    }

    /// The screen has another width from now on.
    pub(crate) fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// Width of the screen.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// True if nothing was ever printed.
    pub(crate) fn is_blank(&self) -> bool {
        self.part == PagePart::Nothing
    }

    /// The rows that wait.
    pub(crate) fn take(&mut self) -> Vec<Vec<Span>> {
        std::mem::take(&mut self.waiting)
    }

    /// Something of this kind comes. What the user typed and what this program says always stands alone.
    pub(crate) fn begin(&mut self, part: PagePart) {
        let alone = matches!(part, PagePart::Said | PagePart::Note);
        if self.part != PagePart::Nothing && (alone || self.part != part) {
            self.waiting.push(Vec::new());
        }
        self.part = part;
    }

    /// A line, wrapped; its later rows are indented.
    pub(crate) fn line(&mut self, spans: &[Span], indent: usize) {
        self.waiting.extend(wrap(spans, self.columns, indent));
    }

    /// A line that is cut where the screen ends.
    pub(crate) fn cut(&mut self, spans: &[Span]) {
        self.waiting.push(fit(spans, self.columns));
    }

    /// A call in one line: what it is about is cut before what came of it.
    pub(crate) fn call(&mut self, mark: Span, tool: &str, what: &str, end: &str) {
        self.begin(PagePart::Calls);
        let mut row = vec![mark, Span::new(&format!("{tool} "), TextStyle::BOLD)];
        let end = if end.is_empty() { String::new() } else { format!(" — {end}") };
        let end = fit(&[Span::new(&end, TextStyle::DIM)], self.columns / 2);
        let room = self.columns.saturating_sub(spans_width(&row) + spans_width(&end));
        match (what, row.last_mut()) {
            ("", Some(tool)) => tool.trim_end(),
            _ => row.extend(fit(&[Span::plain(what)], room)),
        }
        row.extend(end);
        self.cut(&row);
    }

    /// Rows that are as wide as they should be.
    pub(crate) fn rows(&mut self, rows: Vec<Vec<Span>>) {
        self.waiting.extend(rows);
    }

    /// Something this program has to say, of one or more lines.
    pub(crate) fn note(&mut self, text: &str, look: TextStyle) {
        self.begin(PagePart::Note);
        for line in text.lines() {
            self.line(&[Span::new(line, look)], 2);
        }
    }

    /// A warning.
    pub(crate) fn warning(&mut self, text: &str) {
        self.begin(PagePart::Note);
        self.line(&[Span::new("warning: ", TextStyle::of(Colour::Yellow)), Span::plain(text)], 2);
    }

    /// Names and what they mean, in two columns; where there is no room for two, below one another.
    pub(crate) fn table(&mut self, entries: &[(String, String)], look: TextStyle) {
        let entries: Vec<_> =
            entries.iter().map(|(name, about)| (Span::new(name, look), vec![Span::plain(about)])).collect();
        self.styled_table(&entries);
    }

    /// Names and what they stand for, each in a look of its own.
    pub(crate) fn styled_table(&mut self, entries: &[(Span, Vec<Span>)]) {
        const GAP: usize = 2;
        let widest = entries.iter().map(|(name, _)| super::width::width(name.text())).max().unwrap_or_default();
        for (name, about) in entries {
            if widest + GAP + 16 > self.columns {
                self.line(std::slice::from_ref(name), 2);
                self.line(&[&[Span::plain("  ")], about.as_slice()].concat(), 2);
            } else {
                let pad = Span::plain(&" ".repeat(widest - super::width::width(name.text()) + GAP));
                self.line(&[&[name.clone(), pad], about.as_slice()].concat(), widest + GAP);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::{Colours, paint};

    fn shown(page: &mut Page) -> Vec<String> {
        page.take().iter().map(|row| paint(row, Colours::Off)).collect()
    }

    #[test]
    fn different_things_stand_apart() {
        let mut page = Page::new(40);
        for (part, text) in
            [(PagePart::Said, "hi"), (PagePart::Calls, "a"), (PagePart::Calls, "b"), (PagePart::Reply, "yes")]
        {
            page.begin(part);
            page.line(&[Span::plain(text)], 0);
        }
        page.note("one\ntwo", TextStyle::PLAIN);
        page.note("three", TextStyle::PLAIN);
        assert_eq!(shown(&mut page), ["hi", "", "a", "b", "", "yes", "", "one", "two", "", "three"]);
    }

    #[test]
    fn a_table_has_two_columns_where_there_is_room() {
        let entries = [("/help".to_owned(), "what there is to know".to_owned()), ("/x".to_owned(), "x".to_owned())];
        let mut page = Page::new(24);
        page.table(&entries, TextStyle::PLAIN);
        assert_eq!(shown(&mut page), ["/help  what there is to", "       know", "/x     x"]);
        page.set_columns(20);
        page.table(&entries, TextStyle::PLAIN);
        assert_eq!(shown(&mut page), ["/help", "  what there is to", "  know", "/x", "  x"]);
    }
}
