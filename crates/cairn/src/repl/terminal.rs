//! The terminal in raw mode, and out of it again whatever happens.

use std::io::Write;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::out::stdout;

/// Columns and lines of a terminal that does not say.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// Columns and lines of the terminal. One without a size (a serial line, a bare pseudo-terminal) gets the usual one.
pub(crate) fn size() -> (usize, usize) {
    let known = crossterm::terminal::size().ok().filter(|&(columns, lines)| columns > 0 && lines > 0);
    let (columns, lines) = known.unwrap_or(USUAL_SIZE);
    (columns.into(), lines.into())
}

/// Pasted text comes as such; the keyboard protocol of Kitty tells keys apart that send the same otherwise; the window's title
/// is kept.
const BEGIN: &str = "\x1b[?2004h\x1b[>1u\x1b[22;2t";
/// Takes that back, and shows the cursor.
const END: &str = "\x1b[23;2t\x1b[<u\x1b[?2004l\x1b[?25h";

/// Raw mode for as long as this lives.
#[derive(Debug)]
pub(crate) struct RawMode {
    /// The terminal's attributes in this mode.
    attributes: Termios,
}

impl RawMode {
    /// Keys come one by one from now on, and pasted text as such. A terminal that can is asked to tell Shift-Enter from Enter;
    /// the others know nothing of that and do nothing.
    pub(crate) fn enter() -> std::io::Result<Self> {
        let mut attributes = tcgetattr(std::io::stdin())?;
        attributes.make_raw();
        crossterm::terminal::enable_raw_mode()?;
        let raw = Self { attributes };
        write(BEGIN)?;
        Ok(raw)
    }

    /// Sets the terminal again, after somebody else had it. This does not leave raw mode in between: a key that comes just
    /// then would be taken as one that edits a line (Ctrl-D, Ctrl-U, Enter), and be lost.
    pub(crate) fn enter_again(&self) -> std::io::Result<()> {
        tcsetattr(std::io::stdin(), OptionalActions::Now, &self.attributes)?;
        write(END)?;
        write(BEGIN)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = write(END);
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

fn write(sequences: &str) -> std::io::Result<()> {
    let mut out = stdout();
    write!(out, "{sequences}")?;
    out.flush()
}
