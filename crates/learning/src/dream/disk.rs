//! The lock on a real disk, and the check whether its process still runs.

use files::{LockFile, Root};
use jiff::{SignedDuration, Timestamp};

use super::lock::{DreamEnd, FILE, HeldLock, LockAttempt, LockDisk, LockReturn, LockTaking, Mark};

/// Difference in time up to which a process that seems to have begun after the lock was written may still have written
/// it: clocks are coarse.
const SLACK: SignedDuration = SignedDuration::from_secs(2);

/// Ticks per second in `/proc`, whatever the kernel counts in.
const TICKS: f64 = 100.0;

/// Limit on reading a file about a process.
const MOST: u64 = 4096;

/// The lock in a memory directory.
#[derive(Debug)]
pub struct DreamLockPlace {
    root: Root,
    now: Timestamp,
}

/// A held lock. It is given back by [`DreamLockPlace::give`]; if it is only dropped, as by a crash, the next process
/// finds a dead holder.
pub type DreamLock = HeldLock<LockFile>;

impl DreamLockPlace {
    /// The lock in an opened memory directory.
    pub fn new(root: Root, now: Timestamp) -> Self {
        Self { root, now }
    }

    /// The lock's mark; an empty one if there is no lock.
    pub fn mark(&self) -> Result<Mark, files::Error> {
        match self.root.head(FILE, MOST) {
            Ok(head) => {
                let modified = head.modified.and_then(|at| Timestamp::try_from(at).ok()).unwrap_or_default();
                Ok(Mark::of(&String::from_utf8_lossy(&head.bytes), modified))
            }
            Err(files::Error::NotFound { .. }) => Ok(Mark::default()),
            Err(error) => Err(error),
        }
    }

    /// The living process that the lock names, if there is one.
    pub fn holder(&mut self) -> Result<Option<u32>, files::Error> {
        let mark = self.mark()?;
        let (Some(pid), Some(written)) = (mark.holder, mark.dreamt) else { return Ok(None) };
        Ok(self.is_alive(pid, written).then_some(pid))
    }

    /// Takes the lock, for a process that saw it dated `seen` when it decided to dream.
    pub fn take(&mut self, seen: Option<Timestamp>) -> Result<LockAttempt<LockFile>, files::Error> {
        let mut taking = LockTaking::new(std::process::id(), seen, self.now);
        loop {
            if let Some(taken) = taking.step(self)? {
                return Ok(taken);
            }
        }
    }

    /// True if the lock is still ours.
    pub fn is_ours(&mut self, lock: &DreamLock) -> bool {
        lock.is_ours(self).unwrap_or(false)
    }

    /// Gives the lock back.
    pub fn give(&mut self, lock: DreamLock, ended: DreamEnd) -> Result<(), files::Error> {
        let mut giving = LockReturn::new(lock, ended);
        while !giving.step(self)? {}
        Ok(())
    }
}

impl LockDisk for DreamLockPlace {
    type Handle = LockFile;
    type Error = files::Error;

    fn make(&mut self) -> Result<(), files::Error> {
        self.root.make_lock_file(FILE)
    }

