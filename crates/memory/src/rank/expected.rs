//! What kind of answer a question expects, and whether a memory holds one of that kind.
//!
//! "How many…" is answered by a number, "when…" by a day or an hour, "who…" by a name, "where…" by a place. A memory about
//! the same thing that holds nothing of the kind hardly answers the question, however many words it shares with it.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// How much of a memory is looked through.
const LOOKED_AT: usize = 4_000;

/// The questions, and what answers them, in the same order: a number, a time, a person, a place.
static QUESTIONS: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSet::new([
        r"(?i)\bhow (many|much|long|often|fast|big|large|high|old)\b|\b(what|which) (percentage|limit|size|port|version|frequency)\b|多少|几[个次天台小]|多久|多大|多长|몇|얼마",
        r"(?i)\bwhen\b.*\?|^when\b|\b(what|which) (day|date|week|month|time|hours)\b|什么时候|何时|几点|哪天|언제|며칠",
        r"(?i)\b(who|whom|whose)\b|谁|누가|누구",
        r"(?i)\bwhere\b|哪里|在哪|어디",
    ])
    .ok()
});

// Word boundaries of ASCII only: the others are slow, and these stand beside Latin words.
static ANSWERS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"(?i)\d|(?-u:\b)(two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|forty|fifty|hundred|once|twice|half|double)(?-u:\b)|[一二三四五六七八九十百两]|(한|두|세|네|다섯|여섯|일곱|여덟|아홉|열) ",
        r"(?i)\d{4}|\d:\d\d|(?-u:\b)(mon|tues|wednes|thurs|fri|satur|sun)days?(?-u:\b)|(?-u:\b)(week|dai|night|month|year|hour)(ly|s)?(?-u:\b)|(?-u:\b)(every|days?|january|february|march|april|may|june|july|august|september|october|november|december|morning|noon|midnight|evening|until|quarter|q[1-4]|spring|summer|autumn|winter)(?-u:\b)|[点日月年周时]|요일|오전|오후|매일|매주|월|시",
        r"[^.:;\s]\s+\p{Lu}\p{Ll}+(?-u:\b)|@|#|(?-u:\b)([Tt]eam|[Oo]wner|[Ll]ead|[Cc]ontact)(?-u:\b)|负责|联系|组|담당|팀|님",
        r"(?i)/|#|\.(com|io|net|org|dev|internal)(?-u:\b)|(?-u:\b)(in|at|on|under|from|to)(?-u:\b)|在|位于|에서|에 ",
    ]
    .iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

/// Which kinds of answers are expected, or there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Kinds(u8);

impl Kinds {
    /// What a question expects: one kind, or nothing in particular.
    pub(crate) fn expected(question: &str) -> Self {
        let first = QUESTIONS.as_ref().and_then(|questions| questions.matches(question).into_iter().next());
        Self(first.map_or(0, |kind| 1 << kind))
    }

    /// What a memory holds.
    pub(crate) fn held(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(LOOKED_AT)];
        let found = ANSWERS.iter().enumerate().filter(|(_, answer)| answer.is_match(text));
        Self(found.fold(0, |kinds, (kind, _)| kinds | 1 << kind))
    }

    /// Whether a question that expects these is answered by one who holds those. None if it expects nothing.
    pub(crate) fn answered_by(self, held: Self) -> Option<bool> {
        (self.0 != 0).then_some(self.0 & held.0 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_by_its_kind() {
        let answered = |question: &str, text: &str| Kinds::expected(question).answered_by(Kinds::held(text));
        assert_eq!(answered("how many retries are there?", "retries stop after five attempts"), Some(true));
        assert_eq!(answered("how many retries are there?", "retries back off"), Some(false));
        assert_eq!(answered("when is the review?", "reviews are on Tuesday"), Some(true));
        assert_eq!(answered("who reviews?", "reviews go to Marta"), Some(true));
        assert_eq!(answered("备份保留多少天？", "备份保留三十天"), Some(true));
        assert_eq!(answered("회의는 언제인가요?", "회의는 화요일 오전"), Some(true));
        assert_eq!(answered("rename the function", "anything"), None);
    }
}
