//! The ways out. Stdout is data, stderr is talk.
//!
//! Data goes to a pipe or a file byte for byte, since a program reads it there; on a terminal it is cleaned as all else
//! is. Talk is always cleaned, and so is what is shown to a person on stdout. A row of [`Span`]s may have colours, which are written on terminals only; text alone
//! has none, so nothing but this program's own looks ever reaches a terminal as an escape sequence. Nobody else writes
//! to either stream, except the screen, which takes spans too.
//!
//! A reader that went away (`cairn session show … | head`) ends a command quietly; nobody listening on stderr ends
//! nothing.

use std::io::{self, IsTerminal, Write};

use crate::env;
use crate::styled_text::{Colours, Span, clean_lines, cyan, paint};

/// Prints a line of data: a row of spans in brackets, or text. Fails when nobody reads it any more.
macro_rules! data {
    ([$($part:expr),+ $(,)?]) => { $crate::out::data_row(&[$($crate::styled_text::Span::from($part)),+]) };
    ($($text:tt)*) => { $crate::out::data_text(&format!($($text)*)) };
}

/// Prints a line on stdout for a person who watches; that nobody does is no error.
macro_rules! show {
    () => { $crate::out::show_text("") };
    ([$($part:expr),+ $(,)?]) => { drop($crate::out::data!([$($part),+])) };
    ($($text:tt)*) => { $crate::out::show_text(&format!($($text)*)) };
}

/// Prints a part of a line, at once.
macro_rules! show_part {
    ([$($part:expr),+ $(,)?]) => { $crate::out::show_row_part(&[$($crate::styled_text::Span::from($part)),+]) };
    ($($text:tt)*) => { $crate::out::show_text_part(&format!($($text)*)) };
}

/// Prints a line on stderr: a row of spans in brackets, or text.
macro_rules! talk {
    ([$($part:expr),+ $(,)?]) => { $crate::out::talk_row(&[$($crate::styled_text::Span::from($part)),+]) };
    ($($text:tt)*) => { $crate::out::talk_text(&format!($($text)*)) };
}

pub(crate) use {data, show, show_part, talk};

/// Stdout. What goes there is spans, or data that [`data_text`] has looked at.
#[expect(clippy::disallowed_methods, reason = "this is the way out")]
pub(crate) fn stdout() -> io::Stdout {
    io::stdout()
}

/// Stderr.
#[expect(clippy::disallowed_methods, reason = "this is the way out")]
pub(crate) fn stderr() -> io::Stderr {
    io::stderr()
}

/// Colours on or off for a stream.
pub(crate) fn colours(stream: &impl IsTerminal) -> Colours {
    let dumb = env::TERM.get().is_none_or(|term| term == "dumb");
    if stream.is_terminal() && !dumb && env::NO_COLOR.get().is_none() { Colours::On } else { Colours::Off }
}

/// A line of data in colours.
pub(crate) fn data_row(row: &[Span]) -> io::Result<()> {
    let stdout = stdout();
    write_line(&stdout, &paint(row, colours(&stdout)))
}

/// Data as it is; what a terminal would obey is left out where one shows it.
pub(crate) fn data_text(text: &str) -> io::Result<()> {
    let stdout = stdout();
    if stdout.is_terminal() { write_line(&stdout, &clean_lines(text)) } else { write_line(&stdout, text) }
}

/// Text for a person.
pub(crate) fn show_text(text: &str) {
    let _ = write_line(&stdout(), &clean_lines(text));
}

/// The beginning of a line in colours.
pub(crate) fn show_row_part(row: &[Span]) {
    let stdout = stdout();
    write_part(&stdout, &paint(row, colours(&stdout)));
}

/// A part of a line, or several lines, of text.
pub(crate) fn show_text_part(text: &str) {
    write_part(&stdout(), &clean_lines(text));
}

/// A line of talk in colours.
pub(crate) fn talk_row(row: &[Span]) {
    let stderr = stderr();
    let _ = writeln!(stderr.lock(), "{}", paint(row, colours(&stderr)));
}

/// Talk.
pub(crate) fn talk_text(text: &str) {
    let _ = writeln!(stderr().lock(), "{}", clean_lines(text));
}

/// Talk for those who want a writer: what is written at once is talk.
#[cfg(feature = "server")]
pub(crate) struct TalkWriter;

#[cfg(feature = "server")]
impl Write for TalkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        talk_text(String::from_utf8_lossy(bytes).trim_end());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Talk under a name, as `warning: …`. The text may have several lines.
pub(crate) fn tell(name: &Span, text: &str) {
    let stderr = stderr();
    let name = paint(std::slice::from_ref(name), colours(&stderr));
    let _ = writeln!(stderr.lock(), "{name} {}", clean_lines(text));
}

/// A warning.
pub(crate) fn warn(text: &str) {
    tell(&cyan("warning:"), text);
}

fn write_line(stdout: &io::Stdout, line: &str) -> io::Result<()> {
    let mut stdout = stdout.lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

fn write_part(stdout: &io::Stdout, part: &str) {
    let mut stdout = stdout.lock();
    let _ = write!(stdout, "{part}");
    let _ = stdout.flush();
}

/// True if an error only says that the reader is gone.
pub(crate) fn reader_has_gone(error: &anyhow::Error) -> bool {
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref::<io::Error>().is_some_and(gone)
}
