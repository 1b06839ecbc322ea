//! Stdout is data, stderr is talk.
//!
//! A reader that went away (`cairn session show … | head`) ends a command quietly; nobody listening on stderr ends
//! nothing.

/// Prints a line of data. Fails when nobody reads it any more.
macro_rules! data {
    ($($text:tt)*) => {{
        use std::io::Write;
        writeln!(std::io::stdout().lock(), $($text)*)
    }};
}

/// Prints a line on stdout for a person who watches; that nobody does is no error.
macro_rules! show {
    ($($text:tt)*) => {{
        let _ = $crate::out::data!($($text)*);
    }};
}

/// Prints a part of a line, at once.
macro_rules! show_part {
    ($($text:tt)*) => {{
        use std::io::Write;
        let mut stdout = std::io::stdout().lock();
        let _ = write!(stdout, $($text)*);
        let _ = stdout.flush();
    }};
}

/// Prints a line on stderr.
macro_rules! talk {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}

pub(crate) use {data, show, show_part, talk};

/// Whether an error says no more than that the reader has gone.
pub(crate) fn reader_has_gone(error: &anyhow::Error) -> bool {
    let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.downcast_ref::<std::io::Error>().is_some_and(gone)
}
