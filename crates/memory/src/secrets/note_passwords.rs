//! Passwords as people write them into notes: in a URL, or in a sentence that gives the password.
//!
//! The shipped rules are made for source files, where such a thing is mostly an example; in a memory it mostly is real.
//! So this applies to memories only.

use std::sync::LazyLock;

use regex::Regex;

use super::SecretFinding;

/// Placeholders for a password.
const STAND_INS: [&str; 16] = [
    "pass",
    "passwd",
    "password",
    "pwd",
    "secret",
    "token",
    "changeme",
    "example",
    "placeholder",
    "redacted",
    "hidden",
    "user",
    "username",
    "none",
    "empty",
    "required",
];

/// Names of hash functions: they are no passwords.
const HASHES: [&str; 6] = ["sha", "md5", "bcrypt", "argon", "scrypt", "pbkdf"];

static IN_ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:([^\s/@]{3,128})@[\w\[]"#).ok());

static IN_SENTENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = "password|passwort|passphrase|passcode|pass code|pin|pwd";
    Regex::new(&format!(
        r#"(?i)\b(?:{names})\b(?:\s+(?:for|of|to|on|at|für|von)(?:\s+[\w.@/-]+){{1,5}}?)?\s*(?:\bis\b|\bist\b|\bwas\b|=|:)\s*[`"'“]?([^\s`"'”]{{4,128}})"#
    ))
    .ok()
});

/// A pattern for a password, the rule's name, and a check of the match.
type PasswordPhrase = (&'static LazyLock<Option<Regex>>, &'static str, fn(&str) -> bool);

/// The first password that a note gives away.
pub(super) fn first(text: &str) -> Option<SecretFinding> {
    let ways: [PasswordPhrase; 2] = [
        (&IN_ADDRESS, "password-in-an-address", is_no_stand_in),
        (&IN_SENTENCE, "password-in-a-sentence", looks_like_one),
    ];
    ways.iter().find_map(|(pattern, rule, is_one)| {
        let mut found = pattern.as_ref()?.captures_iter(text).filter_map(|found| found.get(1));
        let secret = found.find(|secret| is_one(secret.as_str().trim_end_matches(['.', ',', ';', ')', '!', '?'])))?;
        let line = text[..secret.start()].matches('\n').count() + 1;
        Some(SecretFinding { rule, description: "A password that a note gives away.", line })
    })
}

fn is_no_stand_in(word: &str) -> bool {
    let lower = word.to_lowercase();
    let marked = word.starts_with(['<', '$', '{', '*', '%', '[']) || lower.starts_with("your") || lower.contains("xxx");
    !marked && !STAND_INS.contains(&lower.as_str()) && word.chars().any(char::is_alphanumeric)
}

/// Returns true if a word in a sentence is a password and not just the next word: a mixture of characters that words do
/// not have.
fn looks_like_one(word: &str) -> bool {
    let has = |kind: fn(char) -> bool| word.chars().any(kind);
    let lower = word.to_lowercase();
    let is_hash = HASHES.iter().any(|name| lower.starts_with(name));
    let only_digits = word.chars().all(|c| c.is_ascii_digit());
    let mixed = has(char::is_alphabetic) && (has(|c| c.is_ascii_digit()) || has(|c| "!#$%^&*+=?".contains(c)));
    is_no_stand_in(word) && !is_hash && !lower.contains("password") && !lower.contains("://") && (mixed || only_digits)
}
