//! Name of a checkout's repository, from its git remote: the ssh and the https form of an address are one.

use serde::{Deserialize, Serialize};

use crate::checked_text::checked_text;

/// The longest name, in bytes.
const LONGEST: usize = 300;
/// The host whose repositories are named without it.
const SHORT_HOST: &str = "github.com";

/// A repository: `owner/repo` on github.com, `host/path` elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Repository(String);

/// Reason a text names no repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} does not name a repository: {why}")]
pub struct BadRepository {
    /// The text.
    pub text: String,
    /// The problem with it.
    pub why: &'static str,
}

checked_text!(Repository or BadRepository);

impl Repository {
    /// From the address of a git remote: `git@host:path`, `ssh://…`, `https://…`, with or without user, port and `.git`.
    pub fn of_remote(address: &str) -> Result<Self, BadRepository> {
        let bad = |why| BadRepository { text: redacted(address), why };
        let address = address.trim();
        let (host, path) = match address.split_once("://") {
            Some(("file", _)) => return Err(bad("it is a folder on this machine")),
            Some((_, rest)) => rest.split_once('/').ok_or(bad("it has no path"))?,
            // `host:path`, as ssh writes it; with a slash before the colon it is a path of this machine.
            None => match address.split_once(':') {
                Some((host, path)) if !host.contains('/') => (host, path),
                _ => return Err(bad("it is a folder on this machine")),
            },
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let host = match host.split_once(':') {
            Some((host, port)) if port.chars().all(|digit| digit.is_ascii_digit()) => host,
            _ => host,
        };
        let host = host.to_lowercase();
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).trim_matches('/');
        let name = if host == SHORT_HOST { path.to_lowercase() } else { format!("{host}/{path}") };
        name.parse().map_err(|error: BadRepository| bad(error.why))
    }

    fn check(name: &str) -> Result<(), &'static str> {
        if name.len() > LONGEST {
            return Err("it is too long");
        }
        let parts: Vec<&str> = name.split('/').collect();
        if parts.len() < 2 {
            return Err("it needs an owner and a name, with a slash between");
        }
        let plain = |letter: char| letter.is_alphanumeric() || "-_.~+".contains(letter);
        let is_part = |part: &&str| !part.is_empty() && part.chars().all(plain) && *part != "." && *part != "..";
        if parts.iter().all(is_part) { Ok(()) } else { Err("its parts may only have letters, digits and -_.~+") }
    }
}

/// An address without a password.
fn redacted(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TEAM-1: the ssh and the https form of a remote are one repository, on any host.
    #[test]
    fn every_form_of_an_address_names_one_repository() {
        let name = |address| Repository::of_remote(address).unwrap().to_string();
        for address in [
            "git@github.com:Acme/Rocket.git",
            "https://github.com/acme/rocket",
            "https://user:secret@github.com/acme/rocket.git/",
            "ssh://git@github.com:22/acme/rocket.git",
            "git://github.com/acme/rocket",
        ] {
            assert_eq!(name(address), "acme/rocket", "{address}");
        }
        for address in ["git@git.example.org:team/sub/Rocket.git", "https://git.example.org:8443/team/sub/Rocket"] {
            assert_eq!(name(address), "git.example.org/team/sub/Rocket", "{address}");
        }
    }

    /// TEAM-1: a folder of this machine is no repository that others could share.
    #[test]
    fn a_folder_is_no_remote() {
        for address in
            ["/srv/git/x.git", "../x", "file:///srv/x", "", "https://github.com", "https://h/../x", "h:a b/c"]
        {
            assert!(Repository::of_remote(address).is_err(), "{address}");
        }
    }

    #[test]
    fn an_error_never_shows_a_password() {
        let error = Repository::of_remote("https://user:hunter2@host/a b").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
