//! Location of memory, and whether it is on.
//!
//! Nothing is read from the environment here: the binary fills in [`Inputs`], and the choice is a function of it. The
//! disk is read only for the repository: all worktrees of one share a memory, so its slug is made from the main
//! checkout. A worktree is trusted only if the repository points back at it; else a checkout from a stranger could name
//! another repository as its own and read that one's memory.

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, PlaceRule};

/// Length above which slugs are cut and get a hash, since file names have a limit.
const SLUG_LENGTH: usize = 200;

/// Bytes read of git's small pointer files.
const POINTER_LIMIT: u64 = 16 * 1024;

/// Everything the choice depends on. The files below the project are deliberately not part of it.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The config home: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub config_home: PathBuf,
    /// The user's home, for `~/`.
    pub home: Option<PathBuf>,
    /// The session's working directory.
    pub working_directory: PathBuf,
    /// `CLAUDE_COWORK_MEMORY_PATH_OVERRIDE`: the whole path.
    pub path_override: Option<String>,
    /// `autoMemoryDirectory` by source.
    pub auto_memory_directory: BySource,
    /// `CLAUDE_CODE_REMOTE_MEMORY_DIR`.
    pub remote_memory_directory: Option<String>,
    /// `CLAUDE_CODE_DISABLE_AUTO_MEMORY`, if its value means yes or no.
    pub disable: Option<bool>,
    /// `CLAUDE_CODE_SIMPLE` or `--bare`.
    pub simple: bool,
    /// `CLAUDE_CODE_REMOTE`.
    pub remote: bool,
    /// `autoMemoryEnabled` of the settings.
    pub enabled: Option<bool>,
}

/// A setting by the sources that may set it; the first wins.
#[derive(Debug, Clone, Default)]
pub struct BySource {
    /// The organisation's.
    pub policy: Option<String>,
    /// `--settings`.
    pub flag: Option<String>,
    /// The user's.
    pub user: Option<String>,
}

/// State of memory: on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// It is on.
    On,
    /// It is off, for this reason.
    Off(OffReason),
}

/// Reason why memory is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffReason {
    /// `CLAUDE_CODE_DISABLE_AUTO_MEMORY`.
    Environment,
    /// `CLAUDE_CODE_SIMPLE` or `--bare`.
    Simple,
    /// A remote session without a place that outlives it.
    Remote,
    /// `autoMemoryEnabled: false`.
    Settings,
}

/// Decides whether memory is on. The first input that is set decides; `CLAUDE_CODE_DISABLE_AUTO_MEMORY=0` means on.
pub fn switch(inputs: &Inputs) -> Switch {
    let remote_without_a_place = inputs.remote && given(inputs.remote_memory_directory.as_ref()).is_none();
    match inputs.disable {
        Some(true) => Switch::Off(OffReason::Environment),
        Some(false) => Switch::On,
        None if inputs.simple => Switch::Off(OffReason::Simple),
        None if remote_without_a_place => Switch::Off(OffReason::Remote),
        None if inputs.enabled == Some(false) => Switch::Off(OffReason::Settings),
        None => Switch::On,
    }
}

/// The memory directory. It need not exist.
pub fn directory(inputs: &Inputs) -> Result<PathBuf, Error> {
    if let Some(path) = given(inputs.path_override.as_ref()) {
        return admitted(path, "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", None, inputs);
    }
    let BySource { policy, flag, user } = &inputs.auto_memory_directory;
    let settings = [
        (policy, "autoMemoryDirectory in policy settings"),
        (flag, "autoMemoryDirectory in --settings"),
        (user, "autoMemoryDirectory in user settings"),
    ];
    for (path, from) in settings {
        if let Some(path) = given(path.as_ref()) {
            return admitted(path, from, inputs.home.as_deref(), inputs);
        }
    }
    let base = match given(inputs.remote_memory_directory.as_ref()) {
        Some(path) => admitted(path, "CLAUDE_CODE_REMOTE_MEMORY_DIR", None, inputs)?,
        None => inputs.config_home.clone(),
    };
    let project = slug(&canonical_root(&inputs.working_directory));
    Ok(base.join("projects").join(project).join("memory"))
}

fn given(value: Option<&String>) -> Option<&str> {
    value.map(String::as_str).filter(|value| !value.is_empty())
}

