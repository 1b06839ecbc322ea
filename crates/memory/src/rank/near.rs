//! Words that people say instead of another: someone who looks for a note has often forgotten its wording.
//!
//! `near.txt` has a line for each of some ten thousand words of daily life and of software, with the words that stand
//! for it in a question: the plain word for the jargon, the symptom for the cause, the act for the thing. It holds both
//! ways, and is compared by stems. The binary embeds it as `near.bin`: the stems ([`SortedList`]), beside each the end
//! of its list (u32), and after them the lists (u16 a word). `UPDATE_NEAR=1 cargo nextest run -p memory near` rebuilds
//! it.

use super::sorted::SortedList;

const STEMS: SortedList = SortedList { bytes: include_bytes!("near.bin"), more: 4 };

/// The stems of words that people say instead of a word with this stem.
pub(crate) fn words(stem: &str) -> impl Iterator<Item = &'static str> {
    let list = STEMS.find(stem).map_or(0..0, |at| STEMS.part(STEMS.further_bytes(), at));
    let lists = &STEMS.bytes[STEMS.behind()..];
    let words = lists[2 * list.start..2 * list.end].chunks_exact(2).map(|at| u16::from_le_bytes([at[0], at[1]]));
    words.filter_map(|at| str::from_utf8(STEMS.letters(usize::from(at))).ok())
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

    /// RECALL-8: the embedded list matches its source, and it is small.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "it renews what it compares with, if told to")]
    fn the_near_words_are_those_of_the_list() {
        let made = table(LINES);
        if std::env::var_os("UPDATE_NEAR").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/rank/near.bin"), &made).unwrap();
            return;
        }
        assert!(made == STEMS.bytes, "UPDATE_NEAR=1 cargo nextest run -p memory near");
        assert!(made.len() < 700_000, "{}", made.len());
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
