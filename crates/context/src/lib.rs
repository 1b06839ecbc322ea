//! The layers that keep a session inside its window, one file each. Each only decides: what it decides is a commit, and
//! what has to be done for it (writing a file, asking a model) is the engine's.
//!
//! [`layer`] is the seam and [`list`] the list, in the order in which they act before a request, each there to keep the next,
//! dearer one from firing:
//!
//! 1. [`spill`]: oversized results go to disk, a frozen preview stays. Costs nothing: the model has not seen them yet.
//! 2. [`snip`], where asked for: the oldest messages are dropped.
//! 3. [`clear`]: old results are cleared, when that is worth writing the rest again ([`worth`]), and what matters in them
//!    is written down first ([`digest`]); what will be missed least goes first ([`missed`]).
//! 4. [`collapse`], where asked for and in the place of compaction: a span gives way to its summary.
//! 5. [`provided`], where asked for: the provider's own summary. [`noted`], [`compact`], [`named`]: notes, or else a summary, or else only names take the place of what was said
//!    ([`due`] says when, [`extent`] of what, [`framing`] how it reads); [`restore`] brings back what the
//!    model was working with.
//! 6. [`cache_edit`], where asked for: the provider drops old results from its cache.
//! 7. [`notes`]: what matters is written down while the work goes on, in a [`form`] of its own.
//!
//! [`layers`] are their switches, [`state`] is what they remember, [`fact`] what they write beside their commits.
//! [`account`] is what clearing has saved and cost so far.
//! [`breaks`] watches what the provider's cache makes of all that; [`server`] is what the provider can do by itself.

pub mod account;
pub mod breaks;
pub mod cache_economics;
pub mod cache_edit;
pub mod clear;
pub mod clear_numbers;
pub mod collapse;
pub mod compact;
pub mod digest;
pub mod due;
pub mod extent;
pub mod fact;
pub mod keep;
pub mod layer;
pub mod layers;
pub mod list;
pub mod named;
pub mod noted;
pub mod notes;
pub mod notes_format;
pub mod provided;
pub mod reread_cost;
pub mod restore;
#[cfg(test)]
mod sample;
pub mod server;
pub mod snip;
pub mod spill;
mod spilled;
pub mod standing;
pub mod state;
pub mod summary_text;
mod template;

pub use fact::Fact;
pub use layer::{CompactionReach, Layer, LayerRole, Occasion, Situation};
pub use layers::{LayerTiming, Layers};
pub use state::State;
