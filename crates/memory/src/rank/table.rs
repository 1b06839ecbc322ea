//! What words of the language mean, roughly, and how common they are.
//!
//! The table is part of the program: 33,092 English words ([`SortedList`]), beside each its place in the order of frequency (u16), and
//! behind them 48 small numbers each: a direction, and words that are used alike point alike. `scripts/make-word-table`
//! makes it. A word that is not in it has no meaning here and is rare.

use super::sorted::SortedList;

const WORDS: SortedList = SortedList { bytes: include_bytes!("table.bin"), more: 2 };

/// How many numbers a word has.
pub(crate) const WIDTH: usize = 48;

/// What a word's own direction is worth with itself: 127 squared.
const UNIT: f32 = 127.0 * 127.0;

/// A word of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableWord(u16);

/// How many words that begin alike are looked at.
const NEIGHBOURS: usize = 12;

/// The row of a word in small letters.
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
    /// Its place in the order of frequency, from 1.
    pub(crate) fn place(self) -> usize {
        let at = WORDS.beside() + 2 * usize::from(self.0);
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

/// How alike two directions are: 1 for the same, 0 for strangers.
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
