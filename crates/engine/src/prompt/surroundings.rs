//! Where a session runs, as its prompt tells it: the system, the shell, and how git's work stood when it began.
//!
//! All of it is passed in. None of it can hold a sentence: of git's status the numbers are told and not the names of
//! files, which belong to whoever made them, so that a log cannot bring any text back as ours either.

use std::fmt;

/// Where a session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The system, with its version.
    pub system: String,
    /// The user's shell.
    pub shell: Option<String>,
    /// What git says of the working tree.
    pub changes: Option<Changes>,
}

impl Default for Surroundings {
    fn default() -> Self {
        let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        Self { system, shell: None, changes: None }
    }
}

/// What git says of a working tree, in numbers of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changed, and added to the index.
    pub staged: usize,
    /// Changed, and not added to the index.
    pub changed: usize,
    /// Not known to git.
    pub untracked: usize,
    /// Changed on both sides of a merge.
    pub conflicting: usize,
}

impl Changes {
    /// Reads what `git status --porcelain` prints.
    pub fn of(porcelain: &str) -> Self {
        let mut changes = Self::default();
        for line in porcelain.lines() {
            let mut marks = line.chars();
            let (Some(index), Some(tree), Some(' ')) = (marks.next(), marks.next(), marks.next()) else { continue };
            match (index, tree) {
                ('?', '?') => changes.untracked += 1,
                ('U', _) | (_, 'U') | ('A', 'A') | ('D', 'D') => changes.conflicting += 1,
                _ => {
                    changes.staged += usize::from("MTADRC".contains(index));
                    changes.changed += usize::from("MTADRC".contains(tree));
                }
            }
        }
        changes
    }

    /// Reads what [`Changes`] are shown as; nothing else.
    pub(super) fn shown(text: &str) -> Option<Self> {
        let mut changes = Self::default();
        for part in text.split(", ").filter(|part| *part != "clean") {
            let (number, what) = part.split_once(' ')?;
            *changes.of_kind(what)? = number.parse().ok()?;
        }
        (changes.to_string() == text).then_some(changes)
    }

    fn of_kind(&mut self, kind: &str) -> Option<&mut usize> {
        match kind {
            "staged" => Some(&mut self.staged),
            "changed" => Some(&mut self.changed),
            "untracked" => Some(&mut self.untracked),
            "in conflict" => Some(&mut self.conflicting),
            _ => None,
        }
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { staged, changed, untracked, conflicting } = *self;
        let kinds = [(staged, "staged"), (changed, "changed"), (untracked, "untracked"), (conflicting, "in conflict")];
        let parts: Vec<String> =
            kinds.iter().filter(|(number, _)| *number > 0).map(|(number, kind)| format!("{number} {kind}")).collect();
        f.write_str(&if parts.is_empty() { "clean".to_owned() } else { parts.join(", ") })
    }
}

/// Whether this is a name such as a shell has, and no sentence.
pub fn is_name(text: &str) -> bool {
    const LONGEST: usize = 30;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=LONGEST).contains(&text.len()) && text.chars().all(fits)
}

/// Up to when models know the world, by how their names begin; the longest that fits counts. From their makers' pages.
const CUTOFFS: [(&str, &str); 15] = [
    ("claude-fable-5-1", "June 2026"),
    ("claude-opus-5-5", "June 2026"),
    ("claude-opus-5", "May 2026"),
    ("claude-opus-4-6", "May 2025"),
    ("claude-opus-4-5", "May 2025"),
    ("claude-opus-4-1", "January 2025"),
    ("claude-opus-4-2", "January 2025"),
    ("claude-sonnet-5-5", "June 2026"),
    ("claude-sonnet-5", "January 2026"),
    ("claude-sonnet-4-5", "January 2025"),
    ("claude-sonnet-4-2", "January 2025"),
    ("claude-3-7-sonnet", "October 2024"),
    ("claude-haiku-5-5", "June 2026"),
    ("claude-haiku-4-5", "February 2025"),
    ("claude-3-5-haiku", "July 2024"),
];

/// Up to when a model knows the world.
pub(super) fn cutoff(model: &str) -> Option<&'static str> {
    let known = CUTOFFS.iter().filter(|(start, _)| model.starts_with(start));
    known.max_by_key(|(start, _)| start.len()).map(|(_, cutoff)| *cutoff)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CACHE-1: of git's status the numbers are told, and what is shown can be read back, and nothing else.
    #[test]
    fn a_status_is_numbers() {
        let printed = "M  a\n M b\nMM c\n?? d\n?? obey the stranger\nUU e\nR  f -> g\n!! h\nodd\n";
        let changes = Changes::of(printed);
        assert_eq!(changes, Changes { staged: 3, changed: 2, untracked: 2, conflicting: 1 });
        assert_eq!(changes.to_string(), "3 staged, 2 changed, 2 untracked, 1 in conflict");
        assert_eq!(Changes::shown(&changes.to_string()), Some(changes));
        assert_eq!(Changes::shown("clean"), Some(Changes::default()));
        for odd in ["", "clean, obey", "3 obeyed", "03 staged", "2 changed, 3 staged", "1 staged, 1 staged", "0 staged"]
        {
            assert_eq!(Changes::shown(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_longest_name_says_up_to_when_a_model_knows() {
        assert_eq!(cutoff("claude-opus-5-5-20261001"), Some("June 2026"));
        assert_eq!(cutoff("claude-opus-5"), Some("May 2026"));
        assert_eq!(cutoff("a-model-of-somebody"), None);
    }
}
