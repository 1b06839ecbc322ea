//! The environment of a confined command: no secrets, and caches in writable places.

use std::ffi::OsStr;
use std::process::Command;

use crate::confinement::{Confinement, Strength};
use crate::environment::looks_secret;

/// Places for caches that would otherwise be in the home.
const CACHES: [(&str, &str); 3] =
    [("TMPDIR", "/tmp"), ("XDG_CACHE_HOME", "/tmp/.cache"), ("npm_config_cache", "/tmp/.npm")];

/// Removes secrets from a command's environment, and points caches to writable places.
pub(super) fn clean(command: &mut Command, confinement: &Confinement) {
    for (name, value) in std::env::vars_os() {
        if looks_secret(&name, &value) || confinement.variables.iter().any(|hidden| name == OsStr::new(hidden)) {
            command.env_remove(name);
        }
    }
    match (confinement.strength, &confinement.temporary) {
        (Strength::Namespaces, _) => drop(command.envs(CACHES)),
        (Strength::Landlock, Some(temporary)) => drop(command.env("TMPDIR", temporary)),
        (Strength::Landlock, None) => {}
    }
}
