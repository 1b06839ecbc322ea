//! Models that are known by name.

/// The newest model of each kind that people name in a word.
const NEWEST: [(&str, &str); 3] =
    [("opus", "claude-opus-5"), ("sonnet", "claude-sonnet-5"), ("haiku", "claude-haiku-4-5")];

/// The newest model of a kind, by the word for it.
pub fn newest_of(kind: &str) -> Option<&'static str> {
    NEWEST.iter().find(|(word, _)| *word == kind).map(|(_, name)| *name)
}

/// Whether a model is one of Anthropic's.
pub fn is_claude(name: &str) -> bool {
    name.contains("claude")
}
