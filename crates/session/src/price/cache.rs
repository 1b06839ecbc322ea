//! The provider's prompt cache, as far as a bill needs it: how many tokens of a prefix are read, how many written.
//!
//! A request ends with a cache breakpoint, so the whole of it can be read by the next one that begins with the same bytes,
//! is sent to the same model, and comes before the lifetime is over. Every request starts the lifetime anew. Where bytes
//! change, what precedes them can still be read: before each reply the end of an earlier request stood.

use jiff::Timestamp;
use transcript::Usage;
use transcript::mark::Ttl;
use transcript::message::CacheCreation;
use transcript::price::Price;

/// Input tokens of one request, by how they are billed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheSplit {
    /// Read from the cache.
    pub read: u64,
    /// Written to it.
    pub written: u64,
    /// Neither: it stands behind the last breakpoint.
    pub uncached: u64,
}

impl CacheSplit {
    /// The usage that a provider would report for it.
    pub fn usage(&self, ttl: Ttl, output: u64) -> Usage {
        let cache_creation = match ttl {
            Ttl::FiveMinutes => CacheCreation { ephemeral_5m_input_tokens: self.written, ..CacheCreation::default() },
            Ttl::OneHour => CacheCreation { ephemeral_1h_input_tokens: self.written, ..CacheCreation::default() },
        };
        Usage {
            input_tokens: self.uncached,
            cache_read_input_tokens: self.read,
            cache_creation_input_tokens: self.written,
            cache_creation,
            output_tokens: output,
            ..Usage::default()
        }
    }

    /// Its price with so much output, in dollars.
    pub fn cost(&self, price: &Price, ttl: Ttl, output: u64) -> f64 {
        price.cost(&self.usage(ttl, output))
    }
}

/// The cached prefix of one conversation, for each model that was asked, by the recorded clock.
#[derive(Debug, Clone)]
pub struct CacheClock {
    ttl: Ttl,
    entries: Vec<CacheEntry>,
}

#[derive(Debug, Clone)]
struct CacheEntry {
    model: String,
    tokens: u64,
    used: Timestamp,
}

impl CacheClock {
    /// Nothing is cached yet.
    pub fn new(ttl: Ttl) -> Self {
        Self { ttl, entries: Vec::new() }
    }

    /// So many tokens are cached already, by other conversations that begin alike.
    pub fn prime(&mut self, model: &str, now: Timestamp, tokens: u64) {
        let entry = self.entry(model, now);
        (entry.tokens, entry.used) = (tokens, now);
    }

    /// Lifetime of the provider's cache.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Bytes behind the first so many tokens changed.
    pub fn keep_prefix(&mut self, tokens: u64) {
        for entry in &mut self.entries {
            entry.tokens = entry.tokens.min(tokens);
        }
    }

    /// A request of so many tokens is sent, with a breakpoint at its end.
    pub fn request(&mut self, model: &str, now: Timestamp, tokens: u64) -> CacheSplit {
        let ttl = self.ttl.duration();
        let entry = self.entry(model, now);
        let read = if now.duration_since(entry.used) < ttl { entry.tokens.min(tokens) } else { 0 };
        (entry.tokens, entry.used) = (tokens, now);
        CacheSplit { read, written: tokens - read, uncached: 0 }
    }

    /// A question outside the conversation is sent: a prefix of so many tokens, and then a text of its own that nobody will
    /// read again.
    pub fn fork(&mut self, model: &str, now: Timestamp, prefix: u64, own: u64) -> CacheSplit {
        let held = self.entry(model, now).tokens;
        let split = self.request(model, now, prefix);
        let entry = self.entry(model, now);
        if split.read == prefix {
            entry.tokens = held; // what it did not ask for is still there
        }
        CacheSplit { uncached: own, ..split }
    }

    fn entry(&mut self, model: &str, now: Timestamp) -> &mut CacheEntry {
        let at = self.entries.iter().position(|entry| entry.model == model).unwrap_or_else(|| {
            self.entries.push(CacheEntry { model: model.to_owned(), tokens: 0, used: now });
            self.entries.len() - 1
        });
        &mut self.entries[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).unwrap()
    }

    /// PRICE-1: a cached prefix is read; what is new, changed, too old or another model's is written.
    #[test]
    fn a_prefix_is_read_until_it_changes_or_its_lifetime_is_over() {
        let mut clock = CacheClock::new(Ttl::FiveMinutes);
        let mut sent = |minutes: i64, model: &str, tokens: u64| {
            let split = clock.request(model, at(minutes), tokens);
            (split.read, split.written)
        };
        assert_eq!(sent(0, "a", 1_000), (0, 1_000));
        assert_eq!(sent(4, "a", 1_500), (1_000, 500));
        assert_eq!(sent(8, "a", 1_600), (1_500, 100), "reading starts the lifetime anew");
        assert_eq!(sent(9, "b", 1_600), (0, 1_600));
        assert_eq!(sent(10, "a", 1_700), (1_600, 100));
        assert_eq!(sent(15, "a", 1_800), (0, 1_800));
        clock.keep_prefix(300);
        assert_eq!(clock.request("a", at(16), 900), CacheSplit { read: 300, written: 600, uncached: 0 });
    }

    /// PRICE-1: a question outside the conversation reads the cache and leaves it as it was; on a cold cache it writes.
    #[test]
    fn a_question_beside_the_conversation_reads_the_cache() {
        let mut clock = CacheClock::new(Ttl::OneHour);
        clock.request("a", at(0), 1_000);
        assert_eq!(clock.fork("a", at(10), 800, 50), CacheSplit { read: 800, written: 0, uncached: 50 });
        assert_eq!(clock.request("a", at(20), 1_000), CacheSplit { read: 1_000, written: 0, uncached: 0 });
        assert_eq!(clock.fork("a", at(90), 800, 50), CacheSplit { read: 0, written: 800, uncached: 50 });
        assert_eq!(clock.request("a", at(91), 1_000), CacheSplit { read: 800, written: 200, uncached: 0 });
    }
}
