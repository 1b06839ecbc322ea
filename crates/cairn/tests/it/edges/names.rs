//! The names of types, and the first words of doc comments, read from sources.

use std::collections::BTreeMap;

use super::modules;

/// Words that belong to their module, as `provider::Error` does: they say nothing without it, and everyone knows that.
const OF_A_MODULE: &[&str] = &["Error", "Kind", "State"];

/// A doc comment that begins so circles the thing instead of naming it.
const CIRCLING: &[&str] = &["What", "Whatever", "Whether", "How", "Where", "Who", "Whoever", "Whose", "Which"];

/// The places where each type name is defined, in one crate.
pub(super) fn types(name: &str, files: &[(String, String)]) -> BTreeMap<String, Vec<String>> {
    let mut types = modules::types(files);
    types.retain(|of, _| !OF_A_MODULE.contains(&of.as_str()));
    for places in types.values_mut() {
        for place in places {
            *place = format!("crates/{name}/src/{place}");
        }
    }
    types
}

/// The doc comments of a crate: the number of all, and those that circle, with their places.
pub(super) fn doc_comments(files: &[(String, String)]) -> (usize, Vec<String>) {
    let (mut all, mut circling) = (0, Vec::new());
    for (path, text) in files {
        let mut is_inside = false;
        for (line, at) in text.lines().map(str::trim_start).zip(1..) {
            let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            if let Some(doc) = doc.filter(|_| !is_inside) {
                all += 1;
                let first = doc.trim_start().split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
                if CIRCLING.contains(&first) {
                    circling.push(format!("{path}:{at}:{doc}"));
                }
            }
            is_inside = doc.is_some();
        }
    }
    (all, circling)
}
