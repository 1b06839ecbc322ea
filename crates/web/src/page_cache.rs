//! Pages that were fetched a short while ago. Time is passed in.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use crate::fetch::WebPage;

/// The time for which a page is kept, as in Claude Code.
const KEPT: SignedDuration = SignedDuration::from_mins(15);
/// Limit on the text of all pages, in bytes.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Pages by the address that was asked for.
#[derive(Debug, Default)]
pub struct PageCache {
    pages: VecDeque<(String, Timestamp, WebPage)>,
}

impl PageCache {
    /// The page of an address, if it was fetched in the last 15 minutes.
    pub fn get(&mut self, url: &str, now: Timestamp) -> Option<WebPage> {
        self.pages.retain(|(_, at, _)| (SignedDuration::ZERO..KEPT).contains(&now.duration_since(*at)));
        self.pages.iter().find(|(known, ..)| known == url).map(|(.., page)| page.clone())
    }

    /// Keeps a page; the oldest go if there are too many.
    pub fn put(&mut self, url: &str, now: Timestamp, page: WebPage) {
        self.pages.retain(|(known, ..)| known != url);
        self.pages.push_back((url.to_owned(), now, page));
        while self.pages.len() > 1 && self.pages.iter().map(|(.., page)| page.text.len()).sum::<usize>() > MOST_BYTES {
            self.pages.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WEB-1: a page is kept for 15 minutes, and all of them together within a limit.
    #[test]
    fn a_page_is_kept_for_a_while() {
        let page = |text: String| WebPage { url: "u".to_owned(), text, is_cut: false };
        let at = |minutes: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        let mut cache = PageCache::default();
        cache.put("u", at(0), page("one".to_owned()));
        assert_eq!(cache.get("u", at(14)).map(|page| page.text), Some("one".to_owned()));
        assert_eq!((cache.get("v", at(14)), cache.get("u", at(15))), (None, None));
        cache.put("u", at(20), page("one".to_owned()));
        assert_eq!(cache.get("u", at(10)), None, "the clock was set back");
        for big in ["a", "b", "c"] {
            cache.put(big, at(30), page("x".repeat(MOST_BYTES / 2)));
        }
        assert!(
            cache.get("a", at(30)).is_none() && cache.get("b", at(30)).is_some() && cache.get("c", at(30)).is_some()
        );
    }
}
