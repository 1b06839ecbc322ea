//! Settings, merged from several files: a stronger one wins, lists are joined, and every value knows where it stands.
//!
//! The files are those Claude Code reads, so some of their keys are not for us. [`keys`] is the table of ours, [`Loaded`]
//! what the files say, and [`Settings`] what counts of it. A value that is broken, mistyped or has no say where it stands
//! is a [`Finding`] and is left out; nothing in a file stops a session.
//!
//! Beside them stands what settings decide: what a directory's files are trusted with ([`trust`]), rules, modes and who is
//! asked ([`permission`]), what commands are confined to ([`sandbox`]), and the definitions of [`hooks`] and [`agents`].
//! Nothing here runs a hook, starts an agent or asks anybody.

pub mod agents;
mod background;
mod counting;
mod edit;
mod elsewhere;
mod entries;
mod extract;
mod finding;
pub mod hooks;
pub mod keys;
mod kind;
mod layers;
mod load;
pub mod permission;
mod rules;
pub mod sandbox;
mod signals;
mod source;
mod span;
mod tracked;
pub mod trust;
mod values;
pub mod variables;
mod watch;

pub use background::{Admission, Budget, Rhythm};
pub use counting::Ground;
pub use edit::NotEdited;
pub use extract::{Extract, Gate, Learning, SHARE};
pub use finding::{Finding, Weight, nearest};
pub use hooks::{HookSettings, HooksOf};
pub use load::{File, Loaded, Set, Standing};
pub use rules::rules;
pub use sandbox::SandboxSettings;
pub use signals::{Channel, Signals, StatusLine};
pub use source::{Files, Flag, Origin, Source, managed_directory};
pub use span::{Json, NotJson, Step};
pub use values::{Bypass, Chosen, Provider, ProviderKind, Settings};
pub use watch::Watch;
