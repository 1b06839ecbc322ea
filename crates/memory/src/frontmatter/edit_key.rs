//! Changes one key of the frontmatter: only its own lines.

use std::ops::Range;

use super::{Fences, bom, fences, lenient};

/// Sets `key` to `value`. The key's own lines are replaced; a new key goes last; without frontmatter, one is put on
/// top. Every other byte is kept.
pub fn set(text: &str, key: &str, value: &str) -> String {
    let Some(fences) = fences(text) else {
        let (head, rest) = text.split_at(bom(text));
        let end = line_end(text);
        return format!("{head}---{end}{key}: {}{end}---{end}{end}{rest}", quoted(value));
    };
    match find(text, &fences.block, key) {
        Some(found) => replace_value(text, &found, value),
        None => insert(text, &fences, fences.block.end, &format!("{key}: {}", quoted(value))),
    }
}

/// Sets `key` below `parent` (such as `metadata`) to `value`, if `parent` exists; else like [`set`] at the top level.
pub fn set_under(text: &str, parent: &str, key: &str, value: &str) -> String {
    let found = fences(text).and_then(|fences| Some((find(text, &fences.block, parent)?, fences)));
    let Some((parent, fences)) = found else { return set(text, key, value) };
    let below = parent.value.end..parent.lines.end;
    let written = text[parent.value.clone()].trim();
    if written.starts_with('{') {
        return in_flow(text, &parent.value, key, value);
    }
    if let Some(found) = find_below(text, &below, key) {
        return replace_value(text, &found, value);
    }
    let indent = text[below.clone()]
        .lines()
        .find(|line| !line.trim().is_empty() && line.starts_with([' ', '\t']))
        .map_or("  ", |line| &line[..line.len() - line.trim_start().len()]);
    insert(text, &fences, parent.lines.end, &format!("{indent}{key}: {}", quoted(value)))
}

/// Removes `key` and its lines.
pub fn remove(text: &str, key: &str) -> String {
    match fences(text).and_then(|fences| find(text, &fences.block, key)) {
        Some(found) => format!("{}{}", &text[..found.lines.start], &text[found.lines.end..]),
        None => text.to_owned(),
    }
}

/// Position of a key.
struct KeyPlace {
    /// Text after the colon on its line, without the line ending.
    value: Range<usize>,
    /// All its lines.
    lines: Range<usize>,
}

fn find(text: &str, block: &Range<usize>, wanted: &str) -> Option<KeyPlace> {
    keys(text, block, |line| !line.starts_with([' ', '\t'])).find_map(|(key, found)| (key == wanted).then_some(found))
}

fn find_below(text: &str, block: &Range<usize>, wanted: &str) -> Option<KeyPlace> {
    keys(text, block, |line| line.starts_with([' ', '\t'])).find_map(|(key, found)| (key == wanted).then_some(found))
}

/// The keys on lines that `is_key_line` admits, each with the deeper lines that follow it.
fn keys<'t>(
    text: &'t str,
    block: &Range<usize>,
    is_key_line: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'t str, KeyPlace)> {
    let mut at = block.start;
    let mut found: Vec<(&str, usize, KeyPlace)> = Vec::new();
    // Whether the lines that follow can still be the last key's.
    let mut open = false;
    for line in text[block.clone()].split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let indent = content.len() - content.trim_start().len();
        let continues = open
            && found.last().is_some_and(|(_, depth, key)| {
                let opens = text[key.value.clone()].trim().is_empty();
                !content.trim().is_empty() && indent > *depth
                    || opens && indent == *depth && content.trim_start().starts_with("- ")
            });
        if continues {
            if let Some((_, _, key)) = found.last_mut() {
                key.lines.end = at + line.len();
            }
        } else if let Some((name, value)) = is_key_line(content).then(|| lenient::key(content)).flatten() {
            let value = at + content.len() - value.len()..at + content.len();
            found.push((name, indent, KeyPlace { value, lines: at..at + line.len() }));
            open = true;
        } else if !content.trim().is_empty() && !content.trim_start().starts_with('#') {
            open = false;
        }
        at += line.len();
    }
    found.into_iter().map(|(name, _, key)| (name, key))
}

