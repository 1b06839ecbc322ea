//! Whether a text says what not to do, and what a question leaves out.

use std::sync::LazyLock;

use regex::Regex;

/// Words by which a text forbids.
const FORBIDDING: [&str; 34] = [
    "never ",
    "do not ",
    "don't ",
    "don’t ",
    "not allowed",
    "avoid ",
    "forbid",
    "forbidden",
    "banned",
    "must not",
    "should not",
    "shouldn't",
    "stop ",
    "no longer",
    "decided against",
    "rejected",
    "instead of",
    "off limits",
    "prohibited",
    "without ",
    "不要",
    "禁止",
    "不得",
    "别",
    "不能",
    "不准",
    "不允许",
    "避免",
    "하지 마",
    "하지 않",
    "금지",
    "말 것",
    "절대",
    "안 된다",
];

/// Words by which a question asks whether something is forbidden.
const ASKING: [&str; 30] = [
    " not ",
    "n't ",
    "never",
    "avoid",
    "forbid",
    "banned",
    "allowed",
    "okay to",
    "ok to",
    "fine to",
    "acceptable",
    "safe to",
    "off limits",
    "against",
    "should i ",
    "can i ",
    "may i ",
    "is it ok",
    "why no ",
    "permitted",
    "不要",
    "不能",
    "能不能",
    "可以",
    "禁止",
    "不该",
    "안 되",
    "해도 되",
    "금지",
    "되나요",
];

/// Whether a text forbids something.
pub(crate) fn is_negative(text: &str) -> bool {
    let text = text[..text.floor_char_boundary(1_000)].to_lowercase();
    FORBIDDING.iter().any(|word| text.contains(word))
}

/// Whether a question asks for what is forbidden.
pub(crate) fn asks_for_negative(query: &str) -> bool {
    let query = format!(" {} ", query.to_lowercase());
    ASKING.iter().any(|word| query.contains(word))
}

static LEFT_OUT: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"(?i)\b(?:except(?:\s+for)?|other\s+than|apart\s+from|aside\s+from|excluding|not\s+counting|besides)\s+((?:the\s+|our\s+)?[\p{L}\p{N}_-]+)",
        r"(?i)\bnot\s+(?:the|about)\s+((?:[\p{L}\p{N}_-]+\s+)?)(?:one|version|ones)\b",
        r"除了(.{1,12}?)(?:以外|之外|外)",
        r"([\p{Hangul}\p{L}\p{N}_-]+?)(?:을|를|은|는)?\s*(?:말고|제외하고|빼고)",
    ]
    .iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

/// What a question leaves out ("other than billing"): the words, and where they stand.
pub(crate) fn left_out(query: &str) -> Vec<std::ops::Range<usize>> {
    let captures = LEFT_OUT.iter().flat_map(|pattern| pattern.captures_iter(query));
    captures
        .filter_map(|captures| captures.get(1))
        .map(|words| words.range())
        .filter(|range| !range.is_empty())
        .collect()
}
