//! Git's index, read without starting git: git runs programs from a repository's configuration, so asking it would be
//! too late.

/// Largest index that is read, in bytes: some half a million files.
pub const LIMIT: u64 = 64 * 1024 * 1024;

/// Reason why an index cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadIndex {
    /// It cannot be parsed.
    Broken,
    /// It is split over several files.
    Split,
}

/// Calls `each` with the mode and the name of each entry. `hash` is the length of the repository's hashes.
pub fn entries(index: &[u8], hash: usize, mut each: impl FnMut(u32, &[u8])) -> Result<(), BadIndex> {
    let end = all(index, hash, &mut each).ok_or(BadIndex::Broken)?;
    // What follows are extensions; one of them says that most entries are in another file.
    let mut at = end;
    while let (Some(name), Some(length)) = (index.get(at..at + 4), number(index, at + 4)) {
        if name == b"link" {
            return Err(BadIndex::Split);
        }
        if at + hash >= index.len() {
            break;
        }
        at += 8 + length as usize;
    }
    Ok(())
}

/// Walks the entries. Returns the offset of their end.
fn all(index: &[u8], hash: usize, each: &mut impl FnMut(u32, &[u8])) -> Option<usize> {
    let version = number(index, 4)?;
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut name) = (12, Vec::new());
    for _ in 0..number(index, 8)? {
        let start = at;
        let mode = number(index, start + 24)?;
        let flags = start + 40 + hash;
        let extended = version >= 3 && index.get(flags)? & 0x40 != 0;
        at = flags + if extended { 4 } else { 2 };
        if version == 4 {
            let (dropped, length) = offset(index.get(at..)?)?;
            name.truncate(name.len().checked_sub(dropped)?);
            at += length;
        } else {
            name.clear();
        }
        let length = index.get(at..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&index[at..at + length]);
        at += length + 1;
        if version < 4 {
            at = start + (at - start).next_multiple_of(8);
        }
        each(mode, &name);
    }
    Some(at)
}

fn number(index: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?))
}

/// Number of bytes to drop from the previous name, and the length of the encoding.
fn offset(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = usize::from(bytes.first()? & 0x7f);
    let mut length = 1;
    while bytes.get(length - 1)? & 0x80 != 0 {
        let next = *bytes.get(length)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(next & 0x7f))?;
        length += 1;
    }
    Some((value, length))
}
