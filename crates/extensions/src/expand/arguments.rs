//! Placeholders and what they stand for. A text is gone through once, from left to right.

use std::path::Path;

use crate::skill::PluginFolders;

/// The values of the placeholders in braces.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExpandValues<'a> {
    /// `${CLAUDE_SESSION_ID}`.
    pub session: &'a str,
    /// `${CLAUDE_EFFORT}`.
    pub effort: &'a str,
    /// `${CLAUDE_PROJECT_DIR}`.
    pub project: Option<&'a Path>,
    /// `${CLAUDE_SKILL_DIR}`.
    pub skill: Option<&'a Path>,
    /// `${CLAUDE_PLUGIN_ROOT}` and `${CLAUDE_PLUGIN_DATA}`.
    pub plugin: Option<&'a PluginFolders>,
}

impl ExpandValues<'_> {
    fn of(&self, name: &str) -> Option<String> {
        let shown = |path: &Path| path.display().to_string();
        match name {
            "CLAUDE_SESSION_ID" => Some(self.session.to_owned()),
            "CLAUDE_EFFORT" => Some(self.effort.to_owned()),
            "CLAUDE_PROJECT_DIR" => self.project.map(shown),
            "CLAUDE_SKILL_DIR" => self.skill.map(shown),
            "CLAUDE_PLUGIN_ROOT" => self.plugin.map(|plugin| shown(&plugin.root)),
            "CLAUDE_PLUGIN_DATA" => self.plugin.map(|plugin| shown(&plugin.data)),
            _ => None,
        }
    }
}

/// The text with the placeholders in braces filled in and no others: for rules of `allowed-tools`, hooks and servers.
pub fn fill_folders(text: &str, values: &ExpandValues<'_>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let (value, len) = match braced(&rest[at..], values) {
            Some((value, len)) => (value, len),
            None => ("${".to_owned(), 2),
        };
        out.push_str(&value);
        rest = &rest[at + len..];
    }
    out + rest
}

fn braced(text: &str, values: &ExpandValues<'_>) -> Option<(String, usize)> {
    let (name, _) = text.strip_prefix("${")?.split_once('}')?;
    Some((values.of(name)?, name.len() + 3))
}

/// Words as a shell would have them: quotes hold them together. With a quote that is not closed, blanks alone count.
pub fn split_arguments(typed: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = typed.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return typed.split_whitespace().map(str::to_owned).collect();
    }
    words.extend(word);
    words
}

/// The text with its placeholders filled in. `is_used` becomes true if one of them was for arguments.
pub(super) fn substitute(
    text: &str,
    typed: &str,
    words: &[String],
    names: &[String],
    values: &ExpandValues<'_>,
    is_used: &mut bool,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let here = &rest[at..];
        let argument = argument(here, typed, words, names);
        let is_placeholder = argument.is_some() || braced(here, values).is_some();
        // A backslash before a placeholder keeps it as it is written.
        if is_placeholder && let Some(before) = rest[..at].strip_suffix('\\') {
            out.push_str(before);
            out.push('$');
            rest = &here[1..];
            continue;
        }
        out.push_str(&rest[..at]);
        if let Some((value, len)) = argument {
            *is_used = true;
            out.push_str(&value);
            rest = &here[len..];
        } else if let Some((value, len)) = braced(here, values) {
            out.push_str(&value);
            rest = &here[len..];
        } else {
            out.push('$');
            rest = &here[1..];
        }
    }
    out + rest
}

/// The argument that a placeholder at the beginning of a text stands for, and how long the placeholder is.
fn argument(text: &str, typed: &str, words: &[String], names: &[String]) -> Option<(String, usize)> {
    const ALL: &str = "$ARGUMENTS";
    if let Some(after) = text.strip_prefix(ALL) {
        if let Some((index, _)) = after.strip_prefix('[').and_then(|inside| inside.split_once(']'))
            && !index.is_empty()
            && index.bytes().all(|byte| byte.is_ascii_digit())
        {
            let word = words.get(index.parse::<usize>().ok()?)?;
            return Some((word.clone(), ALL.len() + index.len() + 2));
        }
        if ends_word(after) {
            return Some((typed.to_owned(), ALL.len()));
        }
    }
    let name = &text[1..];
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        let word = words.get(name[..digits].parse::<usize>().ok()?).filter(|_| ends_word(&name[digits..]))?;
        return Some((word.clone(), digits + 1));
    }
    let fits = |(_, one): &(usize, &String)| name.strip_prefix(one.as_str()).is_some_and(ends_word);
    let named = names.iter().enumerate().filter(|(_, one)| !one.is_empty());
    let (at, one) = named.filter(fits).max_by_key(|(at, one)| (one.len(), names.len() - at))?;
    Some((words.get(at).cloned().unwrap_or_default(), one.len() + 1))
}

/// True if no letter, digit or underscore follows.
fn ends_word(after: &str) -> bool {
    !after.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_')
}
