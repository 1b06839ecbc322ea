//! Paths that cannot be redirected while they are used.
//!
//! A command that still runs in the background may replace a directory with a symlink at any moment. So a path is
//! looked up once, without following a symlink, and from then on its descriptor stands for it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::mount::MsFlags;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat};

/// Limit on followed symlinks.
const LINKS: usize = 40;

/// A path without symlinks. `None` if it does not exist, or if a symlink on the way is in one of these directories:
/// whoever may write there decides where it leads.
pub(super) fn resolved(path: &Path, untrusted: &[PathBuf]) -> Option<PathBuf> {
    let mut left = parts(path);
    let mut real = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        if !next.symlink_metadata().ok()?.is_symlink() {
            real = next;
            continue;
        }
        links += 1;
        if links > LINKS || untrusted.iter().any(|directory| next.starts_with(directory)) {
            return None;
        }
        let target = next.read_link().ok()?;
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        left.extend(parts(&target));
    }
    Some(real)
}

/// Returns whether a path is a folder or inside it. Neither contains a symlink or a dot, so comparing text is enough:
/// this is called some thousand times for a command.
pub(super) fn is_below(path: &Path, folder: &Path) -> bool {
    let (path, folder) = (path.as_os_str().as_bytes(), folder.as_os_str().as_bytes());
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || folder.ends_with(b"/"))
}

/// The components of a path, last one first.
fn parts(path: &Path) -> Vec<std::ffi::OsString> {
    let named = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(named).collect()
}

/// A file or directory, pinned by a descriptor.
pub(super) struct PinnedPath(OwnedFd);

impl PinnedPath {
    /// Pins an absolute path without symlinks.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self(openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS)?))
    }

    /// Pins a path below it, without following a symlink.
    pub(super) fn below(&self, relative: &Path) -> io::Result<Self> {
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        Ok(Self(openat2(&self.0, relative, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?))
    }

    /// Pins a symlink below it, not its target.
    pub(super) fn link_itself(&self, relative: &Path) -> io::Result<Self> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat2(&self.0, relative, flags, Mode::empty(), resolve)?))
    }

    /// A path that always leads to it.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Returns whether it is a directory.
    pub(super) fn is_directory(&self) -> io::Result<bool> {
        Ok(rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&self.0)?.st_mode).is_dir())
    }

    /// Flags of the mount that it is on.
    pub(super) fn limits(&self) -> io::Result<MsFlags> {
        let limits = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        // How times of access are kept stays as it is when nothing is said of it.
        Ok(MsFlags::from_bits_truncate(rustix::fs::fstatvfs(&self.0)?.f_flag.bits()) & limits)
    }

    /// A directory below it, created if missing.
    pub(super) fn directory(&self, relative: &Path) -> io::Result<Self> {
        match self.below(relative) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (parent, name) = self.parent(relative)?;
                mkdirat(parent.as_ref().unwrap_or(self), name, Mode::from_raw_mode(0o755))?;
                self.below(relative)
            }
            there => there,
        }
    }

    /// A file below it, created if missing.
    pub(super) fn file(&self, relative: &Path) -> io::Result<Self> {
        match self.below(relative) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (parent, name) = self.parent(relative)?;
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                openat(parent.as_ref().unwrap_or(self), name, flags, Mode::from_raw_mode(0o600))?;
                self.below(relative)
            }
            there => there,
        }
    }

    /// A symlink below it, created if nothing is there.
    pub(super) fn link(&self, relative: &Path, target: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(relative)?;
        match symlinkat(target, parent.as_ref().unwrap_or(self), name) {
            Err(rustix::io::Errno::EXIST) => Ok(()),
            other => Ok(other?),
        }
    }

    /// The parent directory of a path below it, created if missing, if it is not this one; and the name there.
    fn parent<'a>(&self, relative: &'a Path) -> io::Result<(Option<Self>, &'a OsStr)> {
        let name = relative.file_name().ok_or_else(|| io::Error::other("a path without a name"))?;
        let parent = relative.parent().filter(|parent| !parent.as_os_str().is_empty());
        Ok((parent.map(|parent| self.directory(parent)).transpose()?, name))
    }
}

impl AsFd for PinnedPath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
