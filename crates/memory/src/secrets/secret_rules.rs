//! The rules: read from the shipped file, written in Go's dialect of regular expressions, compiled when first needed.
//!
//! The file is third-party data and is never edited here. Differences between the dialects are fixed up as it is read
//! ([`rust_form`]); everything is matched on bytes, without Unicode classes, as Go's engine means `\w` and `\d`.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::Deserialize;

use super::widened_patterns;

/// The rules of gitleaks (MIT), unchanged. `scripts/refresh-secret-rules` replaces the file and the hash.
pub(super) const FILE: &str = include_str!("gitleaks.toml");

/// Our own additions to their allow-lists, in the same format.
const OWN: &str = include_str!("own.toml");

/// Size limit of a compiled rule; the largest takes less than a tenth.
const SIZE_LIMIT: usize = 32 << 20;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SecretRules {
    /// Allow-list for all rules.
    pub(super) allowlist: Allowed,
    /// Our own allow-lists for all rules.
    #[serde(skip)]
    pub(super) own_allowlists: Vec<Allowed>,
    /// The rules, one per kind of secret.
    pub(super) rules: Vec<SecretRule>,
}

/// The file of our own allow-lists.
#[derive(Debug, Deserialize)]
struct AllowedFile {
    allowlists: Vec<Allowed>,
    rules: Vec<SecretRule>,
}

/// One kind of secret.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecretRule {
    pub(super) id: String,
    pub(super) description: String,
    /// Expression for the secret; without it the file's name alone decides.
    regex: Option<String>,
    /// Expression for the files it is about.
    path: Option<String>,
    /// Keywords, of which one must be in the text, in any case.
    #[serde(default)]
    pub(super) keywords: Vec<String>,
    /// Least entropy of a secret, in bits per character.
    pub(super) entropy: Option<f64>,
    /// Group of the match that is the secret; 0 is the first that is not empty.
    #[serde(default)]
    pub(super) secret_group: usize,
    #[serde(default)]
    pub(super) allowlists: Vec<Allowed>,
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
    #[serde(skip)]
    compiled_wide: OnceLock<Option<Regex>>,
    #[serde(skip)]
    compiled_path: OnceLock<Option<Regex>>,
}

/// An allow-list: exceptions that only look like a secret.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Allowed {
    condition: Condition,
    paths: Vec<String>,
    regex_target: Target,
    regexes: Vec<String>,
    stopwords: Vec<String>,
    #[serde(skip)]
    compiled: OnceLock<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    paths: RegexSet,
    regexes: RegexSet,
    stopwords: Option<AhoCorasick>,
}

/// Number of an allow-list's checks that must hold.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Condition {
    #[default]
    #[serde(rename = "OR", alias = "||")]
    Any,
    #[serde(rename = "AND", alias = "&&")]
    All,
}

/// Text that an allow-list's expressions are matched against.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Target {
    #[default]
    Secret,
    Match,
    Line,
}

/// A match for an allow-list to check.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllowCandidate<'a> {
    pub(super) secret: &'a [u8],
    pub(super) matched: &'a [u8],
    pub(super) line: &'a [u8],
}

impl SecretRules {
    /// The shipped rules.
    pub(super) fn shipped() -> Result<Self, toml::de::Error> {
        let mut shipped: Self = toml::from_str(FILE)?;
        let own: AllowedFile = toml::from_str(OWN)?;
        shipped.rules.extend(own.rules);
        shipped.own_allowlists = own.allowlists;
        Ok(shipped)
    }
}

impl SecretRule {
    /// Expression for the secret, in Rust's dialect.
    pub(super) fn pattern(&self) -> Option<String> {
        self.regex.as_deref().map(rust_form)
    }

    /// Compiled expression for the secret.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| compile(&self.pattern()?)).as_ref()
    }

    /// The expression with wider surroundings.
    pub(super) fn wide_pattern(&self) -> Option<String> {
        Some(widened_patterns::wide(&self.pattern()?, self.is_generic()))
    }

    /// The compiled expression with wider surroundings.
    pub(super) fn wide(&self) -> Option<&Regex> {
        self.compiled_wide.get_or_init(|| compile(&self.wide_pattern()?)).as_ref()
    }

    /// Returns true if it finds a secret by a name before it, and not by its form.
    pub(super) fn knows_a_name(&self) -> bool {
        self.regex.as_deref().is_some_and(widened_patterns::knows_a_name)
    }

    /// Returns true if one of its keywords is in a text.
    pub(super) fn has_keyword(&self, text: &[u8]) -> bool {
        let text = text.to_ascii_lowercase();
        self.keywords.iter().any(|word| memchr::memmem::find(&text, word.to_ascii_lowercase().as_bytes()).is_some())
    }

    /// Returns true if it is not tied to a service.
    pub(super) fn is_generic(&self) -> bool {
        self.id.contains("generic")
    }

    /// Returns true if it is about a file's name and not about its text.
    pub(super) fn is_about_names(&self) -> bool {
        self.regex.is_none()
    }

    /// Returns true if it is about this file.
    pub(super) fn is_about(&self, path: &str) -> bool {
        let Some(pattern) = &self.path else { return true };
        let compiled = self.compiled_path.get_or_init(|| compile(&rust_form(pattern)));
        compiled.as_ref().is_some_and(|regex| regex.is_match(path.as_bytes()))
    }
}

