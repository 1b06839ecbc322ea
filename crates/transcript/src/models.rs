//! Models known by name.

/// Aliases, each with the newest model it stands for.
const NEWEST: [(&str, &str); 3] =
    [("opus", "claude-opus-5"), ("sonnet", "claude-sonnet-5"), ("haiku", "claude-haiku-4-5")];

/// The newest model for an alias.
pub fn newest_of(kind: &str) -> Option<&'static str> {
    NEWEST.iter().find(|(word, _)| *word == kind).map(|(_, name)| *name)
}

/// True for Anthropic's models.
pub fn is_claude(name: &str) -> bool {
    name.contains("claude")
}
