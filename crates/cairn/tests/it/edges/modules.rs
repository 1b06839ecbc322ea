//! The import graph of a crate's top-level modules, and the files in which its types are implemented, read from its sources.
//!
//! An edge is a path that leaves a module: `crate::…`, or as many `super::` as it takes, in a `use` or in the middle of
//! code. A name that the root of the crate re-exports leads to the module it comes from. Comments, strings and
//! `#[cfg(test)]` parts do not count. Macros are not expanded.

use std::collections::{BTreeMap, BTreeSet};

/// The root of a crate, as a node: for items that are defined there.
const ROOT: &str = "the root";

/// Importing and imported module, with the file and line of one use.
pub(super) type Edges = BTreeMap<(String, String), String>;

/// A word, `::` or another sign, and its line.
type Token = (String, usize);

/// A file without comments, strings and test parts.
struct Source {
    path: String,
    module: Vec<String>,
    tokens: Vec<Token>,
}

/// The sources of a crate, but for those that are built for tests alone. `files`: paths below its `src` and their texts.
fn sources(files: &[(String, String)]) -> Vec<Source> {
    let mut tests = BTreeSet::new();
    let mut sources: Vec<Source> = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| !path.starts_with("bin/")) {
        let mut module: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        module.retain(|part| !matches!(part.as_str(), "lib" | "main"));
        let tokens = without_tests(&tokens(text), &module, &mut tests);
        sources.push(Source { path: path.clone(), module, tokens });
    }
    sources.retain(|source| (0..=source.module.len()).all(|end| !tests.contains(&source.module[..end])));
    sources
}

/// The files that hold `impl` blocks of each type of a crate, by its name: types of one name count as one.
pub(super) fn implementations(files: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources(files) {
        let words: Vec<&str> = source.tokens.iter().map(|token| token.0.as_str()).collect();
        for (at, _) in words.iter().enumerate().filter(|(_, word)| **word == "impl") {
            // Elsewhere it stands for the type of an argument or of what is returned.
            if at == 0 || matches!(words[at - 1], "}" | "{" | ";" | "]" | "unsafe") {
                found.entry(implemented(&words[at + 1..])).or_default().insert(source.path.clone());
            }
        }
    }
    found
}

/// The places where each type of a crate is defined, by its name, without types that belong to a trait or its `impl`.
pub(super) fn types(files: &[(String, String)]) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources(files) {
        let mut depth = 0_usize;
        for pair in source.tokens.windows(2) {
            match pair[0].0.as_str() {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "struct" | "enum" | "union" | "trait" => {}
                "type" if depth == 0 => {}
                _ => continue,
            }
            if pair[1].0.starts_with(char::is_uppercase) && !matches!(pair[0].0.as_str(), "{" | "}") {
                found.entry(pair[1].0.clone()).or_default().push(format!("{}:{}", source.path, pair[1].1));
            }
        }
    }
    found
}

/// The name of the type that the words behind an `impl` are about.
fn implemented(words: &[&str]) -> String {
    let (mut depth, mut name, mut is_whole) = (0_usize, "", false);
    for (at, word) in words.iter().enumerate() {
        match *word {
            "<" => depth += 1,
            ">" if words[at - 1] != "-" => depth = depth.saturating_sub(1),
            "{" | "where" if depth == 0 => break,
            "for" if depth == 0 && words[at + 1] != "<" => (name, is_whole) = ("", false),
            "dyn" | "mut" => {}
            "::" if depth == 0 => is_whole = false,
            word if depth == 0 && !is_whole && word.starts_with(char::is_alphabetic) => (name, is_whole) = (word, true),
            _ => {}
        }
    }
    name.to_owned()
}

/// The edges between the top-level modules of a crate.
pub(super) fn edges(files: &[(String, String)]) -> Edges {
    let sources = sources(files);
    let modules: BTreeSet<String> = sources.iter().filter_map(|source| source.module.first().cloned()).collect();
    let root = sources.iter().find(|source| source.module.is_empty());
    let exported = root.map(|root| exported(&root.tokens)).unwrap_or_default();

    let mut edges = Edges::new();
    for source in &sources {
        let from = source.module.first().map_or(ROOT, String::as_str);
        for (name, line) in imported(source, &modules) {
            let to = match exported.get(&name) {
                _ if modules.contains(&name) => &name,
                Some(head) if modules.contains(head) => head,
                // Another crate's, only named here.
                Some(_) => continue,
                None => ROOT,
            };
            if from != to {
                edges.entry((from.into(), to.into())).or_insert_with(|| format!("{}:{line}", source.path));
            }
        }
    }
    edges
}

