//! Text for the model: numbered lines, cut if they are too long, decoded if they are not UTF-8.

use std::borrow::Cow;

/// A line with its number, as `cat -n` writes it, without the newline.
pub(crate) fn numbered(number: u64, line: &str) -> String {
    format!("{number:>6}\t{line}")
}

/// At most `limit` characters of a line, and a note of how many are left out.
pub(crate) fn cut(line: &str, limit: usize) -> Cow<'_, str> {
    if line.len() <= limit {
        return line.into();
    }
    match line.char_indices().nth(limit) {
        Some((end, _)) => {
            let rest = line[end..].chars().count();
            format!("{} [… {rest} more characters]", &line[..end]).into()
        }
        None => line.into(),
    }
}

/// The line without the carriage return of a CRLF.
pub(crate) fn without_return(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// "1 line", "2 lines".
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Number of lines in a text: a final newline starts none.
pub(crate) fn lines(text: &str) -> usize {
    text.lines().count()
}

/// Returns whether bytes are not text: a zero byte near the beginning, as git tells it.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 8000;
    bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
}
