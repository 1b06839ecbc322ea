//! Settings, merged from several files: a stronger one wins, lists are joined, and every value knows where it stands.
//!
//! The files are those Claude Code reads, so some of their keys are not for us. [`keys`] is the table of ours, [`LoadedSettings`]
//! what the files say, and [`Settings`] what counts of it. A value that is broken, mistyped or has no say where it stands
//! is a [`SettingsFinding`] and is left out; nothing in a file stops a session.
//!
//! Beside them stands what settings decide: what a directory's files are trusted with ([`trust`]), rules, modes and who is
//! asked ([`permission`]), what commands are confined to ([`sandbox`]), and the definitions of [`hooks`] and [`agents`].
//! Nothing here runs a hook, starts an agent or asks anybody.

pub mod agents;
mod background;
mod edit;
mod effective_values;
mod elsewhere;
mod entries;
mod extract;
mod finding;
pub mod hooks;
mod json_positions;
pub mod keys;
mod kind;
mod layers;
mod load;
mod notifications;
pub mod permission;
mod rules;
pub mod sandbox;
mod source;
mod tracked;
pub mod trust;
mod values;
pub mod variables;
mod watch;

pub use background::{Admission, Budget, Rhythm};
pub use edit::EditFailure;
pub use effective_values::BasePaths;
pub use extract::{Extract, ExtractGate, Learning, SHARE};
pub use finding::{SettingsFinding, Weight, nearest};
pub use hooks::{HookSettings, HooksOf};
pub use json_positions::{InvalidJson, Json, PathStep};
pub use load::{File, LoadedSettings, SetValue, ValueStatus};
pub use notifications::{Channel, Notifications, StatusLine};
pub use rules::rules;
pub use sandbox::SandboxSettings;
pub use source::{Files, Flag, SettingSources, SettingsSource, ValueOrigin, managed_directory};
pub use values::{BypassPermission, NamedModel, Provider, ProviderKind, Settings};
pub use watch::SettingsWatch;
