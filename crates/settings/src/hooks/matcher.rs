//! What a hook is for: all, some names, or what a pattern finds.

use regex::Regex;

/// What a hook is for.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// Everything.
    All,
    /// These names, exactly.
    Names(Vec<String>),
    /// What the pattern is found in.
    Pattern(Regex),
    /// Nothing: a pattern that cannot be understood.
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
    /// Reads one. `*`, nothing, or none is everything; of letters, digits, `_`, `-`, blanks, `,` and `|` alone it is a list
    /// of names; anything else is a regular expression, found anywhere. The error says what is wrong with one.
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

    /// Whether it is for one of these names: those a thing goes by.
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
