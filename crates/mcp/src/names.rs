//! Names of servers and tools as the model and permission rules see them.
//!
//! A name depends on what is configured, never on what is connected: a server that comes or goes renames no tool of
//! another. No two tools share a name, whatever servers call them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The most characters of a tool's name that every provider takes.
pub const LONGEST_TOOL_NAME: usize = 64;

/// Names that Claude Code keeps for servers of its own.
pub const RESERVED_SERVERS: [&str; 5] =
    ["workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"];

/// The most bytes of a description or of instructions, as Claude Code has it.
const LONGEST_DESCRIPTION: usize = 2048;
/// The end of a text that was cut.
const CUT: &str = "…";
/// Characters of the hash that tells equal names apart.
const HASH: usize = 6;
/// The most characters of a server's part, so that a tool's part has room.
const LONGEST_SERVER: usize = 40;
const PREFIX: &str = "mcp__";
const SEPARATOR: &str = "__";

/// True if a definition must not have this name.
pub fn is_reserved(server: &str) -> bool {
    RESERVED_SERVERS.iter().any(|reserved| plain(reserved).eq_ignore_ascii_case(&plain(server)))
}

/// Name of a plugin's server.
pub fn plugin_server(plugin: &str, server: &str) -> String {
    format!("plugin:{plugin}:{server}")
}

/// The part of its tools' names that stands for each server, for all configured servers together.
///
/// A name that can stand as it is does; where two become equal, or where one could be read as another with the
/// beginning of a tool's name, the later one gets a hash of its own name.
pub fn server_keys<'a>(servers: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    let mut names: Vec<&str> = servers.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    // Names that need no change come first, so that no odd name can take theirs.
    names.sort_by_key(|name| (plain(name) != *name, name.contains(SEPARATOR), *name));
    let mut keys = BTreeMap::<String, String>::new();
    for name in names {
        let key = shortened(&plain(name), name, LONGEST_SERVER);
        let is_free = |key: &str| !keys.values().any(|other| is_ambiguous(other, key));
        // With single underscores it cannot be the beginning of another with a tool's.
        let key = if is_free(&key) { key } else { hashed(&without_separators(&key), name, LONGEST_SERVER, is_free) };
        keys.insert(name.to_owned(), key);
    }
    keys
}

/// Names for a server's tools, in the order in which they came. `key` is the server's from [`server_keys`].
pub fn tool_names(key: &str, tools: &[&str]) -> Vec<String> {
    let room = LONGEST_TOOL_NAME - PREFIX.len() - SEPARATOR.len() - key.len().min(LONGEST_SERVER);
    let mut distinct: Vec<&str> = tools.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    // Of several that become equal, the one that had this very name keeps it, else the first of them.
    distinct.sort_by_key(|tool| (plain(tool) != *tool, *tool));
    let (mut own, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for tool in distinct {
        let name = shortened(&plain(tool), tool, room);
        let is_free = |name: &str| !taken.contains(name);
        let name = if is_free(&name) { name } else { hashed(&name, tool, room, is_free) };
        taken.insert(name.clone());
        own.insert(tool, format!("{PREFIX}{key}{SEPARATOR}{name}"));
    }
    tools.iter().filter_map(|tool| own.get(tool).cloned()).collect()
}

/// A description or instructions of a server's, cut at a character to 2 KB.
pub fn short_description(text: &str) -> Cow<'_, str> {
    cut(text, LONGEST_DESCRIPTION)
}

/// A text of at most `most` bytes, cut at a character.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most - CUT.len());
    Cow::Owned(text[..end].to_owned() + CUT)
}

/// The name with `_` for every character that no API takes in a name.
fn plain(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
    if plain.is_empty() { "_".to_owned() } else { plain }
}

/// True if tools of both could have the same name.
fn is_ambiguous(one: &str, other: &str) -> bool {
    let (one, other) = ([one, SEPARATOR].concat(), [other, SEPARATOR].concat());
    one.starts_with(&other) || other.starts_with(&one)
}

fn without_separators(key: &str) -> String {
    let mut parts: Vec<&str> = key.split('_').collect();
    parts.retain(|part| !part.is_empty());
    parts.join("_")
}

fn shortened(plain: &str, whole: &str, most: usize) -> String {
    if plain.len() <= most { plain.to_owned() } else { hashed(plain, whole, most, |_| true) }
}

