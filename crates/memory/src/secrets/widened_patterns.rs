//! Surroundings of secrets that the rules do not reach.
//!
//! The rules are made for source files: a secret ends at a quote, at white space or at a semicolon, and begins after an
//! equals sign or a colon. People also put one into a sentence, a URL or a table, and programs put texts into texts.
//! [`wide`] is a rule's expression with such surroundings added. Each change only adds to what an expression matches.
//!
//! A rule that knows a form (`ghp_…`) can be believed there. One that knows only a name (`datadog … = 40 letters`)
//! cannot: a match found only in this way has to look random by itself ([`looks_random`]).

/// Separators between a name and its value, in the rules that know a name.
const ASSIGNED: &str = r"(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)";

/// Additional separators: a call, a cell of a table, `is`, a full-width colon, and the value of a variable that is
/// named in a field of its own.
const ALSO_ASSIGNED: &str =
    r#"(?:=|>|:{1,3}=|\|\||:|=>|\?=|,|\(|\||\bis\b|\xef\xbc\x9a|["']?,?\s{0,20}["']?value["']?[ \t]?[:=])"#;

/// The same for a rule of a service: also a mere blank, if the last word says that a secret follows.
const ALSO_ASSIGNED_TO_A_SERVICE: &str = r#"(?:=|>|:{1,3}=|\|\||:|=>|\?=|,|\(|\||\bis\b|\xef\xbc\x9a|["']?,?\s{0,20}["']?value["']?[ \t]?[:=]|(?i:key|token|secret|passw(?:or)?d)[ \t](?:-[ \t])?)"#;

