//! Schedule of dreams, the cheapest checks first: the switches, the time since the last dream and since a failed one,
//! the time since the last check, the number of sessions touched since. The lock comes last, and is taken by the dream
//! itself.

use jiff::{SignedDuration, Timestamp};
use settings::Rhythm;

use super::lock::Mark;

/// Time before the sessions are looked at again.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// Longest rest after a failed dream.
const LONGEST_REST: SignedDuration = SignedDuration::from_hours(24);

/// The schedule of one process. It remembers its last look at the sessions.
#[derive(Debug, Default)]
pub struct DreamSchedule {
    looked: Option<Timestamp>,
}

/// Decision of the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleDecision {
    /// It is time.
    Due,
    /// Automatic dreams are off.
    Off,
    /// The last one is not long enough ago; it will be at this time.
    TooSoon(Timestamp),
    /// The last one failed or was cut off; the next may begin at this time.
    Rests(Timestamp),
    /// The sessions were looked at a moment ago.
    JustLooked,
    /// Too few sessions were touched since: this many.
    TooFew(usize),
}

impl DreamSchedule {
    /// Decides, from the time of the last dream and the end of its rest. `sessions` counts those touched since a time,
    /// and is called only if all cheaper checks pass.
    pub fn ask(
        &mut self,
        rhythm: &Rhythm,
        (last, rests): (Option<Timestamp>, Option<Timestamp>),
        now: Timestamp,
        sessions: impl FnOnce(Option<Timestamp>) -> usize,
    ) -> ScheduleDecision {
        if !rhythm.on {
            return ScheduleDecision::Off;
        }
        let hours = SignedDuration::from_hours(i64::try_from(rhythm.hours).unwrap_or(i64::MAX / 7_200).min(1_000_000));
        // Far in the future is as good as long ago: the clock was wrong then, or is now.
        if let Some(last) = last
            && now.duration_since(last).abs() < hours
        {
            return ScheduleDecision::TooSoon(last.checked_add(hours).unwrap_or(now));
        }
        // A clock that stepped back must not keep them off for longer than the longest rest.
        if let Some(until) = rests
            && now < until
            && until.duration_since(now) <= LONGEST_REST
        {
            return ScheduleDecision::Rests(until);
        }
        if self.looked.is_some_and(|looked| now.duration_since(looked).abs() < LOOK_AGAIN) {
            return ScheduleDecision::JustLooked;
        }
        self.looked = Some(now);
        let touched = sessions(last);
        if (touched as u64) < rhythm.sessions { ScheduleDecision::TooFew(touched) } else { ScheduleDecision::Due }
    }
}

/// Time of the last dream. A holder that died in the middle of one leaves the time at which it began: then the previous
/// one counts, if `interrupted` says that this is what happened.
pub fn last(mark: &Mark, interrupted: Option<Option<Timestamp>>) -> Option<Timestamp> {
    match interrupted {
        Some(before) if mark.holder.is_some() => before,
        _ => mark.dreamt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// DREAM-1: each check in its turn; the sessions are counted only where the cheaper ones say yes, and not again within
    /// ten minutes.
    #[test]
    fn checks_are_made_cheapest_first() {
        let (rhythm, mut schedule) = (Rhythm::default(), DreamSchedule::default());
        let unasked = |_| panic!("this is dearer");
        assert_eq!(schedule.ask(&Rhythm { on: false, ..rhythm }, (None, None), at(0), unasked), ScheduleDecision::Off);
        let soon = schedule.ask(&rhythm, (Some(at(0)), None), at(24 * HOUR - 1), unasked);
        let rests = schedule.ask(&rhythm, (Some(at(0)), Some(at(24 * HOUR + 9))), at(24 * HOUR), unasked);
        assert_eq!(rests, ScheduleDecision::Rests(at(24 * HOUR + 9)));
        assert_eq!(soon, ScheduleDecision::TooSoon(at(24 * HOUR)));
        assert_eq!(
            schedule.ask(&rhythm, (Some(at(0)), Some(at(3))), at(24 * HOUR), |since| {
                assert_eq!(since, Some(at(0)));
                4
            }),
            ScheduleDecision::TooFew(4)
        );
        assert_eq!(
            schedule.ask(&rhythm, (Some(at(0)), None), at(24 * HOUR + 599), unasked),
            ScheduleDecision::JustLooked
        );
        assert_eq!(schedule.ask(&rhythm, (Some(at(0)), None), at(24 * HOUR + 600), |_| 5), ScheduleDecision::Due);
        assert_eq!(
            DreamSchedule::default().ask(&rhythm, (None, None), at(0), |since| {
                assert_eq!(since, None);
                5
            }),
            ScheduleDecision::Due
        );
    }

    /// DREAM-1: hours and sessions are settings; a clock that steps neither starts dreams in a row nor keeps them off for
    /// ever.
    #[test]
    fn a_clock_that_steps_does_no_harm() {
        let rhythm = Rhythm { hours: 2, sessions: 1, ..Rhythm::default() };
        let ask = |last, now| DreamSchedule::default().ask(&rhythm, (Some(last), None), now, |_| 1);
        assert_eq!(ask(at(0), at(2 * HOUR)), ScheduleDecision::Due);
        assert!(matches!(ask(at(600), at(0)), ScheduleDecision::TooSoon(_)), "ten minutes back");
        assert_eq!(
            ask(at(100_000 * HOUR), at(0)),
            ScheduleDecision::Due,
            "it was dated by a clock that was years ahead"
        );
        let mut schedule = DreamSchedule::default();
        assert_eq!(schedule.ask(&rhythm, (None, None), at(100_000), |_| 0), ScheduleDecision::TooFew(0));
        assert_eq!(
            schedule.ask(&rhythm, (None, None), at(0), |_| 1),
            ScheduleDecision::Due,
            "looked in the future, by a clock that was wrong"
        );
        let endless = Rhythm { hours: u64::MAX, ..rhythm };
        assert!(matches!(
            DreamSchedule::default().ask(&endless, (Some(at(0)), None), at(HOUR), |_| 9),
            ScheduleDecision::TooSoon(_)
        ));
    }

    /// DREAM-2: a dream that was cut off by the end of its process does not count as one.
    #[test]
    fn a_dream_that_was_cut_off_does_not_count() {
        let mark = |holder| Mark { holder, dreamt: Some(at(9)) };
        assert_eq!(last(&mark(None), Some(Some(at(1)))), Some(at(9)));
        assert_eq!(last(&mark(Some(7)), Some(Some(at(1)))), Some(at(1)));
        assert_eq!(last(&mark(Some(7)), Some(None)), None);
        assert_eq!(last(&mark(Some(7)), None), Some(at(9)), "not one of ours, as far as is known");
    }
}
