//! The user's exclusions from learning: files and directories, and whatever was shown of them.
//!
//! A call counts as touching them by the path it names, by a path in its command, or by its result: a search over a
//! parent directory shows lines of an excluded file without naming it. So a result is searched twice, for the names of
//! excluded files and for lines that stand in one. Parts of lines are not recognised.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use files::Root;
use serde_json::Value;
use tools::permission::{ConfinementLevel, Decision, Mode, RuleVerdict, Rules, Situation, Wall, decide};
use tools::sandbox::SandboxExit;
use tools::{Access, Scope, Subject};
use transcript::tool_names;

/// Limit on the files below each working directory among which excluded ones are looked for.
const WALKED: usize = 50_000;
/// Bytes read of an excluded file.
const FILE: u64 = 1024 * 1024;
/// Bytes read of all of them.
const ALL: usize = 16 * 1024 * 1024;
/// Characters of the shortest line that counts; a shorter one is in too many files.
const SHORTEST: usize = 12;
/// The tags around a command of the user's own (`!`), here and in Claude Code.
const COMMANDS: [(&str, &str); 2] = [("<command>", "</command>"), ("<bash-input>", "</bash-input>")];
/// Limit on the names in one result that are looked up.
const NAMES: usize = 4_000;

/// Exclusions from learning.
pub(crate) struct Exclusions {
    /// Rules for Read that deny.
    rules: Rules,
    scope: Scope,
    /// Hashes of the lines of excluded files; read on demand.
    lines: OnceLock<HashSet<u64>>,
}

impl Exclusions {
    pub(crate) fn new(rules: Rules, scope: Scope) -> Self {
        Self { rules, scope, lines: OnceLock::new() }
    }

    /// True if nothing is excluded.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.deny.is_empty()
    }

    /// True if a file is excluded.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let (named, real) = self.scope.place(&path.to_string_lossy());
        matches!(self.rules.decide(tool_names::READ, &Subject::Path { named, real }), RuleVerdict::Deny(_))
    }

    /// True if work in a directory is work in what is excluded.
    pub(crate) fn holds(&self, directory: &Path) -> bool {
        !self.is_empty() && self.has(&directory.join("any"))
    }

    /// True if a call touched what is excluded, by its input. `directory` is where it ran.
    pub(crate) fn touched_by(&self, input: &Value, directory: &Path) -> bool {
        if self.is_empty() {
            return false;
        }
        let from = |path: &str| if path.starts_with('~') { PathBuf::from(path) } else { directory.join(path) };
        let mut paths = ["file_path", "notebook_path", "path"].iter().filter_map(|key| input[*key].as_str());
        paths.any(|path| self.has(&from(path)))
            || input["command"].as_str().is_some_and(|command| self.touched_by_command(command, directory))
    }

    /// True if a command names what is excluded.
    pub(crate) fn touched_by_command(&self, command: &str, directory: &Path) -> bool {
        let situation = Situation {
            mode: Mode::BypassPermissions,
            rules: &self.rules,
            directories: &self.scope.directories(),
            directory,
            home: self.scope.home(),
            confined: ConfinementLevel::No,
            wall: Wall::None,
            leaves: SandboxExit::No,
        };
        let judged = decide(&situation, Access::Changes, tool_names::BASH, &Subject::Command(command.to_owned()));
        matches!(judged, Decision::Deny { .. })
    }

    /// True if a result, or the output of a command, shows something of what is excluded.
    pub(crate) fn shown_in(&self, text: &str, directory: &Path) -> bool {
        !self.is_empty() && (self.named_in(text, directory) || self.quoted_in(text))
    }

    /// True if a text that came with a message, such as a file that it names or a command with its output, shows something
    /// of what is excluded.
    pub(crate) fn shown_beside(&self, text: &str, directory: &Path) -> bool {
        let inside = |(from, to): &(&str, &str)| Some(text.split_once(from)?.1.split_once(to)?.0);
        COMMANDS.iter().filter_map(inside).any(|command| self.touched_by_command(command, directory))
            || self.shown_in(text, directory)
    }

    /// True if a text names what is excluded.
    pub(crate) fn named_in(&self, text: &str, directory: &Path) -> bool {
        let around =
            |c: char| c.is_whitespace() || matches!(c, ':' | '"' | '\'' | '`' | ',' | '(' | ')' | '<' | '>' | '@');
        let words = text.split(around).filter(|word| word.contains(['/', '.']) && word.len() < 1_000);
        let names: HashSet<&str> = words.take(NAMES * 16).collect();
        names.into_iter().take(NAMES).any(|name| self.has(&directory.join(name)))
    }

    fn quoted_in(&self, text: &str) -> bool {
        let known = self.lines.get_or_init(|| self.read_lines());
        !known.is_empty() && text.lines().any(|line| parts(line).any(|part| known.contains(&hash(part))))
    }

    /// Reads the excluded files below the working directories.
    fn read_lines(&self) -> HashSet<u64> {
        let (mut lines, mut room) = (HashSet::new(), ALL);
        for directory in self.scope.directories() {
            let Ok(root) = Root::open(&directory) else { continue };
            let found = root.walk_some(WALKED, |folder| !folder.ends_with(".git")).unwrap_or_default();
            for file in found {
                if room == 0 || !self.has(&directory.join(&file.path)) {
                    continue;
                }
                let Ok(head) = root.head(&file.path, FILE.min(room as u64)) else { continue };
                room = room.saturating_sub(head.bytes.len());
                let text = String::from_utf8_lossy(&head.bytes);
                lines.extend(text.lines().map(str::trim).filter(|line| is_telling(line)).map(hash));
            }
        }
        lines
    }
}

/// A line of a result, and its rest after a file's name and a number.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    let marks = line.char_indices().filter(|(_, c)| matches!(c, ':' | '-' | '\t' | '→' | '|'));
    let behind = marks.take(6).map(|(at, c)| &line[at + c.len_utf8()..]);
    std::iter::once(line).chain(behind).map(str::trim).filter(|part| is_telling(part))
}

fn is_telling(line: &str) -> bool {
    line.chars().count() >= SHORTEST
}

fn hash(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}
