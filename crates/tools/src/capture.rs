//! Output of a command in bounded memory: the beginning and the end.

use std::collections::VecDeque;

/// Bytes kept of the beginning.
const HEAD: usize = 1024 * 1024;

/// Bytes kept of the end.
const TAIL: usize = 1024 * 1024;

/// The beginning and the end of a stream of bytes.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Capture {
    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    /// The kept text, with a note if something is missing. Bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if self.dropped == 0 {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        let head = String::from_utf8_lossy(&self.head);
        let tail = [front, back].concat();
        let tail = String::from_utf8_lossy(&tail);
        format!("{head}\n[… {} bytes left out …]\n{tail}", self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_whole_even_across_the_seam() {
        let mut capture = Capture::default();
        let text = "ä".repeat(HEAD / 2) + "x" + &"ö".repeat(TAIL / 2 - 1);
        text.as_bytes().chunks(777).for_each(|chunk| capture.push(chunk));
        assert_eq!(capture.text(), text);
    }

    #[test]
    fn what_does_not_fit_loses_its_middle() {
        let mut capture = Capture::default();
        for _ in 0..100 {
            capture.push(&[b'a'; 100_000]);
        }
        capture.push(b"end");
        let text = capture.text();
        assert!(text.len() < HEAD + TAIL + 100);
        assert!(text.contains(&format!("[… {} bytes left out …]", 10_000_003 - HEAD - TAIL)));
        assert!(text.ends_with("aend"));
    }
}
