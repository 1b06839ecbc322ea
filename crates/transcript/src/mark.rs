//! Cache breakpoints: the places up to which the provider is asked to cache the request.
//!
//! They are placed after projection and are no part of a block's identity: moving one changes no sent byte that the
//! cache looks at. The rules are the provider's: at most four, a look-back of twenty blocks from each, a minimum size,
//! none on thinking or empty text.

use std::ops::Range;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::block::{Block, Kind};
use crate::id::Id;
use crate::message::{Message, Prologue};

/// Limit on the breakpoints of a request.
pub const MOST_MARKS: usize = 4;

/// Lifetime of a cache entry at the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ttl {
    /// Five minutes, refreshed by every read.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// An hour; writing costs more.
    #[serde(rename = "1h")]
    OneHour,
}

impl Ttl {
    /// The lifetime as a duration.
    pub fn duration(self) -> SignedDuration {
        match self {
            Self::FiveMinutes => SignedDuration::from_mins(5),
            Self::OneHour => SignedDuration::from_hours(1),
        }
    }
}

/// A block of a request's messages, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockPlace {
    /// Index of the message.
    pub message: usize,
    /// Index of the block in it.
    pub block: usize,
}

/// The breakpoints of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Indices of system blocks that end with a breakpoint.
    pub system: Vec<usize>,
    /// Message blocks that end with a breakpoint.
    pub messages: Vec<BlockPlace>,
    /// Lifetime of the cache entries.
    pub ttl: Ttl,
    /// The previous reply, whose cache entry should be found; for a provider that explains why it was not.
    pub after: Option<Id>,
    /// Results the provider drops from its cache, in the order of the messages; for a provider that can.
    pub edits: Vec<ProviderCacheEdit>,
}

/// An edit of the provider's cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderCacheEdit {
    /// The block it follows.
    pub behind: BlockPlace,
    /// The calls whose results are dropped.
    pub results: Vec<String>,
}

/// Points at which a view meets the requests before it, in blocks from its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seams {
    /// Number of blocks before the newest reply: the end of the previous request.
    pub answered: usize,
    /// Blocks rewritten since, from the first to just after the last.
    pub rewritten: Option<Range<usize>>,
    /// Results the provider drops from its cache, with the number of blocks before each edit.
    pub edits: Vec<(usize, Vec<String>)>,
}

impl Seams {
    /// Only the end of the previous request.
    pub fn answered(answered: usize) -> Self {
        Self { answered, ..Self::default() }
    }
}

/// Places the breakpoints of a request: at the end of the static system blocks, at the end of those that another
/// session may send too, at the tail, and at the previous request's tail: with ten parallel calls the new tail is
/// further from it than the provider looks back.
///
/// If old results were rewritten, the previous tail is gone from the cache. Then one breakpoint stands before the first
/// of them, where the last such rewrite ended and was cached, and one after the last, for the next rewrite.
pub fn mark(prologue: &Prologue, messages: &[Message], seams: &Seams, ttl: Ttl) -> Marks {
    let markable = |block: &Block| block.is_sendable() && *block.kind() != Kind::Thinking;
    let mut places = Vec::new();
    for (message, said) in messages.iter().enumerate() {
        places.extend((0..said.blocks.len()).map(|block| BlockPlace { message, block }));
    }
    let block_at = |place: &BlockPlace| &messages[place.message].blocks[place.block];
    let last_markable =
        |end: usize| places[..end.min(places.len())].iter().rposition(|place| markable(block_at(place)));

    let mut system = system_marks(prologue);
    let mut ends = vec![seams.answered];
    if let Some(rewritten) = &seams.rewritten {
        ends = vec![rewritten.start, rewritten.end];
        system.drain(..system.len().saturating_sub(1)); // the provider looks back that far
    }
    ends.push(places.len());
    let mut marked: Vec<usize> = ends.into_iter().filter_map(last_markable).collect();
    marked.dedup();
    let behind = |count: usize| count.checked_sub(1).and_then(|at| places.get(at)).copied();
    let edit = |(count, results): &(usize, Vec<String>)| {
        Some(ProviderCacheEdit { behind: behind(*count)?, results: results.clone() })
    };
    let edits = seams.edits.iter().filter_map(edit).collect();
    Marks { system, messages: marked.into_iter().map(|at| places[at]).collect(), ttl, after: None, edits }
}

/// The breakpoints of a question outside the conversation: at the newest request's tail and none after it, since nothing
/// will be read from there.
pub fn mark_answered(prologue: &Prologue, messages: &[Message], seams: &Seams, ttl: Ttl) -> Marks {
    let mut left = seams.answered;
    let mut sent = Vec::new();
    for message in messages {
        let count = message.blocks.len().min(left);
        sent.push(Message { role: message.role, blocks: message.blocks[..count].to_vec() });
        left -= count;
    }
    mark(prologue, &sent, &Seams { edits: seams.edits.clone(), ..Seams::default() }, ttl)
}

