//! Did the cache hold? After every reply, what was read from it is compared with what should have been.
//!
//! A session's requests grow at the end, so each should read what the one before it left in the cache. Where it reads
//! much less, something changed: a commit, the prologue, or too much time went by. Those are declared, and explained
//! here. A drop that nothing explains is a fault, ours or the provider's, and is reported with what differs.

use jiff::Timestamp;
use serde::Serialize;
use std::sync::Arc;
use transcript::mark::Ttl;
use transcript::{Block, Id, Prologue, Request, Usage};

/// A smaller drop is noise.
const LEAST_TOKENS: u64 = 2_000;
/// And so is a smaller share.
const LEAST_SHARE: f64 = 0.05;

/// An intended change between two requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredChange {
    /// The commit.
    pub commit: Option<Id>,
    /// Its layer, or what else it was.
    pub what: String,
}

/// Cause of a cache break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Cause {
    /// A commit changed bytes that had been sent.
    Commit {
        /// Its line.
        #[serde(skip_serializing_if = "Option::is_none")]
        commit: Option<Id>,
        /// Its layer.
        layer: String,
    },
    /// The part of the request before the messages was changed.
    Prologue {
        /// The changed parts.
        parts: Vec<&'static str>,
    },
    /// The provider's cache had expired.
    Expired {
        /// Seconds since the last request.
        seconds: i64,
    },
    /// A block was sent differently from before, without a declared reason.
    Changed {
        /// Index of the block among those of the messages, from 0.
        block: usize,
        /// Its current beginning.
        begins: String,
    },
    /// The same bytes were sent; the provider did not have them any more.
    Evicted,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Commit { layer, .. } => write!(f, "{layer}"),
            Self::Prologue { parts } => write!(f, "changed: {}", parts.join(", ")),
            Self::Expired { seconds } => write!(f, "{seconds} s went by, and the cache expired"),
            Self::Changed { block, begins } => write!(f, "block {block} was sent differently: {begins}"),
            Self::Evicted => write!(f, "the same bytes were sent; the provider no longer had them"),
        }
    }
}

/// A cache break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheBreak {
    /// Tokens that should have been read.
    pub expected: u64,
    /// Tokens that were read.
    pub read: u64,
    /// The cause.
    #[serde(flatten)]
    pub cause: Cause,
}

impl CacheBreak {
    /// True if it was intended: a decision, a setting, or time.
    pub fn is_declared(&self) -> bool {
        matches!(self.cause, Cause::Commit { .. } | Cause::Prologue { .. } | Cause::Expired { .. })
    }
}

/// Detector of cache breaks: the last request, to compare with.
#[derive(Debug, Clone, Default)]
pub struct Detector {
    last: Option<SentPrefix>,
    declared: Vec<DeclaredChange>,
}

#[derive(Debug, Clone)]
struct SentPrefix {
    request: Request,
    /// Tokens in the cache when its reply began.
    cached: u64,
    at: Timestamp,
}

impl Detector {
    /// Declares an intended change of the next request.
    pub fn declare(&mut self, declared: DeclaredChange) {
        self.declared.push(declared);
    }

    /// Checks a fork's reply, which should have read what the conversation left in the cache.
    pub fn forked(&self, usage: &Usage, ttl: Ttl, now: Timestamp) -> Option<CacheBreak> {
        let last = self.last.as_ref()?;
        // What it did not send it could not read.
        let expected = last.cached.min(usage.context());
        let gone_by = now.duration_since(last.at);
        let cause =
            if gone_by >= ttl.duration() { Cause::Expired { seconds: gone_by.as_secs() } } else { Cause::Evicted };
        let read = usage.cache_read_input_tokens;
        is_break(expected, read).then_some(CacheBreak { expected, read, cause })
    }

    /// Checks a reply; returns a cache break if there was one.
    pub fn answered(&mut self, request: Request, usage: &Usage, ttl: Ttl, now: Timestamp) -> Option<CacheBreak> {
        let cached = usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
        let sent = SentPrefix { request, cached, at: now };
        let declared = std::mem::take(&mut self.declared);
        let last = self.last.replace(sent)?;
        let (expected, read) = (last.cached, usage.cache_read_input_tokens);
        if !is_break(expected, read) {
            return None;
        }
        let sent = self.last.as_ref()?;
        Some(CacheBreak { expected, read, cause: cause(&last, sent, declared, ttl) })
    }
}

fn is_break(expected: u64, read: u64) -> bool {
    let lost = expected.saturating_sub(read);
    lost > LEAST_TOKENS && lost as f64 > expected as f64 * LEAST_SHARE
}

fn cause(last: &SentPrefix, sent: &SentPrefix, declared: Vec<DeclaredChange>, ttl: Ttl) -> Cause {
    let parts = changed_parts(&last.request.prologue, &sent.request.prologue);
    if !parts.is_empty() {
        return Cause::Prologue { parts };
    }
    if let Some(DeclaredChange { commit, what }) = declared.into_iter().next() {
        return Cause::Commit { commit, layer: what };
    }
    let kept = ttl.duration();
    let gone_by = sent.at.duration_since(last.at);
    if gone_by >= kept {
        return Cause::Expired { seconds: gone_by.as_secs() };
    }
    let blocks = |sent: &SentPrefix| -> Vec<Block> {
        sent.request.messages.iter().flat_map(|message| message.blocks.iter().cloned()).collect()
    };
    let (was, is) = (blocks(last), blocks(sent));
    let differs = was.iter().zip(&is).position(|(was, is)| !was.is_same(is));
    let shorter = (is.len() < was.len()).then_some(is.len());
    match differs.or(shorter) {
        Some(block) => {
            let begins = is.get(block).map(|block| block.json().chars().take(80).collect()).unwrap_or_default();
            Cause::Changed { block, begins }
        }
        None => Cause::Evicted,
    }
}

