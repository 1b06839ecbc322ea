//! The filter of a hook: everything, some names, or a pattern.

use regex::Regex;

/// The filter of a hook.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// Everything.
    All,
    /// These names, exactly.
    Names(Vec<String>),
    /// Everything that the pattern matches.
    Pattern(Regex),
    /// Nothing: the pattern is invalid.
    Broken,
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Names(names), Self::Names(others)) => names == others,
            (Self::Pattern(pattern), Self::Pattern(other)) => pattern.as_str() == other.as_str(),
            (Self::All, Self::All) | (Self::Broken, Self::Broken) => true,
            _ => false,
        }
    }
}

impl Matcher {
    /// Parses a matcher. `*`, an empty text or none matches everything; a text of letters, digits, `_`, `-`, spaces,
    /// `,` and `|` is a list of names; anything else is a regular expression, matched anywhere. The second value says
    /// why it is invalid.
    pub fn parse(text: Option<&str>) -> (Self, Option<String>) {
        let text = text.unwrap_or_default().trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || "_- ,|".contains(c);
        if text.is_empty() || text == "*" {
            return (Self::All, None);
        }
        if text.chars().all(plain) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return (Self::Names(names.map(str::to_owned).collect()), None);
        }
        match Regex::new(text) {
            Ok(pattern) => (Self::Pattern(pattern), None),
            Err(error) => (Self::Broken, Some(error.to_string().lines().last().unwrap_or_default().trim().to_owned())),
        }
    }

    /// True if it matches one of the names by which a thing is known.
    pub fn is_for(&self, names: &[&str]) -> bool {
        match self {
            Self::All => true,
            Self::Names(wanted) => wanted.iter().any(|wanted| names.contains(&wanted.as_str())),
            Self::Pattern(pattern) => names.iter().any(|name| pattern.is_match(name)),
            Self::Broken => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HOOK-1: exact names, lists of them, and patterns that are found anywhere.
    #[test]
    fn a_matcher_is_a_list_of_names_or_a_pattern() {
        let is_for = |matcher: &str, name: &str| Matcher::parse(Some(matcher)).0.is_for(&[name]);
        for (matcher, name, expected) in [
            ("", "Bash", true),
            ("*", "Bash", true),
            ("Bash", "Bash", true),
            ("Bash", "BashOutput", false),
            ("bash", "Bash", false),
            ("Edit|Write", "Write", true),
            ("Edit, Write", "Write", true),
            ("Edit|Write", "NotebookEdit", false),
            ("mcp__memory", "mcp__memory__create", false),
            ("mcp__memory__.*", "mcp__memory__create", true),
            ("Edit.*", "NotebookEdit", true),
            ("^Edit$", "NotebookEdit", false),
            (".env|.envrc", "xenv", true),
        ] {
            assert_eq!(is_for(matcher, name), expected, "{matcher} {name}");
        }
        assert!(Matcher::parse(None).0.is_for(&["anything"]));
        let (broken, why) = Matcher::parse(Some("(Bash"));
        assert!(!broken.is_for(&["Bash"]) && why.is_some());
    }
}
