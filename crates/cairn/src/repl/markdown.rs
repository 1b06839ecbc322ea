//! Markdown as it streams in: every finished line is rendered once and never looked at again.
//!
//! Models write a paragraph as one line, so a line is the unit: its block is known from its beginning, its inline style
//! from itself. A table is held back until it ends, since its columns depend on all its rows. What is not finished yet is
//! shown raw by whoever draws the screen. So the cost of a piece does not depend on how long the reply already is.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::width::{spans_width, wrap};
use crate::code_colours::CodeColours;
use crate::styled_text::{Colour, Link, Span, TextStyle};

/// A line without an end is flushed when it is as long as this, so that memory and work stay bounded.
const LONGEST_LINE: usize = 8_192;
/// A table with more rows is shown as it is.
const LONGEST_TABLE: usize = 200;
/// Beginning of a row that is quoted.
const BAR: &str = "│ ";
/// Columns between the columns of a table.
const BETWEEN: usize = 2;
/// A column of a table is never made narrower.
const NARROWEST: usize = 4;

/// A reply being rendered.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    columns: usize,
    pending: String,
    fence: Option<String>,
    /// The colours of the code in it.
    code: Option<CodeColours>,
    table: Vec<String>,
    begun: bool,
    blank: bool,
}

type Rows = Vec<Vec<Span>>;