/// The parts of the prologue that differ.
fn changed_parts(was: &Arc<Prologue>, is: &Arc<Prologue>) -> Vec<&'static str> {
    if Arc::ptr_eq(was, is) {
        return Vec::new();
    }
    let parts = [
        ("model", was.model != is.model),
        ("tools", was.tools != is.tools),
        ("system", was.system != is.system),
        ("thinking", was.thinking != is.thinking),
        ("effort", was.effort != is.effort),
        ("betas", was.betas != is.betas),
        ("format", was.format != is.format),
    ];
    parts.into_iter().filter(|(_, changed)| *changed).map(|(part, _)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::mark::Marks;
    use transcript::{Message, Role};

    fn request(prologue: &Arc<Prologue>, texts: &[&str]) -> Request {
        let blocks = texts.iter().map(Block::text).collect();
        let messages = vec![Message { role: Role::User, blocks }];
        Request { prologue: prologue.clone(), messages, marks: Marks::default() }
    }

    fn usage(read: u64, written: u64) -> Usage {
        Usage { cache_read_input_tokens: read, cache_creation_input_tokens: written, ..Usage::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// CACHE-4: a drop of more than 5 % and 2,000 tokens is a break; commits, the prologue and time explain one, and a
    /// changed block or a provider that forgot are told apart.
    #[test]
    fn a_break_is_told_with_its_cause() {
        let one = Arc::new(Prologue { model: "m".into(), ..Prologue::default() });
        let other = Arc::new(Prologue { model: "n".into(), ..Prologue::default() });
        let short = Ttl::FiveMinutes;
        let mut detector = Detector::default();
        assert_eq!(detector.answered(request(&one, &["a"]), &usage(0, 40_000), short, at(0)), None);
        assert_eq!(detector.answered(request(&one, &["a", "b"]), &usage(38_100, 5_000), short, at(1)), None, "noise");
        let evicted = detector.answered(request(&one, &["a", "b", "c"]), &usage(0, 44_000), short, at(2)).unwrap();
        assert_eq!((evicted.expected, evicted.read, &evicted.cause), (43_100, 0, &Cause::Evicted));
        assert!(!evicted.is_declared());
        let changed = detector.answered(request(&one, &["a", "X", "c"]), &usage(10_000, 34_000), short, at(3));
        assert!(matches!(changed.unwrap().cause, Cause::Changed { block: 1, begins } if begins.contains('X')));
        let expired = detector.answered(request(&one, &["a", "X", "c"]), &usage(0, 44_000), short, at(400)).unwrap();
        assert_eq!(expired.cause, Cause::Expired { seconds: 397 });
        detector.declare(DeclaredChange { commit: Some("c1".into()), what: "compact".into() });
        let compacted = detector.answered(request(&one, &["s"]), &usage(4_000, 2_000), short, at(401)).unwrap();
        assert!(compacted.is_declared());
        assert_eq!(compacted.cause, Cause::Commit { commit: Some("c1".into()), layer: "compact".into() });
        let model = detector.answered(request(&other, &["s"]), &usage(0, 6_000), short, at(402)).unwrap();
        assert_eq!(model.cause, Cause::Prologue { parts: vec!["model"] });
    }

    /// CACHE-4: a fork should read what the conversation left in the cache, as far as it sends it; what it reads does not
    /// change what the conversation's next request is held to.
    #[test]
    fn a_fork_that_reads_less_than_was_cached_is_a_break() {
        let one = Arc::new(Prologue::default());
        let short = Ttl::FiveMinutes;
        let mut detector = Detector::default();
        assert_eq!(detector.forked(&usage(0, 40_000), short, at(0)), None, "nothing was sent before");
        detector.answered(request(&one, &["a"]), &usage(0, 40_000), short, at(0));
        assert_eq!(detector.forked(&usage(40_000, 300), short, at(1)), None);
        assert_eq!(detector.forked(&usage(12_000, 300), short, at(1)), None, "it sent no more than that");
        assert_eq!(detector.forked(&usage(39_000, 1_300), short, at(1)), None, "noise");
        let evicted = detector.forked(&usage(4_000, 36_000), short, at(1)).unwrap();
        assert_eq!((evicted.expected, evicted.read, &evicted.cause), (40_000, 4_000, &Cause::Evicted));
        let expired = detector.forked(&usage(0, 40_000), short, at(400)).unwrap();
        assert_eq!(expired.cause, Cause::Expired { seconds: 400 });
        assert!(expired.is_declared() && !evicted.is_declared());
        assert_eq!(detector.answered(request(&one, &["a", "b"]), &usage(40_000, 100), short, at(401)), None);
    }
}
