//! Reads frontmatter line by line, if it is not YAML or needs no parser.

use serde_json::{Map, Value};

/// The fields, if every line is `key: value` with a value no YAML reader could take for anything but that text, or
/// nothing: the shape of nearly all memories, read without a parser.
pub(super) fn plain(block: &str) -> Option<Map<String, Value>> {
    let mut fields = Map::new();
    for line in block.lines() {
        if line.is_empty() {
            continue;
        }
        let (key, value) = key(line)?;
        let value = value.trim();
        let first = value.chars().next()?;
        let odd = !(first.is_alphabetic() || first.is_ascii_digit() && value.contains(' '))
            || value.contains(": ")
            || value.contains(" #")
            || value.contains('\t')
            || value.ends_with(':')
            || value.chars().any(|c| c.is_control() || c == '\u{feff}')
            || is_word_of_yaml(value)
            || line.starts_with(' ');
        if odd || fields.insert(key.to_owned(), Value::String(value.to_owned())).is_some() {
            return None;
        }
    }
    Some(fields)
}

/// Returns whether a word is not text to YAML.
pub(super) fn is_word_of_yaml(value: &str) -> bool {
    ["true", "false", "null", "yes", "no", "on", "off", "nan", "inf", "y", "n"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
}

/// The key and the text after its colon, if a line is `key: value` or `key:`. Leading space is not part of the key.
pub(super) fn key(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    let good = !key.is_empty()
        && key.len() <= 64
        && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !key.starts_with("- ");
    (good && (value.is_empty() || value.starts_with([' ', '\t', '\r']))).then_some((key, value))
}

/// Reads what can be read. Of a duplicate key the first counts.
pub(super) fn read(block: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut lines = block.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with([' ', '\t', '#']) {
            continue;
        }
        let Some((key, value)) = key(line) else { continue };
        let mut below = Vec::new();
        while let Some(next) = lines.peek() {
            let list_item = value.trim().is_empty() && next.starts_with("- ");
            if !(next.starts_with([' ', '\t']) || list_item || next.is_empty() && !below.is_empty()) {
                break;
            }
            below.push(*next);
            lines.next();
        }
        fields.entry(key.to_owned()).or_insert_with(|| value_of(value.trim(), &below));
    }
    fields
}

fn value_of(value: &str, below: &[&str]) -> Value {
    let text = |lines: &mut dyn Iterator<Item = &str>, with: &str| {
        Value::String(lines.collect::<Vec<_>>().join(with).trim().to_owned())
    };
    match value.chars().next() {
        None if below.iter().any(|line| line.trim_start().starts_with("- ")) => Value::Array(
            below
                .iter()
                .filter_map(|line| line.trim().strip_prefix("- "))
                .map(|item| Value::String(unquote(item.trim()).to_owned()))
                .collect(),
        ),
        None if below.iter().any(|line| key(line).is_some()) => Value::Object(
            below
                .iter()
                .filter_map(|line| key(line))
                .map(|(key, value)| (key.to_owned(), Value::String(unquote(value.trim()).to_owned())))
                .collect(),
        ),
        Some('|') => text(&mut below.iter().map(|line| line.trim()), "\n"),
        None | Some('>') => text(&mut below.iter().map(|line| line.trim()), " "),
        Some('[') if value.ends_with(']') => Value::Array(
            super::split_list(&value[1..value.len() - 1]).map(|item| Value::String(unquote(item).to_owned())).collect(),
        ),
        Some('{') if value.ends_with('}') => Value::Object(
            value[1..value.len() - 1]
                .split(',')
                .filter_map(|part| part.split_once(':'))
                .map(|(key, value)| (unquote(key.trim()).to_owned(), Value::String(unquote(value.trim()).to_owned())))
                .collect(),
        ),
        Some(_) => text(&mut std::iter::once(unquote(value)).chain(below.iter().map(|line| line.trim())), " "),
    }
}

/// Removes the pair of quotes around a value, if it has one.
fn unquote(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}
