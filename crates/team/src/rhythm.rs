//! Times of pulls and pushes, decided without a clock: times are passed in, in milliseconds.
//!
//! A pull at the start and every five minutes; a push two seconds after the last change. A permanent refusal of the
//! server silences pushes until something is deleted here, or the program starts again.

use crate::error::RequestTrouble;
use crate::protocol::Time;
use crate::report::{EarlyEnd, SyncReport};

/// Time between two pulls.
const PULL: Time = 5 * 60 * 1000;
/// Time from the last change to a push.
const QUIET: Time = 2 * 1000;

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextSync {
    /// Pull now.
    Pull,
    /// Pull and push now.
    Push,
    /// Nothing until then.
    Wait(Time),
}

/// Outcome of a run, as far as it decides when the next one comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncEnding {
    /// Success.
    Well,
    /// A permanent refusal of the server.
    Never,
    /// It may work later: the server, the network, this machine's disk, another program in the folder.
    Later,
}

impl From<&Result<SyncReport, EarlyEnd>> for SyncEnding {
    fn from(outcome: &Result<SyncReport, EarlyEnd>) -> Self {
        match outcome {
            Ok(report) if report.limit.is_some() => Self::Never,
            Ok(_) => Self::Well,
            Err(EarlyEnd::Server(
                RequestTrouble::Permanent { .. } | RequestTrouble::Refused { .. } | RequestTrouble::TooMany { .. },
            )) => Self::Never,
            Err(_) => Self::Later,
        }
    }
}

/// State of a folder's rhythm.
#[derive(Debug, Clone, Default)]
pub struct Rhythm {
    pulled: Option<Time>,
    changed: Option<Time>,
    silent: bool,
}

impl Rhythm {
    /// Records a change in the folder.
    pub fn changed(&mut self, now: Time, was_deletion: bool) {
        self.silent &= !was_deletion;
        self.changed = Some(now);
    }

    /// Asks for a push now, also while pushes are silenced.
    pub fn hurry(&mut self) {
        (self.silent, self.changed) = (false, Some(Time::MIN / 2));
    }

    /// The action due now.
    pub fn next(&self, now: Time) -> NextSync {
        let Some(pulled) = self.pulled else { return NextSync::Pull };
        let push = self.changed.filter(|_| !self.silent).map(|changed| changed + QUIET);
        // Nothing is ever further ahead than this, unless the clock was set back.
        let is_due = |time: Time| time <= now || time > now + PULL + QUIET;
        match push {
            Some(push) if is_due(push) => NextSync::Push,
            _ if is_due(pulled + PULL) => NextSync::Pull,
            _ => NextSync::Wait(push.unwrap_or(Time::MAX).min(pulled + PULL)),
        }
    }

    /// Records the end of a pull or push. `part`, from 0 to 1, spreads the next attempts of members after a conflict.
    pub fn done(&mut self, did: NextSync, ending: SyncEnding, now: Time, part: f64) {
        self.pulled = Some(now);
        match ending {
            SyncEnding::Well if did == NextSync::Push => self.changed = None,
            SyncEnding::Never => self.silent = true,
            SyncEnding::Later if did == NextSync::Push => self.changed = Some(now + (part * PULL as f64) as Time),
            SyncEnding::Well | SyncEnding::Later => {}
        }
    }

    /// True if pushes are silenced.
    pub fn is_silent(&self) -> bool {
        self.silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TEAM-4: the first thing is a pull; then a push follows two seconds after the last change, a pull after five minutes.
    #[test]
    fn a_push_follows_the_last_change() {
        let mut rhythm = Rhythm::default();
        rhythm.changed(0, false);
        assert_eq!(rhythm.next(10_000), NextSync::Pull, "before anything else");
        rhythm.done(NextSync::Pull, SyncEnding::Well, 10_000, 0.0);
        rhythm.changed(10_500, false);
        rhythm.changed(11_500, false);
        assert_eq!(rhythm.next(12_600), NextSync::Wait(13_500));
        assert_eq!(rhythm.next(13_500), NextSync::Push);
        rhythm.done(NextSync::Push, SyncEnding::Well, 13_600, 0.0);
        assert_eq!(rhythm.next(13_600), NextSync::Wait(313_600));
        assert_eq!(rhythm.next(313_600), NextSync::Pull);
    }

    /// TEAM-4: what can never work silences pushes until a deletion; pulls go on.
    #[test]
    fn a_permanent_no_silences_pushes() {
        let no = RequestTrouble::Permanent { server: "s".to_owned(), status: 403, message: String::new() };
        let full = SyncReport { limit: Some(1), ..SyncReport::default() };
        for outcome in [Err(no.into()), Err(RequestTrouble::TooMany { most: 1 }.into()), Ok(full)] {
            let mut rhythm = Rhythm::default();
            rhythm.done(NextSync::Pull, SyncEnding::Well, 0, 0.0);
            rhythm.changed(0, false);
            rhythm.done(NextSync::Push, SyncEnding::from(&outcome), 2_000, 0.0);
            rhythm.changed(3_000, false);
            assert_eq!((rhythm.next(10_000), rhythm.is_silent()), (NextSync::Wait(302_000), true));
            rhythm.changed(20_000, true);
            assert_eq!(rhythm.next(22_000), NextSync::Push);
        }
    }

    /// TEAM-3, TEAM-4: after conflicts, or an error of this machine, the next try comes within five minutes, not at the same
    /// moment for all.
    #[test]
    fn what_may_work_later_is_tried_again() {
        let full = files::Error::Full { path: "a.md".into() };
        for error in [EarlyEnd::from(RequestTrouble::Conflict), crate::Error::from(full).into()] {
            let outcome = Err(error);
            let after = |part: f64| {
                let mut rhythm = Rhythm::default();
                rhythm.done(NextSync::Pull, SyncEnding::Well, 0, 0.0);
                rhythm.changed(0, false);
                rhythm.done(NextSync::Push, SyncEnding::from(&outcome), 2_000, part);
                rhythm.next(2_000)
            };
            assert_eq!((after(0.0), after(0.5)), (NextSync::Wait(4_000), NextSync::Wait(154_000)));
        }
    }

    /// TEAM-4: a clock that is set back stops neither pulls nor pushes.
    #[test]
    fn a_clock_set_back_stops_nothing() {
        let day = 24 * 3_600_000;
        let mut rhythm = Rhythm::default();
        rhythm.done(NextSync::Pull, SyncEnding::Well, day, 0.0);
        assert_eq!(rhythm.next(0), NextSync::Pull);
        rhythm.changed(day, false);
        assert_eq!(rhythm.next(0), NextSync::Push);
        rhythm.done(NextSync::Push, SyncEnding::Well, 0, 0.0);
        assert_eq!(rhythm.next(0), NextSync::Wait(PULL));
    }
}
