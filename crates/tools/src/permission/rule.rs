//! One rule, as written in settings: `Bash`, `Bash(npm run test:*)`, `Read(src/**)`, `Edit(//etc/**)`,
//! `Agent(Explore)`, `mcp__server`.
//!
//! The name before the parentheses selects the tools: `Edit` includes Write, `Read` includes Grep and Glob,
//! `mcp__server` includes every tool of that server. Without a pattern the rule covers every call of them.
//!
//! A command pattern is exact, or a prefix (`git log:*`, which ends at a word), or has `*` for anything. A path pattern
//! is read as in a `.gitignore`; its beginning says where it starts: `//` the file system's root, `~/` home, `/` the
//! directory of the settings file, anything else the working directory. For agents the pattern is a name, for WebFetch a host:
//! `WebFetch(domain:example.com)`, `WebFetch(domain:*.example.com)`.

use std::fmt;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use transcript::tool_names;

use super::command::JudgedCommand;
use super::protected_paths::is_guarded_name;

/// Prefix of a pattern of hosts.
const DOMAIN: &str = "domain:";

/// Base directories of the paths in rules. All absolute.
#[derive(Debug, Clone)]
pub struct Places {
    /// The working directory.
    pub directory: PathBuf,
    /// The directory of the rule's settings file.
    pub settings: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The rule's settings file; `None` for a flag, or for an answer in this session.
    pub file: Option<PathBuf>,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    tool: String,
    pattern: Pattern,
    /// The settings file, as people write it.
    file: Option<String>,
}

/// Error for a rule that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the permission rule `{rule}` cannot be understood: {why}")]
pub struct BadRule {
    /// The rule as written in the settings.
    pub rule: String,
    /// The problem.
    pub why: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Pattern {
    /// Every call.
    Any,
    /// A command or a path, depending on the tool.
    Of { command: String, path: Option<Box<PathPattern>> },
}

#[derive(Debug, Clone)]
struct PathPattern {
    matcher: Gitignore,
    /// Leading part of the path without wildcards.
    literal: PathBuf,
    /// True if that is the whole path.
    is_exact: bool,
    reach: PatternReach,
    /// The copy of a folder and the folder, if the pattern applies to a copy.
    copy: Option<(PathBuf, PathBuf)>,
}

/// Rules are equal if they say the same about the same places, whatever their file.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.pattern) == (&other.text, &other.pattern)
    }
}

/// The text of the rule covers the rest.
impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        let Self { matcher, literal, is_exact, reach, copy } = self;
        (matcher.path(), literal, is_exact, reach, copy)
            == (other.matcher.path(), &other.literal, &other.is_exact, &other.reach, &other.copy)
    }
}

/// Location of the files that a pattern covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternReach {
    /// One file, or one directory with everything below it.
    Exactly,
    /// Files in one directory.
    In,
    /// Files in many directories.
    Anywhere,
}

