//! The clock that cache entries live by: real, or standing still until a test moves it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Clock of the cache. Either kind can be moved forward with [`Simulator::advance`](crate::Simulator::advance).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clock {
    /// Stands still until it is moved.
    #[default]
    Virtual,
    /// Runs with the wall clock.
    Real,
}

/// As far as a clock goes, so that a time to live can be added to it.
const END: u64 = u64::MAX / 4;

/// A running clock, in milliseconds since its start.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    started: Option<Instant>,
    moved: AtomicU64,
}

impl Stopwatch {
    pub(crate) fn new(clock: Clock) -> Self {
        let started = (clock == Clock::Real).then(Instant::now);
        Self { started, moved: AtomicU64::new(0) }
    }

    pub(crate) fn now(&self) -> u64 {
        self.started.map_or(0, |started| millis(started.elapsed())).saturating_add(self.moved.load(Ordering::SeqCst))
    }

    pub(crate) fn advance(&self, by: Duration) {
        let forward = |moved: u64| Some(moved.saturating_add(millis(by)).min(END));
        // The closure never declines.
        let _before = self.moved.fetch_update(Ordering::SeqCst, Ordering::SeqCst, forward);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(END)
}
