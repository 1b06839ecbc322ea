//! A list of words that is part of the program. It lies sorted and is searched where it lies, so nothing is built at the
//! start: how many words (u32), where each ends in the letters (u32 each), as many bytes more for each as a list has, the
//! letters, and what a list has behind them. Numbers are little-endian.

/// Such a list.
pub(crate) struct SortedList {
    pub(crate) bytes: &'static [u8],
    /// How many bytes a word has beside where it ends.
    pub(crate) more: usize,
}

impl SortedList {
    /// How many words there are.
    pub(crate) fn count(&self) -> usize {
        self.number(0)
    }

    /// Where a word stands.
    pub(crate) fn find(&self, word: &str) -> Option<usize> {
        let at = self.place_of(word);
        (at < self.count() && self.letters(at) == word.as_bytes()).then_some(at)
    }

    /// Where a word stands, or would stand.
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
        let start = self.beside() + self.more * self.count();
        let part = self.part(4, at);
        &self.bytes[start + part.start..start + part.end]
    }

    /// Where the bytes begin that each word has beside where it ends.
    pub(crate) fn beside(&self) -> usize {
        4 + 4 * self.count()
    }

    /// Where the letters end.
    pub(crate) fn behind(&self) -> usize {
        self.beside() + self.more * self.count() + self.number(4 * self.count())
    }

    /// From where to where the part of one word reaches, of those whose ends are noted from `ends` on.
    pub(crate) fn part(&self, ends: usize, at: usize) -> std::ops::Range<usize> {
        let from = if at == 0 { 0 } else { self.number(ends + 4 * (at - 1)) };
        from..self.number(ends + 4 * at)
    }

    fn number(&self, at: usize) -> usize {
        let bytes = &self.bytes[at..at + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
    }
}
