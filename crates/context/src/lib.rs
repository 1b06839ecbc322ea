//! The layers that keep a session inside its window, one file each. Each only decides: its decision is a commit, and
//! the work for it (writing a file, asking a model) is the engine's.
//!
//! [`layer`] is their interface and [`list`] the list, in the order in which they act before a request, each there to
//! keep the next, more expensive one from acting:
//!
//! 1. [`spill`]: oversized results go to disk, a frozen preview stays. Costs nothing: the model has not seen them yet.
//! 2. [`snip`], off by default: the oldest messages are dropped.
//! 3. [`clear`]: old results are cleared, when that is worth writing the rest again ([`cache_economics`]), and what
//!    matters in them is written down first ([`digest`]); those that are least likely to be read again go first
//!    ([`reread_cost`]).
//! 4. [`collapse`], off by default and in place of compaction: a span is replaced with its summary.
//! 5. [`compact_by_provider`], off by default: the provider's own summary. [`compact_from_notes`], [`compact`], [`compact_names_only`]: notes, or else a
//!    summary, or else bare ids take the place of what was said ([`due`] decides when, [`extent`] how much,
//!    [`summary_text`] lays out the result); [`restore`] brings back the files that the model was working with.
//! 6. [`keep`]: standing instructions are put back, word for word.
//! 7. [`cache_edit`], off by default: the provider drops old results from its cache.
//! 8. [`notes`]: notes are kept while the work goes on, in the layout of [`notes_format`].
//!
//! [`layer_settings`] are their switches, [`state`] is what they remember, [`fact`] what they record beside their commits.
//! [`account`] tracks what clearing has saved and cost. [`breaks`] detects cache breaks; [`provider_edits`] is what the
//! provider can do by itself.

pub mod account;
pub mod breaks;
pub mod cache_economics;
pub mod cache_edit;
pub mod clear;
pub mod clear_numbers;
pub mod collapse;
pub mod compact;
pub mod compact_by_provider;
pub mod compact_from_notes;
pub mod compact_names_only;
pub mod digest;
pub mod due;
pub mod extent;
pub mod fact;
pub mod keep;
pub mod layer;
pub mod layer_settings;
pub mod list;
pub mod notes;
pub mod notes_format;
pub mod provider_edits;
pub mod reread_cost;
pub mod restore;
#[cfg(test)]
mod sample;
pub mod snip;
pub mod spill;
mod spilled;
pub mod standing_instructions;
pub mod state;
pub mod summary_text;
mod template;

pub use fact::Fact;
pub use layer::{CompactionReach, Layer, LayerRole, Occasion, Situation};
pub use layer_settings::{LayerTiming, Layers};
pub use state::State;
