//! The lock of dreams: `<memory>/.consolidate-lock`, as Claude Code has it. Its text is the holder's process id, and it
//! is dated with the last dream.
//!
//! Between our own processes the operating system's lock on that file decides; it is held throughout, and goes with the
//! process however that ends. Text and date are for other programs, and for the next process: whoever holds the lock
//! looks at them, writes its own, and reads them back. A dream that fails sets the date back, and removes a file that
//! it made. Between dreams the file is empty.
//!
//! Taking and giving back are machines that do one thing to the disk at a step, so that a test can run several of them
//! in every order there is, over a disk of its own.

use jiff::{SignedDuration, Timestamp};

/// The lock's file, in the memory directory.
pub const FILE: &str = ".consolidate-lock";

/// Time after which a holder counts as finished, though its process goes on: dreams end within 20 minutes, and Claude
/// Code leaves its id behind.
const HOLDS: SignedDuration = SignedDuration::from_hours(1);

/// Attempts to open the file again if it was removed meanwhile.
const ATTEMPTS: u32 = 5;

/// Disk operations of the machines. Each call is one step that others may come between.
pub trait LockDisk {
    /// An opened lock file; dropping the last one releases the lock.
    type Handle;
    /// Error of an operation.
    type Error;

    /// Creates the file, empty and dated 1970, unless it exists.
    fn make(&mut self) -> Result<(), Self::Error>;
    /// Opens the file, if there is one.
    fn open(&mut self) -> Result<Option<Self::Handle>, Self::Error>;
    /// Takes the operating system's lock, unless somebody has it.
    fn try_lock(&mut self, handle: &Self::Handle) -> Result<bool, Self::Error>;
    /// True if the name still leads to the opened file.
    fn is_named(&mut self, handle: &Self::Handle) -> Result<bool, Self::Error>;
    /// Reads the file's mark.
    fn read(&mut self, handle: &Self::Handle) -> Result<Mark, Self::Error>;
    /// Replaces the file's text.
    fn write(&mut self, handle: &Self::Handle, text: &str) -> Result<(), Self::Error>;
    /// Dates the file.
    fn date(&mut self, handle: &Self::Handle, at: Timestamp) -> Result<(), Self::Error>;
    /// Removes the file of that name.
    fn remove(&mut self) -> Result<(), Self::Error>;
    /// True if a process runs that ran when the file was written.
    fn is_alive(&mut self, pid: u32, written: Timestamp) -> bool;
}

/// Mark of a lock file: its text and its date.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The process it names; none if it is empty or unreadable.
    pub holder: Option<u32>,
    /// Time of the last dream, as far as the date tells.
    pub dreamt: Option<Timestamp>,
}

impl Mark {
    /// A mark from a text and a date.
    pub fn of(text: &str, modified: Timestamp) -> Self {
        let holder = text.trim().parse().ok().filter(|pid| *pid != 0);
        Self { holder, dreamt: Some(modified).filter(|at| at.as_second() > 0) }
    }
}

/// Taking the lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockTaking<H> {
    at: TakingStep,
    handle: Option<H>,
    attempts: u32,
    pid: u32,
    now: Timestamp,
    /// The lock's date when the dream was decided on.
    seen: Option<Timestamp>,
    before: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TakingStep {
    Make,
    Open,
    Lock,
    Name,
    Look,
    Write,
    Date,
    ReadBack,
    NameAgain,
}

/// Result of taking the lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LockAttempt<H> {
    /// It is ours.
    Ours(HeldLock<H>),
    /// Another process dreams; its id, if known.
    Busy(Option<u32>),
    /// Another dream has taken place since this one was decided on.
    Overtaken,
}

/// The lock, held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HeldLock<H> {
    handle: H,
    pid: u32,
    /// Time since which it is held.
    pub since: Timestamp,
    /// Time of the previous dream.
    pub before: Option<Timestamp>,
}

impl<H> LockTaking<H> {
    /// Begins, for a process that saw the lock dated `seen` when it decided to dream.
    pub fn new(pid: u32, seen: Option<Timestamp>, now: Timestamp) -> Self {
        Self { at: TakingStep::Make, handle: None, attempts: 0, pid, now, seen, before: None }
    }