/// The sets of modules that reach one another.
pub(super) fn cycles(edges: &Edges) -> BTreeSet<BTreeSet<String>> {
    let reached = |start: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start.to_owned()]);
        while let Some(node) = open.pop() {
            let next = edges.keys().filter(|(from, to)| *from == node && !seen.contains(to)).map(|(_, to)| to.clone());
            let next: Vec<String> = next.collect();
            seen.extend(next.iter().cloned());
            open.extend(next);
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<String>> = edges.keys().map(|(from, _)| (from, reached(from))).collect();
    let rings = all.iter().map(|(node, reached)| -> BTreeSet<String> {
        reached.iter().filter(|other| all.get(other).is_some_and(|back| back.contains(*node))).cloned().collect()
    });
    rings.filter(|ring| !ring.is_empty()).collect()
}

fn tokens(text: &str) -> Vec<Token> {
    let (mut found, mut line, mut rest) = (Vec::new(), 1, text);
    while let Some(next) = rest.chars().next() {
        let word = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        let length = match next {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => 1 + quoted(&rest[1..]),
            'r' if rest[1..].trim_start_matches('#').starts_with('"') => {
                let end = format!("\"{}", "#".repeat(rest[1..].find('"').unwrap_or_default()));
                let open = 1 + end.len();
                rest[open..].find(&end).map_or(rest.len(), |at| open + at + end.len())
            }
            // A letter in quotes, or a lifetime.
            '\'' if rest.starts_with("'\\") => 3 + rest[3..].find('\'').unwrap_or_default() + 1,
            '\'' => {
                let letter = rest[1..].chars().next().map_or(0, char::len_utf8);
                if rest[1 + letter..].starts_with('\'') { letter + 2 } else { 1 + letter }
            }
            'b' if rest.starts_with("b\"") || rest.starts_with("b'") || rest.starts_with("br") && word == 2 => 1,
            _ if word > 0 => {
                found.push((rest[..word].to_owned(), line));
                word
            }
            _ if rest.starts_with("::") => {
                found.push(("::".into(), line));
                2
            }
            _ => {
                if !next.is_whitespace() {
                    found.push((next.into(), line));
                }
                next.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// The length of a string behind its opening quote, with the closing one.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Takes out what is built for tests alone. Modules of that kind in files of their own go to `tests`.
fn without_tests(tokens: &[Token], module: &[String], tests: &mut BTreeSet<Vec<String>>) -> Vec<Token> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.0 == text);
    let starts = |at: usize, words: &str| words.split(' ').enumerate().all(|(index, word)| is(at + index, word));
    if starts(0, "# ! [ cfg ( test ) ]") {
        return Vec::new();
    }
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if !starts(at, "# [ cfg ( test ) ]") && !starts(at, "# [ cfg ( all ( test") {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        while is(at, "#") {
            at = past(tokens, at + 1);
        }
        if is(at, "pub") {
            at += if is(at + 1, "(") { past(tokens, at + 1) - at } else { 1 };
        }
        if is(at, "mod") && is(at + 2, ";") {
            tests.insert([module, &[tokens[at + 1].0.clone()]].concat());
        }
        let is_use = is(at, "use");
        while at < tokens.len() {
            let (ends, opens) = (is(at, ";"), is(at, "{"));
            at = past(tokens, at);
            if ends || opens && !is_use {
                break;
            }
        }
    }
    kept
}

/// The index behind a token, or behind the whole of a group that it opens.
fn past(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.0.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The names that `use` brings into the root, each with the first word of its path.
fn exported(root: &[Token]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (at, _) in root.iter().enumerate().filter(|(_, token)| token.0 == "use") {
        let words: Vec<&str> =
            root[at + 1..].iter().map(|token| token.0.as_str()).take_while(|text| *text != ";").collect();
        let words = words.strip_prefix(&["crate", "::"]).or(words.strip_prefix(&["self", "::"])).unwrap_or(&words);
        for (index, word) in words.iter().enumerate() {
            let is_leaf = !matches!(words.get(index + 1), Some(&("::" | "as")));
            if is_leaf && word.starts_with(|letter: char| letter.is_alphabetic()) && *word != "self" {
                found.insert((*word).to_owned(), words[0].to_owned());
            }
        }
    }
    found
}

/// The first words of all paths that begin at the root of the crate, and their lines.
fn imported(source: &Source, modules: &BTreeSet<String>) -> Vec<(String, usize)> {
    let tokens = &source.tokens;
    let text = |at: usize| tokens.get(at).map_or("", |token| token.0.as_str());
    let mut found = Vec::new();
    // Modules inside of the file, with the depth at which each ends.
    let (mut inner, mut depth) = (Vec::new(), 0_usize);
    for at in 0..tokens.len() {
        match text(at) {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inner.retain(|start| *start < depth);
            }
            "mod" if text(at + 2) == "{" => inner.push(depth),
            _ => {}
        }
        if at > 0 && text(at - 1) == "::" || text(at + 1) != "::" {
            continue;
        }
        let mut level = source.module.len() + inner.len();
        let mut next = at + 2;
        match text(at) {
            "crate" => level = 0,
            "super" => {
                level = level.saturating_sub(1);
                while text(next) == "super" {
                    level = level.saturating_sub(1);
                    next += 2;
                }
            }
            name if source.module.is_empty() && modules.contains(name) => (level, next) = (0, at),
            _ => continue,
        }
        if level > 0 {
            continue;
        }
        if text(next) != "{" {
            found.push(tokens[next].clone());
            continue;
        }
        let end = past(tokens, next);
        let mut member = next + 1;
        while member + 1 < end {
            found.push(tokens[member].clone());
            while member + 1 < end && text(member) != "," {
                member = past(tokens, member);
            }
            member += 1;
        }
    }
    found
}

/// The cycles of a made-up crate.
fn cycles_in(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<(String, String)> = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
    cycles(&edges(&files)).iter().map(|ring| ring.iter().cloned().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn modules_that_import_one_another_are_found() {
    let root = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::{Thing as Renamed, deep::Other};");
    let a = |text| ("a.rs", text);
    let b = ("b/deep.rs", "use super::super::a::{self, A};");
    let c = ("c.rs", "");
    for text in [
        "use crate::b::Thing;",
        "use crate::{c, b::Thing};",
        "use crate::Renamed;",
        "use super::Other;",
        "fn f() -> u8 { crate::b::f('\"', \"\") }",
        "mod inner { use super::super::b::Thing; }",
        "/* c */ const A: &str = r#\"\"\"#; use crate::b;",
    ] {
        assert_eq!(cycles_in(&[root, a(text), b, c]), ["a b"], "{text}");
    }
    for text in [
        "// use crate::b;",
        "const A: &str = \"use crate::b;\\\"\";",
        "mod b { pub fn f() {} } use self::b::f;",
        "mod inner { use super::b::Thing; }",
        "use crate::c;",
    ] {
        assert_eq!(cycles_in(&[root, a(text), b, c]), [""; 0], "{text}");
    }
    let (text, edge) = ("//! A.\n\nuse crate::b;", ("a".to_owned(), "b".to_owned()));
    assert_eq!(
        edges(&[
            ("lib.rs".into(), "mod a; mod b;".into()),
            ("a.rs".into(), text.into()),
            ("b.rs".into(), String::new())
        ])[&edge],
        "a.rs:3"
    );
}

#[test]
fn what_the_root_defines_is_imported_from_the_root() {
    let root = ("lib.rs", "mod a;\nconst SIZE: usize = a::HALF * 2;");
    assert_eq!(cycles_in(&[root, ("a.rs", "use crate::SIZE;")]), ["a the root"]);
    assert_eq!(cycles_in(&[root, ("a.rs", "const HALF: usize = 1;")]), [""; 0]);
}

#[test]
fn what_only_tests_import_closes_no_cycle() {
    let root = ("lib.rs", "mod a;\nmod b;");
    let b = ("b.rs", "use crate::a::A;");
    for text in [
        "#[cfg(test)]\nmod tests { use crate::b::B; fn f() {} }",
        "#[cfg(test)]\npub(crate) use crate::b::{B, C};",
        "#[cfg(test)]\n#[allow(unused)]\nfn f(x: [u8; 2]) -> u8 { crate::b::f(x) }",
        "#[cfg(all(test, unix))]\nconst B: u8 = crate::b::B;",
        "#![cfg(test)]\nuse crate::b::B;",
    ] {
        assert_eq!(cycles_in(&[root, ("a.rs", text), b]), [""; 0], "{text}");
        assert_eq!(
            cycles_in(&[root, ("a.rs", &format!("{text}\nuse crate::b::B;").replace("#![cfg(test)]", "")), b]),
            ["a b"]
        );
    }
    let a = ("a.rs", "#[cfg(test)]\nmod tests;");
    assert_eq!(cycles_in(&[root, a, ("a/tests.rs", "use crate::b::B;"), b]), [""; 0]);
}

#[test]
fn the_type_of_an_impl_block_is_found() {
    let text = "struct A; impl A { fn of(of: impl Fn() -> u8) -> impl Copy {} }
        unsafe impl<'a, T: Fn(u8) -> Vec<T>> std::fmt::Display for b::B<'a, T> where T: Copy {}
        #[doc = \"impl D {}\"] impl<T> From<&T> for &mut C<T> {} // impl E {}
        #[cfg(test)] impl F {}";
    let found = implementations(&[("one.rs".into(), text.into()), ("two.rs".into(), "impl A {}".into())]);
    let found: Vec<(&str, usize)> = found.iter().map(|(name, files)| (name.as_str(), files.len())).collect();
    assert_eq!(found, [("A", 2), ("B", 1), ("C", 1)]);
}
