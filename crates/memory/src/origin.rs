//! Origin of a memory, as recorded under `metadata` in its frontmatter.

use jiff::Timestamp;

use crate::frontmatter::{self, Frontmatter};

/// Key under `metadata` for the things it names that existed when it was saved.
pub(crate) const NAMED: &str = "names";

/// Longest value, in characters.
const LONGEST: usize = 400;

/// Origin of a memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryOrigin {
    /// The session in which it was learnt.
    pub session: Option<String>,
    /// The message.
    pub message: Option<String>,
    /// The agent that wrote it.
    pub agent: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Time.
    pub at: Option<Timestamp>,
}

impl MemoryOrigin {
    /// The origin in a memory's frontmatter.
    pub(crate) fn of(front: &Frontmatter) -> Self {
        let text = |key: &str| front.metadata(key).filter(|value| !value.is_empty());
        Self {
            session: text("originSessionId"),
            message: text("originMessageId"),
            agent: text("agent"),
            model: text("model"),
            at: text("modified").and_then(|at| at.parse().ok()),
        }
    }

    /// Adds the origin, and the named things, at the end of a memory's frontmatter; for an existing memory, the author
    /// and time of the change.
    pub(crate) fn written_into(&self, text: &str, named: &[String]) -> String {
        let at = self.at.map(|at| at.to_string());
        let names = (!named.is_empty()).then(|| named.join(", "));
        let parts = [
            ("originSessionId", &self.session),
            ("originMessageId", &self.message),
            ("agent", &self.agent),
            ("model", &self.model),
            ("modified", &at),
            (NAMED, &names),
        ];
        let given = parts.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        let front = frontmatter::read(text);
        if front.fields.get("metadata").is_some_and(|metadata| metadata.is_object()) {
            let first = |key: &str| key.starts_with("origin") && front.metadata(key).is_some();
            let set = |text: String, (key, value): (&str, &String)| {
                frontmatter::set_under(&text, "metadata", key, &bounded(value))
            };
            return given.filter(|(key, _)| !first(key)).fold(text.to_owned(), set);
        }
        let lines: String = given.map(|(key, value)| format!("  {key}: {}\n", scalar(value))).collect();
        if lines.is_empty() || !front.is_present() {
            return text.to_owned();
        }
        let text = frontmatter::remove(text, "metadata"); // what is there instead is no list of keys
        let end = frontmatter::read(&text).block.end;
        format!("{}metadata:\n{lines}{}", &text[..end], &text[end..])
    }
}

/// A value as YAML: in quotes, if it could be read as something else.
fn scalar(value: &str) -> String {
    let value = bounded(value);
    let plain = value.starts_with(|c: char| c.is_alphanumeric())
        && value.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/'))
        && !value.ends_with(':');
    if plain { value } else { serde_json::Value::from(value).to_string() }
}

/// A value on one line, of bounded length.
fn bounded(value: &str) -> String {
    let line: String = value.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if value.chars().nth(LONGEST).is_some() { line + "…" } else { line }
}
