//! The few lines of YAML at the top of a memory, read whatever they look like and edited without touching the rest.
//!
//! Reading goes from strict to lenient. Lines that mean the same to every reader are taken as they are; else the block
//! is parsed as YAML; else (models write `description: a: b`) it is read line by line, with a [`Diagnostic`]. Reading
//! never fails.
//!
//! Editing never goes through a parsed value: [`set`] and [`remove`] find the lines of one key and change those. Every
//! other byte is kept: comments, order, quoting, CRLF, a byte order mark, keys of other programs.

mod edit_key;
mod lenient;

use std::ops::Range;

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, FileProblem};

pub use edit_key::{mended, remove, set, set_under};

/// Largest block that is given to the YAML parser, in bytes.
const YAML_LIMIT: usize = 64 * 1024;

/// The byte order mark some editors write first.
const BOM: &str = "\u{feff}";

/// The frontmatter of a file, and the start of the body.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frontmatter {
    /// The keys and their values.
    pub fields: Map<String, Value>,
    /// Problems found.
    pub diagnostics: Vec<Diagnostic>,
    /// Range of the lines between the fences; empty at the start if there is no frontmatter.
    pub(crate) block: Range<usize>,
    /// Start of the body.
    pub(crate) body: usize,
    /// True if there is any frontmatter.
    pub(crate) present: bool,
}

impl Frontmatter {
    /// A string, number or boolean as text.
    pub fn text(&self, key: &str) -> Option<String> {
        as_text(self.fields.get(key)?)
    }

    /// A value below `metadata` as text.
    pub fn metadata(&self, key: &str) -> Option<String> {
        as_text(self.fields.get("metadata")?.get(key)?)
    }

    /// A value as a list: a sequence, or a text with commas.
    pub fn list(&self, key: &str) -> Vec<String> {
        match self.fields.get(key) {
            Some(Value::Array(items)) => items.iter().filter_map(as_text).collect(),
            Some(value) => {
                as_text(value).map(|text| split_list(&text).map(str::to_owned).collect()).unwrap_or_default()
            }
            None => Vec::new(),
        }
    }

    /// Start of the body in the text.
    pub fn body_start(&self) -> usize {
        self.body
    }

    /// Returns whether the text had any frontmatter.
    pub fn is_present(&self) -> bool {
        self.present
    }
}

/// Splits at commas outside braces, so that `src/**/*.{ts,tsx}, lib/**` is two items.
fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        c == ',' && depth <= 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads the frontmatter of a text.
pub fn read(text: &str) -> Frontmatter {
    let Some(fences) = fences(text) else {
        return Frontmatter { body: bom(text), ..Frontmatter::default() };
    };
    let block = &text[fences.block.clone()];
    let mut diagnostics = Vec::new();
    if !fences.closed {
        diagnostics.push(Diagnostic { line: 1, problem: FileProblem::Unclosed });
    }
    let fields = match lenient::plain(block) {
        Some(fields) => fields,
        None => structured(block, &mut diagnostics),
    };
    Frontmatter { fields, diagnostics, block: fences.block, body: fences.body, present: true }
}

fn structured(block: &str, diagnostics: &mut Vec<Diagnostic>) -> Map<String, Value> {
    let lenient = lenient::read(block);
    if block.len() > YAML_LIMIT {
        diagnostics.push(Diagnostic { line: 1, problem: FileProblem::Oversized(block.len()) });
        return lenient;
    }
    match serde_saphyr::from_str::<Value>(block) {
        Ok(Value::Object(mut fields)) => {
            // `version: 1.10` is meant as it is written.
            for (key, value) in &mut fields {
                if matches!(value, Value::Number(_) | Value::Bool(_))
                    && let Some(Value::String(written)) = lenient.get(key)
                {
                    let written = written.split(" #").next().unwrap_or_default().trim_end();
                    *value = Value::String(written.to_owned());
                }
            }
            fields
        }
        Ok(Value::Null) => Map::new(),
        Ok(_) => {
            let problem = FileProblem::NotYaml("it is no list of keys".to_owned());
            diagnostics.push(Diagnostic { line: 2, problem });
            lenient
        }
        Err(error) => {
            let line = error.location().map_or(1, |location| location.line() as usize);
            let why = error.without_snippet().to_string();
            let why = why.lines().next().unwrap_or_default().chars().take(200).collect();
            diagnostics.push(Diagnostic { line: line + 1, problem: FileProblem::NotYaml(why) });
            lenient
        }
    }
}

/// Position of the frontmatter.
pub(crate) struct Fences {
    /// The lines between the fences.
    pub(crate) block: Range<usize>,
    /// Start of the body.
    pub(crate) body: usize,
    /// True if there is a closing fence.
    pub(crate) closed: bool,
}

fn bom(text: &str) -> usize {
    if text.starts_with(BOM) { BOM.len() } else { 0 }
}

/// Finds the frontmatter: a first line `---`, and a later line `---` or `...`. Without the latter it ends where lines
/// stop looking like it; if no line does, there is no frontmatter. A paragraph after an empty line is the body,
/// whatever rule follows further down.
pub(crate) fn fences(text: &str) -> Option<Fences> {
    let start = bom(text);
    let first = text[start..].split_inclusive('\n').next()?;
    if first.trim_end() != "---" || !first.ends_with('\n') {
        return None;
    }
    let begin = start + first.len();
    let mut at = begin;
    let mut looks_like_it = begin;
    let (mut still, mut after_a_gap) = (true, false);
    for line in text[begin..].split_inclusive('\n') {
        let trimmed = line.trim_end();
        if trimmed == "---" || trimmed == "..." {
            return Some(Fences { block: begin..at, body: at + line.len(), closed: true });
        }
        let inside = trimmed.starts_with([' ', '\t']) || trimmed.starts_with("- ");
        let fits = lenient::key(trimmed).is_some() || inside || trimmed.starts_with('#') && !after_a_gap;
        if after_a_gap && !fits && !trimmed.is_empty() {
            break;
        }
        at += line.len();
        after_a_gap = trimmed.is_empty();
        still &= fits || after_a_gap;
        if still && !after_a_gap {
            looks_like_it = at;
        }
    }
    (looks_like_it > begin).then_some(Fences { block: begin..looks_like_it, body: looks_like_it, closed: false })
}
