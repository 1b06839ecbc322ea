//! State of a file when it was read, so that a later change can be noticed.

use std::fs::File;
use std::io::{self, Read};
use std::time::SystemTime;

/// A file's content with its stamp.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The content.
    pub bytes: Vec<u8>,
    /// Its stamp.
    pub stamp: Stamp,
}

/// State of a file at one moment.
///
/// Two stamps are compared by [`Stamp::same_content`]: a file that was touched but has the same content is unchanged,
/// and one that was changed within the resolution of its modification time is not.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// Time of the last modification, if the file system knows it.
    pub modified: Option<SystemTime>,
    /// Its length in bytes.
    pub len: u64,
    /// The hash of its content.
    pub hash: blake3::Hash,
}

impl Stamp {
    /// True if the content is the same.
    pub fn same_content(&self, other: &Self) -> bool {
        self.len == other.len && self.hash == other.hash
    }

    /// The stamp of content that is in memory.
    pub(crate) fn of(bytes: &[u8], modified: Option<SystemTime>) -> Self {
        Self { modified, len: bytes.len() as u64, hash: blake3::hash(bytes) }
    }

    /// The stamp of an opened file, read in blocks.
    pub(crate) fn of_file(file: &mut File) -> io::Result<Self> {
        const BLOCK: usize = 128 * 1024;
        let modified = file.metadata()?.modified().ok();
        let mut hasher = blake3::Hasher::new();
        let mut block = vec![0; BLOCK];
        loop {
            match file.read(&mut block) {
                Ok(0) => break,
                Ok(n) => hasher.update(&block[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
        }
        Ok(Self { modified, len: hasher.count(), hash: hasher.finalize() })
    }
}
