//! A search in a session's messages, and its matches.

use jiff::Timestamp;

use super::HistoryInput;
use super::history_message::{HistoryMessage, heading};

/// The characters of a message that are shown around the first match.
const AROUND: usize = 160;

/// A search.
pub(super) struct HistoryQuery {
    pub(super) words: Vec<String>,
    pub(super) path: Option<String>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

impl HistoryQuery {
    pub(super) fn of(input: &HistoryInput) -> Result<Self, String> {
        let time = |text: &Option<String>| match text.as_deref() {
            None => Ok(None),
            Some(text) => {
                let day = || text.parse::<jiff::civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
                let time = text.parse().ok().or_else(|| day().map(|day| day.timestamp()));
                time.map(Some).ok_or_else(|| format!("{text:?} is not a time; write it like 2026-11-15T10:00:00Z"))
            }
        };
        let query = input.query.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
        let wanted = Self { words, path: input.path.clone(), since: time(&input.since)?, until: time(&input.until)? };
        if wanted.words.is_empty() && wanted.path.is_none() && wanted.since.is_none() && wanted.until.is_none() {
            return Err("say what to look for: an id, a query, a path or a time".to_owned());
        }
        Ok(wanted)
    }

    /// The position of the first matching word in a message, if it matches.
    fn place_in(&self, message: &HistoryMessage) -> Option<usize> {
        let early = self.since.is_some_and(|since| message.time.is_none_or(|time| time < since));
        let late = self.until.is_some_and(|until| message.time.is_none_or(|time| time > until));
        if early || late || self.path.as_ref().is_some_and(|path| !message.text.contains(path.as_str())) {
            return None;
        }
        let text = message.text.to_lowercase();
        let places: Option<Vec<usize>> = self.words.iter().map(|word| text.find(word.as_str())).collect();
        let path = || self.path.as_ref().and_then(|path| message.text.find(path.as_str()));
        Some(places?.into_iter().next().or_else(path).unwrap_or(0))
    }

    /// True if all words occur as whole words.
    fn is_whole_in(&self, message: &HistoryMessage) -> bool {
        let text = message.text.to_lowercase();
        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        let is_whole = |at: usize, word: &str| {
            edge(text[..at].chars().next_back()) && edge(text[at + word.len()..].chars().next())
        };
        self.words.iter().all(|word| text.match_indices(word.as_str()).any(|(at, _)| is_whole(at, word)))
    }
}

pub(super) fn search(messages: &[HistoryMessage], wanted: &HistoryQuery, session: Option<&str>) -> Vec<String> {
    // What was said comes before what was written of it later.
    let of = |who: fn(&str) -> bool| messages.iter().rev().filter(move |message| who(message.who));
    let all = of(|who| !["summary", "beside"].contains(&who)).chain(of(|who| who == "summary"));
    let mut all: Vec<(&HistoryMessage, usize)> =
        all.filter_map(|message| Some((message, wanted.place_in(message)?))).collect();
    // Who looks for 7 wants no 17: what has the words whole comes first.
    all.sort_by_key(|(message, _)| !wanted.is_whole_in(message));
    let found = all.into_iter().map(|(message, place)| {
        let from = message.text.floor_char_boundary(place.saturating_sub(AROUND).min(message.text.len()));
        let around: String = message.text[from..].chars().take(AROUND * 2).collect();
        let around = around.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}\n  … {around} …", heading(message, session))
    });
    found.collect()
}