    /// One step. Nothing is held unless the result is [`LockAttempt::Ours`].
    pub fn step<D: LockDisk<Handle = H>>(&mut self, disk: &mut D) -> Result<Option<LockAttempt<H>>, D::Error> {
        match (self.at, &self.handle) {
            (TakingStep::Make, _) => {
                disk.make()?;
                self.at = TakingStep::Open;
            }
            (TakingStep::Open, _) | (_, None) => {
                self.handle = disk.open()?;
                self.at = TakingStep::Lock;
                if self.handle.is_none() {
                    return Ok(self.again()); // removed by now
                }
            }
            (TakingStep::Lock, Some(handle)) => {
                if !disk.try_lock(handle)? {
                    let holder = disk.read(handle)?.holder;
                    return Ok(Some(self.gives_up(LockAttempt::Busy(holder))));
                }
                self.at = TakingStep::Name;
            }
            (TakingStep::Name, Some(handle)) => {
                if !disk.is_named(handle)? {
                    self.handle = None; // a lock on a file that was removed guards nothing
                    return Ok(self.again());
                }
                self.at = TakingStep::Look;
            }
            (TakingStep::Look, Some(handle)) => {
                let mark = disk.read(handle)?;
                if mark.dreamt != self.seen {
                    return Ok(Some(self.gives_up(LockAttempt::Overtaken)));
                }
                if let (Some(pid), Some(written)) = (mark.holder.filter(|pid| *pid != self.pid), mark.dreamt)
                    && self.now.duration_since(written).abs() < HOLDS
                    && disk.is_alive(pid, written)
                {
                    return Ok(Some(self.gives_up(LockAttempt::Busy(Some(pid)))));
                }
                self.before = mark.dreamt;
                self.at = TakingStep::Write;
            }
            (TakingStep::Write, Some(handle)) => {
                disk.write(handle, &self.pid.to_string())?;
                self.at = TakingStep::Date;
            }
            (TakingStep::Date, Some(handle)) => {
                disk.date(handle, self.now)?;
                self.at = TakingStep::ReadBack;
            }
            (TakingStep::ReadBack, Some(handle)) => {
                let holder = disk.read(handle)?.holder;
                if holder != Some(self.pid) {
                    return Ok(Some(self.gives_up(LockAttempt::Busy(holder))));
                }
                self.at = TakingStep::NameAgain;
            }
            (TakingStep::NameAgain, Some(handle)) => {
                if !disk.is_named(handle)? {
                    return Ok(Some(self.gives_up(LockAttempt::Busy(None))));
                }
                let (pid, since, before) = (self.pid, self.now, self.before);
                return Ok(self.handle.take().map(|handle| LockAttempt::Ours(HeldLock { handle, pid, since, before })));
            }
        }
        Ok(None)
    }

    fn gives_up(&mut self, taken: LockAttempt<H>) -> LockAttempt<H> {
        self.handle = None;
        taken
    }

    fn again(&mut self) -> Option<LockAttempt<H>> {
        self.at = TakingStep::Make;
        self.attempts += 1;
        (self.attempts >= ATTEMPTS).then_some(LockAttempt::Busy(None))
    }
}

impl<H> HeldLock<H> {
    /// True if it still is ours, as far as others can see. Checked before each round.
    pub fn is_ours<D: LockDisk<Handle = H>>(&self, disk: &mut D) -> Result<bool, D::Error> {
        Ok(disk.read(&self.handle)?.holder == Some(self.pid) && disk.is_named(&self.handle)?)
    }
}

/// End of a dream, for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DreamEnd {
    /// The lock is dated with this dream.
    Dreamt,
    /// It failed or was stopped: the date stays as before.
    Failed,
}

/// Giving the lock back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockReturn<H> {
    held: HeldLock<H>,
    ended: DreamEnd,
    at: ReturnStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ReturnStep {
    Read,
    Name,
    Remove,
    Write,
    Date,
    Done,
}

impl<H> LockReturn<H> {
    /// Begins.
    pub fn new(held: HeldLock<H>, ended: DreamEnd) -> Self {
        Self { held, ended, at: ReturnStep::Read }
    }

    /// One step; true when it is done. Then this is dropped, and the operating system's lock with it.
    pub fn step<D: LockDisk<Handle = H>>(&mut self, disk: &mut D) -> Result<bool, D::Error> {
        let handle = &self.held.handle;
        self.at = match (self.at, self.ended, self.held.before) {
            // What somebody else has written over is theirs.
            (ReturnStep::Read, ..) if disk.read(handle)?.holder != Some(self.held.pid) => ReturnStep::Done,
            (ReturnStep::Read, ..) => ReturnStep::Name,
            (ReturnStep::Name, ..) if !disk.is_named(handle)? => ReturnStep::Done,
            (ReturnStep::Name, DreamEnd::Failed, None) => ReturnStep::Remove,
            (ReturnStep::Name, ..) => ReturnStep::Write,
            (ReturnStep::Remove, ..) => {
                disk.remove()?;
                ReturnStep::Done
            }
            (ReturnStep::Write, ..) => {
                disk.write(handle, "")?;
                ReturnStep::Date
            }
            (ReturnStep::Date, ended, before) => {
                let at = before.filter(|_| ended == DreamEnd::Failed).unwrap_or(self.held.since);
                disk.date(handle, at)?;
                ReturnStep::Done
            }
            (ReturnStep::Done, ..) => ReturnStep::Done,
        };
        Ok(self.at == ReturnStep::Done)
    }
}

#[cfg(test)]
mod tests;
