//! `@path` in an instruction file: the files it includes.
//!
//! An include starts with `@` at the start of a line or after a space, outside code spans and blocks. It ends at the
//! next space; a space in a path is written `\ `. What follows `#` is a place inside the file, and punctuation at the
//! end belongs to the sentence.

use std::path::{Path, PathBuf};

use crate::markdown;

/// Longest path of an include.
const LONGEST: usize = 1_024;

/// Extensions of text files. A file without one may be text.
const TEXT: [&str; 84] = [
    "md",
    "mdx",
    "mdc",
    "markdown",
    "txt",
    "text",
    "rst",
    "adoc",
    "org",
    "json",
    "jsonc",
    "json5",
    "jsonl",
    "yaml",
    "yml",
    "toml",
    "xml",
    "csv",
    "tsv",
    "ini",
    "cfg",
    "conf",
    "config",
    "properties",
    "html",
    "htm",
    "css",
    "scss",
    "sass",
    "less",
    "js",
    "jsx",
    "mjs",
    "cjs",
    "ts",
    "tsx",
    "mts",
    "cts",
    "vue",
    "svelte",
    "py",
    "pyi",
    "rb",
    "rs",
    "go",
    "java",
    "kt",
    "kts",
    "scala",
    "swift",
    "c",
    "h",
    "cc",
    "cpp",
    "hpp",
    "cs",
    "php",
    "pl",
    "lua",
    "r",
    "jl",
    "ex",
    "exs",
    "erl",
    "hs",
    "ml",
    "clj",
    "dart",
    "sh",
    "bash",
    "zsh",
    "fish",
    "ps1",
    "sql",
    "graphql",
    "gql",
    "proto",
    "tf",
    "hcl",
    "gradle",
    "cmake",
    "diff",
    "patch",
    "log",
];

/// The paths a text includes, as written, each once.
pub fn paths(text: &str) -> Vec<String> {
    if !text.contains('@') {
        return Vec::new();
    }
    let code = markdown::regions(text).code;
    let mut found = Vec::new();
    // Ranges of code come in order, and so do the signs: one walk over both.
    let mut ranges = code.iter().peekable();
    for (at, _) in text.match_indices('@') {
        while ranges.peek().is_some_and(|range| range.end <= at) {
            ranges.next();
        }
        let in_code = ranges.peek().is_some_and(|range| range.contains(&at));
        let starts = text[..at].chars().next_back().is_none_or(char::is_whitespace);
        if in_code || !starts {
            continue;
        }
        if let Some(path) = path(&text[at + 1..])
            && !found.contains(&path)
        {
            found.push(path);
        }
    }
    found
}

/// The path at the start of a text.
fn path(rest: &str) -> Option<String> {
    let mut path = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&' ') => {
                path.push(' ');
                chars.next();
            }
            '#' => break,
            c if c.is_whitespace() || c.is_control() => break,
            c => path.push(c),
        }
        if path.len() > LONGEST {
            return None;
        }
    }
    let path = path.trim_end_matches([',', ';', ':', '!', '?', ')', ']', '"', '\'', '*', '`']);
    let path = path.strip_suffix('.').filter(|path| !path.ends_with('.')).unwrap_or(path);
    let starts = path.starts_with("./")
        || path.starts_with("../")
        || path.starts_with("~/")
        || path.starts_with('/')
        || path.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'));
    (starts && !matches!(path, "" | "/" | "." | "..")).then(|| path.to_owned())
}

/// Resolves a path: from the home directory, from the root, or from the file that includes it.
pub fn resolve(written: &str, by: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let path = match written.strip_prefix("~/") {
        Some(rest) => home?.join(rest),
        None => by.parent()?.join(written),
    };
    Some(crate::place::without_dots(&path))
}

/// Returns whether the text after `@` can only be meant as a file.
pub(super) fn looks_like_a_file(written: &str) -> bool {
    written.contains(['/', '.'])
}

/// Returns whether a file is text, by its extension.
pub(super) fn is_text_type(path: &Path) -> bool {
    path.extension().and_then(|ending| ending.to_str()).is_none_or(|ending| {
        let ending = ending.to_ascii_lowercase();
        TEXT.contains(&ending.as_str())
    })
}
