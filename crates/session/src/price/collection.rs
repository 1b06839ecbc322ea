//! Many session files: finding them, pricing them on all processors, and naming those that are left out.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use files::EntryKind;
use serde::Serialize;
use transcript::Id;
use transcript::price::Prices;

use super::bill::SessionBill;
use super::recording::Recording;
use crate::error::Error;
use crate::home::SessionFile;
use crate::record;
use crate::subagent_files::past;

/// Extension of a session's file.
const ENDING: &str = ".jsonl";
/// Longer files are left out.
const MOST_BYTES: u64 = 200_000_000;
/// Folders below this depth are not entered.
const DEEPEST: usize = 16;

/// A file that is left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileLeftOut {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub why: String,
}

/// Session files, and what was found next to them.
#[derive(Debug, Default)]
pub struct SessionFiles {
    /// The files, by path.
    pub files: Vec<SessionFile>,
    /// Files that cannot be read.
    pub left_out: Vec<FileLeftOut>,
}

impl SessionFiles {
    /// Adds a file, or all session files below a folder. Links below it are not followed.
    pub fn add(&mut self, path: &Path) -> Result<(), Error> {
        let entries = match files::list(path) {
            Ok(entries) => entries,
            Err(error @ files::Error::NotFound { .. }) => return Err(error.into()),
            Err(_) => {
                let len = files::Lines::open(path)?.file_len()?;
                self.files.push(SessionFile { id: id_of(path), path: path.to_owned(), modified: None, len });
                return Ok(());
            }
        };
        self.add_entries(path, entries, DEEPEST);
        self.files.sort_by(|one, other| one.path.cmp(&other.path));
        self.files.dedup_by(|one, other| one.path == other.path);
        Ok(())
    }

    fn add_entries(&mut self, folder: &Path, entries: Vec<files::DirectoryEntry>, deeper: usize) {
        for entry in entries {
            let path = folder.join(&entry.name);
            let is_session = entry.name.to_str().is_some_and(|name| name.ends_with(ENDING));
            match entry.kind {
                EntryKind::File if is_session && entry.len > MOST_BYTES => {
                    self.leave_out(path, format!("too large: {} MB", entry.len / 1_000_000));
                }
                EntryKind::File if is_session => {
                    let (id, modified, len) = (id_of(&path), entry.modified, entry.len);
                    self.files.push(SessionFile { id, path, modified, len });
                }
                EntryKind::Directory if deeper > 0 => match files::list(&path) {
                    Ok(entries) => self.add_entries(&path, entries, deeper - 1),
                    Err(error) => self.leave_out(path, error.to_string()),
                },
                EntryKind::Directory => self.leave_out(path, "too many folders deep".to_owned()),
                EntryKind::Link if is_session || files::list(&path).is_ok() => {
                    self.leave_out(path, "a link".to_owned());
                }
                EntryKind::Other if is_session => self.leave_out(path, "not a file".to_owned()),
                EntryKind::File | EntryKind::Link | EntryKind::Other => {}
            }
        }
    }

    fn leave_out(&mut self, file: PathBuf, why: String) {
        self.left_out.push(FileLeftOut { file, why });
    }
}

fn id_of(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Progress of a pricing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricingProgress {
    /// Files that are done, and all of them.
    pub files: (usize, usize),
    /// Bytes that are done, and all of them.
    pub bytes: (u64, u64),
}

/// Prices files on all processors: `price` of each, in the order of the files, and those that are left out.
pub fn price_files<T: Send>(
    files: &[SessionFile],
    prices: &Prices,
    price: &(dyn Fn(&SessionFile, Recording) -> T + Sync),
    progress: &(dyn Fn(PricingProgress) + Sync),
) -> (Vec<T>, Vec<FileLeftOut>) {
    // The largest first, so that no processor is left with one at the end.
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(files[at].len));
    let paths: HashSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();
    let bytes = files.iter().map(|file| file.len).sum();
    let (next, done_files, done_bytes) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        let mut results: Vec<(usize, Result<T, FileLeftOut>)> = Vec::new();
        while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let file = &files[at];
            let left_out = |why: String| FileLeftOut { file: file.path.clone(), why };
            results
                .push((at, recording(file, &paths, prices).map(|recording| price(file, recording)).map_err(left_out)));
            let so_far = done_bytes.fetch_add(file.len, Ordering::Relaxed) + file.len;
            let count = done_files.fetch_add(1, Ordering::Relaxed) + 1;
            progress(PricingProgress { files: (count, files.len()), bytes: (so_far, bytes) });
        }
        results
    };
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get).min(files.len().max(1));
    let mut results: Vec<(usize, Result<T, FileLeftOut>)> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined = others.into_iter().flat_map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.chain(own).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    let (mut priced, mut left_out) = (Vec::new(), Vec::new());
    for (_, result) in results {
        match result {
            Ok(one) => priced.push(one),
            Err(one) => left_out.push(one),
        }
    }
    (priced, left_out)
}

/// The recording in a file, or why there is none. What subagents used counts in their own files, where these are priced too.
fn recording(file: &SessionFile, paths: &HashSet<&Path>, prices: &Prices) -> Result<Recording, String> {
    if file.len > MOST_BYTES {
        return Err(format!("too large: {} MB", file.len / 1_000_000));
    }
    let lines = match record::lines(&file.path) {
        Ok((lines, _)) if lines.is_empty() => return Err("empty".to_owned()),
        Ok((lines, _)) => lines,
        Err(Error::NotASession { .. }) => return Err("not a session".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let subagents = past(&file.path).into_iter().filter(|past| paths.contains(past.file.as_path()));
    let kinds: Vec<String> = subagents.map(|past| past.kind).collect();
    let recording = Recording::of(lines, prices).without_subagents(&kinds);
    if recording.is_empty() { Err("no request in it".to_owned()) } else { Ok(recording) }
}

/// Replies that have been counted. A session that is continued in another file may be repeated there.
#[derive(Debug, Default)]
pub struct RepliesCounted {
    replies: HashSet<Id>,
}

impl RepliesCounted {
    /// Leaves out of a session's bills what was counted before, and counts the rest.
    pub fn take<'b>(&mut self, bills: impl IntoIterator<Item = &'b mut SessionBill>) {
        let mut new: Vec<Id> = Vec::new();
        for bill in bills {
            bill.requests.retain(|request| request.reply.as_ref().is_none_or(|reply| !self.replies.contains(reply)));
            new.extend(bill.requests.iter().filter_map(|request| request.reply.clone()));
        }
        self.replies.extend(new);
    }
}
