//! How far an instruction file reaches: where it may lie once links are followed, and what it may include.
//!
//! The user's own files and the organisation's reach everywhere. A file of the project reaches what lies in the project.
//! A file in a directory above the project reaches what lies in that directory, and is only read if it is not another
//! user's: anyone can put a CLAUDE.md into `/tmp`. Whatever lies beyond is left out unless the user agreed to that very
//! file. The check and the reading are one: the kernel keeps the reading inside, whatever happens to links meanwhile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use files::{Error, Root, Snapshot};

use super::{InstructionSources, READ_LIMIT};
use crate::place;

/// How far a file reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IncludeReach {
    /// Everywhere.
    Anywhere,
    /// What lies in this directory, links followed.
    Inside(PathBuf),
}

/// Why a file was not read.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It leads to a file outside, to which nobody agreed.
    Outside(PathBuf),
    /// Another user put it there.
    OfAnother,
    /// It cannot be read.
    Failed(Error),
}

/// The project a session works in: the checkout that the working directory belongs to, else that directory. A home
/// directory under git is no project: all that lies in it would be inside.
pub(super) fn project(sources: &InstructionSources) -> PathBuf {
    let working = super::real(&sources.working_directory);
    let home = sources.home.as_deref().map(super::real);
    let checkout = place::checkout(&working);
    let too_wide = |root: &Path| root.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(root));
    checkout.filter(|root| !too_wide(root)).unwrap_or(working)
}

impl IncludeReach {
    /// How far the files of a directory reach, seen from the project.
    pub(super) fn of(directory: &Path, project: &Path) -> Self {
        let directory = super::real(directory);
        Self::Inside(if directory.starts_with(project) { project.to_owned() } else { directory })
    }

    /// Reads a file that lies within reach, or one that was agreed to.
    pub(super) fn read(&self, path: &Path, agreed: &BTreeSet<PathBuf>) -> Result<Snapshot, Refusal> {
        let Self::Inside(root) = self else { return files::read(path, READ_LIMIT).map_err(Refusal::Failed) };
        let real = files::real(path).map_err(Refusal::Failed)?;
        match real.strip_prefix(root) {
            Ok(inside) => Root::open(root).and_then(|root| root.read(inside, READ_LIMIT)).map_err(Refusal::Failed),
            Err(_) if agreed.contains(&real) => files::exact::read(&real, READ_LIMIT).map_err(Refusal::Failed),
            Err(_) => Err(match files::open(&real) {
                Err(missing @ Error::NotFound { .. }) => Refusal::Failed(missing),
                _ => Refusal::Outside(real),
            }),
        }
    }

    /// The rule files of a folder within reach, at any depth, by path.
    pub(super) fn rules(&self, folder: &Path) -> Result<Vec<PathBuf>, Refusal> {
        let opened = match self {
            Self::Anywhere => Root::open(folder),
            Self::Inside(root) => {
                let real = files::real(folder).map_err(Refusal::Failed)?;
                match real.strip_prefix(root) {
                    Ok(inside) => Root::open(root).and_then(|root| root.sub(inside)),
                    Err(_) => return Err(Refusal::Outside(real)),
                }
            }
        };
        Ok(opened.map(|opened| super::rules::files(&opened, folder)).unwrap_or_default())
    }
}

/// Whether a file above the project is there by the user's hand, or by that of whoever owns the project.
pub(super) fn is_own(path: &Path, working: &Path) -> bool {
    files::is_own(path, working) && files::is_own(super::real(path), working)
}
