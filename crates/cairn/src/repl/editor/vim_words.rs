//! Words as vim sees them: runs of letters, or of signs; or, for capital commands, what stands between blanks.

use unicode_segmentation::UnicodeSegmentation;

use super::Editor;

/// A kind of character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LetterKind {
    Blank,
    Letter,
    Sign,
}

fn kind(text: &str, whole: bool) -> LetterKind {
    match text.chars().next() {
        None => LetterKind::Blank,
        Some(c) if c.is_whitespace() => LetterKind::Blank,
        Some(c) if whole || c.is_alphanumeric() || c == '_' => LetterKind::Letter,
        Some(_) => LetterKind::Sign,
    }
}

impl Editor {
    /// The place behind the letter at a place. A placeholder is one letter.
    pub(super) fn next_letter(&self, at: usize) -> usize {
        let after = &self.text[at..];
        match self.pasted.at_start_of(after) {
            Some(placeholder) => at + placeholder.len(),
            None => after.graphemes(true).next().map_or(at, |next| at + next.len()),
        }
    }

    /// The place of the letter before a place.
    pub(super) fn letter_before(&self, at: usize) -> usize {
        let before = &self.text[..at];
        match self.pasted.at_end_of(before) {
            Some((placeholder, _)) => at - placeholder.len(),
            None => before.grapheme_indices(true).next_back().map_or(0, |(at, _)| at),
        }
    }

    fn kind_at(&self, at: usize, whole: bool) -> LetterKind {
        kind(&self.text[at..], whole)
    }

    /// True if the cursor stands on a word.
    pub(super) fn is_on_word(&self) -> bool {
        self.kind_at(self.cursor, false) != LetterKind::Blank
    }

    /// The beginning of the next word.
    pub(super) fn word_start_after(&self, at: usize, whole: bool) -> usize {
        let here = self.kind_at(at, whole);
        let mut at = at;
        while at < self.text.len() && here != LetterKind::Blank && self.kind_at(at, whole) == here {
            at = self.next_letter(at);
        }
        while at < self.text.len() && self.kind_at(at, whole) == LetterKind::Blank {
            at = self.next_letter(at);
        }
        at
    }

    /// The beginning of this word, or of the one before.
    pub(super) fn word_start_before(&self, at: usize, whole: bool) -> usize {
        let mut at = at;
        while at > 0 && self.kind_at(self.letter_before(at), whole) == LetterKind::Blank {
            at = self.letter_before(at);
        }
        if at == 0 {
            return 0;
        }
        let word = self.kind_at(self.letter_before(at), whole);
        while at > 0 && self.kind_at(self.letter_before(at), whole) == word {
            at = self.letter_before(at);
        }
        at
    }

    /// The last letter of this word, or of the next one.
    pub(super) fn word_end_after(&self, at: usize, whole: bool) -> usize {
        let mut at = self.next_letter(at);
        while at < self.text.len() && self.kind_at(at, whole) == LetterKind::Blank {
            at = self.next_letter(at);
        }
        if at >= self.text.len() {
            return self.letter_before(self.text.len());
        }
        let word = self.kind_at(at, whole);
        loop {
            let next = self.next_letter(at);
            if next >= self.text.len() || self.kind_at(next, whole) != word {
                return at;
            }
            at = next;
        }
    }

    /// The word at the cursor; with the blanks behind it, too.
    pub(super) fn word_object(&self, with_blanks: bool) -> (usize, usize) {
        let kind = self.kind_at(self.cursor, false);
        let (mut from, mut to) = (self.cursor, self.cursor);
        while from > 0 && self.kind_at(self.letter_before(from), false) == kind {
            from = self.letter_before(from);
        }
        while to < self.text.len() && self.kind_at(to, false) == kind {
            to = self.next_letter(to);
        }
        while with_blanks && to < self.text.len() && self.text[to..].starts_with(' ') {
            to += 1;
        }
        (from, to)
    }
}
