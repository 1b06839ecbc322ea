//! Every order in which several processes can take the steps of the protocol, with failures and kills between them, over a
//! disk that is a value.

use std::collections::HashSet;
use std::convert::Infallible;

use super::*;

const OLD: i64 = 1_000;
const NOW: i64 = 1_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Files by number; the name leads to one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Drive {
    named: Option<usize>,
    files: Vec<(String, i64)>,
    /// Locks, as pairs of process and file.
    locks: Vec<(usize, usize)>,
    killed: Vec<usize>,
    /// Those that came to their end by themselves.
    over: Vec<usize>,
}

/// The drive as one process sees it.
struct SeenDrive<'d> {
    drive: &'d mut Drive,
    process: usize,
}

impl SeenDrive<'_> {
    fn pid(process: usize) -> u32 {
        u32::try_from(process).unwrap() + 100
    }
}

impl LockDisk for SeenDrive<'_> {
    type Handle = usize;
    type Error = Infallible;

    fn make(&mut self) -> Result<(), Infallible> {
        if self.drive.named.is_none() {
            self.drive.files.push((String::new(), 0));
            self.drive.named = Some(self.drive.files.len() - 1);
        }
        Ok(())
    }

    fn open(&mut self) -> Result<Option<usize>, Infallible> {
        Ok(self.drive.named)
    }

    fn try_lock(&mut self, handle: &usize) -> Result<bool, Infallible> {
        if self.drive.locks.iter().any(|(file, _)| file == handle) {
            return Ok(false);
        }
        self.drive.locks.push((*handle, self.process));
        Ok(true)
    }

    fn is_named(&mut self, handle: &usize) -> Result<bool, Infallible> {
        Ok(self.drive.named == Some(*handle))
    }

    fn read(&mut self, handle: &usize) -> Result<Mark, Infallible> {
        let (text, modified) = &self.drive.files[*handle];
        Ok(Mark::of(text, at(*modified)))
    }

    fn write(&mut self, handle: &usize, text: &str) -> Result<(), Infallible> {
        self.drive.files[*handle] = (text.to_owned(), NOW);
        Ok(())
    }

    fn date(&mut self, handle: &usize, to: Timestamp) -> Result<(), Infallible> {
        self.drive.files[*handle].1 = to.as_second();
        Ok(())
    }

    fn remove(&mut self) -> Result<(), Infallible> {
        self.drive.named = None;
        Ok(())
    }

    fn is_alive(&mut self, pid: u32, _written: Timestamp) -> bool {
        let process = (pid as usize).checked_sub(100);
        let gone = |process: &usize| self.drive.killed.contains(process) || self.drive.over.contains(process);
        process.is_some_and(|process| process < 9 && !gone(&process))
    }
}

/// Next action of a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Gate,
    Taking(LockTaking<usize>),
    Dreaming(HeldLock<usize>),
    Giving(LockReturn<usize>),
    /// Another program, which knows nothing of our lock.
    Other(Other),
    Out,
}

