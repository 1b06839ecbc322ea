//! The instruction files of a place, without memory.

use memory::instructions::{InstructionSources, Instructions, Reason};
use settings::Settings;

use crate::program_paths::ProgramPaths;

/// Sources of instruction files, without memory and without includes from outside.
pub(crate) fn sources(place: &ProgramPaths, settings: &Settings) -> InstructionSources {
    InstructionSources {
        managed: place.managed().iter().map(|directory| directory.join("CLAUDE.md")).collect(),
        config_home: place.home.path().to_owned(),
        home: place.user_home.clone(),
        working_directory: place.directory.clone(),
        excludes: settings.claude_md_excludes.clone(),
        ..InstructionSources::default()
    }
}

/// The instruction files a session would start with, without memory, and nothing from outside agreed to.
pub(crate) fn load(place: &ProgramPaths, settings: &Settings) -> Instructions {
    Instructions::load(sources(place, settings), Reason::SessionStart)
}
