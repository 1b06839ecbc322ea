//! The terminal in raw mode, and out of it again whatever happens.

use std::io::Write;

use crate::out::stdout;

/// Columns and lines of a terminal that does not say.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// Columns and lines of the terminal. One without a size (a serial line, a bare pseudo-terminal) gets the usual one.
pub(crate) fn size() -> (usize, usize) {
    let known = crossterm::terminal::size().ok().filter(|&(columns, lines)| columns > 0 && lines > 0);
    let (columns, lines) = known.unwrap_or(USUAL_SIZE);
    (columns.into(), lines.into())
}

/// Asks for the keyboard protocol of Kitty, in which keys are told apart that send the same otherwise.
const TELL_KEYS_APART: &str = "\x1b[>1u";
/// Keeps the window's title, and brings it back.
const KEEP_TITLE: &str = "\x1b[22;2t";
const TITLE_AS_BEFORE: &str = "\x1b[23;2t";
/// Takes that back.
const KEYS_AS_BEFORE: &str = "\x1b[<u";

/// Raw mode for as long as this lives.
#[derive(Debug)]
pub(crate) struct RawMode;

impl RawMode {
    /// Keys come one by one from now on, and pasted text as such. A terminal that can is asked to tell Shift-Enter from Enter;
    /// the others know nothing of that and do nothing.
    pub(crate) fn enter() -> std::io::Result<Self> {
        crossterm::terminal::enable_raw_mode()?;
        let mut out = stdout();
        let _ = write!(out, "\x1b[?2004h{TELL_KEYS_APART}{KEEP_TITLE}");
        out.flush()?;
        Ok(Self)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let mut out = stdout();
        let _ = write!(out, "{TITLE_AS_BEFORE}{KEYS_AS_BEFORE}\x1b[?2004l\x1b[?25h");
        let _ = out.flush();
        let _ = crossterm::terminal::disable_raw_mode();
    }
}
