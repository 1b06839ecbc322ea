//! Checksums: of an entry's text, and of all entries together.

use std::collections::BTreeMap;
use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::key::EntryKey;

/// Checksums by key.
pub type Checksums = BTreeMap<EntryKey, String>;

/// The checksum of a text, as the protocol writes it.
pub fn of(text: &str) -> String {
    written(Sha256::digest(text.as_bytes()).as_slice())
}

/// The checksum of a whole repository: of its keys and their checksums, in the order of the keys.
pub fn of_all<'a>(entries: impl Iterator<Item = (&'a EntryKey, &'a str)>) -> String {
    let sorted: BTreeMap<&EntryKey, &str> = entries.collect();
    let mut hash = Sha256::new();
    for (key, checksum) in sorted {
        for text in [key.as_str(), checksum] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        }
    }
    written(hash.finalize().as_slice())
}

fn written(digest: &[u8]) -> String {
    digest.iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TEAM-2: checksums are `sha256:` and the digest of the bytes.
    #[test]
    fn a_text_has_its_usual_digest() {
        assert_eq!(of(""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    /// TEAM-2: the checksum of the whole depends on names and texts, not on their order.
    #[test]
    fn the_whole_depends_on_names_and_texts_alone() {
        let (a, b): (EntryKey, EntryKey) = ("a.md".parse().unwrap(), "b.md".parse().unwrap());
        let all = |entries: &[(&EntryKey, &str)]| of_all(entries.iter().copied());
        assert_eq!(all(&[(&a, "1"), (&b, "2")]), all(&[(&b, "2"), (&a, "1")]));
        assert_ne!(all(&[(&a, "1"), (&b, "2")]), all(&[(&a, "2"), (&b, "1")]));
        assert_ne!(all(&[(&a, "12")]), all(&[(&a, "1")]));
    }
}
