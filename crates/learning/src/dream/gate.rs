//! Whether a dream is due, the cheapest questions first: the switches, the time since the last one and since one that
//! failed, the time since it was last looked, how many sessions were touched since. The lock comes last, and is asked by whoever dreams.

use jiff::{SignedDuration, Timestamp};
use settings::Rhythm;

use super::lock::Mark;

/// The sessions are not looked at again within this time.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// Nobody rests for longer after a dream that failed.
const LONGEST_REST: SignedDuration = SignedDuration::from_hours(24);

/// The gate of one process. It remembers when it last looked at the sessions.
#[derive(Debug, Default)]
pub struct DreamGate {
    looked: Option<Timestamp>,
}

/// What the gate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateDecision {
    /// It is time.
    Due,
    /// Dreams do not come by themselves.
    Off,
    /// The last one is not long enough ago; it will be then.
    TooSoon(Timestamp),
    /// The last one failed or was cut off; it is tried again then.
    Rests(Timestamp),
    /// It was looked a moment ago.
    JustLooked,
    /// So many sessions were touched since, which are too few.
    TooFew(usize),
}

impl DreamGate {
    /// Asks, with when the last one was and until when none is tried again. `sessions` counts those touched since a time, and is asked only where all that is cheaper says yes.
    pub fn ask(
        &mut self,
        rhythm: &Rhythm,
        (last, rests): (Option<Timestamp>, Option<Timestamp>),
        now: Timestamp,
        sessions: impl FnOnce(Option<Timestamp>) -> usize,
    ) -> GateDecision {
        if !rhythm.on {
            return GateDecision::Off;
        }
        let hours = SignedDuration::from_hours(i64::try_from(rhythm.hours).unwrap_or(i64::MAX / 7_200).min(1_000_000));
        // Far in the future is as good as long ago: the clock was wrong then, or is now.
        if let Some(last) = last
            && now.duration_since(last).abs() < hours
        {
            return GateDecision::TooSoon(last.checked_add(hours).unwrap_or(now));
        }
        // A clock that stepped back must not keep them off for longer than the longest rest.
        if let Some(until) = rests
            && now < until
            && until.duration_since(now) <= LONGEST_REST
        {
            return GateDecision::Rests(until);
        }
        if self.looked.is_some_and(|looked| now.duration_since(looked).abs() < LOOK_AGAIN) {
            return GateDecision::JustLooked;
        }
        self.looked = Some(now);
        let touched = sessions(last);
        if (touched as u64) < rhythm.sessions { GateDecision::TooFew(touched) } else { GateDecision::Due }
    }
}

/// When the last dream was. A holder that died in the middle of one leaves the time at which it began: then it is the one
/// before, if `interrupted` says that this is what happened.
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

    /// DREAM-1: each gate in its turn; the sessions are counted only where the cheaper ones say yes, and not again within
    /// ten minutes.
    #[test]
    fn gates_are_asked_cheapest_first() {
        let (rhythm, mut gate) = (Rhythm::default(), DreamGate::default());
        let unasked = |_| panic!("this is dearer");
        assert_eq!(gate.ask(&Rhythm { on: false, ..rhythm }, (None, None), at(0), unasked), GateDecision::Off);
        let soon = gate.ask(&rhythm, (Some(at(0)), None), at(24 * HOUR - 1), unasked);
        let rests = gate.ask(&rhythm, (Some(at(0)), Some(at(24 * HOUR + 9))), at(24 * HOUR), unasked);
        assert_eq!(rests, GateDecision::Rests(at(24 * HOUR + 9)));
        assert_eq!(soon, GateDecision::TooSoon(at(24 * HOUR)));
        assert_eq!(
            gate.ask(&rhythm, (Some(at(0)), Some(at(3))), at(24 * HOUR), |since| {
                assert_eq!(since, Some(at(0)));
                4
            }),
            GateDecision::TooFew(4)
        );
        assert_eq!(gate.ask(&rhythm, (Some(at(0)), None), at(24 * HOUR + 599), unasked), GateDecision::JustLooked);
        assert_eq!(gate.ask(&rhythm, (Some(at(0)), None), at(24 * HOUR + 600), |_| 5), GateDecision::Due);
        assert_eq!(
            DreamGate::default().ask(&rhythm, (None, None), at(0), |since| {
                assert_eq!(since, None);
                5
            }),
            GateDecision::Due
        );
    }

    /// DREAM-1: hours and sessions are settings; a clock that steps neither starts dreams in a row nor keeps them off for
    /// ever.
    #[test]
    fn a_clock_that_steps_does_no_harm() {
        let rhythm = Rhythm { hours: 2, sessions: 1, ..Rhythm::default() };
        let ask = |last, now| DreamGate::default().ask(&rhythm, (Some(last), None), now, |_| 1);
        assert_eq!(ask(at(0), at(2 * HOUR)), GateDecision::Due);
        assert!(matches!(ask(at(600), at(0)), GateDecision::TooSoon(_)), "ten minutes back");
        assert_eq!(ask(at(100_000 * HOUR), at(0)), GateDecision::Due, "it was dated by a clock that was years ahead");
        let mut gate = DreamGate::default();
        assert_eq!(gate.ask(&rhythm, (None, None), at(100_000), |_| 0), GateDecision::TooFew(0));
        assert_eq!(
            gate.ask(&rhythm, (None, None), at(0), |_| 1),
            GateDecision::Due,
            "looked in the future, by a clock that was wrong"
        );
        let endless = Rhythm { hours: u64::MAX, ..rhythm };
        assert!(matches!(
            DreamGate::default().ask(&endless, (Some(at(0)), None), at(HOUR), |_| 9),
            GateDecision::TooSoon(_)
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
