//! The likeness of two texts: one may contain most of the other, word for word. Sequences of five words are compared, so
//! the text around them and the layout do not matter. A text that says the same in other words is not recognised.

use std::collections::HashSet;

use crate::echo_check::words;

/// Words in a sequence.
const WORDS: usize = 5;

/// Share of a text's sequences that another has to hold.
const SHARE: f64 = 0.6;

/// True if `text` contains most of `other`, word for word. No text contains an empty one.
pub fn holds(text: &str, other: &str) -> bool {
    let (text, other) = (words(text), words(other));
    let length = WORDS.min(other.len());
    if length == 0 {
        return false;
    }
    let (held, wanted): (HashSet<&[String]>, HashSet<&[String]>) =
        (text.windows(length).collect(), other.windows(length).collect());
    wanted.intersection(&held).count() as f64 >= SHARE * wanted.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_holds_another_in_any_layout_and_not_one_that_shares_a_phrase() {
        let other = "Whoever deploys says so in the channel of operations.";
        assert!(holds("Two approvals.\n\n- whoever deploys\n  says so, in the channel of operations", other));
        assert!(!holds("Whoever deploys says so to nobody at all, and goes home early on that day.", other));
        assert!(holds("We use pnpm, not npm.", "use pnpm") && !holds("We use npm.", "use pnpm"));
        assert!(holds("每次提交之前都要运行全部测试并且更新文档", "提交之前都要运行全部测试"));
        assert!(!holds("Anything.", " "));
    }
}
