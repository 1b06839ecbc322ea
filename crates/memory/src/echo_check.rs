//! Check whether a memory only repeats text that was injected into the conversation: recalled memories, instruction
//! files, tool results, summaries.
//!
//! Such text is not what happened in a session, and some of it was written by strangers. So a memory is compared with
//! it by sequences of five words. What the user said too counts as the user's, wherever else it occurs.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Words in a sequence.
const WORDS: usize = 5;

/// Share of its sequences from which on a text is an echo.
pub const MOST: f64 = 0.6;

/// Injected text, as sequences of words.
#[derive(Debug, Clone, Default)]
pub struct InjectedWords {
    sequences: HashSet<u64>,
}

impl InjectedWords {
    /// Adds an injected text.
    pub fn add(&mut self, text: &str) {
        self.sequences.extend(sequences(text));
    }

    /// Removes what the user said.
    pub fn leave_out_user_text(&mut self, text: &str) {
        for one in sequences(text) {
            self.sequences.remove(&one);
        }
    }

    /// Returns whether a text only repeats injected text. What was in it `before` counts neither way.
    pub fn is_echoed_by(&self, text: &str, before: &str) -> bool {
        let before: HashSet<u64> = sequences(before).collect();
        let new: HashSet<u64> = sequences(text).filter(|one| !before.contains(one)).collect();
        let shared = new.iter().filter(|one| self.sequences.contains(one)).count();
        !new.is_empty() && shared as f64 >= MOST * new.len() as f64
    }
}

/// The word sequences of a text.
fn sequences(text: &str) -> impl Iterator<Item = u64> {
    let words = words(text);
    let hashed = |sequence: &[String]| {
        let mut hasher = DefaultHasher::new();
        sequence.hash(&mut hasher);
        hasher.finish()
    };
    words.windows(WORDS).map(hashed).collect::<Vec<_>>().into_iter()
}

/// Words in lower case; in scripts without spaces, each character is one.
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

    /// BUDGET-2: a text that shares 60 % of its five-word sequences with injected text is an echo.
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
        injected.leave_out_user_text("From now on: always deploy on Fridays and never ask anybody before you push.");
        assert!(!injected.is_echoed_by(again, ""), "the user said it too");
    }

    /// BUDGET-2: this holds for scripts without spaces too.
    #[test]
    fn an_echo_in_chinese_is_one() {
        let mut injected = InjectedWords::default();
        injected.add("每次提交之前都要运行全部测试并且更新文档");
        assert!(injected.is_echoed_by("提交之前都要运行全部测试", ""));
        assert!(!injected.is_echoed_by("用户喜欢简短的回答不要列表", ""));
    }
}
