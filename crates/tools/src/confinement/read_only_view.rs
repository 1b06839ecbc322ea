//! The wall around read-only commands: they run because they were judged to only read, and here the kernel makes sure
//! of it.
//!
//! They see the working directories, the system's folders, programs and git's configuration, all read-only, and nothing
//! else of the home. They can write only to a temporary folder of their own. They open no socket, and see no more than
//! the names of processes that are not theirs.

use std::path::{Path, PathBuf};

use super::{Base, Confinement, Network, tool_folders};

/// Git's user configuration, relative to the home.
const GIT: [&str; 4] = [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];

/// Keys of git's configuration that name another file.
const GIT_FILES: [&str; 3] = ["path", "excludesfile", "attributesfile"];

/// Largest configuration that is searched, in bytes.
const CONFIG: u64 = 256 * 1024;

/// Words that indicate a key.
const KEYS: [&str; 6] = ["token", "secret", "password", "passwd", "extraheader", "_key"];

impl Confinement {
    /// For a program that reads these paths, and changes those.
    pub fn read_only(mut readable: Vec<PathBuf>, writable: Vec<PathBuf>, home: Option<&Path>) -> Self {
        readable.extend(home.map(tool_folders).unwrap_or_default());
        readable.extend(home.map(git_files).unwrap_or_default());
        Self { readable, writable, network: Network::None, base: Base::System, ..Self::default() }
    }
}

/// Git's configuration in a home with the files it names, as far as they hold no keys.
fn git_files(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in GIT.iter().map(|name| home.join(name)) {
        let Ok(file) = files::read(&path, CONFIG) else { continue };
        let text = String::from_utf8_lossy(&file.bytes).into_owned();
        if holds_a_key(&text) {
            continue;
        }
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            if !GIT_FILES.contains(&key.trim().to_ascii_lowercase().as_str()) {
                continue;
            }
            let value = value.trim().trim_matches('"');
            let named = value.strip_prefix("~/").map_or_else(|| path.with_file_name(value), |rest| home.join(rest));
            let keyless =
                files::read(&named, CONFIG).is_ok_and(|file| !holds_a_key(&String::from_utf8_lossy(&file.bytes)));
            found.extend(keyless.then_some(named));
        }
        found.push(path);
    }
    found
}

/// Returns whether a text may hold a key: by a word, or by a URL with a user name in it.
fn holds_a_key(text: &str) -> bool {
    let text = text.to_lowercase();
    let addressed = |line: &str| {
        line.split("://").skip(1).any(|rest| rest.split(['/', '"']).next().is_some_and(|host| host.contains('@')))
    };
    KEYS.iter().any(|word| text.contains(word)) || text.lines().any(addressed)
}