    fn open(&mut self) -> Result<Option<LockFile>, files::Error> {
        match self.root.open_lock_file(FILE) {
            Ok(file) => Ok(Some(file)),
            Err(files::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn try_lock(&mut self, handle: &LockFile) -> Result<bool, files::Error> {
        handle.try_lock()
    }

    fn is_named(&mut self, handle: &LockFile) -> Result<bool, files::Error> {
        handle.is_named(&self.root, FILE)
    }

    fn read(&mut self, handle: &LockFile) -> Result<Mark, files::Error> {
        let said = handle.read()?;
        Ok(Mark::of(&said.text, Timestamp::try_from(said.modified).unwrap_or_default()))
    }

    fn write(&mut self, handle: &LockFile, text: &str) -> Result<(), files::Error> {
        handle.write(text)
    }

    fn date(&mut self, handle: &LockFile, at: Timestamp) -> Result<(), files::Error> {
        handle.date(at.into())
    }

    fn remove(&mut self) -> Result<(), files::Error> {
        self.root.remove(FILE)
    }

    fn is_alive(&mut self, pid: u32, written: Timestamp) -> bool {
        is_alive(pid, written, self.now)
    }
}

/// True if a process runs that ran when something was written: pids are reused. If the system does not say when it
/// began, it counts as the same.
fn is_alive(pid: u32, written: Timestamp, now: Timestamp) -> bool {
    if !files::process_runs(pid) {
        return false;
    }
    let read = |path: &str| files::read(path, MOST).ok().map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    let age =
        read(&format!("/proc/{pid}/stat")).zip(read("/proc/uptime")).and_then(|(stat, uptime)| age(&stat, &uptime));
    match age.and_then(|age| now.checked_sub(age).ok()) {
        Some(began) => began.duration_since(written) <= SLACK,
        None => true,
    }
}

/// Age of a process, by its line in `/proc` and the system's uptime.
fn age(stat: &str, uptime: &str) -> Option<SignedDuration> {
    // The name comes second, in parentheses, and may hold anything; the beginning is the 22nd field.
    let (_, fields) = stat.rsplit_once(')')?;
    let began: f64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    let up: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    SignedDuration::try_from_secs_f64(up - began / TICKS).ok()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test looks at the disk with its own eyes")]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        session::World::real().now()
    }

    /// DREAM-2: a process counts if it began before the lock was written.
    #[test]
    fn a_process_is_alive_if_it_began_before_the_lock_was_written() {
        let own = std::process::id();
        assert!(is_alive(own, now(), now()));
        let long_ago = now() - SignedDuration::from_hours(24 * 365);
        assert!(!is_alive(own, long_ago, now()), "its number was another's then");
        assert!(is_alive(1, now(), now()), "not ours, and there");
        assert!(!is_alive(u32::MAX, now(), now()) && !is_alive(0, now(), now()));
        let stat = "12 (a) b (c) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 5000 1 1";
        assert_eq!(age(stat, "60.00 100.00\n"), Some(SignedDuration::from_secs(10)));
        assert_eq!(age("no such thing", "60.00"), None);
    }

    /// DREAM-2: held throughout, dated, given back; a failure sets the date back, and removes what it made.
    #[test]
    fn the_lock_on_disk_says_who_and_when() {
        let folder = tempfile::tempdir().unwrap();
        let place = |at| DreamLockPlace::new(Root::open(folder.path()).unwrap(), at);
        let (first, later) = (now(), now() + SignedDuration::from_hours(30));
        let ours = |taken| match taken {
            LockAttempt::Ours(lock) => lock,
            other => panic!("{other:?}"),
        };
        let lock = ours(place(first).take(None).unwrap());
        let text = || std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(text(), std::process::id().to_string());
        assert!(place(first).is_ours(&lock));
        assert!(
            matches!(place(first).take(Some(first)).unwrap(), LockAttempt::Busy(Some(_))),
            "the system's lock decides"
        );
        place(first).give(lock, DreamEnd::Failed).unwrap();
        assert!(!folder.path().join(FILE).exists(), "there was none before");

        let lock = ours(place(first).take(None).unwrap());
        place(first).give(lock, DreamEnd::Dreamt).unwrap();
        assert_eq!((text().as_str(), place(first).mark().unwrap().dreamt), ("", Some(first)));
        let lock = ours(place(later).take(Some(first)).unwrap());
        assert_eq!((lock.before, place(later).mark().unwrap().dreamt), (Some(first), Some(later)));
        place(later).give(lock, DreamEnd::Failed).unwrap();
        assert_eq!(place(later).mark().unwrap().dreamt, Some(first), "set back");
        assert!(matches!(place(later).take(Some(later)).unwrap(), LockAttempt::Overtaken));

        let lock = ours(place(later).take(Some(first)).unwrap());
        std::fs::write(folder.path().join(FILE), "1").unwrap();
        assert!(!place(later).is_ours(&lock), "another program wrote over it");
        place(later).give(lock, DreamEnd::Failed).unwrap();
        assert_eq!(text(), "1", "which is theirs");
    }

    /// DREAM-2: a directory that may not be written is a plain error; nothing is left in it.
    #[test]
    fn a_directory_that_may_not_be_written_gives_an_error() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
        // Whoever may do anything may write here too.
        if std::fs::write(folder.path().join("probe"), "").is_err() {
            assert!(matches!(DreamLockPlace::new(root, now()).take(None), Err(files::Error::Denied { .. })));
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
