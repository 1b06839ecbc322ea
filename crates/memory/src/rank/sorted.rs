//! A sorted list of words embedded in the binary and searched in place, so nothing is built at startup. Layout: number
//! of words (u32), the end of each word in the letters (u32 each), a fixed number of further bytes for each word, the
//! letters, and further data of the list. Numbers are little-endian.

/// A sorted list of words.
pub(crate) struct SortedList {
    pub(crate) bytes: &'static [u8],
    /// Number of further bytes of each word.
    pub(crate) more: usize,
}

impl SortedList {
    /// Number of words.
    pub(crate) fn count(&self) -> usize {
        self.number(0)
    }

    /// Index of a word.
    pub(crate) fn find(&self, word: &str) -> Option<usize> {
        let at = self.place_of(word);
        (at < self.count() && self.letters(at) == word.as_bytes()).then_some(at)
    }

    /// Index of a word, or the index at which it would be inserted.
    pub(crate) fn place_of(&self, word: &str) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.letters(middle) < word.as_bytes() { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The letters of a word.
    pub(crate) fn letters(&self, at: usize) -> &'static [u8] {
        let start = self.further_bytes() + self.more * self.count();
        let part = self.part(4, at);
        &self.bytes[start + part.start..start + part.end]
    }

    /// Offset of the further bytes of the words.
    pub(crate) fn further_bytes(&self) -> usize {
        4 + 4 * self.count()
    }

    /// Offset after the letters.
    pub(crate) fn behind(&self) -> usize {
        self.further_bytes() + self.more * self.count() + self.number(4 * self.count())
    }

    /// Range of the part of one word, given that the ends of the parts are stored from `ends` on.
    pub(crate) fn part(&self, ends: usize, at: usize) -> std::ops::Range<usize> {
        let from = if at == 0 { 0 } else { self.number(ends + 4 * (at - 1)) };
        from..self.number(ends + 4 * at)
    }

    fn number(&self, at: usize) -> usize {
        let bytes = &self.bytes[at..at + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
    }
}
