//! Age of a memory, in words.
//!
//! Whole days since the file was written, floored and never negative. The words are computed once, when a memory is
//! surfaced, and kept with it: text that is already in a conversation does not age, or every day would break the cache.

use jiff::Timestamp;

/// Age from which on a memory comes with a warning.
pub const STALE_AFTER_DAYS: i64 = 2;

const DAY: i64 = 24 * 60 * 60;

/// Whole days between two times; 0 if `then` is unknown or in the future.
pub fn days(then: Option<Timestamp>, now: Timestamp) -> i64 {
    then.map_or(0, |then| now.as_second().saturating_sub(then.as_second()).max(0) / DAY)
}

/// An age as people say it.
pub fn words(days: i64) -> String {
    match days {
        ..=0 => "today".to_owned(),
        1 => "yesterday".to_owned(),
        days => format!("{days} days ago"),
    }
}

/// Warning for a memory of that age.
pub fn warning(days: i64) -> Option<String> {
    (days >= STALE_AFTER_DAYS).then(|| {
        format!(
            "This memory is {days} days old. It says how things were then, not how they are: check what it claims \
             about code, files or people against the present before you state it as a fact."
        )
    })
}