/// Claude Code's steps: it looks, writes its id, reads it back; where it fails it sets the date back or removes the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Other {
    Look,
    Write(Option<i64>),
    ReadBack(Option<i64>),
    Dreaming(Option<i64>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct AllProcesses {
    drive: Drive,
    /// True if the user asked for it, so that no gate is in the way.
    asked: bool,
    phases: Vec<Phase>,
    kills: u32,
    failures: u32,
    dreamt: u32,
    failed: u32,
}

impl AllProcesses {
    fn new(drive: Drive, ours: usize, others: usize, kills: u32, failures: u32) -> Self {
        let mut phases = vec![Phase::Gate; ours];
        phases.extend(vec![Phase::Other(Other::Look); others]);
        Self { drive, asked: false, phases, kills, failures, dreamt: 0, failed: 0 }
    }

    /// All that can happen next.
    fn next(&self) -> Vec<Self> {
        let mut next = Vec::new();
        for process in 0..self.phases.len() {
            if self.phases[process] == Phase::Out {
                continue;
            }
            next.extend(self.step(process));
            if self.kills > 0 {
                let mut killed = self.clone();
                killed.kills -= 1;
                killed.drive.killed.push(process);
                killed.phases[process] = Phase::Out;
                next.push(killed.settled());
            }
        }
        next
    }

    /// One step of a process; two ways on, where it can fail.
    fn step(&self, process: usize) -> Vec<Self> {
        let mut one = self.clone();
        let mut disk = SeenDrive { drive: &mut one.drive, process };
        let pid = SeenDrive::pid(process);
        let mut also = None;
        let phase = match one.phases[process].clone() {
            Phase::Gate => {
                let mark = disk.open().unwrap().map(|file| disk.read(&file).unwrap()).unwrap_or_default();
                let due = mark.dreamt.is_none_or(|dreamt| dreamt <= at(OLD));
                if due || self.asked { Phase::Taking(LockTaking::new(pid, mark.dreamt, at(NOW))) } else { Phase::Out }
            }
            Phase::Taking(mut taking) => match taking.step(&mut disk).unwrap() {
                None => Phase::Taking(taking),
                Some(LockAttempt::Ours(held)) => Phase::Dreaming(held),
                Some(LockAttempt::Busy(_) | LockAttempt::Overtaken) => Phase::Out,
            },
            Phase::Dreaming(held) => {
                if one.failures > 0 {
                    let mut failing = self.clone();
                    failing.failures -= 1;
                    failing.phases[process] = Phase::Giving(LockReturn::new(held.clone(), DreamEnd::Failed));
                    also = Some(failing);
                }
                Phase::Giving(LockReturn::new(held, DreamEnd::Dreamt))
            }
            Phase::Giving(mut giving) => {
                if giving.step(&mut disk).unwrap() {
                    match giving.ended {
                        DreamEnd::Dreamt => one.dreamt += 1,
                        DreamEnd::Failed => one.failed += 1,
                    }
                    Phase::Out
                } else {
                    Phase::Giving(giving)
                }
            }
            Phase::Other(other) => {
                let file = disk.open().unwrap();
                let mark = file.map(|file| disk.read(&file).unwrap());
                match other {
                    Other::Look => {
                        let holder = mark.as_ref().and_then(|mark| Some((mark.holder?, mark.dreamt?)));
                        let is_held = holder.is_some_and(|(pid, written)| disk.is_alive(pid, written));
                        let prior = mark.and_then(|mark| mark.dreamt).map(|at| at.as_second());
                        let due = prior.is_none_or(|prior| prior <= OLD);
                        if is_held || !due { Phase::Out } else { Phase::Other(Other::Write(prior)) }
                    }
                    Other::Write(prior) => {
                        disk.make().unwrap();
                        let file = disk.open().unwrap().unwrap();
                        disk.write(&file, &pid.to_string()).unwrap();
                        Phase::Other(Other::ReadBack(prior))
                    }
                    Other::ReadBack(prior) if mark.and_then(|mark| mark.holder) == Some(pid) => {
                        Phase::Other(Other::Dreaming(prior))
                    }
                    Other::ReadBack(_) => Phase::Out,
                    Other::Dreaming(prior) => {
                        if one.failures > 0 {
                            let mut failing = self.clone();
                            failing.failures -= 1;
                            let mut disk = SeenDrive { drive: &mut failing.drive, process };
                            match (prior, file) {
                                (Some(prior), Some(file)) => {
                                    disk.write(&file, "").unwrap();
                                    disk.date(&file, at(prior)).unwrap();
                                }
                                _ => disk.remove().unwrap(),
                            }
                            failing.phases[process] = Phase::Out;
                            also = Some(failing);
                        }
                        Phase::Out
                    }
                }
            }
            Phase::Out => Phase::Out,
        };
        if phase == Phase::Out {
            one.drive.over.push(process);
        }
        one.phases[process] = phase;
        std::iter::once(one).chain(also).map(Self::settled).collect()
    }

    /// Locks go with the handles they were taken by.
    fn settled(mut self) -> Self {
        let phases = &self.phases;
        self.drive.locks.retain(|(file, process)| match &phases[*process] {
            Phase::Taking(taking) => taking.handle == Some(*file),
            Phase::Dreaming(held) => held.handle == *file,
            Phase::Giving(giving) => giving.held.handle == *file,
            _ => false,
        });
        self
    }

    /// The processes of ours that may change memories now.
    fn dreaming(&self) -> Vec<&HeldLock<usize>> {
        let held = self.phases.iter().filter_map(|phase| match phase {
            Phase::Dreaming(held) => Some(held),
            Phase::Giving(giving) => Some(&giving.held),
            _ => None,
        });
        held.collect()
    }
}

/// Goes through every state that can be reached, looks at each, and says how many there were. The last look is at those in
/// which nothing is left to do.
fn explore(start: AllProcesses, look: impl Fn(&AllProcesses), last: impl Fn(&AllProcesses)) -> usize {
    let (mut known, mut open) = (HashSet::new(), vec![start]);
    while let Some(state) = open.pop() {
        if !known.insert(state.clone()) {
            continue;
        }
        look(&state);
        let next = state.next();
        if next.is_empty() {
            last(&state);
        }
        open.extend(next);
    }
    known.len()
}

fn drives() -> Vec<Drive> {
    let with =
        |text: &str, modified| Drive { named: Some(0), files: vec![(text.to_owned(), modified)], ..Drive::default() };
    vec![Drive::default(), with("", OLD), with("77777", OLD), with("no number", OLD), with("", 0)]
}

/// DREAM-2: whatever the order of steps of two and three processes, and whatever lock was left behind: one dreams, the
/// others do not.
#[test]
fn in_every_order_of_steps_one_process_dreams() {
    for drive in drives() {
        for processes in [2, 3] {
            let start = AllProcesses::new(drive.clone(), processes, 0, 0, 0);
            let once = |state: &AllProcesses| assert!(state.dreaming().len() <= 1, "{state:#?}");
            let states = explore(start, once, |state| assert_eq!(state.dreamt, 1, "{state:#?}"));
            assert!(states > 50, "{states}");
        }
    }
}

/// DREAM-2: with kills and failures between any two steps there is never more than one; what is left behind lets the next
/// one dream at once; and a dream that failed leaves the date as it was.
#[test]
fn killed_and_failing_dreams_leave_a_lock_that_the_next_can_take() {
    for drive in drives() {
        let was = drive.named.map_or(0, |file| drive.files[file].1);
        let once = |state: &AllProcesses| {
            assert!(state.dreaming().len() <= 1, "{state:#?}");
            assert!(state.dreamt <= 1, "{state:#?}");
        };
        explore(AllProcesses::new(drive.clone(), 3, 0, 2, 2), once, |state| {
            let now = state.drive.named.map_or(0, |file| state.drive.files[file].1);
            if state.dreamt == 0 && state.failed > 0 && state.drive.killed.is_empty() {
                assert_eq!(now, was, "set back: {state:#?}");
            }
            if was == 0 && state.dreamt == 0 && state.failed > 0 && state.drive.killed.is_empty() {
                assert!(state.drive.named.is_none(), "removed: {state:#?}");
            }
            let mut next = state.clone();
            let mut disk = SeenDrive { drive: &mut next.drive, process: 8 };
            let seen = disk.open().unwrap().and_then(|file| disk.read(&file).unwrap().dreamt);
            let mut taking = LockTaking::new(108, seen, at(NOW));
            let taken = (0..20).find_map(|_| taking.step(&mut disk).unwrap());
            assert!(matches!(taken, Some(LockAttempt::Ours(_))), "{taken:?} after {state:#?}");
        });
    }
}

/// DREAM-2: dreams that users ask for follow one another at once, fail, and are killed: still there is one at a time. A lock
/// on a file that was removed meanwhile is none.
#[test]
fn dreams_that_are_asked_for_come_one_at_a_time() {
    for drive in drives() {
        let start = AllProcesses { asked: true, ..AllProcesses::new(drive, 3, 0, 1, 1) };
        explore(start, |state| assert!(state.dreaming().len() <= 1, "{state:#?}"), |_| {});
    }
}

/// DREAM-2: Claude Code takes no lock of the operating system. Whatever it does between our steps, no two of ours think
/// that the lock is theirs; and what it wrote is not taken from it.
#[test]
fn another_program_between_our_steps_never_makes_two_of_ours() {
    for drive in drives() {
        let ours = |state: &AllProcesses| {
            let mut drive = state.drive.clone();
            let mut disk = SeenDrive { drive: &mut drive, process: 0 };
            let sure = state.dreaming().into_iter().filter(|held| held.is_ours(&mut disk).unwrap());
            assert!(sure.count() <= 1, "{state:#?}");
        };
        explore(AllProcesses::new(drive.clone(), 2, 1, 1, 1), ours, |_| {});
        explore(AllProcesses::new(drive, 1, 1, 0, 0), ours, |state| {
            let last = &state.drive.files[state.drive.named.unwrap()];
            assert_eq!(last.1, NOW, "somebody dreamt: {state:#?}");
        });
    }
}

/// DREAM-2: held by a process that lives, it is left alone; by one that does not, or one that wrote long ago, it is taken.
#[test]
fn a_lock_belongs_to_a_living_process_for_a_while() {
    let take = |text: &str, modified: i64| {
        let mut drive = Drive { named: Some(0), files: vec![(text.to_owned(), modified)], ..Drive::default() };
        let mut disk = SeenDrive { drive: &mut drive, process: 1 };
        let mut taking = LockTaking::new(101, Some(at(modified)), at(NOW));
        (0..20).find_map(|_| taking.step(&mut disk).unwrap()).unwrap()
    };
    assert_eq!(take("100\n", NOW - 60), LockAttempt::Busy(Some(100)));
    assert_eq!(take("100", NOW + 60), LockAttempt::Busy(Some(100)), "the clock was set back");
    assert!(matches!(take("999", NOW - 1), LockAttempt::Ours(_)), "dead, however young");
    assert!(matches!(take("100", NOW - 7_200), LockAttempt::Ours(_)), "its dream is over");
    assert!(matches!(take("101", NOW - 60), LockAttempt::Ours(_)), "a process that had our number");
    assert!(
        matches!(take("", NOW - 60), LockAttempt::Ours(_)) && matches!(take("-5 x", NOW - 60), LockAttempt::Ours(_))
    );
}
