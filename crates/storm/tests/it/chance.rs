//! Numbers that look like chance, the same for one seed, and which seeds are run.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A row of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// Another row that follows from this one.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    pub(crate) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// The seeds to run: a few and those that once broke a law, many with `CAIRN_TEST_FULL`, or the one that `CAIRN_TEST_SEED`
/// names.
pub(crate) fn seeds(few: u64, many: u64, broke: &[u64]) -> Vec<u64> {
    match asked("CAIRN_TEST_SEED").and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None if is_full() => (0..many).collect(),
        None => (0..few).chain(broke.iter().copied()).collect(),
    }
}

/// Runs every seed, on as many threads as there are processors, and says which one breaks a law.
pub(crate) fn run_seeds(seeds: &[u64], live: impl Fn(u64) -> Vec<String> + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let broken = live(seed);
            assert!(broken.is_empty(), "CAIRN_TEST_SEED={seed} breaks a law: {broken:#?}");
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

/// Whether one seed alone is run, and its story is wanted.
pub(crate) fn is_replay() -> bool {
    asked("CAIRN_TEST_SEED").is_some()
}

/// Whether more is run than usual.
pub(crate) fn is_full() -> bool {
    asked("CAIRN_TEST_FULL").is_some()
}

#[allow(clippy::disallowed_methods, reason = "a test reads what it is asked to do")]
fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
