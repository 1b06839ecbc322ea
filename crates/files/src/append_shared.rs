//! A file of lines that several processes add to, each when it has something to say.
//!
//! A line goes to the end in one write, so lines of two writers never mix and nobody waits for anybody. Half a line that a
//! crash or a full disk left behind stays where it is, and the next line starts behind a newline. It is not forced to the
//! disk: what a power cut takes of it is the newest, and a reader that cannot do without belongs to [`Log`](crate::Log).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::directory::create_directory;
use crate::effect::{self, Effect};
use crate::error::Error;

/// Access bits: only the owner reads and writes it.
const PRIVATE_FILE: u32 = 0o600;

/// Adds a line. The file (0600) and its directories (0700) are created if they are missing.
pub fn add_line(path: impl AsRef<Path>, line: &[u8]) -> Result<(), Error> {
    let path = crate::absolute::real(path)?;
    let failed = |error| Error::of(&path, error);
    if path.exists() {
        crate::absolute::open(&path)?; // refuses what is not a regular file
    } else if let Some(parent) = path.parent() {
        create_directory(parent)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.read(true).append(true).create(true).mode(PRIVATE_FILE).open(&path).map_err(failed)?;
    let mut bytes = Vec::with_capacity(line.len() + 2);
    if is_torn(&file).map_err(failed)? {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(line);
    bytes.push(b'\n');
    effect::before(Effect::Append(&bytes), || path.clone()).and_then(|()| file.write_all(&bytes)).map_err(failed)
}

/// True if the file ends inside a line.
fn is_torn(file: &File) -> std::io::Result<bool> {
    let len = file.metadata()?.len();
    let mut last = *b"\n";
    if len > 0 {
        file.read_exact_at(&mut last, len - 1)?;
    }
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BUDGET-1: eight writers at once, each with a file of its own opened: every line is there, whole.
    #[test]
    fn lines_of_several_writers_never_mix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/day.jsonl");
        let line = |writer: usize, number: usize| format!("{writer} {number} {}", "x".repeat(300 + number));
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for number in 0..100 {
                        add_line(path, line(writer, number).as_bytes()).unwrap();
                    }
                });
            }
        });
        let text = String::from_utf8(crate::read(&path, 1_000_000).unwrap().bytes).unwrap();
        // Who sees another's line half written begins a new one, and that leaves an empty one.
        let mut found: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let all: Vec<String> = (0..8).flat_map(|writer| (0..100).map(move |number| line(writer, number))).collect();
        let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
        found.sort_unstable();
        all.sort_unstable();
        assert!(found == all);
    }

    /// BUDGET-1: half a line that was left behind is not glued to the next.
    #[test]
    fn a_torn_line_stays_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("day.jsonl");
        crate::replace(&path, b"whole\nhal").unwrap();
        add_line(&path, b"next").unwrap();
        add_line(&path, b"last").unwrap();
        assert_eq!(crate::read(&path, 100).unwrap().bytes, b"whole\nhal\nnext\nlast\n");
        assert!(add_line(folder.path(), b"x").is_err(), "a directory");
    }
}
