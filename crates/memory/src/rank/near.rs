//! What people say instead of a word: who asks for a note has often forgotten how it was put.
//!
//! `near.txt` has a line for each of some ten thousand words of daily life and of software, with the words that stand for
//! it in a question: the plain word for the jargon, the symptom for the cause, the act for the thing. It stands both ways, and
//! is compared by stems. The program carries it as `near.bin`, sorted and searched where it lies: how many stems (u32), where
//! each ends in the letters (u32 each), where its list ends (u32 each), the letters, the lists (u16 a word). Numbers are
//! little-endian. `UPDATE_NEAR=1 cargo nextest run -p memory near` makes it anew.

const TABLE: &[u8] = include_bytes!("near.bin");

/// The stems of the words that are said instead of a word with this stem.
pub(crate) fn words(stem: &str) -> impl Iterator<Item = &'static str> {
    let (mut low, mut high) = (0, count());
    while low < high {
        let middle = usize::midpoint(low, high);
        if letters(middle) < stem.as_bytes() { low = middle + 1 } else { high = middle }
    }
    let list = if low < count() && letters(low) == stem.as_bytes() { list(low) } else { &[] };
    list.chunks_exact(2).filter_map(|at| str::from_utf8(letters(usize::from(u16::from_le_bytes([at[0], at[1]])))).ok())
}

fn number(at: usize) -> usize {
    u32::from_le_bytes([TABLE[at], TABLE[at + 1], TABLE[at + 2], TABLE[at + 3]]) as usize
}

fn count() -> usize {
    number(0)
}

/// From where to where the part of one word reaches, of those whose ends are noted from `ends` on.
fn part(ends: usize, at: usize) -> std::ops::Range<usize> {
    let from = if at == 0 { 0 } else { number(ends + 4 * (at - 1)) };
    from..number(ends + 4 * at)
}

fn letters(at: usize) -> &'static [u8] {
    let start = 4 + 8 * count();
    let part = part(4, at);
    &TABLE[start + part.start..start + part.end]
}

fn list(at: usize) -> &'static [u8] {
    let all_letters = number(4 + 4 * (count() - 1));
    let start = 4 + 8 * count() + all_letters;
    let part = part(4 + 4 * count(), at);
    &TABLE[start + 2 * part.start..start + 2 * part.end]
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::words::Splitter;
    use super::*;

    const LINES: &str = include_str!("near.txt");

    fn table(lines: &str) -> Vec<u8> {
        let splitter = Splitter::new();
        let mut near: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let stem = |word: &str| {
            let mut tokens = splitter.split(word).into_iter();
            tokens.next().filter(|token| !token.stop && tokens.len() == 0).map(|token| token.text.to_string())
        };
        for (word, others) in lines.lines().filter_map(|line| line.split_once(": ")) {
            let Some(word) = stem(word) else { continue };
            for other in others.split_whitespace().filter_map(stem).filter(|other| *other != word) {
                near.entry(word.clone()).or_default().insert(other.clone());
                near.entry(other).or_default().insert(word.clone());
            }
        }
        let at: BTreeMap<&String, usize> = near.keys().enumerate().map(|(at, word)| (word, at)).collect();
        let mut out = (near.len() as u32).to_le_bytes().to_vec();
        let mut ends = |lengths: &mut dyn Iterator<Item = usize>| {
            let mut end = 0;
            for length in lengths {
                end += length as u32;
                out.extend(end.to_le_bytes());
            }
        };
        ends(&mut near.keys().map(String::len));
        ends(&mut near.values().map(BTreeSet::len));
        out.extend(near.keys().flat_map(|word| word.bytes()));
        for other in near.values().flatten() {
            out.extend(u16::try_from(at[other]).unwrap().to_le_bytes());
        }
        out
    }

    /// RECALL-8: what the program carries is what the list says, and it is small.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "it renews what it compares with, if told to")]
    fn the_near_words_are_those_of_the_list() {
        let made = table(LINES);
        if std::env::var_os("UPDATE_NEAR").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/rank/near.bin"), &made).unwrap();
            return;
        }
        assert!(made == TABLE, "UPDATE_NEAR=1 cargo nextest run -p memory near");
        assert!(TABLE.len() < 700_000, "{}", TABLE.len());
    }

    #[test]
    fn a_word_stands_for_another_both_ways() {
        let near = |one: &str, other: &str| {
            let splitter = Splitter::new();
            words(&splitter.stem(one)).any(|word| word == splitter.stem(other))
        };
        assert!(near("invoice", "bill") && near("bill", "invoice"));
        assert!(!near("invoice", "window") && words("qzxqzx").next().is_none() && words("").next().is_none());
    }
}
