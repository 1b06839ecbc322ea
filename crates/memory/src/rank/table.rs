//! Meaning of English words, roughly, and their frequency.
//!
//! The table is embedded in the binary: 33,092 English words ([`SortedList`]), beside each its frequency rank (u16),
//! and after them 48 small numbers each: a direction; words used alike point alike. `scripts/make-word-table` makes it.
//! A word that is not in it has no meaning here and is rare.

use super::sorted::SortedList;

const WORDS: SortedList = SortedList { bytes: include_bytes!("table.bin"), more: 2 };

/// Number of dimensions of a direction.
pub(crate) const WIDTH: usize = 48;

/// Dot product of a direction with itself: 127 squared.
const UNIT: f32 = 127.0 * 127.0;

/// A word of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableWord(u16);

/// Number of words with the same beginning that are looked at.
const NEIGHBOURS: usize = 12;

/// The row of a lower-case word.
pub(crate) fn row(word: &str) -> Option<TableWord> {
    WORDS.find(word).map(|at| TableWord(at as u16))
}

/// The row of the most frequent word that begins with a stem and, by `has_stem`, has it.
pub(crate) fn row_of_stem(stem: &str, has_stem: impl Fn(&str) -> bool) -> Option<TableWord> {
    let from = WORDS.place_of(stem);
    let alike =
        (from..WORDS.count().min(from + NEIGHBOURS)).take_while(|at| WORDS.letters(*at).starts_with(stem.as_bytes()));
    let same = alike.filter(|at| std::str::from_utf8(WORDS.letters(*at)).is_ok_and(&has_stem));
    same.map(|at| TableWord(at as u16)).min_by_key(|row| row.place())
}

impl TableWord {
    /// Its frequency rank, from 1.
    pub(crate) fn place(self) -> usize {
        let at = WORDS.further_bytes() + 2 * usize::from(self.0);
        usize::from(u16::from_le_bytes([WORDS.bytes[at], WORDS.bytes[at + 1]])) + 1
    }

    /// Its direction.
    pub(crate) fn direction(self) -> [i8; WIDTH] {
        let at = WORDS.behind() + WIDTH * usize::from(self.0);
        let mut direction = [0; WIDTH];
        for (number, byte) in direction.iter_mut().zip(&WORDS.bytes[at..at + WIDTH]) {
            *number = i8::from_le_bytes([*byte]);
        }
        direction
    }
}

/// Cosine of two directions: 1 for the same, 0 for unrelated ones.
pub(crate) fn cosine(one: &[i8; WIDTH], other: &[i8; WIDTH]) -> f32 {
    let sum: i32 = one.iter().zip(other).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum();
    sum as f32 / UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_where_it_lies() {
        for at in 0..WORDS.count() {
            let word = std::str::from_utf8(WORDS.letters(at)).unwrap();
            assert_eq!(row(word).map(|row| usize::from(row.0)), Some(at), "{word}");
        }
        assert_eq!(WORDS.bytes.len(), WORDS.behind() + WIDTH * WORDS.count());
        assert!(row("qzxqzx").is_none() && row("").is_none());
    }

    #[test]
    fn words_used_alike_point_alike() {
        let alike = |one: &str, other: &str| cosine(&row(one).unwrap().direction(), &row(other).unwrap().direction());
        assert!(alike("database", "databases") > 0.6 && alike("buy", "purchase") > alike("buy", "window") + 0.2);
        assert!((alike("server", "server") - 1.0).abs() < 0.05);
        assert!(row("the").unwrap().place() < row("database").unwrap().place());
    }

    /// RECALL-8: table and ranker are small.
    #[test]
    fn the_table_is_small() {
        assert!(WORDS.bytes.len() < 2_100_000);
    }
}
