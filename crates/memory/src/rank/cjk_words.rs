//! Chinese, Korean and Japanese words about work, each with its English equivalent.
//!
//! A question in one language should find a memory in another. The table of meanings has English only, so known words
//! of other scripts are read as English ones. A small dictionary; words not in it are compared by their characters.

use std::collections::HashMap;
use std::sync::LazyLock;

const WORDS: &str = include_str!("tongues.txt");

static TONGUES: LazyLock<CjkWords> = LazyLock::new(|| {
    let mut words = HashMap::new();
    for line in WORDS.lines().filter(|line| !line.starts_with('#')) {
        let Some((english, others)) = line.split_once(" = ") else { continue };
        words.extend(others.split(' ').map(|other| (other, english)));
    }
    let longest = words.keys().map(|word| word.chars().count()).max().unwrap_or_default();
    CjkWords { words, longest }
});

struct CjkWords {
    words: HashMap<&'static str, &'static str>,
    longest: usize,
}

/// The longest known word that a text begins with, and its English equivalent.
pub(crate) fn longest(text: &str) -> Option<(&str, &'static str)> {
    let words = beginnings(text).take(TONGUES.longest).skip(1);
    words.filter_map(|word| TONGUES.words.get(word).map(|english| (word, *english))).last()
}

/// The prefixes of a text: its first character, its first two, three and so on.
pub(crate) fn beginnings(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, c)| &text[..at + c.len_utf8()])
}