/// A checked path, or the rule it breaks.
fn admitted(path: &str, from: &'static str, home: Option<&Path>, inputs: &Inputs) -> Result<PathBuf, Error> {
    let refused = |rule| Error::Refused { path: path.to_owned(), from, rule };
    if path.contains('\0') {
        return Err(refused(PlaceRule::Nul));
    }
    if path.starts_with("\\\\") || path.starts_with("//") {
        return Err(refused(PlaceRule::Unc));
    }
    if is_drive_root(path) {
        return Err(refused(PlaceRule::DriveRoot));
    }
    let expanded = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    };
    if !expanded.is_absolute() {
        return Err(refused(PlaceRule::Relative));
    }
    let plain = without_dots(&expanded);
    match plain.components().filter(|part| matches!(part, Component::Normal(_))).count() {
        0 => Err(refused(PlaceRule::Root)),
        1 => Err(refused(PlaceRule::BelowRoot)),
        _ if inputs.home.as_deref() == Some(plain.as_path()) => Err(refused(PlaceRule::Home)),
        _ => Ok(plain),
    }
}

fn is_drive_root(path: &str) -> bool {
    let mut chars = path.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && chars.all(|c| matches!(c, '/' | '\\'))
}

/// Resolves `.` and `..` by text alone.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// A directory's path as a folder name.
pub fn slug(directory: &Path) -> String {
    let path = directory.to_string_lossy();
    let slug: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if slug.len() <= SLUG_LENGTH {
        return slug;
    }
    let hash = blake3::hash(path.as_bytes()).to_hex();
    format!("{}-{}", &slug[..SLUG_LENGTH], &hash[..8])
}

/// The root of the repository's main checkout, else the directory itself; symlinks are resolved.
pub fn canonical_root(directory: &Path) -> PathBuf {
    let directory = files::real(directory).unwrap_or_else(|_| directory.to_owned());
    for above in directory.ancestors() {
        match files::read(above.join(".git"), POINTER_LIMIT) {
            // A directory: this is the main checkout.
            Err(files::Error::IsDirectory { .. }) => return above.to_owned(),
            Ok(pointer) => return main_checkout(above, &pointer.bytes).unwrap_or_else(|| above.to_owned()),
            Err(_) => {}
        }
    }
    directory
}

/// The root of a directory's checkout: the nearest one at or above it that holds a `.git`, whatever a `.git` file says.
pub fn checkout(directory: &Path) -> Option<PathBuf> {
    let is_checkout = |above: &&Path| {
        let found = files::read(above.join(".git"), POINTER_LIMIT);
        matches!(found, Ok(_) | Err(files::Error::IsDirectory { .. }))
    };
    directory.ancestors().find(is_checkout).map(Path::to_owned)
}

/// Git's directory of a checkout: its own `.git` directory, or the one its `.git` file names, if that one points back.
/// A checkout from a stranger cannot name another repository as its own.
pub fn git_directory(checkout: &Path) -> Option<PathBuf> {
    let own = checkout.join(".git");
    let pointer = match files::read(&own, POINTER_LIMIT) {
        Err(files::Error::IsDirectory { .. }) => return files::real(&own).ok().filter(|real| *real == own),
        other => other.ok()?,
    };
    let git = String::from_utf8_lossy(&pointer.bytes).strip_prefix("gitdir:")?.trim().to_owned();
    let git = files::real(checkout.join(git)).ok()?;
    let of_worktree = || files::real(git.join(line_of(&git.join("gitdir"))?)).ok();
    let of_module = checkout.ancestors().skip(1).any(|above| git.starts_with(above.join(".git/modules")));
    (of_module || of_worktree() == Some(own)).then_some(git)
}

/// The main checkout that a worktree's `.git` file leads to, if the repository knows the worktree. A submodule's file
/// leads to a repository of its own, so it has none.
fn main_checkout(worktree: &Path, pointer: &[u8]) -> Option<PathBuf> {
    let pointer = String::from_utf8_lossy(pointer);
    let git = pointer.strip_prefix("gitdir:")?.trim();
    let git = files::real(worktree.join(git)).ok()?;
    let common = line_of(&git.join("commondir"))?;
    let common = files::real(git.join(common)).ok()?;
    let known = git.parent() == Some(common.join("worktrees").as_path());
    let back = files::real(git.join(line_of(&git.join("gitdir"))?)).ok()?;
    if !known || back != worktree.join(".git") {
        return None;
    }
    match common.file_name() {
        Some(name) if name == ".git" => common.parent().map(Path::to_owned),
        // A bare repository has no checkout of its own.
        _ => Some(common),
    }
}

fn line_of(path: &Path) -> Option<PathBuf> {
    let file = files::read(path, POINTER_LIMIT).ok()?;
    let text = String::from_utf8_lossy(&file.bytes).trim().to_owned();
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// Directory of the user's memories that hold in every project.
pub fn user_directory(config_home: &Path) -> PathBuf {
    config_home.join("memory")
}
