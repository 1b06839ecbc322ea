//! Skills, commands and plugins, as they are found on disk: texts that a user or the model can call by name, and folders that
//! bring such texts together with agents, hooks and servers.
//!
//! [`skill`] reads one file, [`registry`] finds them all, [`skill_listing`] tells the model about them, [`expand`]
//! turns one into the text of a message, [`restore`] picks what comes back after a compaction, and [`plugin`] reads folders that
//! bring them.
//!
//! What a project's file may do beyond being read (rules, hooks, a model, commands that run by themselves, agents) is in its
//! [`skill::SkillRights`] only after the user has trusted it. Nothing here runs a command, asks anybody, or reads the
//! environment or a clock. A broken file gives a value and an [`ExtensionTrouble`], never an error.

pub mod expand;
pub mod plugin;
pub mod registry;
pub mod restore;
mod shell_lines;
pub mod skill;
pub mod skill_listing;
mod trouble;

pub use trouble::ExtensionTrouble;
