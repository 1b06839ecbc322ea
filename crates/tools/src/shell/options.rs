//! Options, by a list of those that are known to be harmless.
//!
//! A list is two strings. Short ones: `n` a flag, `n:` with a value, `f@` with a path, `C?` with a value only if it is
//! attached, `#` for numbers (`-5`). Long ones, with blanks between: `all`, `lines=`, `file@`, `color?`. An option that is not in
//! the list, or that cannot be read, is an error that says so: abbreviations, too.

use super::field::{Count, Field};

/// The options a program is known to take without harm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options<'a> {
    pub(super) short: &'a str,
    pub(super) long: &'a str,
    /// What a field that is not known may do if it is an option.
    pub(super) others: Others,
    pub(super) order: Order,
}

/// What the options of a program that are not in the list can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// None of them writes or runs anything.
    Harmless,
    /// Some of them do, or may.
    Harmful,
}

/// Where options may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Anywhere.
    Mixed,
    /// Before the first operand.
    First,
}

/// What was given.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// Options by name, without dashes, with their values.
    pub(super) options: Vec<(String, Option<Field>)>,
    /// Values of options that name files.
    pub(super) paths: Vec<Field>,
    pub(super) operands: Vec<Field>,
}

impl Given {
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    pub(super) fn values<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a Field> {
        self.options.iter().filter(|(name, _)| names.contains(&name.as_str())).filter_map(|(_, value)| value.as_ref())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    Path,
    Attached,
}

impl Options<'_> {
    /// Reads arguments by this list.
    pub(super) fn read(&self, arguments: &[Field]) -> Result<Given, String> {
        let mut given = Given::default();
        let mut rest = arguments.iter();
        while let Some(field) = rest.next() {
            if field.text() == Some("--") {
                given.operands.extend(rest.cloned());
                break;
            }
            if !field.may_be_option() {
                given.operands.push(field.clone());
                if self.order == Order::First {
                    given.operands.extend(rest.cloned());
                    break;
                }
                continue;
            }
            let several = matches!(field, Field::Unknown { count: Count::Any, .. });
            if several || !field.beginning().starts_with('-') {
                if self.others == Others::Harmful || self.order == Order::First {
                    return Err("an argument that is not known may be an option".to_owned());
                }
                given.operands.push(field.clone());
                continue;
            }
            let takes = match field.beginning().strip_prefix("--") {
                Some(long) => self.long(field, long, &mut given)?,
                None => self.short(field, &mut given)?,
            };
            if takes == Takes::Value || takes == Takes::Path {
                let Some(value) = rest.next() else { return Err("an option lacks its value".to_owned()) };
                // What it is besides the value may be an option, or the command that is to run.
                if !value.is_one() && self.others == Others::Harmful {
                    return Err("the value of an option may be several words, or none".to_owned());
                }
                if takes == Takes::Path {
                    given.paths.push(value.clone());
                }
                if let Some((_, slot)) = given.options.last_mut() {
                    *slot = Some(value.clone());
                }
            }
        }
        Ok(given)
    }

    /// Reads a long option; says what is still to come.
    fn long(&self, field: &Field, text: &str, given: &mut Given) -> Result<Takes, String> {
        let whole = field.text().is_some();
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None if whole => (text, None),
            None => return Err("an option that is not known".to_owned()),
        };
        let takes = self.long.split_whitespace().find_map(|known| {
            let bare = known.trim_end_matches(['=', '@', '?']);
            (bare == name).then(|| match known.as_bytes().last() {
                Some(b'=') => Takes::Value,
                Some(b'@') => Takes::Path,
                Some(b'?') => Takes::Attached,
                _ => Takes::Nothing,
            })
        });
        let takes = takes.ok_or_else(|| format!("its option --{name} is not one that is known to be harmless"))?;
        let value = value.map(|value| attached(field, value));
        match (takes, &value) {
            (Takes::Nothing, Some(_)) => return Err(format!("its option --{name} takes no value")),
            (Takes::Path, Some(path)) => given.paths.push(path.clone()),
            _ => {}
        }
        let missing = value.is_none() && matches!(takes, Takes::Value | Takes::Path);
        given.options.push((name.to_owned(), value));
        Ok(if missing { takes } else { Takes::Nothing })
    }

    /// Reads a cluster of short options; says what is still to come.
    fn short(&self, field: &Field, given: &mut Given) -> Result<Takes, String> {
        let text = &field.beginning()[1..];
        for (at, letter) in text.char_indices() {
            let rest = &text[at + letter.len_utf8()..];
            let takes = self
                .letter(letter)
                .ok_or_else(|| format!("its option -{letter} is not one that is known to be harmless"))?;
            let ends = rest.is_empty() && field.text().is_some();
            match takes {
                Takes::Nothing => given.options.push((letter.to_string(), None)),
                _ if ends => {
                    given.options.push((letter.to_string(), None));
                    return Ok(if takes == Takes::Attached { Takes::Nothing } else { takes });
                }
                _ => {
                    let value = attached(field, rest);
                    if takes == Takes::Path {
                        given.paths.push(value.clone());
                    }
                    given.options.push((letter.to_string(), Some(value)));
                    return Ok(Takes::Nothing);
                }
            }
        }
        if field.text().is_none() && self.others == Others::Harmful {
            return Err("an option that is not known".to_owned());
        }
        Ok(Takes::Nothing)
    }

    fn letter(&self, letter: char) -> Option<Takes> {
        if letter.is_ascii_digit() && self.short.contains('#') {
            return Some(Takes::Nothing);
        }
        if matches!(letter, ':' | '@' | '?' | '#') {
            return None;
        }
        let at = self.short.find(letter)?;
        Some(match self.short.as_bytes().get(at + 1) {
            Some(b':') => Takes::Value,
            Some(b'@') => Takes::Path,
            Some(b'?') => Takes::Attached,
            _ => Takes::Nothing,
        })
    }
}

/// The value behind `=` or behind a letter, of which `text` is what is known.
fn attached(field: &Field, text: &str) -> Field {
    match field {
        Field::Glob(pattern) => {
            let skipped = field.beginning().len() - text.len();
            Field::Glob(pattern.get(skipped..).unwrap_or_default().to_owned())
        }
        Field::Unknown { count, source, .. } => {
            Field::Unknown { prefix: text.to_owned(), count: *count, source: source.clone() }
        }
        _ => Field::Known(text.to_owned()),
    }
}
