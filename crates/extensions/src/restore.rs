//! The skills that come back after a compaction: those used last, each within its limit and all within theirs.

use transcript::{Block, tokens};

/// The most of one skill, in tokens.
pub const SKILL_TOKENS: u64 = 5_000;
/// The most of all together.
pub const ALL_TOKENS: u64 = 25_000;
/// The note behind a text that was cut.
const CUT: &str = "\n\n[The rest of this skill was left out. Call it again to see all of it.]";

/// A skill that was used in a session, with the text the model was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedSkill {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The skills to show again, the newest first. `used` is in the order of use; of one used twice the newest text counts.
pub fn restored(used: &[UsedSkill]) -> Vec<UsedSkill> {
    let (mut restored, mut left) = (Vec::<UsedSkill>::new(), ALL_TOKENS);
    for skill in used.iter().rev() {
        if restored.iter().any(|other| other.name == skill.name) {
            continue;
        }
        let Some(text) = within(&skill.text, left.min(SKILL_TOKENS)) else { break };
        left = left.saturating_sub(count(&text));
        restored.push(UsedSkill { name: skill.name.clone(), text });
    }
    restored
}

fn count(text: &str) -> u64 {
    tokens::rough(&Block::text(text))
}

/// As much of a text as has no more tokens than this. None if not even the note fits.
fn within(text: &str, most: u64) -> Option<String> {
    if count(text) <= most {
        return Some(text.to_owned());
    }
    // Bytes and tokens grow together, so the longest beginning that fits is found by halving.
    let fits = |end: usize| count(&format!("{}{CUT}", &text[..text.floor_char_boundary(end)])) <= most;
    let (mut low, mut high) = (0, text.len());
    if !fits(low) {
        return None;
    }
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    Some(format!("{}{CUT}", &text[..text.floor_char_boundary(low)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(name: &str, words: usize) -> UsedSkill {
        UsedSkill { name: name.to_owned(), text: "wörd ".repeat(words) }
    }

    /// SKILL-2: 5,000 tokens each, 25,000 together, the newest first, each once.
    #[test]
    fn the_newest_come_back_within_their_limits() {
        let names = ["old", "a", "b", "c", "d", "small", "a"];
        let all: Vec<UsedSkill> =
            names.iter().map(|name| used(name, if *name == "small" { 3 } else { 9_000 })).collect();
        let back = restored(&all);
        let names: Vec<&str> = back.iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(names, ["a", "small", "d", "c", "b", "old"]);
        assert_eq!(back[1].text, used("small", 3).text);
        assert!(back[0].text.ends_with(CUT) && count(&back[0].text) <= SKILL_TOKENS);
        let total: u64 = back.iter().map(|skill| count(&skill.text)).sum();
        assert!(total <= ALL_TOKENS && total > ALL_TOKENS - 100, "{total}");
        assert_eq!(restored(&[]), []);
    }
}
