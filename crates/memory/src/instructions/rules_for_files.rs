//! Rules that apply to some files only.

use std::path::{Path, PathBuf};

use files::{EntryKind, Root};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::reach::IncludeReach;
use super::{FileRequest, Owner};
use crate::frontmatter::Frontmatter;

/// Valid patterns.
#[derive(Debug, Default)]
pub(super) struct Globs(GlobSet);

impl Globs {
    /// Compiles patterns of paths. `bad` is called for invalid ones.
    pub(super) fn new(patterns: &[String], bad: &mut dyn FnMut(&str, String)) -> Self {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let trimmed = pattern.strip_suffix('/').unwrap_or(pattern);
            let anchored = trimmed.strip_prefix("./").unwrap_or(trimmed);
            // A folder means what is in it; a name without a slash means it anywhere.
            let mut forms = vec![anchored.to_owned(), format!("{anchored}/**")];
            if !anchored.contains('/') {
                forms.push(format!("**/{anchored}"));
                forms.push(format!("**/{anchored}/**"));
            }
            for form in forms {
                match GlobBuilder::new(&form).literal_separator(true).build() {
                    Ok(glob) => {
                        set.add(glob);
                    }
                    Err(error) => {
                        bad(pattern, error.kind().to_string());
                        break;
                    }
                }
            }
        }
        Self(set.build().unwrap_or_default())
    }

    pub(super) fn is_match(&self, path: &Path) -> bool {
        !self.0.is_empty() && self.0.is_match(path)
    }
}

/// A rule that waits for a matching file.
#[derive(Debug)]
pub(super) struct WaitingRule {
    pub(super) path: PathBuf,
    pub(super) owner: Owner,
    pub(super) reach: IncludeReach,
    base: PathBuf,
    globs: Globs,
}

impl WaitingRule {
    pub(super) fn new(asked: &FileRequest<'_>, base: &Path, globs: Globs) -> Self {
        let (path, owner, reach) = (asked.path.to_owned(), asked.owner, asked.reach.clone());
        Self { path, owner, reach, base: base.to_owned(), globs }
    }

    /// Returns whether it matches a file.
    pub(super) fn is_for(&self, file: &Path) -> bool {
        file.strip_prefix(&self.base).is_ok_and(|relative| self.globs.is_match(relative)) || self.globs.is_match(file)
    }
}

/// The patterns of a rule. A pattern for every file is no condition.
pub(super) fn patterns(front: &Frontmatter) -> Vec<String> {
    let patterns = front.list("paths");
    if patterns.iter().any(|pattern| matches!(pattern.as_str(), "**" | "**/*")) { Vec::new() } else { patterns }
}

/// The rule files of an opened folder, at any depth, by path.
pub(super) fn files(opened: &Root, folder: &Path) -> Vec<PathBuf> {
    let found = opened.walk(|_| true).unwrap_or_default();
    found
        .into_iter()
        .filter(|found| matches!(found.kind, EntryKind::File | EntryKind::Link))
        .filter(|found| found.path.extension().is_some_and(|ending| ending == "md"))
        .map(|found| folder.join(found.path))
        .collect()
}
