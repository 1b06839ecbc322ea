//! The environment of a confined command: no secrets, and caches where they can be written.

use std::ffi::OsStr;
use std::process::Command;

use crate::confinement::{Confinement, Strength};
use crate::environment::looks_secret;

/// Where caches go, which would be kept in the home.
const CACHES: [(&str, &str); 3] =
    [("TMPDIR", "/tmp"), ("XDG_CACHE_HOME", "/tmp/.cache"), ("npm_config_cache", "/tmp/.npm")];

/// Takes secrets out of a command's environment, and shows it where caches may be.
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
