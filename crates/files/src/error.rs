//! Errors of the disk, by what the caller can do about them.

use std::io;
use std::path::{Path, PathBuf};

/// A failure, with the path it happened to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is there.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The requested path.
        path: PathBuf,
    },
    /// The permissions of the file or of its directory forbid it.
    #[error("{} may not be read or written: permission denied", path.display())]
    Denied {
        /// The requested path.
        path: PathBuf,
    },
    /// A file was expected.
    #[error("{} is a directory, not a file", path.display())]
    IsDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A pipe, a socket or a device: reading it could hang or never end.
    #[error("{} is not a regular file (a pipe, socket or device)", path.display())]
    NotRegular {
        /// The requested path.
        path: PathBuf,
    },
    /// More than the caller is willing to hold.
    #[error("{} is too large: {size} bytes, the limit is {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size, at least.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// Something is there already, and it is not overwritten.
    #[error("{} exists already", path.display())]
    Exists {
        /// The existing path.
        path: PathBuf,
    },
    /// It is no longer what the caller saw.
    #[error("{} was changed by someone else in the meantime", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Another writer has the log open.
    #[error("{} is open for writing elsewhere: {by}", path.display())]
    Held {
        /// The log.
        path: PathBuf,
        /// The other writer's description of itself.
        by: String,
    },
    /// The disk, the quota or the largest file size is exhausted.
    #[error("{} could not be written: no space left", path.display())]
    Full {
        /// The file that was being written.
        path: PathBuf,
    },
    /// The path leads out of the root it was looked up in.
    #[error("{} leads outside its directory", path.display())]
    Escapes {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A directory that others may write to, or that is not one of ours.
    #[error("{} has to be a directory of yours that nobody else may write to", path.display())]
    NotOwn {
        /// The directory.
        path: PathBuf,
    },
    /// A symbolic link is where none was when the path was judged.
    #[error("{} leads elsewhere now: a symlink was put in its place", path.display())]
    Linked {
        /// The path.
        path: PathBuf,
    },
    /// Anything else the system reports.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// The path it happened to.
    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path }
            | Self::Denied { path }
            | Self::IsDirectory { path }
            | Self::NotRegular { path }
            | Self::TooLarge { path, .. }
            | Self::Exists { path }
            | Self::Changed { path }
            | Self::Held { path, .. }
            | Self::Full { path }
            | Self::Escapes { path }
            | Self::Linked { path }
            | Self::NotOwn { path }
            | Self::Io { path, .. } => path,
        }
    }

    /// Classifies an error of the system by what can be done about it.
    pub(crate) fn of(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            // cap-std reports an escape as a denial that did not come from the system.
            io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => Self::Escapes { path },
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            io::ErrorKind::IsADirectory => Self::IsDirectory { path },
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path }
            }
            // Opening a socket.
            _ if source.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => Self::NotRegular { path },
            _ => Self::Io { path, source },
        }
    }
}