/// The beginning of a name, which is ASCII, with a hash of the whole: the first such name that is free.
fn hashed(plain: &str, whole: &str, most: usize, is_free: impl Fn(&str) -> bool) -> String {
    let beginning = &plain[..plain.len().min(most - HASH - 1)];
    let mut hash = blake3::hash(whole.as_bytes());
    loop {
        let name = format!("{beginning}_{}", &hash.to_hex()[..HASH]);
        if is_free(&name) {
            return name;
        }
        hash = blake3::hash(hash.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn names(server: &str, tools: &[&str]) -> Vec<String> {
        let keys = server_keys([server]);
        tool_names(&keys[server], tools)
    }

    /// MCP-1: names are those that rules for Claude Code have.
    #[test]
    fn a_tool_is_named_after_its_server_and_itself() {
        assert_eq!(names("github", &["create_issue", "a.b"]), ["mcp__github__create_issue", "mcp__github__a_b"]);
        let plugin = plugin_server("my-plugin", "db");
        assert_eq!(names(&plugin, &["query"]), ["mcp__plugin_my-plugin_db__query"]);
        assert_eq!(names("My Server", &["é"]), ["mcp__My_Server___"]);
    }

    /// MCP-1: tools whose names become equal stay apart, in whatever order the server lists them.
    #[test]
    fn names_that_become_equal_stay_apart() {
        let first = names("s", &["a.b", "a_b", "a b"]);
        let second = names("s", &["a b", "a_b", "a.b"]);
        assert_eq!(first[1], "mcp__s__a_b");
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 3);
        assert_eq!(first, second.into_iter().rev().collect::<Vec<_>>());
        // One that is called like the hashed name of another takes that name, and nobody else's.
        let hashed = first[0].trim_start_matches("mcp__s__").to_owned();
        let attack = names("s", &["a.b", "a_b", "a b", &hashed]);
        assert_eq!(attack.iter().collect::<BTreeSet<_>>().len(), 4, "{attack:?}");
    }

    /// MCP-1: no server can name a tool so that it is another server's.
    #[test]
    fn no_server_can_take_the_name_of_anothers_tool() {
        for servers in [["a", "a__b"], ["a", "a_"], ["a.b", "a_b"], ["x", "X"], ["_", "__"]] {
            let keys = server_keys(servers);
            assert!(!is_ambiguous(&keys[servers[0]], &keys[servers[1]]), "{keys:?}");
            assert_eq!(keys, server_keys([servers[1], servers[0]]));
        }
        assert_eq!(server_keys(["a.b", "a_b"])["a_b"], "a_b", "the exact name keeps its own");
    }

    /// MCP-1: no name is longer than 64 characters, and long ones stay apart.
    #[test]
    fn long_names_are_shortened_and_stay_apart() {
        let (server, tool) = ("s".repeat(64), "t".repeat(200));
        let (one, other) = (format!("{tool}1"), format!("{tool}2"));
        let names = names(&server, &[&one, &other]);
        assert!(names.iter().all(|name| name.len() <= LONGEST_TOOL_NAME), "{names:?}");
        assert_ne!(names[0], names[1]);
    }

    /// MCP-1: descriptions are cut at 2 KB, between characters.
    #[test]
    fn long_descriptions_are_cut_between_characters() {
        assert_eq!(short_description("short"), "short");
        let long = "é".repeat(2000);
        let cut = short_description(&long);
        assert!(cut.len() <= 2048 && cut.len() > 2040 && cut.ends_with('…'), "{}", cut.len());
    }

    proptest! {
        /// MCP-1: whatever servers and their tools are called, no two tools share a name, every provider takes each, and none
        /// depends on the order in which servers and tools come.
        #[test]
        fn every_tool_has_a_name_of_its_own(
            servers in vec("[ab_.]{0,4}|[a-c]{38,44}", 1..6),
            tools in vec("[ab_.]{0,4}|[a-c]{50,70}", 1..6),
        ) {
            let servers: BTreeSet<&str> = servers.iter().map(String::as_str).collect();
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
            let keys = server_keys(servers.iter().copied());
            prop_assert_eq!(&keys, &server_keys(servers.iter().rev().copied()));
            let mut all = BTreeSet::new();
            for server in &servers {
                let names = tool_names(&keys[*server], &tools);
                let reversed: Vec<&str> = tools.iter().rev().copied().collect();
                prop_assert_eq!(&names, &tool_names(&keys[*server], &reversed).into_iter().rev().collect::<Vec<_>>());
                for name in names {
                    let taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                    prop_assert!(name.len() <= LONGEST_TOOL_NAME && name.chars().all(taken), "{}", name);
                    prop_assert!(all.insert(name.clone()), "{} twice", name);
                }
            }
        }
    }

    #[test]
    fn reserved_names_are_known_however_they_are_written() {
        assert!(is_reserved("workspace") && is_reserved("claude preview") && is_reserved("Claude_Browser"));
        assert!(!is_reserved("work"));
    }
}
