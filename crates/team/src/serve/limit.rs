//! Rate limits: a number of requests a minute, in bursts of up to a quarter of that.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::store::Time;

/// A minute, in milliseconds.
const MINUTE: i64 = 60_000;
/// Limit on remembered names; beyond it they are forgotten together, which only ever lets somebody ask once more.
const NAMES: usize = 10_000;

/// Times of requests by name.
#[derive(Debug)]
pub(super) struct Rates {
    /// Between two requests, on average, in milliseconds.
    every: i64,
    /// Allowed lead over that.
    ahead: i64,
    /// When the next request of each would be on time.
    next: Mutex<HashMap<String, Time>>,
}

impl Rates {
    pub(super) fn new(a_minute: u32) -> Self {
        let every = MINUTE / i64::from(a_minute.max(1));
        Self { every, ahead: every * i64::from((a_minute / 4).max(1)), next: Mutex::default() }
    }

    /// Admits a request; the error is the number of seconds to wait.
    pub(super) fn ask(&self, name: &str, now: Time) -> Result<(), u64> {
        let mut next = self.next.lock();
        if next.len() >= NAMES {
            next.retain(|_, time| *time > now);
            if next.len() >= NAMES {
                next.clear();
            }
        }
        // A clock that was set back would keep everybody waiting for as long.
        let latest = now + self.ahead + self.every;
        let on_time = next.get(name).copied().unwrap_or(now).clamp(now, latest);
        if on_time - now > self.ahead {
            next.insert(name.to_owned(), on_time);
            return Err(((on_time - now - self.ahead) as u64).div_ceil(1000).max(1));
        }
        next.insert(name.to_owned(), on_time + self.every);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TEAM-8: a burst passes, then requests come at the rate; others are not held up by it.
    #[test]
    fn who_asks_too_often_waits() {
        let rates = Rates::new(60);
        let burst = (0..100).take_while(|_| rates.ask("a", 0).is_ok()).count();
        assert_eq!(burst, 16);
        assert_eq!(rates.ask("a", 0), Err(1));
        assert!(rates.ask("b", 0).is_ok());
        assert!(rates.ask("a", 1_000).is_ok() && rates.ask("a", 1_000).is_err());
        let later: usize = (2..62).filter(|second| rates.ask("a", second * 1_000).is_ok()).count();
        assert_eq!(later, 60, "one a second");
    }

    /// TEAM-8: a clock that is set back locks nobody out.
    #[test]
    fn a_clock_set_back_locks_nobody_out() {
        let rates = Rates::new(60);
        while rates.ask("a", 3_600_000).is_ok() {}
        assert_eq!(rates.ask("a", 0), Err(1));
        assert!(rates.ask("a", 1_000).is_ok());
    }

    #[test]
    fn names_do_not_pile_up() {
        let rates = Rates::new(60);
        for name in 0..3 * NAMES {
            let _ = rates.ask(&name.to_string(), 0);
        }
        assert!(rates.next.lock().len() <= NAMES);
    }
}
