//! Chinese, Korean and Japanese words of work, and the English word each stands for.
//!
//! A question in one language is to find a memory in another. The table of meanings knows English alone, so known words
//! of other scripts are read as the English ones. A small dictionary; what is not in it is compared by its characters.

use std::collections::HashMap;
use std::sync::LazyLock;

const WORDS: &str = include_str!("tongues.txt");

static TONGUES: LazyLock<Tongues> = LazyLock::new(|| {
    let mut words = HashMap::new();
    for line in WORDS.lines().filter(|line| !line.starts_with('#')) {
        let Some((english, others)) = line.split_once(" = ") else { continue };
        words.extend(others.split(' ').map(|other| (other, english)));
    }
    let longest = words.keys().map(|word| word.chars().count()).max().unwrap_or_default();
    Tongues { words, longest }
});

struct Tongues {
    words: HashMap<&'static str, &'static str>,
    longest: usize,
}

/// The longest known word that some characters begin with: how many characters, and the English for it.
pub(crate) fn longest(chars: &[char]) -> Option<(usize, &'static str)> {
    (2..=TONGUES.longest.min(chars.len())).rev().find_map(|len| {
        let word: String = chars[..len].iter().collect();
        TONGUES.words.get(word.as_str()).map(|english| (len, *english))
    })
}