fn system_marks(prologue: &Prologue) -> Vec<usize> {
    let shared = prologue.system.len().saturating_sub(prologue.own_blocks);
    let ends = [prologue.static_blocks, shared];
    let mut marks: Vec<usize> =
        ends.into_iter().filter_map(|end| end.min(prologue.system.len()).checked_sub(1)).collect();
    marks.dedup();
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    fn messages(blocks: &[usize]) -> Vec<Message> {
        let roles = [Role::User, Role::Assistant].into_iter().cycle();
        let message = |(role, &count): (Role, &usize)| Message { role, blocks: vec![Block::text("x"); count] };
        roles.zip(blocks).map(message).collect()
    }

    fn prologue(system: usize, static_blocks: usize) -> Prologue {
        let system = vec![Block::text("s"); system];
        Prologue {
            loaded: Vec::new(),
            model: "m".into(),
            max_tokens: 1,
            system,
            static_blocks,
            own_blocks: 0,
            tools: vec![],
            thinking: None,
            effort: None,
            betas: vec![],
            format: None,
            context_management: None,
            web_search: None,
        }
    }

    /// CACHE-2: breakpoints stand at the end of static system, the end of system, the tail, and the previous request's
    /// tail; never more than four.
    #[test]
    fn breakpoints_stand_where_the_cache_will_be_read_next() {
        let first = mark(&prologue(3, 1), &messages(&[2]), &Seams::answered(0), Ttl::FiveMinutes);
        assert_eq!(first.system, [0, 2]);
        assert_eq!(first.messages, [BlockPlace { message: 0, block: 1 }]);
        let second = mark(&prologue(3, 1), &messages(&[2, 25, 25]), &Seams::answered(2), Ttl::OneHour);
        assert_eq!(second.messages, [BlockPlace { message: 0, block: 1 }, BlockPlace { message: 2, block: 24 }]);
        assert_eq!(second.system.len() + second.messages.len(), 4);
    }

    /// CACHE-2: blocks that only this session sends come after the system's breakpoint, so that another session reads
    /// up to it.
    #[test]
    fn a_sessions_own_blocks_stand_behind_the_breakpoint() {
        let own = Prologue { own_blocks: 1, ..prologue(4, 1) };
        assert_eq!(mark(&own, &messages(&[2]), &Seams::answered(0), Ttl::FiveMinutes).system, [0, 2]);
        let nothing_else = Prologue { own_blocks: 1, ..prologue(1, 0) };
        assert_eq!(mark(&nothing_else, &messages(&[2]), &Seams::answered(0), Ttl::FiveMinutes).system, [0_usize; 0]);
    }

    /// CACHE-2: a prompt with one kind of system block gets one breakpoint for it, an empty one none.
    #[test]
    fn no_breakpoint_stands_twice_or_on_nothing() {
        assert_eq!(mark(&prologue(2, 2), &[], &Seams::answered(0), Ttl::FiveMinutes).system, [1]);
        assert_eq!(mark(&prologue(2, 0), &[], &Seams::answered(0), Ttl::FiveMinutes).system, [1]);
        assert_eq!(mark(&prologue(0, 0), &[], &Seams::answered(0), Ttl::FiveMinutes), Marks::default());
        let same = mark(&prologue(0, 0), &messages(&[1]), &Seams::answered(0), Ttl::FiveMinutes);
        assert_eq!(mark(&prologue(0, 0), &messages(&[1]), &Seams::answered(1), Ttl::FiveMinutes), same);
    }

    /// CACHE-2: if old results were rewritten, breakpoints stand before the first and after the last of them.
    #[test]
    fn what_was_rewritten_is_cached_at_both_ends() {
        let seams = Seams { answered: 9, rewritten: Some(3..7), ..Seams::default() };
        let marks = mark(&prologue(3, 1), &messages(&[1, 2, 4, 2, 4]), &seams, Ttl::FiveMinutes);
        assert_eq!(marks.system, [2], "the provider looks back to the static part from there");
        let places: Vec<(usize, usize)> = marks.messages.iter().map(|place| (place.message, place.block)).collect();
        assert_eq!(places, [(1, 1), (2, 3), (4, 3)]);
    }

    /// CACHE-2: thinking cannot carry a breakpoint; the block before it does.
    #[test]
    fn thinking_carries_no_breakpoint() {
        let thinking = Block::parse(r#"{"type":"thinking","thinking":"t","signature":"s"}"#);
        let said = Message { role: Role::Assistant, blocks: vec![Block::text("x"), thinking] };
        let marks = mark(&prologue(0, 0), &[said], &Seams::answered(0), Ttl::FiveMinutes);
        assert_eq!(marks.messages, [BlockPlace { message: 0, block: 0 }]);
    }
}