impl Rule {
    /// Parses a rule.
    pub fn parse(text: &str, places: &Places) -> Result<Self, BadRule> {
        let text = text.trim();
        let bad = |why: &str| BadRule { rule: text.to_owned(), why: why.to_owned() };
        let (tool, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let pattern =
                    rest.strip_suffix(')').ok_or_else(|| bad("it opens a parenthesis and does not close it"))?;
                (tool, Some(pattern.trim()))
            }
        };
        if tool.is_empty() || !tool.chars().all(|letter| letter.is_alphanumeric() || "_-*.".contains(letter)) {
            return Err(bad("it does not start with the name of a tool"));
        }
        let pattern = match pattern {
            None | Some("" | "*" | "**" | ":*") => Pattern::Any,
            Some(pattern) if tool == tool_names::BASH => Pattern::Of { command: pattern.to_owned(), path: None },
            Some(pattern) => {
                let path = path_pattern(pattern, places).map_err(|why| bad(&why))?;
                Pattern::Of { command: pattern.to_owned(), path: Some(Box::new(path)) }
            }
        };
        let file = places.file.as_deref().map(|file| shown(file, places.home.as_deref()));
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), pattern, file })
    }

    /// The same rule for the copy of a folder, such as a worktree; `None` if it has no path.
    pub(super) fn in_copy(&self, at: &Path, of: &Path) -> Option<Self> {
        let Pattern::Of { path: Some(pattern), command } = &self.pattern else { return None };
        let path =
            PathPattern { copy: Some((at.to_owned(), of.to_owned())), is_exact: false, ..PathPattern::clone(pattern) };
        Some(Self { pattern: Pattern::Of { command: command.clone(), path: Some(Box::new(path)) }, ..self.clone() })
    }

    /// The rule with its settings file, as quoted in a question or a refusal.
    pub fn cited(&self) -> String {
        match &self.file {
            Some(file) => format!("`{}` in {file}", self.text),
            None => format!("`{}`", self.text),
        }
    }

    /// Returns whether it covers this tool.
    pub fn covers(&self, tool: &str) -> bool {
        match self.tool.as_str() {
            name if name == tool => true,
            tool_names::EDIT => matches!(tool, tool_names::WRITE | "MultiEdit" | tool_names::NOTEBOOK_EDIT),
            tool_names::READ => matches!(tool, tool_names::GREP | tool_names::GLOB),
            // The name that the task list had.
            "TodoWrite" => matches!(
                tool,
                tool_names::TASK_CREATE | tool_names::TASK_GET | tool_names::TASK_LIST | tool_names::TASK_UPDATE
            ),
            tool_names::TASK => tool == tool_names::AGENT, // as it was called before
            name if name.starts_with("mcp__") => {
                let rest = &name["mcp__".len()..];
                let server = rest.strip_suffix("__*").unwrap_or(rest);
                // `mcp__server`, and not `mcp__server__tool`, which is one tool; `mcp__*` is every server's.
                let is_server = !server.is_empty() && !server.contains("__");
                tool.strip_prefix("mcp__").is_some_and(|tool| {
                    rest == "*" || is_server && tool.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"))
                })
            }
            _ => false,
        }
    }

    /// Returns whether it has no pattern.
    pub fn is_about_every_call(&self) -> bool {
        matches!(self.pattern, Pattern::Any)
    }

    /// Returns whether it matches a path, as it is named or where it leads: for rules that deny or ask.
    pub(super) fn touches_path(&self, named: &Path, real: &Path) -> bool {
        self.matches_path(named) || self.matches_path(real)
    }

    /// Returns whether it matches any part of a command: for rules that deny or ask.
    pub(super) fn touches_command(&self, command: &JudgedCommand) -> bool {
        match &self.pattern {
            Pattern::Any => true,
            Pattern::Of { command: pattern, .. } => {
                command.candidates().iter().any(|part| command_matches(pattern, part))
            }
        }
    }

    /// Returns whether it surely matches one part of a command, or a name.
    pub(super) fn matches_part(&self, part: &str) -> bool {
        match &self.pattern {
            Pattern::Any => true,
            Pattern::Of { command, .. } => command_matches(command, part),
        }
    }

    /// Returns whether it matches a name.
    pub(super) fn matches_name(&self, name: &str) -> bool {
        match &self.pattern {
            Pattern::Of { command, .. } if command.starts_with(DOMAIN) => fits(&command.to_ascii_lowercase(), name),
            _ => self.matches_part(name),
        }
    }

    /// Returns whether it names a guarded path, rather than just covering it: exactly this one, or, for a rule without
    /// a file, the guarded directory around it.
    pub(super) fn names(&self, path: &Path) -> bool {
        let Pattern::Of { path: Some(pattern), .. } = &self.pattern else { return false };
        let names_directory =
            || path.strip_prefix(&pattern.literal).is_ok_and(|rest| !rest.iter().any(is_guarded_name));
        (pattern.is_exact && pattern.literal == path)
            || (self.file.is_none() && names_directory() && path_matches(pattern, path))
    }

    /// The existing files it covers, if it names the directory they are in; `None` if they can be anywhere.
    pub(super) fn hides(&self) -> Option<Vec<PathBuf>> {
        let Pattern::Of { path: Some(pattern), .. } = &self.pattern else { return None };
        match pattern.reach {
            PatternReach::Anywhere => None,
            PatternReach::Exactly => Some(pattern.place().into_iter().collect()),
            PatternReach::In => {
                let Some(directory) = pattern.place() else { return Some(Vec::new()) };
                let entries = files::list(&directory).unwrap_or_default();
                let paths = entries.into_iter().map(|entry| directory.join(entry.name));
                Some(paths.filter(|path| path_matches(pattern, path)).collect())
            }
        }
    }

    pub(super) fn matches_path(&self, path: &Path) -> bool {
        match &self.pattern {
            Pattern::Any => true,
            Pattern::Of { path: Some(pattern), .. } => path_matches(pattern, path),
            Pattern::Of { path: None, .. } => false,
        }
    }
}

