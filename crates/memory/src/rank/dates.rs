//! Dates in texts and questions, however they are written, as comparable terms.
//!
//! `2026-03-05`, `March 5th, 2026`, `5 March`, `3月5日` and `3월 5일` give the same terms: the day, the month, and both
//! without the year. A question may also say `last month` or `어제`; that is resolved against `now`.

use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use regex::{Captures, Regex};

/// A date in a text: its position, and its terms, each with the quality of the match.
#[derive(Debug, Clone)]
pub(crate) struct Mention {
    pub(crate) range: std::ops::Range<usize>,
    pub(crate) terms: Vec<(String, f32)>,
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const NAMES: &str = "January|February|March|April|May|June|July|August|September|October|November|December\
    |Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec";

static ISO: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(20\d\d)[-/.](0?[1-9]|1[0-2])(?:[-/.](0?[1-9]|[12]\d|3[01]))?\b").ok());
static MONTH_DAY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(r"\b({NAMES})\b\.?(?:\s+([0-3]?\d)(?:st|nd|rd|th)?\b)?(?:,?\s+(20\d\d)\b)?")).ok()
});
static DAY_MONTH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(r"(?i)\b([0-3]?\d)(?:st|nd|rd|th)?\s+(?:of\s+)?({NAMES})\b(?:,?\s+(20\d\d)\b)?")).ok()
});
/// Coarse filter for [`DAY_MONTH`]: the same without word boundaries, which are slow over text that is not all ASCII.
static DAY_MONTH_ROUGHLY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)\d(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{})", MONTHS.join("|"))).ok());
static LOWER_MONTH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = "january|february|april|june|july|august|september|october|november|december";
    Regex::new(&format!(r"\b({names})\b(?:\s+([0-3]?\d)(?:st|nd|rd|th)?\b)?(?:,?\s+(20\d\d)\b)?")).ok()
});
static CJK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:(20\d\d)\s?[年년]\s?)?(1[0-2]|0?[1-9])\s?[月월](?:\s?([12]\d|3[01]|0?[1-9])\s?[日号일])?").ok()
});

/// The dates a text names.
pub(crate) fn mentions(text: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut add = |range: std::ops::Range<usize>, year: Option<i16>, month: i8, day: Option<i8>| {
        if (1..=12).contains(&month)
            && !found.iter().any(|other| other.range.start < range.end && range.start < other.range.end)
        {
            found.push(Mention { range, terms: terms(year, month, day) });
        }
    };
    let number =
        |captures: &Captures<'_>, at: usize| captures.get(at).and_then(|text| text.as_str().parse::<i16>().ok());
    let small = |value: Option<i16>| value.and_then(|value| i8::try_from(value).ok());
    if text.contains("20") {
        each(&ISO, text, |range, captures| {
            if let Some(month) = small(number(captures, 2)) {
                add(range, number(captures, 1), month, small(number(captures, 3)));
            }
        });
    }
    if DAY_MONTH_ROUGHLY.as_ref().is_some_and(|pattern| pattern.is_match(text)) {
        each(&DAY_MONTH, text, |range, captures| {
            if let Some(month) = captures.get(2).and_then(|name| month(name.as_str())) {
                add(range, number(captures, 3), month, small(number(captures, 1)));
            }
        });
    }
    for pattern in [&MONTH_DAY, &LOWER_MONTH] {
        each(pattern, text, |range, captures| {
            let Some(name) = captures.get(1).map(|name| name.as_str()) else { return };
            let bare = captures.get(2).is_none() && captures.get(3).is_none();
            // "May I" is a question, not a month.
            let doubtful = bare && (name == "May" || name == "March") && !after_a_preposition(text, range.start);
            if let (Some(month), false) = (month(name), doubtful) {
                add(range, number(captures, 3), month, small(number(captures, 2)));
            }
        });
    }
    if text.contains(['月', '월']) {
        each(&CJK, text, |range, captures| {
            if let Some(month) = small(number(captures, 2)) {
                add(range, number(captures, 1), month, small(number(captures, 3)));
            }
        });
    }
    found
}

fn each(pattern: &LazyLock<Option<Regex>>, text: &str, mut with: impl FnMut(std::ops::Range<usize>, &Captures<'_>)) {
    for captures in pattern.as_ref().iter().flat_map(|pattern| pattern.captures_iter(text)) {
        if let Some(whole) = captures.get(0) {
            with(whole.range(), &captures);
        }
    }
}

fn after_a_preposition(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
    ["in", "by", "of", "until", "till", "since", "from", "for", "last", "next", "this", "before", "after", "during"]
        .iter()
        .any(|word| before.eq_ignore_ascii_case(word))
}

fn month(name: &str) -> Option<i8> {
    let name = name.to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| name.starts_with(month))?;
    i8::try_from(at + 1).ok()
}

/// Terms for a date, the most exact first.
fn terms(year: Option<i16>, month: i8, day: Option<i8>) -> Vec<(String, f32)> {
    let mut terms = Vec::new();
    match (year, day) {
        (Some(year), Some(day)) => {
            terms.push((format!("@{year}-{month}-{day}"), 1.0));
            terms.push((format!("@{month}/{day}"), 0.9));
            terms.push((format!("@{year}-{month}"), 0.5));
        }
        (None, Some(day)) => terms.push((format!("@{month}/{day}"), 1.0)),
        (Some(year), None) => terms.push((format!("@{year}-{month}"), 1.0)),
        (None, None) => {}
    }
    terms.push((format!("@{month}"), if terms.is_empty() { 1.0 } else { 0.4 }));
    terms
}

