//! The bottom of the terminal, redrawn; everything above it, printed once.
//!
//! The program does not take the screen over: what is finished is printed and belongs to the terminal's scrollback.
//! Only a small area below it (the prompt, what is still being written, the status line) is drawn again and again. It
//! is found by counting rows upwards from the cursor, so the terminal is never asked for anything.

use std::io::{self, Write};

use super::width::{fit, spans_width};
use crate::styled_text::{Colours, Span, clean, paint};

/// The area drawn at the bottom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Area {
    /// Rows, each cut to the width.
    pub(crate) rows: Vec<Vec<Span>>,
    /// Row and column of the cursor in the area.
    pub(crate) cursor: (usize, usize),
}

/// A terminal.
#[derive(Debug)]
pub(crate) struct Screen<W> {
    out: W,
    columns: usize,
    lines: usize,
    colours: Colours,
    /// The area as it was asked for.
    drawn: Area,
    /// Widths of the rows on the screen, from the area's first to the cursor's.
    above: Vec<usize>,
    /// The column the cursor is in.
    column: usize,
    /// Rows over the whole window, while there are some.
    cover: Option<Vec<Vec<Span>>>,
    /// The window's title.
    title: String,
}

impl<W: Write> Screen<W> {
    /// A terminal of so many columns and lines.
    pub(crate) fn new(out: W, columns: usize, lines: usize, colours: Colours) -> Self {
        Self {
            out,
            columns: columns.max(4),
            lines: lines.max(3),
            colours,
            drawn: Area::default(),
            above: Vec::new(),
            column: 0,
            cover: None,
            title: String::new(),
        }
    }

    /// The colours from now on; what is on the screen already keeps its own.
    pub(crate) fn set_colours(&mut self, colours: Colours) {
        if self.colours != colours {
            self.colours = colours;
            (self.drawn, self.cover) = (Area::default(), self.cover.take().map(|_| Vec::new()));
        }
    }

    /// Columns to write in. The last one is left free: writing there makes terminals differ.
    pub(crate) fn columns(&self) -> usize {
        self.columns - 1
    }

    /// Lines of the terminal.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// The terminal has another size now. It has wrapped what is wider than it, if it is one of those that do; the area
    /// is counted as they leave it.
    pub(crate) fn resize(&mut self, columns: usize, lines: usize) -> io::Result<()> {
        let (columns, lines) = (columns.max(4), lines.max(3));
        if (columns, lines) == (self.columns, self.lines) {
            return Ok(());
        }
        (self.columns, self.lines) = (columns, lines);
        self.erase()?;
        self.out.flush()
    }

    /// Prints rows above the area, for good, and draws the area below them.
    pub(crate) fn print(&mut self, rows: &[Vec<Span>], area: &Area) -> io::Result<()> {
        self.begin()?;
        self.erase()?;
        for row in rows {
            write!(self.out, "{}\r\n", paint(row, self.colours))?;
        }
        self.place(area)?;
        self.end()
    }

    /// Draws the area, if it is not what is there already.
    pub(crate) fn draw(&mut self, area: &Area) -> io::Result<()> {
        if self.drawn == *area {
            return Ok(());
        }
        self.begin()?;
        self.erase()?;
        self.place(area)?;
        self.end()
    }

    /// Gives the window a title. No text can end it early.
    pub(crate) fn set_title(&mut self, title: &str) -> io::Result<()> {
        let title = clean(title);
        if title != self.title {
            write!(self.out, "\x1b]2;{title}\x07")?;
            self.title = title;
        }
        Ok(())
    }

    /// Covers the whole window with rows; what is below stays as it is.
    pub(crate) fn cover(&mut self, rows: Vec<Vec<Span>>) -> io::Result<()> {
        if self.cover.as_ref() == Some(&rows) {
            return Ok(());
        }
        self.begin()?;
        let enter = if self.cover.is_none() { "\x1b[?1049h" } else { "" };
        write!(self.out, "{enter}\x1b[H")?;
        for (at, row) in rows.iter().enumerate() {
            let end = if at + 1 < rows.len() { "\r\n" } else { "" };
            write!(self.out, "{}\x1b[K{end}", paint(row, self.colours))?;
        }
        write!(self.out, "\x1b[J\x1b[?2026l")?;
        self.cover = Some(rows);
        self.out.flush()
    }

    /// Shows what is below the cover again.
    pub(crate) fn uncover(&mut self) -> io::Result<()> {
        if self.cover.take().is_some() {
            write!(self.out, "\x1b[?1049l\x1b[?25h")?;
            self.drawn = Area::default(); // it is drawn anew, where it was
        }
        Ok(())
    }

    /// Clears the window: the next drawing begins at its top. What has scrolled away stays.
    pub(crate) fn wipe(&mut self) -> io::Result<()> {
        self.forget();
        write!(self.out, "\x1b[2J\x1b[H")
    }

