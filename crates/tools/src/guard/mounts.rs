//! The mount table with mount flags: a bind mount that drops one of them is refused.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::mount::MsFlags;

use super::namespaces::failed;
use super::pinned::is_below;

/// Longest mount table that is read, in bytes.
const LIST: u64 = 16 * 1024 * 1024;

/// All mounts, in order.
pub(super) struct Mounts(Vec<Mount>);

struct Mount {
    at: PathBuf,
    flags: MsFlags,
}

impl Mounts {
    pub(super) fn read() -> io::Result<Self> {
        let list =
            files::read("/proc/self/mountinfo", LIST).map_err(|error| failed("mounts", io::Error::other(error)))?;
        Ok(Self(list.bytes.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect()))
    }

    /// Mounts below a path, with their flags.
    pub(super) fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (&'a Path, MsFlags)> {
        let below = self.0.iter().filter(move |mount| mount.at != path && is_below(&mount.at, path));
        below.map(|mount| (&*mount.at, mount.flags))
    }
}

impl Mount {
    /// Parses `id parent device root place options …`, with odd characters in octal.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let at = PathBuf::from(OsString::from_vec(unescaped(fields.nth(4)?)));
        let options = String::from_utf8_lossy(fields.next()?).into_owned();
        let flags = options.split(',').map(|option| match option {
            "ro" => MsFlags::MS_RDONLY,
            "nosuid" => MsFlags::MS_NOSUID,
            "nodev" => MsFlags::MS_NODEV,
            "noexec" => MsFlags::MS_NOEXEC,
            // How times of access are kept stays as it is when nothing is said of it.
            _ => MsFlags::empty(),
        });
        Some(Self { at, flags: flags.collect() })
    }
}

fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| byte == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                plain.push(escaped);
                rest = &after[3..];
            }
            None => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_limits_and_odd_names() {
        let line = br"36 35 98:0 / /mnt/a\040b\134 rw,nosuid,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.at, Path::new(r"/mnt/a b\"));
        assert_eq!(mount.flags, MsFlags::MS_NOSUID);
        let mounts = Mounts(vec![Mount { at: "/".into(), flags: MsFlags::empty() }, mount]);
        assert_eq!(mounts.below(Path::new("/")).count(), 1);
    }
}