/// Times relative to now: from and to in days, or whole months.
enum RelativeTime {
    Days(i32, i32),
    Month(i32),
}

const RELATIVE: [(&str, RelativeTime); 33] = [
    ("day before yesterday", RelativeTime::Days(-2, -2)),
    ("yesterday", RelativeTime::Days(-1, -1)),
    ("tomorrow", RelativeTime::Days(1, 1)),
    ("last week", RelativeTime::Days(-13, -1)),
    ("past week", RelativeTime::Days(-7, 0)),
    ("this week", RelativeTime::Days(-6, 6)),
    ("next week", RelativeTime::Days(1, 13)),
    ("last month", RelativeTime::Month(-1)),
    ("this month", RelativeTime::Month(0)),
    ("next month", RelativeTime::Month(1)),
    ("昨天", RelativeTime::Days(-1, -1)),
    ("前天", RelativeTime::Days(-2, -2)),
    ("明天", RelativeTime::Days(1, 1)),
    ("上周", RelativeTime::Days(-13, -1)),
    ("上个星期", RelativeTime::Days(-13, -1)),
    ("本周", RelativeTime::Days(-6, 6)),
    ("这周", RelativeTime::Days(-6, 6)),
    ("下周", RelativeTime::Days(1, 13)),
    ("上个月", RelativeTime::Month(-1)),
    ("上月", RelativeTime::Month(-1)),
    ("这个月", RelativeTime::Month(0)),
    ("本月", RelativeTime::Month(0)),
    ("下个月", RelativeTime::Month(1)),
    ("어제", RelativeTime::Days(-1, -1)),
    ("내일", RelativeTime::Days(1, 1)),
    ("지난주", RelativeTime::Days(-13, -1)),
    ("지난 주", RelativeTime::Days(-13, -1)),
    ("이번 주", RelativeTime::Days(-6, 6)),
    ("다음 주", RelativeTime::Days(1, 13)),
    ("지난달", RelativeTime::Month(-1)),
    ("지난 달", RelativeTime::Month(-1)),
    ("이번 달", RelativeTime::Month(0)),
    ("다음 달", RelativeTime::Month(1)),
];

/// The times a question names relative to now.
pub(crate) fn relative(text: &str, now: Timestamp) -> Vec<Mention> {
    let lower = lower_in_place(text);
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let mut found: Vec<Mention> = Vec::new();
    for (words, span) in &RELATIVE {
        let Some(at) = lower.find(words) else { continue };
        let range = at..at + words.len();
        if found.iter().any(|other| other.range.start < range.end && range.start < other.range.end) {
            continue;
        }
        let terms = match span {
            RelativeTime::Days(from, to) => (*from..=*to).filter_map(|days| day_terms(today, days)).flatten().collect(),
            RelativeTime::Month(months) => match today.checked_add(months.months()) {
                Ok(date) => terms(Some(date.year()), date.month(), None),
                Err(_) => Vec::new(),
            },
        };
        found.push(Mention { range, terms });
    }
    found
}

/// The text in lower case, every letter at the same byte: the few letters whose length would change are left alone.
fn lower_in_place(text: &str) -> String {
    let lower = |letter: char| {
        let mut lower = letter.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(one), None) if one.len_utf8() == letter.len_utf8() => one,
            _ => letter,
        }
    };
    text.chars().map(lower).collect()
}

fn day_terms(today: Date, days: i32) -> Option<Vec<(String, f32)>> {
    let date = today.checked_add(days.days()).ok()?;
    let mut terms = terms(Some(date.year()), date.month(), Some(date.day()));
    // A week is its days, not its month.
    terms.truncate(2);
    Some(terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_before_its_month_is_found_however_it_is_written() {
        for text in ["5 March", "on the 5th of march", "— 5\u{a0}MARCH —", "会议 5 Mar 会议"] {
            let found = mentions(text);
            assert_eq!(found.first().map(|mention| mention.terms[0].0.as_str()), Some("@3/5"), "{text}");
        }
    }

    #[test]
    fn a_word_that_begins_like_a_month_is_none() {
        for text in
            ["Decision on the queue", "Marketing, Junior staff", "Separate 5 lists", "Augment 3", "novelty juneteenth"]
        {
            assert!(mentions(text).is_empty(), "{text}");
        }
        assert_eq!(mentions("Dec. 5, Sept 3 and june").len(), 3);
    }

    /// Letters whose lower case is longer or shorter do not shift what follows them.
    #[test]
    fn a_time_is_found_where_it_stands() {
        for text in ["İ昨天ẞ", "ẞ昨天İ", "İİİ YESTERDAY", "ẞ yesterday", "Ⱥ昨天"] {
            let found = relative(text, Timestamp::UNIX_EPOCH);
            let label = text[found[0].range.clone()].to_lowercase();
            assert!(["昨天", "yesterday"].contains(&label.as_str()), "{text}: {label}");
        }
    }
}