impl PathPattern {
    /// Path of the files it names, or of their directory; `None` if the folder has no such place.
    fn place(&self) -> Option<PathBuf> {
        match &self.copy {
            None => Some(self.literal.clone()),
            Some((at, of)) => self.literal.strip_prefix(of).ok().map(|inside| at.join(inside)),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Matches exactly, by a prefix that ends at a word (`npm run:*`, `npm run *`), or with `*` for anything.
fn command_matches(pattern: &str, command: &str) -> bool {
    if let Some(prefix) = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"))
        && !prefix.contains('*')
    {
        return command.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    }
    let pattern = pattern.strip_suffix(":*").map_or_else(|| pattern.to_owned(), |prefix| format!("{prefix} *"));
    fits(&pattern, command)
}

/// Returns whether a text matches a pattern in which `*` stands for anything.
pub fn fits(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn path_pattern(pattern: &str, places: &Places) -> Result<PathPattern, String> {
    let no_home = || "it starts with ~, but the home directory is not known".to_owned();
    let (root, rest) = if let Some(rest) = pattern.strip_prefix("//") {
        (Path::new("/"), format!("/{rest}"))
    } else if let Some(rest) = pattern.strip_prefix("~/") {
        (places.home.as_deref().ok_or_else(no_home)?, format!("/{rest}"))
    } else if pattern.starts_with('/') {
        (places.settings.as_path(), pattern.to_owned())
    } else if let Some(rest) = pattern.strip_prefix("./") {
        (places.directory.as_path(), format!("/{rest}"))
    } else if pattern.starts_with(['!', '#']) {
        // In a .gitignore these would mean something else.
        (places.directory.as_path(), format!("\\{pattern}"))
    } else {
        (places.directory.as_path(), pattern.to_owned())
    };
    if rest.split('/').any(|part| part == "..") {
        return Err("it contains `..`; write where it leads".to_owned());
    }
    let mut builder = GitignoreBuilder::new(root);
    builder.add_line(None, &rest).map_err(|error| error.to_string())?;
    let matcher = builder.build().map_err(|error| error.to_string())?;
    let parts = || rest.split('/').filter(|part| !part.is_empty() && *part != ".");
    let by_name = parts().take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
    let literal = by_name.clone().fold(root.to_owned(), |path, part| path.join(part));
    let (named, all) = (by_name.count(), parts().count());
    // As in a `.gitignore`, a name alone is meant in every directory.
    let anchored = rest.trim_end_matches('/').contains('/');
    let reach = match parts().skip(named).collect::<Vec<_>>().as_slice() {
        _ if !anchored => PatternReach::Anywhere,
        [] | ["**"] => PatternReach::Exactly,
        [last] if !last.contains("**") => PatternReach::In,
        _ => PatternReach::Anywhere,
    };
    Ok(PathPattern { matcher, literal, is_exact: named == all, reach, copy: None })
}

fn path_matches(pattern: &PathPattern, path: &Path) -> bool {
    let original = match &pattern.copy {
        None => None,
        Some((at, of)) => match path.strip_prefix(at) {
            Ok(inside) => Some(of.join(inside)),
            Err(_) => return false,
        },
    };
    let path = original.as_deref().unwrap_or(path);
    // Relative to the root by ourselves: the matcher does not tolerate a path outside it.
    path.strip_prefix(pattern.matcher.path())
        .is_ok_and(|relative| pattern.matcher.matched_path_or_any_parents(relative, false).is_ignore())
}

/// A path as people write it: with `~` for the home.
fn shown(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}
