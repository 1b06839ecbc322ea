//! The skills and commands that a session can call, by the folders they are in.

use std::path::PathBuf;

use engine::skills::Skills;
use extensions::registry::{SkillFolder, SkillRegistry};
use extensions::skill::SkillSource;
use settings::trust::{Claim, Trust, TrustSite};

use crate::plugins::LoadedPlugins;
use crate::program_paths::ProgramPaths;

/// All skills and commands there are for a session here.
pub(crate) fn skills(place: &ProgramPaths, trust: &Trust, plugins: &LoadedPlugins, added: &[PathBuf]) -> Skills {
    let mut registry = SkillRegistry::load(&folders(place, added), trust);
    registry.add_plugins(&plugins.list);
    Skills::new(registry, trust.clone(), &top(place), &place.directory)
}

/// Claims of the skills in the project's folders.
pub(crate) fn claims(place: &ProgramPaths, site: &TrustSite) -> Vec<Claim> {
    extensions::registry::claims(&folders(place, &[]), site)
}

/// The organisation's, the user's and the project's folders; of the project's, the nearest first.
fn folders(place: &ProgramPaths, added: &[PathBuf]) -> Vec<SkillFolder> {
    let of = |source, folder, bounds| SkillFolder { source, folder, bounds };
    let managed = place.managed().into_iter().map(|folder| of(SkillSource::Policy, folder.join(".claude"), None));
    let mut folders: Vec<SkillFolder> = managed.collect();
    if place.sources.user {
        folders.push(of(SkillSource::User, place.home.path().to_owned(), None));
    }
    if place.sources.project {
        let top = top(place);
        let above = place.directory.ancestors().take_while(|directory| directory.starts_with(&top));
        let own = above.map(|directory| (directory.join(".claude"), top.clone()));
        let added = added.iter().map(|directory| (directory.join(".claude"), directory.clone()));
        let projects = own.chain(added).filter(|(folder, _)| folder != place.home.path());
        folders.extend(projects.map(|(folder, bounds)| of(SkillSource::Project, folder, Some(bounds))));
    }
    folders
}

/// The top of the project; for a worktree elsewhere, where the session works.
fn top(place: &ProgramPaths) -> PathBuf {
    let root = memory::place::canonical_root(&place.directory);
    if place.directory.starts_with(&root) { root } else { place.directory.clone() }
}
