//! Memory in plain files: where it lives, how it is kept, what of it a turn needs to see.
//!
//! - [`place`] chooses the directory, a [`shelf`] is one that is open; [`remember`] is the one way to save, [`revise`] the
//!   same for whole texts that agents write, [`changes`] what they changed and how it was before, [`tombstones`] what the
//!   user wants forgotten, [`echo`] whether they only say again what was put before them, [`spoken`] which of the user's own
//!   words they quote; [`store`] edits, removes and renames; [`doctor`] mends; [`import`] brings in what
//!   other tools kept.
//! - [`entry`] is a memory, [`frontmatter`] its first lines, [`index`] the `MEMORY.md` that lists them, [`taxonomy`] the
//!   four types and what the model is told about them, [`extract`] what an agent is told that writes down what was learnt, [`age`] how old one is, [`drift`] what it names that is gone.
//! - [`instructions`] loads CLAUDE.md and its relatives and renders the first message.
//! - [`scan`] lists what there is; [`rank`] orders it for a query without a model; [`verdict`] says whether that is enough;
//!   [`recall`] decides what a turn gets to see, up to the question to a selector model, which the engine asks.
//!
//! What it refuses to do: call a model, read the environment or the clock, leave the directory it was given, fail
//! because of what a file contains. Broken input gives a value and a [`Diagnostic`].

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
pub mod extract;
pub mod frontmatter;
pub mod import;
pub mod index;
pub mod instructions;
mod kept;
pub mod lookup;
mod markdown;
mod origin;
pub mod place;
pub mod quoting;
pub mod rank;
pub mod recall;
pub mod remember;
pub mod revise;
pub mod scan;
pub mod secrets;
pub mod shelf;
pub mod spoken;
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
