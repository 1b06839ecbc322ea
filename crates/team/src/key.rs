//! The name of an entry: a path below the team's folder that can mean nothing else.
//!
//! Other people choose these names, and they become paths. So a key is limited to what is certainly harmless on every
//! file system, in every encoding: parts of letters, digits and a few marks, in their composed form. Whatever a decoder
//! could turn into something else (`%2e`, full-width dots, backslashes) is no key.

use serde::{Deserialize, Serialize};
use unicode_normalization::{UnicodeNormalization, is_nfkc};

use crate::checked_text::checked_text;

/// The longest key, in bytes.
const LONGEST: usize = 256;
/// The longest part of one, in bytes: the limit of file systems.
const LONGEST_PART: usize = 255;
/// Limit on the folders around a key.
const DEEPEST: usize = 8;
/// Characters allowed besides letters and digits.
const MARKS: &str = "-_.+ ()',@#";
/// Names that some systems reserve for devices, whatever follows the first dot.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// The name of an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EntryKey(String);

/// The reason a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} cannot be the name of an entry: {why}")]
pub struct BadKey {
    /// The text.
    pub text: String,
    /// The problem with it.
    pub why: &'static str,
}

checked_text!(EntryKey or BadKey);

impl EntryKey {
    /// Its form where case and the encoding of accents do not count. Two keys of one repository never share it, since
    /// they would be one file there.
    pub fn folded(&self) -> String {
        self.0.to_lowercase().nfkc().collect()
    }

    fn check(key: &str) -> Result<(), &'static str> {
        let parts: Vec<&str> = key.split('/').collect();
        first_that_holds(&[
            (key.is_empty(), "it is empty"),
            (key.len() > LONGEST, "it is longer than 256 bytes"),
            (key.starts_with('/'), "it is absolute"),
            (key.contains('\\'), "it contains a backslash"),
            (key.contains('%'), "it contains a percent sign, which some programs decode"),
            (key.chars().any(char::is_control), "it contains a control character"),
            (!is_nfkc(key), "it contains characters that have a plainer form (Unicode NFKC)"),
            (parts.len() > DEEPEST, "it is nested too deeply"),
        ])?;
        parts.iter().try_for_each(|part| Self::check_part(part))
    }

    fn check_part(part: &str) -> Result<(), &'static str> {
        let is_plain = |letter: char| letter.is_alphanumeric() || MARKS.contains(letter);
        let stem = part.split('.').next().unwrap_or_default().to_lowercase();
        let stem = stem.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let is_padded = part.ends_with(['.', ' ']) || part.starts_with(' ');
        first_that_holds(&[
            (part.is_empty(), "a part of it is empty"),
            (part.len() > LONGEST_PART, "a part of it is longer than 255 bytes"),
            (part.starts_with('.'), "a part of it starts with a dot"),
            (is_padded, "a part of it begins with a space, or ends with a dot or space"),
            (part.starts_with('-'), "a part of it starts with a dash"),
            (!part.chars().all(is_plain), "it contains something other than letters, digits and -_.+ ()',@#"),
            (DEVICES.contains(&stem), "a part of it is the name of a device"),
        ])
    }
}

/// The first reason that holds, as an error.
fn first_that_holds(reasons: &[(bool, &'static str)]) -> Result<(), &'static str> {
    reasons.iter().find(|(holds, _)| *holds).map_or(Ok(()), |(_, why)| Err(*why))
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    /// TEAM-7: names of files below the folder are keys, in any script.
    #[test]
    fn what_names_a_file_below_the_folder_is_a_key() {
        for key in
            ["MEMORY.md", "deploy.md", "api/auth (v2).md", "größe.md", "部署.md", "a/b/c/d.md", "c++.md", "x@1.md"]
        {
            assert!(key.parse::<EntryKey>().is_ok(), "{key}");
        }
        assert!(
            "a".repeat(255).parse::<EntryKey>().is_ok()
                && ("a/".to_owned() + &"b".repeat(254)).parse::<EntryKey>().is_ok()
        );
    }

    /// TEAM-7: nothing that is absolute, climbs, hides, or could be decoded into that is a key.
    #[test]
    fn what_could_mean_another_place_is_no_key() {
        let long = "a/".to_owned() + &"b".repeat(255);
        let long_part = "a".repeat(256);
        let long_in_bytes = "ß".repeat(128);
        let deep = "a/".repeat(9) + "a";
        for key in [
            "",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/..",
            "./a",
            "a//b",
            "a/",
            ".git/config",
            "a/.hidden",
            "a\\b",
            "C:\\x",
            "c:x",
            "a\0b",
            "a\nb",
            "a\u{202e}b",
            "a\u{200b}b",
            "%2e%2e/x",
            "a%00",
            "．．/x",
            "a／b",
            "‥/x",
            "con",
            "CON.md",
            "com1",
            "a/nul.txt",
            "a.",
            "a ",
            " a",
            "-rf",
            "a/-x",
            "~/x",
            "$HOME",
            "a*b",
            "a?b",
            "a|b",
            "a\"b",
            "a<b",
            "e\u{301}.md",
            "ﬁ.md",
            &long,
            &long_part,
            &long_in_bytes,
            &deep,
        ] {
            assert!(key.parse::<EntryKey>().is_err(), "{key:?}");
        }
    }

    /// TEAM-7: twins that differ in case or in how an accent is written are one name.
    #[test]
    fn twins_share_their_folded_form() {
        let folded = |key: &str| key.parse::<EntryKey>().unwrap().folded();
        assert_eq!(folded("Deploy.md"), folded("deploy.md"));
        assert_eq!(folded("GRÖSSE.md"), folded("grösse.md"));
        assert_ne!(folded("a.md"), folded("b.md"));
    }

    proptest! {
        /// TEAM-7: whatever is a key stays below the folder it is joined to, and comes back from JSON as it was.
        #[test]
        fn a_key_never_leaves_its_folder(text in "[\\PC/.%\\\\]{0,40}") {
            if let Ok(key) = text.parse::<EntryKey>() {
                let parts: Vec<Component<'_>> = Path::new(key.as_str()).components().collect();
                prop_assert!(parts.iter().all(|part| matches!(part, Component::Normal(_))));
                prop_assert_eq!(parts.len(), key.as_str().split('/').count());
                let json = serde_json::to_string(&key).unwrap();
                prop_assert_eq!(serde_json::from_str::<EntryKey>(&json).unwrap(), key);
            }
        }
    }
}
