//! The instruction files of a place, without memory.

use memory::instructions::{InstructionSources, Instructions, Owner, Reason};
use settings::{SettingSources, Settings};

use crate::program_paths::ProgramPaths;

/// Sources of instruction files, without memory and without includes from outside.
pub(crate) fn sources(place: &ProgramPaths, settings: &Settings) -> InstructionSources {
    let SettingSources { user, project, local } = place.sources;
    let owners = [(Owner::User, user), (Owner::Project, project), (Owner::Local, local)];
    InstructionSources {
        managed: place.managed().iter().map(|directory| directory.join("CLAUDE.md")).collect(),
        config_home: place.home.path().to_owned(),
        home: place.user_home.clone(),
        working_directory: place.directory.clone(),
        left_out: owners.into_iter().filter(|(_, is_read)| !is_read).map(|(owner, _)| owner).collect(),
        excludes: settings.claude_md_excludes.clone(),
        ..InstructionSources::default()
    }
}

/// The instruction files a session would start with, without memory, and nothing from outside agreed to.
pub(crate) fn load(place: &ProgramPaths, settings: &Settings) -> Instructions {
    Instructions::load(sources(place, settings), Reason::SessionStart)
}