    /// Takes the area away and leaves the cursor where it began.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.uncover()?;
        self.erase()?;
        self.out.flush()
    }

    /// The cursor is somewhere else than it was left: what was drawn is no longer looked for.
    pub(crate) fn forget(&mut self) {
        (self.drawn, self.column) = (Area::default(), 0);
        self.above.clear();
    }

    fn erase(&mut self) -> io::Result<()> {
        let rows_of = |wide: &usize| wide.div_ceil(self.columns).max(1);
        let full = self.above.split_last().map_or(0, |(_, full)| full.iter().map(rows_of).sum());
        let up = full + self.column / self.columns;
        if up > 0 {
            write!(self.out, "\x1b[{up}A")?;
        }
        self.forget();
        write!(self.out, "\r\x1b[J")
    }

    fn place(&mut self, area: &Area) -> io::Result<()> {
        // An area higher than the terminal would scroll itself away: as much is shown as fits, the cursor's row always.
        let most = self.lines.saturating_sub(1).max(1);
        let skip = area.rows.len().saturating_sub(most).min(area.cursor.0);
        let rows: Vec<Vec<Span>> = area.rows.iter().skip(skip).take(most).map(|row| fit(row, self.columns())).collect();
        let cursor = (area.cursor.0.saturating_sub(skip), area.cursor.1.min(self.columns()));
        for (at, row) in rows.iter().enumerate() {
            let end = if at + 1 < rows.len() { "\r\n" } else { "" };
            write!(self.out, "{}{end}", paint(row, self.colours))?;
        }
        let up = rows.len().saturating_sub(1).saturating_sub(cursor.0);
        if up > 0 {
            write!(self.out, "\x1b[{up}A")?;
        }
        write!(self.out, "\r")?;
        if cursor.1 > 0 {
            write!(self.out, "\x1b[{}C", cursor.1)?;
        }
        self.above = rows.iter().take(cursor.0 + 1).map(|row| spans_width(row)).collect();
        self.column = cursor.1;
        self.drawn = area.clone();
        Ok(())
    }

    /// Terminals that know it show everything until `end` at once; the others ignore it.
    fn begin(&mut self) -> io::Result<()> {
        write!(self.out, "\x1b[?2026h\x1b[?25l")
    }

    fn end(&mut self) -> io::Result<()> {
        write!(self.out, "\x1b[?25h\x1b[?2026l")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(rows: &[&str], cursor: (usize, usize)) -> Area {
        Area { rows: rows.iter().map(|row| vec![Span::plain(row)]).collect(), cursor }
    }

    fn shown(screen: &Screen<Vec<u8>>, columns: u16, lines: u16) -> (Vec<String>, (u16, u16)) {
        let mut terminal = vt100::Parser::new(lines, columns, 100);
        terminal.process(&screen.out);
        let rows = terminal.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
        (rows, terminal.screen().cursor_position())
    }

    #[test]
    fn what_is_printed_stays_and_the_area_follows_it() {
        let mut screen = Screen::new(Vec::new(), 20, 6, Colours::On);
        screen.draw(&area(&["> hello", "status"], (0, 7))).unwrap();
        screen.print(&[vec![Span::plain("first")]], &area(&["> ", "status"], (0, 2))).unwrap();
        screen.print(&[vec![Span::plain("second")]], &area(&["> x", "menu", "status"], (0, 3))).unwrap();
        let (rows, cursor) = shown(&screen, 20, 6);
        assert_eq!(rows, ["first", "second", "> x", "menu", "status", ""]);
        assert_eq!(cursor, (2, 3));
    }

    #[test]
    fn a_long_session_scrolls_and_leaves_one_area() {
        let mut screen = Screen::new(Vec::new(), 20, 5, Colours::On);
        for n in 0..50 {
            screen.print(&[vec![Span::plain(&format!("line {n}"))]], &area(&["> ", "status"], (0, 2))).unwrap();
        }
        assert_eq!(shown(&screen, 20, 5).0, ["line 47", "line 48", "line 49", ">", "status"]);
    }

    #[test]
    fn the_row_with_the_cursor_is_always_shown() {
        let mut screen = Screen::new(Vec::new(), 20, 4, Colours::On);
        screen.draw(&area(&["> ", "menu 1", "menu 2", "menu 3", "menu 4", "status"], (0, 2))).unwrap();
        let (rows, cursor) = shown(&screen, 20, 4);
        assert_eq!((rows[0].as_str(), cursor), (">", (0, 2)));
    }

    #[test]
    fn an_area_higher_than_the_terminal_shows_its_end() {
        let mut screen = Screen::new(Vec::new(), 20, 4, Colours::On);
        screen.draw(&area(&["a", "b", "c", "d", "e"], (4, 1))).unwrap();
        screen.draw(&area(&["> "], (0, 2))).unwrap();
        assert_eq!(shown(&screen, 20, 4).0[0], ">");
    }
}
