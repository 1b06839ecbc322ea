//! Settings, merged from several files: later files override earlier ones, lists are joined, and every value keeps its
//! origin.
//!
//! The files are those that Claude Code reads, so some keys are not ours. [`keys`] is the table of ours,
//! [`LoadedSettings`] holds the content of the files, and [`Settings`] the effective values. A value that is broken,
//! mistyped or not allowed in its file becomes a [`SettingsFinding`] and is ignored; nothing in a file stops a session.
//!
//! The crate also holds what settings decide: [`trust`] in a directory's files, [`permission`] rules and modes, the
//! [`sandbox`], and the definitions of [`hook_definitions`], [`agent_definitions`] and MCP [`servers`]. Nothing here runs a hook, starts an agent or asks
//! anybody.

pub mod agent_definitions;
mod background;
mod effective_values;
mod elsewhere;
mod entries;
mod extract;
mod finding;
pub mod hook_definitions;
mod json_edit;
mod json_positions;
pub mod keys;
mod kind;
mod layers;
mod load;
mod notifications;
pub mod permission;
mod rules;
pub mod sandbox;
pub mod servers;
mod source;
mod tracked;
pub mod trust;
mod values;
pub mod variables;
mod watch;

pub use background::{Admission, Budget, Rhythm};
pub use effective_values::BasePaths;
pub use extract::{Extract, ExtractFilter, Learning, SHARE};
pub use finding::{SettingsFinding, Weight, nearest};
pub use hook_definitions::{HookSettings, HooksOf};
pub use json_edit::EditFailure;
pub use json_positions::{InvalidJson, Json, PathStep};
pub use load::{File, LoadedSettings, SetValue, ValueStatus};
pub use notifications::{Channel, EditorMode, Notifications, StatusLine, Theme};
pub use rules::{rules, split as split_rules};
pub use sandbox::SandboxSettings;
pub use source::{Files, Flag, SettingSources, SettingsSource, ValueOrigin, managed_directory};
pub use values::{BypassPermission, NamedModel, Provider, ProviderKind, Settings};
pub use watch::SettingsWatch;
