//! The environment of a confined command: no secrets, and caches where they can be written.

use std::ffi::OsStr;
use std::process::Command;

use crate::sandbox::{Confinement, Strength};

/// Parts of the names of variables that hold secrets.
const SECRET: [&str; 16] = [
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
    "COOKIE",
    "PAT",
];

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

fn looks_secret(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.to_string_lossy().to_uppercase(), value.to_string_lossy());
    let by_name = name.split(|letter: char| !letter.is_alphanumeric()).any(|part| SECRET.contains(&part));
    // An address with a password in it.
    let by_value = value.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        host.rsplit_once('@').is_some_and(|(who, _)| who.contains(':'))
    });
    by_name || by_value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_look_like_secrets_are_known() {
        let secret = |name: &str, value: &str| looks_secret(OsStr::new(name), OsStr::new(value));
        for name in
            ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "npm_config__auth", "DB_PASSWORD", "SSH_AUTH_SOCK", "GH_PAT"]
        {
            assert!(secret(name, "x"), "{name}");
        }
        for name in ["PATH", "HOME", "KEYBOARD", "LANG", "PWD", "MONKEY", "CARGO_HOME"] {
            assert!(!secret(name, "x"), "{name}");
        }
        assert!(secret("DATABASE_URL", "postgres://me:word@host/db"));
        assert!(!secret("MIRROR", "https://host:8080/a@b:c"));
    }
}
