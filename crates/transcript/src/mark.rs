//! Cache breakpoints: where the provider is asked to remember the prefix.
//!
//! They are placed after projection and are no part of a block's identity: moving one changes no sent byte that the
//! cache looks at. The rules are the provider's (API.md): at most four, a look-back of twenty blocks from each, a
//! minimum size, none on thinking or empty text.

use serde::{Deserialize, Serialize};

/// How long the provider keeps what it caches.
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

/// A block of a request's messages, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which message.
    pub message: usize,
    /// Which block of it.
    pub block: usize,
}

/// The breakpoints of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Indices of system blocks that end with a breakpoint.
    pub system: Vec<usize>,
    /// Blocks of messages that end with one.
    pub messages: Vec<Place>,
    /// For how long.
    pub ttl: Ttl,
}