impl Markdown {
    /// For a screen of so many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns, ..Self::default() }
    }

    /// The screen has another width from now on.
    pub(crate) fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// Takes the next piece and returns the rows that are finished.
    pub(crate) fn push(&mut self, piece: &str) -> Rows {
        let mut rows = Rows::new();
        let mut rest = piece;
        while let Some(end) = rest.find('\n') {
            self.pending.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.pending);
            self.line(&line, &mut rows);
        }
        self.pending.push_str(rest);
        if self.pending.len() > LONGEST_LINE {
            let at = self.pending.rfind(' ').unwrap_or(self.pending.len());
            let rest = self.pending.split_off(at);
            let line = std::mem::replace(&mut self.pending, rest.trim_start().to_owned());
            self.line(&line, &mut rows);
        }
        rows
    }

    /// The text that has arrived and is not finished.
    pub(crate) fn pending(&self) -> &str {
        self.table.last().map_or(&self.pending, |row| if self.pending.is_empty() { row } else { &self.pending })
    }

    /// The reply is over: whatever is left is finished now.
    pub(crate) fn finish(&mut self) -> Rows {
        let mut rows = Rows::new();
        let line = std::mem::take(&mut self.pending);
        if !line.is_empty() {
            self.line(&line, &mut rows);
        }
        self.end_table(&mut rows);
        *self = Self::new(self.columns);
        rows
    }

    fn line(&mut self, line: &str, rows: &mut Rows) {
        let line = line.trim_end_matches('\r');
        let trimmed = line.trim_start();
        let ticks: String = trimmed.chars().take_while(|&c| c == '`' || c == '~').collect();
        if let Some(fence) = &self.fence {
            if ticks.starts_with(fence.as_str()) && trimmed[ticks.len()..].trim().is_empty() {
                self.fence = None;
            } else {
                self.code(line, rows);
            }
            return;
        }
        if trimmed.starts_with('|') && self.table.len() < LONGEST_TABLE {
            self.table.push(trimmed.to_owned());
            return;
        }
        self.end_table(rows);
        if ticks.len() >= 3 {
            self.fence = Some(ticks.clone());
            let language = trimmed[ticks.len()..].trim();
            self.code = CodeColours::of(language);
            let indent = " ".repeat(line.len() - trimmed.len());
            let label = [Span::new(&format!("{indent}{language}"), TextStyle::DIM)];
            self.emit(rows, if language.is_empty() { &[] } else { &label }, 0);
            return;
        }
        if trimmed.is_empty() {
            self.blank = self.begun; // blank rows come before the next text, never first or last
            return;
        }
        self.text(line, rows);
    }

    /// A line that is no code and no table: its beginning says what it is.
    fn text(&mut self, line: &str, rows: &mut Rows) {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        let hashes = trimmed.bytes().take_while(|&byte| byte == b'#').count();
        if (1..=6).contains(&hashes) && trimmed[hashes..].starts_with(' ') {
            let title = trimmed[hashes..].trim().trim_end_matches('#').trim_end();
            return self.heading(title, hashes, rows);
        }
        if trimmed.len() >= 3 && trimmed.bytes().all(|byte| byte == b'=') {
            // The line above is the title: it was shown, and gets its rule now.
            return self.emit(rows, &[Span::new(&"━".repeat(self.columns.min(trimmed.len())), TextStyle::DIM)], 0);
        }
        if trimmed.len() >= 3 && trimmed.chars().all(|c| c == '-' || c == '*' || c == '_') {
            return self.emit(rows, &[Span::new(&"─".repeat(self.columns.min(40)), TextStyle::DIM)], 0);
        }
        if let Some(quoted) = trimmed.strip_prefix('>') {
            let spans = inline(quoted.trim(), TextStyle { italic: true, ..TextStyle::PLAIN });
            for row in wrap(&spans, self.columns.saturating_sub(super::width::width(BAR)), 0) {
                let barred: Vec<Span> = std::iter::once(Span::new(BAR, TextStyle::DIM)).chain(row).collect();
                self.emit(rows, &barred, 2);
            }
            return;
        }
        if let Some((marker, rest)) = list_item(trimmed) {
            let lead = format!("{}{marker} ", " ".repeat(indent));
            let hang = super::width::width(&lead);
            let mut spans = vec![Span::new(&lead, TextStyle::of(Colour::Cyan))];
            spans.extend(inline(rest, TextStyle::PLAIN));
            return self.emit(rows, &spans, hang);
        }
        let mut spans = vec![Span::plain(&" ".repeat(indent))];
        spans.extend(inline(trimmed, TextStyle::PLAIN));
        self.emit(rows, &spans, indent);
    }

    /// A heading: its level is seen without colours too.
    fn heading(&mut self, title: &str, level: usize, rows: &mut Rows) {
        let look = match level {
            1 | 2 => TextStyle { bold: true, ..TextStyle::of(Colour::Cyan) },
            3 => TextStyle::BOLD,
            _ => TextStyle { italic: true, ..TextStyle::BOLD },
        };
        let spans = inline(title, look);
        let wide = spans_width(&spans).min(self.columns);
        self.emit(rows, &spans, 0);
        if let Some(rule) = [None, Some("━"), Some("─")].get(level).copied().flatten() {
            self.emit(rows, &[Span::new(&rule.repeat(wide), TextStyle::DIM)], 0);
        }
    }

    fn code(&mut self, line: &str, rows: &mut Rows) {
        let mut spans = vec![Span::new("  ", TextStyle::PLAIN)];
        spans.extend(match &mut self.code {
            Some(colours) => colours.line(line, TextStyle::PLAIN),
            None => vec![Span::plain(line)],
        });
        self.emit(rows, &spans, 2);
    }

    fn emit(&mut self, rows: &mut Rows, spans: &[Span], hang: usize) {
        if std::mem::take(&mut self.blank) {
            rows.push(Vec::new());
        }
        self.begun = true;
        if !spans.is_empty() {
            rows.extend(wrap(spans, self.columns, hang));
        }
    }

    fn end_table(&mut self, rows: &mut Rows) {
        let lines = std::mem::take(&mut self.table);
        if lines.is_empty() {
            return;
        }
        let is_rule = |line: &&String| line.contains('-') && line.chars().all(|c| "|-: ".contains(c));
        let sides: Vec<CellSide> = lines.iter().find(is_rule).map(|rule| sides_of(rule)).unwrap_or_default();
        let cells: Vec<Vec<Vec<Span>>> = lines
            .iter()
            .filter(|line| !is_rule(line))
            .enumerate()
            .map(|(at, line)| {
                let look = if at == 0 { TextStyle::BOLD } else { TextStyle::PLAIN };
                cells_of(line).iter().map(|cell| inline(cell.trim(), look)).collect()
            })
            .collect();
        let columns = cells.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| spans_width(cell)).max();
        let natural: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or_default()).collect();
        let widths = narrowed(natural, self.columns.saturating_sub(BETWEEN * columns.saturating_sub(1)));
        for (at, row) in cells.iter().enumerate() {
            for line in table_row(row, &widths, &sides) {
                self.emit(rows, &line, 0);
            }
            if at == 0 && cells.len() > 1 {
                let rules: Vec<String> = widths.iter().map(|&wide| "─".repeat(wide)).collect();
                self.emit(rows, &[Span::new(&rules.join(&" ".repeat(BETWEEN)), TextStyle::DIM)], 0);
            }
        }
    }
}

/// Columns made narrower, the widest first, until they fit together.
fn narrowed(mut widths: Vec<usize>, room: usize) -> Vec<usize> {
    let mut over = widths.iter().sum::<usize>().saturating_sub(room);
    while over > 0 {
        let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > NARROWEST) else { break };
        *widest -= 1;
        over -= 1;
    }
    widths
}

/// The side of its column that a cell stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellSide {
    Left,
    Middle,
    Right,
}

/// The sides that the rule below a table's head names.
fn sides_of(rule: &str) -> Vec<CellSide> {
    let side = |cell: &String| match (cell.trim().starts_with(':'), cell.trim().ends_with(':')) {
        (true, true) => CellSide::Middle,
        (false, true) => CellSide::Right,
        _ => CellSide::Left,
    };
    cells_of(rule).iter().map(side).collect()
}

