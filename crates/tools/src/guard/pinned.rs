//! Paths that cannot be bent while they are used.
//!
//! A command that still runs in the background may put a link where a directory was, at any moment. So a path is looked
//! up once, without following a link, and from then on its descriptor stands for it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::mount::MsFlags;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat};

/// The most links that are followed.
const LINKS: usize = 40;

/// A path without links. None where it does not exist, or where a link on the way lies in one of these directories: who
/// may write there says where it leads.
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

/// Whether a path is a folder or lies in it. Neither has a link or a dot on it, so their text tells: this is asked some
/// thousand times for a command.
pub(super) fn lies_in(path: &Path, folder: &Path) -> bool {
    let (path, folder) = (path.as_os_str().as_bytes(), folder.as_os_str().as_bytes());
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || folder.ends_with(b"/"))
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<std::ffi::OsString> {
    let named = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(named).collect()
}

/// What is at a path, from now on.
pub(super) struct PinnedPath(OwnedFd);

impl PinnedPath {
    /// What is at an absolute path on which no link is.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self(openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS)?))
    }

    /// What is below it, without following a link.
    pub(super) fn below(&self, relative: &Path) -> io::Result<Self> {
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        Ok(Self(openat2(&self.0, relative, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?))
    }

    /// A link below it, and not what it leads to.
    pub(super) fn link_itself(&self, relative: &Path) -> io::Result<Self> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat2(&self.0, relative, flags, Mode::empty(), resolve)?))
    }

    /// A path for it that always leads there.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Whether it is a directory.
    pub(super) fn is_directory(&self) -> io::Result<bool> {
        Ok(rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&self.0)?.st_mode).is_dir())
    }

    /// The limits of the mount on which it lies.
    pub(super) fn limits(&self) -> io::Result<MsFlags> {
        let limits = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        // How times of access are kept stays as it is when nothing is said of it.
        Ok(MsFlags::from_bits_truncate(rustix::fs::fstatvfs(&self.0)?.f_flag.bits()) & limits)
    }

    /// A directory below it, made where it is missing.
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

    /// A file below it, made where it is missing.
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

    /// A link below it, made where nothing is.
    pub(super) fn link(&self, relative: &Path, target: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(relative)?;
        match symlinkat(target, parent.as_ref().unwrap_or(self), name) {
            Err(rustix::io::Errno::EXIST) => Ok(()),
            other => Ok(other?),
        }
    }

    /// The directory in which a path below it lies, made where it is missing, if it is another than this one; and the name there.
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
