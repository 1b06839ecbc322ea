//! The prompt cache, accounted as the provider documents it.
//!
//! An entry is the hash of a prefix. Entries are written only at breakpoints; a request reads the longest entry found
//! by looking back from each of its breakpoints, at most [`LOOK_BACK`] positions, the breakpoint itself being the
//! first. A prefix shorter than the model's minimum is not cached, silently. An entry lives five minutes or an hour
//! from its last use, and can be read only once the reply that wrote it has begun: so accounting is in two steps,
//! [`Cache::plan`] when the request arrives and [`Cache::begin`] when the first byte of the reply leaves.
//!
//! The split of a request's tokens always adds up to its whole prompt.

use std::collections::HashMap;

use blake3::Hash;
use serde::{Deserialize, Serialize};

use crate::cached_prompt::{Prompt, Ttl};

/// Positions looked at from a breakpoint, itself included.
const LOOK_BACK: usize = 20;
/// More entries than any test needs; beyond it the ones nearest their end go first.
const MOST_ENTRIES: usize = 50_000;

/// Billing of a request's input tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// After the last breakpoint, or not cacheable.
    pub uncached: u64,
    /// Written to the cache for five minutes.
    pub write_5m: u64,
    /// Written to the cache for an hour.
    pub write_1h: u64,
    /// Read from the cache.
    pub read: u64,
}

impl Split {
    /// The whole context.
    pub fn total(self) -> u64 {
        self.uncached + self.written() + self.read
    }

    /// All that was written.
    pub fn written(self) -> u64 {
        self.write_5m + self.write_1h
    }
}

/// Cache reads and writes of a request.
#[derive(Debug, Clone)]
pub(crate) struct CachePlan {
    pub(crate) split: Split,
    used: Vec<Hash>,
    written: Vec<(Hash, Ttl)>,
}

#[derive(Debug, Clone, Copy)]
struct CachedPrefix {
    ttl: Ttl,
    expires: u64,
}

/// Every entry that the provider holds.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: HashMap<Hash, CachedPrefix>,
}

impl Cache {
    /// Accounts a request that arrives at `now` (milliseconds); changes nothing.
    pub(crate) fn plan(&self, prompt: &Prompt, least_cached: u64, now: u64) -> CachePlan {
        let ends: Vec<u64> = prompt
            .positions
            .iter()
            .scan(0, |sum, position| {
                *sum += position.tokens;
                Some(*sum)
            })
            .collect();
        let whole = ends.last().copied().unwrap_or_default();
        let breakpoints: Vec<(usize, Ttl)> = prompt
            .positions
            .iter()
            .enumerate()
            .filter(|(index, _)| ends[*index] >= least_cached)
            .filter_map(|(index, position)| position.breakpoint.map(|ttl| (index, ttl)))
            .collect();

        let lives =
            |index: usize| self.entries.get(&prompt.positions[index].chain).is_some_and(|entry| entry.expires > now);
        let hit =
            breakpoints.iter().filter_map(|&(at, _)| (0..=at).rev().take(LOOK_BACK).find(|&index| lives(index))).max();
        let read = hit.map_or(0, |index| ends[index]);

        let end_of = |ttl: Option<Ttl>| {
            let last = breakpoints.iter().rev().find(|(_, own)| ttl.is_none_or(|ttl| ttl == *own));
            last.map_or(0, |&(index, _)| ends[index]).max(read)
        };
        let cached = end_of(None);
        let hour = end_of(Some(Ttl::OneHour));
        let used =
            breakpoints.iter().map(|&(index, _)| index).filter(|&index| Some(index) <= hit && lives(index)).chain(hit);
        CachePlan {
            split: Split { uncached: whole - cached, write_5m: cached - hour, write_1h: hour - read, read },
            used: used.map(|index| prompt.positions[index].chain).collect(),
            written: breakpoints
                .iter()
                .filter(|&&(index, _)| Some(index) > hit)
                .map(|&(index, ttl)| (prompt.positions[index].chain, ttl))
                .collect(),
        }
    }

    /// The reply begins: what was read lives on, what was written can be read.
    pub(crate) fn begin(&mut self, plan: &CachePlan, now: u64) {
        for chain in &plan.used {
            if let Some(entry) = self.entries.get_mut(chain) {
                entry.expires = now + entry.ttl.millis();
            }
        }
        for &(chain, ttl) in &plan.written {
            self.entries.insert(chain, CachedPrefix { ttl, expires: now + ttl.millis() });
        }
        if self.entries.len() > MOST_ENTRIES {
            self.sweep(now);
        }
    }

    fn sweep(&mut self, now: u64) {
        self.entries.retain(|_, entry| entry.expires > now);
        if self.entries.len() > MOST_ENTRIES {
            let mut ends: Vec<u64> = self.entries.values().map(|entry| entry.expires).collect();
            let middle = ends.len() / 2;
            let (_, &mut median, _) = ends.select_nth_unstable(middle);
            self.entries.retain(|_, entry| entry.expires > median);
        }
    }
}