/// Replaces a value: a comment after it on the line is kept, deeper lines go.
fn replace_value(text: &str, found: &KeyPlace, value: &str) -> String {
    let old = &text[found.value.clone()];
    let comment = comment(old);
    let first_line = text[found.lines.clone()].split_inclusive('\n').next().map_or(0, str::len);
    let end = &text[found.value.end..found.lines.start + first_line];
    let before = &text[..found.value.start];
    let after = &text[found.lines.end..];
    // A comment at the margin between the lines of the old value is not part of it.
    let rest = text[found.lines.clone()].split_inclusive('\n').skip(1);
    let kept: String = rest.filter(|line| line.starts_with('#')).collect();
    format!("{before} {}{comment}{end}{kept}{after}", quoted(value))
}

/// The comment at the end of a value, with the space before it.
fn comment(value: &str) -> &str {
    let trimmed = value.trim_start();
    let from = value.len() - trimmed.len();
    let after = match trimmed.chars().next() {
        Some(quote @ ('"' | '\'')) => match trimmed[1..].find(quote) {
            Some(end) => from + 1 + end + 1,
            None => return "",
        },
        _ => from,
    };
    let Some(at) = value[after..].find(" #") else { return "" };
    // After a colon it is not YAML anyway, and `see #4: the plan` is no comment.
    if value[..after + at].contains(": ") {
        return "";
    }
    let at = after + at;
    &value[at - (value[..at].len() - value[..at].trim_end().len())..]
}

/// Sets a key inside `{…}` on one line.
fn in_flow(text: &str, place: &Range<usize>, key: &str, value: &str) -> String {
    let flow = &text[place.clone()];
    let mut at = place.start;
    for part in flow.split_inclusive([',', '{', '}']) {
        let content = part.trim_end_matches([',', '{', '}']);
        if let Some((name, old)) = content.split_once(':')
            && name.trim() == key
        {
            let start = at + name.len() + 1;
            let end = start + old.trim_end().len();
            return format!("{} {}{}", &text[..start], quoted_in_flow(value), &text[end..]);
        }
        at += part.len();
    }
    let Some(brace) = flow.find('{') else { return text.to_owned() };
    let at = place.start + brace + 1;
    let comma = if flow[brace + 1..].trim_start().starts_with('}') { "" } else { "," };
    format!("{}{key}: {}{comma} {}", &text[..at], quoted_in_flow(value), text[at..].trim_start_matches(' '))
}

fn insert(text: &str, fences: &Fences, at: usize, line: &str) -> String {
    let end = line_end(&text[..fences.body.max(at)]);
    let (before, after) = text.split_at(at);
    let glue = if before.ends_with('\n') { "" } else { end };
    format!("{before}{glue}{line}{end}{after}")
}

/// The line ending of a text.
pub(crate) fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// A value as YAML: plain if every reader takes it as that text, else in double quotes.
pub(crate) fn quoted(value: &str) -> String {
    let plain = value.chars().next().is_some_and(char::is_alphabetic)
        && value.trim() == value
        && !value.contains(": ")
        && !value.contains(" #")
        && !value.ends_with(':')
        && !value.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{85}'))
        && !lenient::is_word_of_yaml(value);
    if plain { value.to_owned() } else { in_quotes(value) }
}

fn quoted_in_flow(value: &str) -> String {
    if value.chars().all(char::is_alphanumeric) { quoted(value) } else { in_quotes(value) }
}

fn in_quotes(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The content of a text that is entirely one code block and begins like a memory.
fn unfenced(text: &str) -> Option<&str> {
    let (first, rest) = text.trim().strip_prefix("```")?.split_once('\n')?;
    let inside = rest.strip_suffix("```")?;
    let blocks = inside.lines().filter(|line| line.trim_start().starts_with("```")).count();
    let is_memory = first.chars().all(char::is_alphanumeric) && inside.starts_with("---") && blocks % 2 == 0;
    is_memory.then_some(inside)
}

/// Quotes values that are not YAML (models write `description: a: b`), if that gives the YAML that was meant. What
/// begins like a list or another structure was meant as one, and stays broken. A memory that is entirely a code block
/// (models copy the form as it was shown to them) is unwrapped.
pub fn mended(text: &str) -> String {
    let text = unfenced(text).unwrap_or(text);
    let front = super::read(text);
    let is_broken =
        |value: &serde_json::Value| value.as_str().is_some_and(|text| text.starts_with(['[', '{', ']', '}']));
    if front.diagnostics.is_empty() || front.fields.values().any(is_broken) {
        return text.to_owned();
    }
    let mut mended = text.to_owned();
    for (key, value) in &front.fields {
        if let serde_json::Value::String(value) = value {
            mended = set(&mended, key, value);
        }
    }
    let again = super::read(&mended);
    if again.diagnostics.is_empty() && again.fields == front.fields { mended } else { text.to_owned() }
}