/// The cells of a row. A pipe behind a backslash, or in code, is a pipe.
fn cells_of(line: &str) -> Vec<String> {
    let line = line.trim().strip_prefix('|').unwrap_or(line.trim());
    let (mut cells, mut cell, mut in_code) = (Vec::new(), String::new(), false);
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if letters.peek().is_some_and(|(_, next)| *next == '|') => {
                letters.next();
                cell.push('|');
            }
            '`' => {
                // Code that is not closed in this row is none.
                in_code = !in_code && line[at + 1..].contains('`');
                cell.push(letter);
            }
            '|' if !in_code => cells.push(std::mem::take(&mut cell)),
            _ => cell.push(letter),
        }
    }
    if !cell.trim().is_empty() {
        cells.push(cell);
    }
    cells
}

/// A row of a table: each cell is wrapped in its column.
fn table_row(cells: &[Vec<Span>], widths: &[usize], sides: &[CellSide]) -> Rows {
    let wrapped: Vec<Rows> = cells.iter().zip(widths).map(|(cell, &wide)| wrap(cell, wide, 0)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or_default();
    let line = |at: usize| {
        let mut line = Vec::new();
        for (column, (cell, &wide)) in wrapped.iter().zip(widths).enumerate() {
            let part = cell.get(at).cloned().unwrap_or_default();
            let room = wide.saturating_sub(spans_width(&part));
            let before = match sides.get(column) {
                Some(CellSide::Right) => room,
                Some(CellSide::Middle) => room / 2,
                Some(CellSide::Left) | None => 0,
            };
            line.push(Span::plain(&" ".repeat(before)));
            line.extend(part);
            line.push(Span::plain(&" ".repeat(room - before + BETWEEN)));
        }
        if let Some(pad) = line.last_mut() {
            *pad = Span::plain("");
        }
        line
    };
    (0..height).map(line).collect()
}

/// `- x`, `* x`, `+ x`, `12. x`: the marker as it is shown, and the rest.
fn list_item(line: &str) -> Option<(String, &str)> {
    if let Some(rest) = ["- ", "* ", "+ "].iter().find_map(|marker| line.strip_prefix(marker)) {
        let (marker, rest) = match rest.strip_prefix("[ ] ") {
            Some(rest) => ("☐", rest),
            None => rest.strip_prefix("[x] ").map_or(("•", rest), |rest| ("☑", rest)),
        };
        return Some((marker.to_owned(), rest));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line[digits..].strip_prefix(". ").or_else(|| line[digits..].strip_prefix(") "))?;
    (1..=9).contains(&digits).then(|| (format!("{}.", &line[..digits]), rest))
}

/// Emphasis, code and links inside a line.
fn inline(text: &str, base: TextStyle) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut looks = vec![base];
    let mut link = None;
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH) {
        let look = looks.last().copied().unwrap_or(base);
        match event {
            Event::Start(Tag::Strong) => looks.push(TextStyle { bold: true, ..look }),
            Event::Start(Tag::Emphasis) => looks.push(TextStyle { italic: true, ..look }),
            Event::Start(Tag::Strikethrough) => looks.push(TextStyle { struck: true, ..look }),
            Event::Start(Tag::Link { dest_url, .. }) => {
                link = Some(dest_url.to_string());
                looks.push(TextStyle { colour: Some(Colour::Cyan), ..look });
            }
            Event::End(TagEnd::Link) => {
                looks.pop();
                if let Some(url) = link.take().filter(|url| spans.last().is_none_or(|shown| shown.text() != url)) {
                    let to = Link::of(&url);
                    spans.push(Span::new(" (", TextStyle::DIM));
                    spans.push(Span::new(&url, TextStyle::DIM).leading_to(to));
                    spans.push(Span::new(")", TextStyle::DIM));
                }
            }
            Event::End(TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough) => drop(looks.pop()),
            Event::Text(text) => match &link {
                Some(url) => spans.push(Span::new(&text, look).leading_to(Link::of(url))),
                None => spans.extend(with_links(&text, look)),
            },
            Event::InlineHtml(text) | Event::Html(text) => spans.push(Span::new(&text, look)),
            Event::Code(code) => spans.push(Span::new(&code, TextStyle { colour: Some(Colour::Yellow), ..look })),
            Event::SoftBreak | Event::HardBreak => spans.push(Span::plain(" ")),
            _ => {}
        }
    }
    if spans.is_empty() { vec![Span::new(text, base)] } else { spans }
}

