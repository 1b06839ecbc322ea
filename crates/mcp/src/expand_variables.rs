//! `${VAR}` and `${VAR:-default}` in a definition: which variables it names, and their values from a caller's look-up.
//!
//! It reads no environment. A provider's key is never looked up, whoever asks.

use std::collections::BTreeMap;

/// Keys of model providers, which no server gets.
const PROVIDER_KEYS: [&str; 4] =
    ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"];

/// Words in the names of variables that hold credentials.
const CREDENTIAL_WORDS: [&str; 20] = [
    "APIKEY",
    "AUTH",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
    "COOKIES",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "DSN",
    "KEY",
    "KEYS",
    "OAUTH",
    "PASS",
    "PAT",
    "PWD",
    "SECRETS",
    "TOKENS",
    "USERPWD",
    "JWT",
];

/// Parts of such names, wherever they are.
const CREDENTIAL_PARTS: [&str; 8] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "ACCESSKEY"];

/// The shell's own variable for a working directory, which only looks like a password.
const WORKING_DIRECTORIES: [&str; 2] = ["PWD", "OLDPWD"];

/// A variable that a definition names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedVariable {
    /// Its name.
    pub name: String,
    /// Its kind, judged by the name.
    pub kind: VariableKind,
}

/// Kind of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VariableKind {
    /// Nothing special.
    Plain,
    /// Looks like a credential: only for a server that the user approved it for by name.
    Credential,
    /// Key of a model provider: for no server.
    ProviderKey,
}

impl VariableKind {
    /// Kind of the variable with this name.
    pub fn of(name: &str) -> Self {
        match () {
            () if is_provider_key(name) => Self::ProviderKey,
            () if is_credential(name) => Self::Credential,
            () => Self::Plain,
        }
    }
}

/// True if the variable holds the key of a model provider.
pub fn is_provider_key(name: &str) -> bool {
    PROVIDER_KEYS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// True if the variable's name looks like that of a credential.
pub fn is_credential(name: &str) -> bool {
    let name = name.to_uppercase();
    if WORKING_DIRECTORIES.contains(&name.as_str()) {
        return false;
    }
    let mut words = name.split(|letter: char| !letter.is_alphanumeric());
    CREDENTIAL_PARTS.iter().any(|part| name.contains(part)) || words.any(|word| CREDENTIAL_WORDS.contains(&word))
}

/// A text cut into what stands as it is and what names a variable.
enum Piece<'a> {
    Text(&'a str),
    Variable { whole: &'a str, name: &'a str, default: Option<&'a str> },
}

/// Variables that a text names, with those that have a default.
pub(crate) fn named(text: &str, into: &mut BTreeMap<String, NamedVariable>) {
    for piece in pieces(text) {
        if let Piece::Variable { name, .. } = piece {
            let variable = NamedVariable { name: name.to_owned(), kind: VariableKind::of(name) };
            into.insert(name.to_owned(), variable);
        }
    }
}

/// The text with values in place of variables. A variable without a value or default is added to `unset`, and stays.
/// Values are not searched for variables again.
pub(crate) fn expanded(text: &str, look_up: &dyn Fn(&str) -> Option<String>, unset: &mut Vec<String>) -> String {
    let mut whole = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => whole.push_str(text),
            Piece::Variable { whole: written, name, default } => {
                let value = (!is_provider_key(name)).then(|| look_up(name)).flatten();
                // As in a shell, `:-` also replaces an empty value.
                let value = value.filter(|value| default.is_none() || !value.is_empty());
                match (value, default) {
                    (Some(value), _) => whole.push_str(&value),
                    (None, Some(default)) => whole.push_str(default),
                    (None, None) => {
                        unset.push(name.to_owned());
                        whole.push_str(written);
                    }
                }
            }
        }
    }
    whole
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut start) = (text, 0);
    while let Some(at) = rest.get(start..).and_then(|part| part.find("${")).map(|at| at + start) {
        match variable(&rest[at..]) {
            Some((piece, length)) => {
                found.push(Piece::Text(&rest[..at]));
                found.push(piece);
                (rest, start) = (&rest[at + length..], 0);
            }
            None => start = at + 2,
        }
    }
    found.push(Piece::Text(rest));
    found
}

/// The variable at the beginning of a text, and its length.
fn variable(text: &str) -> Option<(Piece<'_>, usize)> {
    let inner = text.strip_prefix("${")?;
    let inner = &inner[..inner.find('}')?];
    let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    let is_name = first && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let length = inner.len() + "${}".len();
    is_name.then(|| (Piece::Variable { whole: &text[..length], name, default }, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> (String, Vec<String>) {
        let look_up = |name: &str| match name {
            "HOME" => Some("/home/me".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${HOME}".to_owned()),
            "ANTHROPIC_API_KEY" => Some("sk-secret".to_owned()),
            _ => None,
        };
        let mut unset = Vec::new();
        (expanded(text, &look_up, &mut unset), unset)
    }

    /// MCP-1: variables are replaced by the caller's values, else by their default, else they stay and are reported.
    #[test]
    fn a_variable_has_its_value_its_default_or_stays_as_it_is() {
        for (text, wanted, missing) in [
            ("${HOME}/bin", "/home/me/bin", None),
            ("a${NOPE:-b}c", "abc", None),
            ("${EMPTY:-b}|${EMPTY}", "b|", None),
            ("${NOPE:-}", "", None),
            ("${NOPE}x", "${NOPE}x", Some("NOPE")),
            ("$HOME ${} ${1A} ${a b} ${HOME", "$HOME ${} ${1A} ${a b} ${HOME", None),
            ("${${HOME}}", "${/home/me}", None),
            ("${NOPE:-https://é}", "https://é", None),
            ("é${HOME}é", "é/home/meé", None),
        ] {
            let (expanded, unset) = expand(text);
            assert_eq!((expanded.as_str(), unset.first().map(String::as_str)), (wanted, missing), "{text}");
        }
    }

    /// MCP-1: what a variable holds is not searched again, so that no value can name another variable.
    #[test]
    fn values_are_not_expanded_again() {
        assert_eq!(expand("${NESTED}").0, "${HOME}");
    }

    /// MCP-1: the key of a model provider reaches no server, whatever the look-up would say.
    #[test]
    fn a_providers_key_is_never_looked_up() {
        assert_eq!(
            expand("Bearer ${ANTHROPIC_API_KEY}"),
            ("Bearer ${ANTHROPIC_API_KEY}".into(), vec!["ANTHROPIC_API_KEY".into()])
        );
        assert_eq!(expand("${ANTHROPIC_API_KEY:-none}").0, "none");
    }

    #[test]
    fn names_tell_credentials_from_plain_variables() {
        for name in [
            "GITHUB_TOKEN",
            "githubToken",
            "DB_PASSWORD",
            "API_KEY",
            "SENTRY_DSN",
            "GITHUB_PAT",
            "SESSION_COOKIE",
            "X_AUTH",
        ] {
            assert_eq!(VariableKind::of(name), VariableKind::Credential, "{name}");
        }
        for name in ["PATH", "HOME", "KEYBOARD", "AUTHOR", "PWD", "OLDPWD", "LANG", "MONKEY", "REPATRIATE"] {
            assert_eq!(VariableKind::of(name), VariableKind::Plain, "{name}");
        }
        assert_eq!(VariableKind::of("OPENAI_API_KEY"), VariableKind::ProviderKey);
        assert_eq!(VariableKind::of("openai_api_key"), VariableKind::ProviderKey);
    }
}