impl Allowed {
    /// Returns true if a whole file is skipped.
    pub(super) fn passes_file(&self, path: &str) -> bool {
        let more = !self.regexes.is_empty() || !self.stopwords.is_empty();
        !(self.condition == Condition::All && more) && self.has_path(path)
    }

    /// Returns true if a match is an exception and no secret.
    pub(super) fn passes(&self, found: AllowCandidate<'_>, path: &str) -> bool {
        let compiled = self.compiled();
        let target = match self.regex_target {
            Target::Secret => found.secret,
            Target::Match => found.matched,
            Target::Line => found.line,
        };
        let by_regex = || compiled.regexes.is_match(target);
        let by_word = || compiled.stopwords.as_ref().is_some_and(|words| words.is_match(found.secret));
        match self.condition {
            Condition::Any => by_regex() || by_word(),
            Condition::All => {
                (self.paths.is_empty() || self.has_path(path))
                    && (self.regexes.is_empty() || by_regex())
                    && (self.stopwords.is_empty() || by_word())
            }
        }
    }

    fn has_path(&self, path: &str) -> bool {
        !path.is_empty() && self.compiled().paths.is_match(path.as_bytes())
    }

    fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| Compiled {
            paths: compile_all(&self.paths),
            regexes: compile_all(&self.regexes),
            stopwords: AhoCorasick::builder().ascii_case_insensitive(true).build(&self.stopwords).ok(),
        })
    }
}

/// Compiles an expression in [`rust_form`]. A test checks that every shipped rule compiles; one that does not finds
/// nothing.
pub(super) fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).build().ok()
}

fn compile_all(patterns: &[String]) -> RegexSet {
    let patterns = patterns.iter().map(|pattern| rust_form(pattern));
    RegexSetBuilder::new(patterns).unicode(false).size_limit(SIZE_LIMIT).build().unwrap_or_else(|_| RegexSet::empty())
}

/// Converts an expression from Go's dialect to Rust's: a brace that is no count is a literal brace, and within brackets
/// `[`, `&`, `~` and a second `-` are literals.
pub(super) fn rust_form(go: &str) -> String {
    let mut rust = String::with_capacity(go.len() + 8);
    let mut rest = go;
    let mut in_class = false;
    while let Some(c) = rest.chars().next() {
        let (this, after) = rest.split_at(c.len_utf8());
        let mut taken = this;
        match c {
            '\\' => {
                let escaped = after.chars().next().map_or(0, char::len_utf8);
                taken = &rest[..1 + escaped];
            }
            '[' if in_class && after.starts_with(':') => {
                taken = rest.find(":]").map_or(this, |end| &rest[..end + 2]);
            }
            '[' if !in_class => {
                in_class = true;
                // A bracket that closes at once is a member.
                let open = if after.starts_with('^') { 2 } else { 1 };
                taken = &rest[..open];
                if rest[open..].starts_with(']') {
                    rust.push_str(&rest[..open]);
                    rust.push('\\');
                    taken = "]";
                    rest = &rest[open..];
                }
            }
            ']' if in_class => in_class = false,
            '[' | '&' | '~' if in_class => rust.push('\\'),
            '-' if in_class && after.starts_with('-') => rust.push('\\'),
            '{' if !in_class && !counts(rest) => rust.push('\\'),
            _ => {}
        }
        rust.push_str(taken);
        rest = &rest[taken.len()..];
    }
    rust
}

/// Returns true if a brace opens a count: `{3}`, `{3,}` or `{3,5}`.
fn counts(text: &str) -> bool {
    let Some((inside, _)) = text[1..].split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_and_every_allowance_compiles() {
        let rules = SecretRules::shipped().unwrap();
        assert!(rules.rules.len() > 200);
        for rule in &rules.rules {
            for pattern in rule.regex.iter().chain(&rule.path) {
                let built = RegexBuilder::new(&rust_form(pattern)).unicode(false).size_limit(SIZE_LIMIT).build();
                assert!(built.is_ok(), "{}: {}", rule.id, built.unwrap_err());
            }
        }
        let of_rules = rules.rules.iter().flat_map(|rule| &rule.allowlists);
        for allowed in of_rules.chain([&rules.allowlist]).chain(&rules.own_allowlists) {
            for pattern in allowed.paths.iter().chain(&allowed.regexes) {
                let built = RegexBuilder::new(&rust_form(pattern)).unicode(false).build();
                assert!(built.is_ok(), "{pattern}: {}", built.unwrap_err());
            }
            assert_eq!(allowed.compiled().paths.len(), allowed.paths.len());
            assert_eq!(allowed.compiled().regexes.len(), allowed.regexes.len());
        }
    }

    #[test]
    fn a_brace_that_counts_nothing_and_a_bracket_within_brackets_are_themselves() {
        assert_eq!(rust_form(r"^\${(?:A)}$"), r"^\$\{(?:A)}$");
        assert_eq!(rust_form("a{3,}b{2}c{,3}"), r"a{3,}b{2}c\{,3}");
        assert_eq!(rust_form("[[&a-][^]x]"), r"[\[\&a-][^\]x]");
        assert_eq!(rust_form("[[:alnum:]{]{4}"), "[[:alnum:]{]{4}");
    }
}