/// A text in which addresses lead to their pages.
fn with_links(text: &str, look: TextStyle) -> Vec<Span> {
    let (mut spans, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("http") {
        let end =
            rest[at..].find(|c: char| c.is_whitespace() || "<>\"`".contains(c)).map_or(rest.len(), |end| at + end);
        // A sign behind an address ends the sentence, not the address.
        let url = rest[at..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '\'', '*', '_']);
        let link = Link::of(url);
        let end = if link.is_some() { at + url.len() } else { at + "http".len() };
        spans.push(Span::new(&rest[..at], look));
        spans.push(Span::new(&rest[at..end], look).leading_to(link));
        rest = &rest[end..];
    }
    spans.push(Span::new(rest, look));
    spans.retain(|span| !span.text().is_empty());
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::{Colours, paint};

    fn render(text: &str, columns: usize) -> Vec<String> {
        let mut markdown = Markdown::new(columns);
        let mut rows = markdown.push(text);
        rows.extend(markdown.finish());
        rows.iter().map(|row| paint(row, Colours::Off)).collect()
    }

    #[test]
    fn blocks_are_known_from_the_beginning_of_their_line() {
        let text = "# Title\n\nSome *text* with `code` and [a link](http://x).\n\n- one\n  - two\n3. three\n> quoted\n\n```rust\nfn  x() {}\n```\n---\nend";
        insta::assert_snapshot!(render(text, 60).join("\n"));
    }

    #[test]
    fn a_table_is_aligned_when_it_ends() {
        assert_eq!(
            render("| a | bb |\n|---|---|\n| 日本 | c |\nafter", 40),
            ["a     bb", "────  ──", "日本  c", "after"]
        );
    }

    #[test]
    fn pipes_in_cells_and_the_sides_of_columns_are_kept() {
        let table =
            "| what | cost | mid |\n|:--|--:|:-:|\n| a \\| b | 1.50 | x |\n| `x | y` | 10 | abcde |\n| ` | 2 | z |";
        assert_eq!(
            render(table, 40),
            ["what   cost   mid", "─────  ────  ─────", "a | b  1.50    x", "x | y    10  abcde", "`         2    z"]
        );
    }

    #[test]
    fn the_levels_of_headings_and_the_rows_of_quotes_are_seen_without_colours() {
        let text = "# One #\n## Two\n### Three\nSetext\n======\n> a quote that wraps over rows";
        assert_eq!(
            render(text, 16),
            ["One", "━━━", "Two", "───", "Three", "Setext", "━━━━━━", "│ a quote that", "│ wraps over", "│ rows"]
        );
    }

    #[test]
    fn a_table_wider_than_the_screen_wraps_in_its_columns() {
        let table = "| name | what it is |\n|---|---|\n| x | a long text that needs more than one row |";
        assert_eq!(
            render(table, 24),
            [
                "name  what it is",
                "────  ──────────────────",
                "x     a long text that",
                "      needs more than",
                "      one row"
            ]
        );
    }

    #[test]
    fn pieces_make_the_same_rows_however_they_are_cut() {
        let text = "One **bold** line\n\n| x | y |\n|--|--|\n| 1 | 2 |\n\n```\ncode *not bold*\n```\n1. last é日本";
        let whole = render(text, 30);
        let mut markdown = Markdown::new(30);
        let mut rows = Vec::new();
        for c in text.chars() {
            rows.extend(markdown.push(c.encode_utf8(&mut [0; 4])));
        }
        rows.extend(markdown.finish());
        assert_eq!(rows.iter().map(|row| paint(row, Colours::Off)).collect::<Vec<_>>(), whole);
    }

    /// A link that breaks over rows leads to its page from each of them.
    #[test]
    fn addresses_lead_to_their_pages() {
        let page = |text: &str, columns| {
            let mut markdown = Markdown::new(columns);
            markdown.push(&format!("{text}\n")).iter().map(|row| paint(row, Colours::On)).collect::<Vec<_>>()
        };
        let link = |url: &str, text: &str| format!("\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\");
        let url = "https://x.org/a_b";
        assert_eq!(page(&format!("see {url}, or http"), 60), [format!("see {}, or http", link(url, url))]);
        let long = "https://x.org/0123456789";
        assert_eq!(page(long, 14), [link(long, &long[..14]), link(long, &long[14..])]);
        let named = page("[it](https://x.org/)", 60).concat();
        assert_eq!(named.matches("\x1b]8;;https://x.org/\x1b\\").count(), 2, "{named:?}");
    }

    #[test]
    fn a_line_without_end_is_flushed_and_bounded() {
        let mut markdown = Markdown::new(80);
        let mut rows = 0;
        for _ in 0..10_000 {
            rows += markdown.push("word word word word ").len();
            assert!(markdown.pending().len() <= LONGEST_LINE + 20);
        }
        assert!(rows > 2_000);
    }
}