/// The rules' expressions for the surroundings of a secret, and their replacements.
const SURROUNDINGS: &[(&str, &str)] = &[
    // The end of a secret. Also: a sentence goes on or ends, an address or a list goes on, a tag, a bracket or a text
    // within a text closes.
    (r#"(?:[\x60'"\s;]|\\[nr]|$)"#, END),
    (r#"(?:$|[\\'"\x60\s<),])"#, r#"(?:[\x00-\x20\x60'";,)\]}<>&|*@:!?#%\\\x7f-\xff]|\.(?:[\s"')\]]|$)|$)"#),
    (r"(?:[\/|\#|\?|:]|$)", r#"(?:[\/|\#?:\s\x60'"),<>\]]|$)"#),
    // The start of one whose form is known: after anything that is no part of it.
    (r#"(?:^|[\\'"\x60\s>=:(,)])"#, r"(?:^|[^\w~.-]|\\[nrt]|\\u002[0267]|%2[0267]|%3[ADad]|\x1b\[[0-9;]{0,8}m)"),
    (r"|\b(", r"|(?:\b|\\[nrt]|\\u002[0267]|%2[0267]|%3[ADad]|\x1b\[[0-9;]{0,8}m)("),
    // Between a name and its value: quotes within quotes, Markdown.
    (r#"[\s'"]{0,3}"#, r#"(?:[\s'"\x60\]]|\\{1,4}["']|\\u002[27]|\*\*){0,3}"#),
    (r#"[\x60'"\s=]{0,5}"#, r#"(?:[\x60'"\s=@]|\\{1,4}["']|\\u002[27]|\*\*|\xe2\x80[\x98-\x9f]){0,5}"#),
];

const END: &str = r#"(?:\\[nr]|[\x00-\x20\x60'";,)\]}<>&|*@:!?#%=/~\\\x80-\xff]|\.(?:[\s"')\]]|$)|$)"#;

/// Starts of expressions for a known form, and their replacements: also after an escape, a percent sign or a colour
/// within a text.
const STARTS: &[(&str, &str)] = &[
    (r"\b", r"(?:\b|\\[nrt]|\\u002[0267]|%2[0267]|%3[ADad]|\x1b\[[0-9;]{0,8}m)"),
    (r"(?i)\b(\b(", r"(?i)(?:\b|\\[nrt]|\\u002[0267]|%2[0267]|%3[AD]|\x1b\[[0-9;]{0,8}m)(("),
    (r"(?i)\b", r"(?i)(?:\b|\\[nrt]|\\u002[0267]|%2[0267]|%3[AD]|\x1b\[[0-9;]{0,8}m)"),
];

/// Least entropy, in bits per character, of a value that is known only to be called a secret: more than a hash in
/// hexadecimal digits can have, and more than words have.
const RANDOM: f64 = 3.9;

/// Number of lower-case letters in a row that make a word.
const WORD: usize = 4;

/// An expression with wider surroundings.
pub(super) fn wide(pattern: &str, is_generic: bool) -> String {
    let start = STARTS.iter().find_map(|(from, to)| Some(format!("{to}{}", pattern.strip_prefix(from)?)));
    let pattern = start.unwrap_or_else(|| pattern.to_owned());
    let assigned = if is_generic { ALSO_ASSIGNED } else { ALSO_ASSIGNED_TO_A_SERVICE };
    let pattern = SURROUNDINGS.iter().fold(pattern, |pattern, (from, to)| pattern.replace(from, to));
    pattern.replace(ASSIGNED, assigned)
}

/// Returns true if an expression finds a secret by a name before it, and not by its form.
pub(super) fn knows_a_name(pattern: &str) -> bool {
    pattern.contains(ASSIGNED)
}

/// Returns true if a text looks like a secret with nothing around that says so: letters and digits; and if the name
/// before it is not a service's, in a mixture that no word, no hash and no identifier has. `after` is the byte that
/// follows it.
pub(super) fn looks_random(secret: &[u8], entropy: f64, after: Option<&u8>, is_generic: bool) -> bool {
    let has = |kind: fn(&u8) -> bool| secret.iter().any(kind);
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let strange = || entropy > RANDOM && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let in_code = after.is_some_and(|after| b",)]}|:".contains(after));
    mixed && (!is_generic || (strange() && !(in_code && has_words(secret))))
}

/// Returns true if there are words in a text, as in an identifier.
fn has_words(text: &[u8]) -> bool {
    text.iter().any(|byte| b"_.-".contains(byte))
        || text.windows(WORD).any(|window| window.iter().all(u8::is_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::secret_rules::{SecretRules, compile};

    /// A newer file of rules may write its surroundings differently: then this has to follow.
    #[test]
    fn the_rules_write_surroundings_as_they_are_known_here() {
        let rules = SecretRules::shipped().unwrap().rules;
        let patterns: Vec<String> = rules.iter().filter_map(|rule| rule.pattern()).collect();
        for from in SURROUNDINGS.iter().chain(STARTS).map(|(from, _)| *from).chain([ASSIGNED]) {
            assert!(patterns.iter().any(|pattern| pattern.contains(from)), "{from}");
        }
        assert!(patterns.iter().filter(|pattern| wide(pattern, false) != **pattern).count() > 150);
        for pattern in patterns {
            assert!(compile(&wide(&pattern, false)).is_some() && compile(&wide(&pattern, true)).is_some(), "{pattern}");
        }
    }

    #[test]
    fn words_hashes_and_names_in_programs_do_not_look_random() {
        let random = |text: &str, after: &str| {
            looks_random(text.as_bytes(), crate::secrets::entropy(text.as_bytes()), after.as_bytes().first(), true)
        };
        assert!(!random("feature-flag-2024-rollout", " ") && !random("CamelCaseIdentifier2", " "));
        assert!(!random("3f786850e387550fdab836ed7e6dc881de23001b", " "));
        assert!(!random("EcPrivateKeyRfc5915Der", ",") && !random("IX509PrivateKey_Vtbl", ","));
        assert!(random("kZ8vQ2mXw7Lr4TnB1cYd", " ") && random("kZ8vQ2mXw7Lr4TnB1cYd", ")"));
    }
}
