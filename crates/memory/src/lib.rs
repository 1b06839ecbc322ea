//! Memory in plain files: where it lives, how it is kept, and what a turn needs of it.
//!
//! - [`place`] chooses the directory, a [`shelf`] is an open one; [`remember`] is the one way to save, [`revise`] the
//!   same for whole texts that agents write; [`changes`] records their changes with the earlier texts, [`tombstones`]
//!   what the user wants forgotten; [`echo_check`] tells whether a memory only repeats injected text, [`quoted_sentences`] which of the
//!   user's own words it quotes, [`similarity`] whether it holds another text; [`store`] edits, removes and renames; [`doctor`]
//!   repairs; [`import`] takes over from
//!   other tools.
//! - [`entry`] is a memory, [`frontmatter`] its first lines, [`index`] the `MEMORY.md` that lists them, [`taxonomy`]
//!   the four types and the rules for the model, [`extraction_prompt`] the prompts for extraction, [`age`] the age of a memory,
//!   [`drift`] the things it names that are gone.
//! - [`instructions`] loads CLAUDE.md and related files and renders the first message.
//! - [`scan`] lists memories; [`rank`] orders them for a query without a model; [`verdict`] decides whether that is
//!   enough; [`recall`] decides what a turn gets to see, up to the question to a selector model, which the engine asks.
//!
//! It refuses to call a model, read the environment or the clock, leave the directory it was given, or fail because of
//! a file's content. Broken input gives a value and a [`Diagnostic`].

pub mod age;
#[cfg(feature = "bench")]
pub mod bench;
pub mod changes;
mod diagnostic;
pub mod doctor;
pub mod drift;
pub mod echo_check;
pub mod entry;
mod error;
pub mod extraction_prompt;
pub mod frontmatter;
pub mod import;
pub mod index;
pub mod instructions;
mod kept_change;
pub mod lookup;
mod markdown;
mod origin;
pub mod place;
pub mod quoted_sentences;
pub mod quoting;
pub mod rank;
pub mod recall;
pub mod remember;
pub mod revise;
pub mod scan;
pub mod secrets;
pub mod shelf;
pub mod similarity;
pub mod store;
pub mod taxonomy;
pub mod tombstones;
pub mod verdict;

pub use diagnostic::{Diagnostic, FileProblem};
pub use entry::Memory;
pub use error::{Error, PlaceRule};
pub use rank::Ranker;
pub use scan::Header;
pub use store::Store;
pub use taxonomy::Kind;
