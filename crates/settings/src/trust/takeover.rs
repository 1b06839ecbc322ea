//! Takes over a yes given in Claude Code, for what a directory's files ask for at our first look, if it is narrow.
//!
//! Claude Code records trust in a directory, not in what its files said. So the yes is taken over once, for the rules,
//! directories, variables and plain settings that exist then, each by its fingerprint. It never covers what runs
//! programs automatically, nor rules or directories that cover everything: those are asked about here.

use std::path::{Component, Path, PathBuf};

use tools::permission::runs_others;
use transcript::tool_names;

use super::{Claim, Kind, TrustSite};

/// Tools whose rules are about files.
const FILE_TOOLS: [&str; 7] = [
    tool_names::READ,
    tool_names::GREP,
    tool_names::GLOB,
    tool_names::EDIT,
    tool_names::WRITE,
    "MultiEdit",
    "NotebookEdit",
];
/// Characters at which a path pattern stops being literal.
const WILDCARDS: [char; 5] = ['*', '?', '[', '{', '\\'];
/// The folder in which macOS keeps what other systems hide in the home directory.
const APPLICATION_DATA: &str = "Library";

/// True if a yes in Claude Code covers this claim.
pub(super) fn covers(claim: &Claim, site: &TrustSite) -> bool {
    match claim.kind {
        Kind::Rule => rule_is_narrow(&claim.what, site),
        // A path inside the checkout is told from there.
        Kind::Directory => Path::new(&claim.what).is_relative() || place_is_narrow(Path::new(&claim.what), site),
        Kind::Variable | Kind::Setting => true,
        Kind::Hook
        | Kind::Server
        | Kind::Helper
        | Kind::Agent
        | Kind::Skill
        | Kind::Plugin
        | Kind::Mode
        | Kind::Sandbox
        | Kind::Include => false,
    }
}

/// True if an allow rule covers only some calls of its tool.
fn rule_is_narrow(rule: &str, site: &TrustSite) -> bool {
    let parts = rule.trim().split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?.trim())));
    let Some((tool, pattern)) = parts else { return false };
    if tool == tool_names::BASH {
        let program = pattern.split_whitespace().next().unwrap_or_default().trim_end_matches(":*");
        // What runs what it is given is about every command.
        return !program.is_empty() && !program.contains('*') && !runs_others(program);
    }
    if !FILE_TOOLS.contains(&tool) {
        return !pattern.is_empty() && !pattern.contains('*');
    }
    // Without a path such a rule is about all files, wherever they lie.
    if pattern.trim_matches(['*', ':']).is_empty() {
        return false;
    }
    let (root, rest) = match (pattern.strip_prefix("//"), pattern.strip_prefix("~/"), &site.home) {
        (Some(rest), _, _) => (PathBuf::from("/"), rest),
        (_, Some(rest), Some(home)) => (home.clone(), rest),
        (_, Some(_), None) => return false,
        // From the directory, or from that of the settings file: a pattern cannot lead out of it.
        (None, None, _) => return true,
    };
    let literal = rest.split('/').take_while(|part| !part.contains(WILDCARDS)).collect::<PathBuf>();
    place_is_narrow(&root.join(literal), site)
}

/// True if a place is in the checkout, or in a visible folder of the home directory. The home directory itself, its
/// hidden folders and everything outside are not: system folders, other users, the root.
fn place_is_narrow(place: &Path, site: &TrustSite) -> bool {
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => name != APPLICATION_DATA && !name.to_string_lossy().starts_with('.'),
        _ => false,
    };
    let below = site.home.as_ref().and_then(|home| place.strip_prefix(home).ok());
    let in_home = below.is_some_and(|below| below != Path::new("") && below.components().all(is_plain));
    let stays = !place.components().any(|part| part == Component::ParentDir);
    stays && (place.starts_with(&site.top) || in_home)
}
