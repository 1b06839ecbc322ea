//! Quoting of text from files, so that it cannot end or imitate its frame.
//!
//! Memory is data. A file that contains the tag we wrap it in, or the tags a conversation is made of, would otherwise
//! step out of its quotation. Only the opening bracket of such a tag is changed, so the text stays readable, and a
//! search for any word in it still finds it.

use std::borrow::Cow;

/// Names of tags that mean something to a model or to us.
const TAGS: [&str; 22] = [
    "conversation",
    "new",
    "task-notification",
    "result",
    "fork",
    "agent-report",
    "system-reminder",
    "system_reminder",
    "memory",
    "instructions",
    "system",
    "user",
    "human",
    "assistant",
    "tool_result",
    "tool_use",
    "function_calls",
    "function_results",
    "invoke",
    "antml",
    "agent-message",
    "skill",
];

/// Names of the reminder tag.
const REMINDER: [&str; 2] = ["system-reminder", "system_reminder"];

/// The text with the brackets of such tags made harmless.
pub fn quoted(text: &str) -> Cow<'_, str> {
    without(text, &TAGS)
}

/// The text with the brackets of reminder tags made harmless, for files that the user wrote: other tags are theirs.
pub fn inside_reminder(text: &str) -> Cow<'_, str> {
    without(text, &REMINDER)
}

fn without<'t>(text: &'t str, tags: &[&str]) -> Cow<'t, str> {
    let mut out = String::new();
    let mut kept = 0;
    for (at, open) in text.char_indices().filter(|(_, c)| is_open(*c)) {
        if names_one_of(tags, &text[at + open.len_utf8()..]) {
            out.push_str(&text[kept..at]);
            out.push_str("&lt;");
            kept = at + open.len_utf8();
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// Returns whether a character is `<` or looks like it.
fn is_open(c: char) -> bool {
    matches!(c, '<' | '\u{ff1c}' | '\u{fe64}')
}

/// Returns whether the name of such a tag follows an opening bracket, behind slashes, spaces and invisible characters.
fn names_one_of(tags: &[&str], rest: &str) -> bool {
    let mut name = String::new();
    for c in rest.chars().take(64) {
        let skipped = is_invisible(c) || name.is_empty() && (c.is_whitespace() || matches!(c, '/' | '\u{ff0f}' | '\\'));
        if skipped {
            continue;
        }
        let c = if matches!(c, '\u{ff01}'..='\u{ff5e}') {
            // Full-width forms of ASCII.
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
        } else {
            c
        };
        if !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
            break;
        }
        name.push(c.to_ascii_lowercase());
    }
    tags.contains(&name.as_str())
}

/// Returns whether a character takes no room, and so could hide inside a name.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}'
            | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e007f}'
    )
}
