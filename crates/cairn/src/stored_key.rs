//! The key that `cairn login` stores: a file in the config home that only its owner reads.
//!
//! The environment and the settings are stronger. No command of the model gets it: it is in no variable, and the config home
//! is closed to commands that may only look.

use std::path::{Path, PathBuf};

/// The file, below the config home.
pub(crate) const FILE: &str = "cairn/anthropic-key";
/// The longest key that is read, in bytes.
const LONGEST: u64 = 4_096;

/// The file of a config home.
pub(crate) fn file(home: &Path) -> PathBuf {
    home.join(FILE)
}

/// The stored key, if there is one.
pub(crate) fn read(home: &Path) -> Option<String> {
    let bytes = files::read(file(home), LONGEST).ok()?.bytes;
    let key = String::from_utf8(bytes).ok()?.trim().to_owned();
    (!key.is_empty()).then_some(key)
}

/// Stores a key in place of the one before.
pub(crate) fn write(home: &Path, key: &str) -> Result<(), files::Error> {
    files::replace_private(file(home), format!("{key}\n").as_bytes())
}
