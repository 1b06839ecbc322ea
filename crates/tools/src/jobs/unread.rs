//! Unread output of a job in bounded memory: the end of it. Its last part stays for people, who look without taking
//! anything away.

use std::collections::VecDeque;

/// Bytes kept: as much as of either end of a foreground command.
const KEPT: usize = 1024 * 1024;

/// Bytes kept for people: a few screens.
const RECENT: usize = 16 * 1024;

/// The end of a stream of bytes, from where it was last read.
#[derive(Debug, Default)]
pub(crate) struct UnreadOutput {
    bytes: VecDeque<u8>,
    dropped: u64,
    recent: VecDeque<u8>,
    /// Total number of bytes printed.
    printed: u64,
}

/// Output between two reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewOutput {
    /// Number of bytes at its beginning that were not kept.
    pub(crate) dropped: u64,
    /// The rest.
    pub(crate) text: String,
}

/// Part that a read leaves for the next one, because it may be incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IncompleteRest {
    /// Nothing.
    Nothing,
    /// A character of which some bytes are missing.
    Character,
    /// A line without its newline.
    Line,
}

impl UnreadOutput {
    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.printed += bytes.len() as u64;
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..over);
        self.dropped += over as u64;
        self.recent.extend(&bytes[bytes.len().saturating_sub(RECENT)..]);
        let over = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..over);
    }

    /// The end of the output, whoever has seen it.
    pub(crate) fn recent(&self) -> String {
        let (one, two) = self.recent.as_slices();
        String::from_utf8_lossy(&[one, two].concat()).into_owned()
    }

    /// The lines printed after a number of bytes, as far as they are still there, and the new number of bytes. An
    /// incomplete line is left for later, unless the job has ended.
    pub(crate) fn lines_after(&self, shown: u64, leave: IncompleteRest) -> (String, u64) {
        let new = usize::try_from(self.printed.saturating_sub(shown)).unwrap_or(usize::MAX).min(self.recent.len());
        let bytes: Vec<u8> = self.recent.iter().skip(self.recent.len() - new).copied().collect();
        let end = complete(&bytes, leave);
        (String::from_utf8_lossy(&bytes[..end]).into_owned(), self.printed - (new - end) as u64)
    }

    /// Takes the output. Bytes that are not UTF-8 are replaced.
    pub(crate) fn take(&mut self, leave: IncompleteRest) -> NewOutput {
        let end = complete(self.bytes.make_contiguous(), leave);
        let taken: Vec<u8> = self.bytes.drain(..end).collect();
        // An idle job costs next to nothing, however much it has printed before.
        self.bytes.shrink_to_fit();
        let text = String::from_utf8_lossy(&taken).into_owned();
        NewOutput { dropped: std::mem::take(&mut self.dropped), text }
    }
}

/// Number of bytes that are complete.
fn complete(bytes: &[u8], leave: IncompleteRest) -> usize {
    match leave {
        IncompleteRest::Nothing => bytes.len(),
        IncompleteRest::Line => bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1),
        IncompleteRest::Character => {
            let last = bytes.utf8_chunks().last().map(|chunk| chunk.invalid()).unwrap_or_default();
            let begun = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
            bytes.len() - if begun { last.len() } else { 0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> NewOutput {
        NewOutput { dropped: 0, text: text.to_owned() }
    }

    #[test]
    fn what_was_printed_is_handed_out_once() {
        let mut unread = UnreadOutput::default();
        unread.push(b"one\n");
        assert_eq!(unread.take(IncompleteRest::Nothing), whole("one\n"));
        assert_eq!(unread.take(IncompleteRest::Nothing), whole(""));
        unread.push(b"two");
        assert_eq!(unread.take(IncompleteRest::Nothing), whole("two"));
    }

    #[test]
    fn what_is_not_complete_waits_for_the_rest() {
        let mut unread = UnreadOutput::default();
        unread.push("ok\npart ä".as_bytes().split_last().unwrap().1);
        assert_eq!(unread.take(IncompleteRest::Line), whole("ok\n"));
        assert_eq!(unread.take(IncompleteRest::Character), whole("part "));
        unread.push(&"ä".as_bytes()[1..]);
        assert_eq!(unread.take(IncompleteRest::Character), whole("ä"));
        // What can never become a character is not waited for.
        unread.push(b"\xff");
        assert_eq!(unread.take(IncompleteRest::Character), whole("\u{fffd}"));
        unread.push(&"ä".as_bytes()[..1]);
        assert_eq!(unread.take(IncompleteRest::Nothing), whole("\u{fffd}"));
    }

    #[test]
    fn what_does_not_fit_loses_its_beginning() {
        let mut unread = UnreadOutput::default();
        for _ in 0..100 {
            unread.push(&[b'a'; 100_000]);
            assert!(unread.bytes.len() <= KEPT);
        }
        unread.push(b"end");
        let printed = unread.take(IncompleteRest::Nothing);
        assert_eq!(printed.dropped, 10_000_003 - KEPT as u64);
        assert!(printed.text.ends_with("aend") && printed.text.len() == KEPT);
        // It is told once.
        unread.push(b"more");
        assert_eq!(unread.take(IncompleteRest::Nothing), whole("more"));
        let recent = unread.recent();
        assert!(recent.ends_with("aendmore") && recent.len() == RECENT, "what was taken can still be looked at");
    }
}
