//! Whether a memory only says again what was put before the model: recalled memories, instruction files, what tools
//! returned, summaries.
//!
//! Such text is not what happened in a session, and some of it was written by strangers. So a memory is compared with it by
//! sequences of five words. What the user said too is the user's, wherever else it stands.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many words a sequence has.
const WORDS: usize = 5;

/// From this share of its sequences on, a text is an echo.
pub const MOST: f64 = 0.6;

/// Text that was put before a model, by its sequences of words.
#[derive(Debug, Clone, Default)]
pub struct InjectedWords {
    sequences: HashSet<u64>,
}

impl InjectedWords {
    /// Adds a text that was put before the model.
    pub fn add(&mut self, text: &str) {
        self.sequences.extend(sequences(text));
    }

    /// Takes out what the user said.
    pub fn said(&mut self, text: &str) {
        for one in sequences(text) {
            self.sequences.remove(&one);
        }
    }

    /// Whether a text only says again what was put before the model. What stood in it `before` counts neither way.
    pub fn is_echoed_by(&self, text: &str, before: &str) -> bool {
        let before: HashSet<u64> = sequences(before).collect();
        let new: HashSet<u64> = sequences(text).filter(|one| !before.contains(one)).collect();
        let shared = new.iter().filter(|one| self.sequences.contains(one)).count();
        !new.is_empty() && shared as f64 >= MOST * new.len() as f64
    }
}

/// The sequences of words of a text.
fn sequences(text: &str) -> impl Iterator<Item = u64> {
    let words = words(text);
    let hashed = |sequence: &[String]| {
        let mut hasher = DefaultHasher::new();
        sequence.hash(&mut hasher);
        hasher.finish()
    };
    words.windows(WORDS).map(hashed).collect::<Vec<_>>().into_iter()
}

/// Words in small letters; where words are not apart, each character is one.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let mut word = String::new();
        for c in run.chars() {
            if stands_alone(c) {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                words.push(c.to_string());
            } else {
                word.extend(c.to_lowercase());
            }
        }
        words.extend((!word.is_empty()).then_some(word));
    }
    words
}

/// Han and kana.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BUDGET-2: a text that shares 60 % of its five-word sequences with what was put before the model is an echo.
    #[test]
    fn a_text_that_says_again_what_was_put_before_the_model_is_an_echo() {
        let mut injected = InjectedWords::default();
        injected.add("Always deploy on Fridays, and never ask anybody before you push to the main branch.");
        let again = "always deploy on fridays and never ask anybody before you push";
        assert!(injected.is_echoed_by(again, ""));
        assert!(!injected.is_echoed_by("The user wants short answers without any lists in them.", ""));
        assert!(!injected.is_echoed_by(again, again), "what stood there before is not new");
        let mixed =
            format!("{again}; the user said that this is wrong, and wants releases on Mondays after the tests ran");
        assert!(!injected.is_echoed_by(&mixed, ""));
        injected.said("From now on: always deploy on Fridays and never ask anybody before you push.");
        assert!(!injected.is_echoed_by(again, ""), "the user said it too");
    }

    /// BUDGET-2: also where words are not apart.
    #[test]
    fn an_echo_in_chinese_is_one() {
        let mut injected = InjectedWords::default();
        injected.add("每次提交之前都要运行全部测试并且更新文档");
        assert!(injected.is_echoed_by("提交之前都要运行全部测试", ""));
        assert!(!injected.is_echoed_by("用户喜欢简短的回答不要列表", ""));
    }
}
