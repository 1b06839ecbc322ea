//! Reach of an instruction file: its allowed real path, and what it may include.
//!
//! The files of the user and the organisation reach everywhere. A file of the project reaches what is in the project. A
//! file in a directory above the project reaches what is in that directory, and is only read if it is not another
//! user's: anyone can put a CLAUDE.md into `/tmp`. Anything beyond is left out unless the user agreed to that very
//! file. Check and read are one step: the kernel keeps the read inside, whatever happens to symlinks meanwhile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use files::{Error, Root, Snapshot};

use super::{InstructionSources, READ_LIMIT};
use crate::place;

/// Reach of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IncludeReach {
    /// Everywhere.
    Anywhere,
    /// The inside of this directory, with symlinks resolved.
    Inside(PathBuf),
}

/// Reason why a file was not read.
#[derive(Debug)]
pub(super) enum ReadRefusal {
    /// It leads to a file outside, to which the user has not agreed.
    Outside(PathBuf),
    /// Another user put it there.
    OfAnother,
    /// It cannot be read.
    Failed(Error),
}

/// The session's project: the checkout of the working directory, else that directory. A home directory under git is not
/// a project: everything in it would be inside.
pub(super) fn project(sources: &InstructionSources) -> PathBuf {
    let working = super::real(&sources.working_directory);
    let home = sources.home.as_deref().map(super::real);
    let checkout = place::checkout(&working);
    let too_wide = |root: &Path| root.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(root));
    checkout.filter(|root| !too_wide(root)).unwrap_or(working)
}

impl IncludeReach {
    /// Reach of the files of a directory, seen from the project.
    pub(super) fn of(directory: &Path, project: &Path) -> Self {
        let directory = super::real(directory);
        Self::Inside(if directory.starts_with(project) { project.to_owned() } else { directory })
    }

    /// Reads a file within reach, or one that was agreed to.
    pub(super) fn read(&self, path: &Path, agreed: &BTreeSet<PathBuf>) -> Result<Snapshot, ReadRefusal> {
        let Self::Inside(root) = self else { return files::read(path, READ_LIMIT).map_err(ReadRefusal::Failed) };
        let real = files::real(path).map_err(ReadRefusal::Failed)?;
        match real.strip_prefix(root) {
            Ok(inside) => Root::open(root).and_then(|root| root.read(inside, READ_LIMIT)).map_err(ReadRefusal::Failed),
            Err(_) if agreed.contains(&real) => files::exact::read(&real, READ_LIMIT).map_err(ReadRefusal::Failed),
            Err(_) => Err(match files::open(&real) {
                Err(missing @ Error::NotFound { .. }) => ReadRefusal::Failed(missing),
                _ => ReadRefusal::Outside(real),
            }),
        }
    }

    /// The rule files of a folder within reach, at any depth, by path.
    pub(super) fn rules(&self, folder: &Path) -> Result<Vec<PathBuf>, ReadRefusal> {
        let opened = match self {
            Self::Anywhere => Root::open(folder),
            Self::Inside(root) => {
                let real = files::real(folder).map_err(ReadRefusal::Failed)?;
                match real.strip_prefix(root) {
                    Ok(inside) => Root::open(root).and_then(|root| root.sub(inside)),
                    Err(_) => return Err(ReadRefusal::Outside(real)),
                }
            }
        };
        Ok(opened.map(|opened| super::rules_for_files::files(&opened, folder)).unwrap_or_default())
    }
}

/// Returns whether a file above the project belongs to the user, or to the owner of the project.
pub(super) fn is_own(path: &Path, working: &Path) -> bool {
    files::is_own(path, working) && files::is_own(super::real(path), working)
}
