//! Our ranker compared with BM25, question by question: the order, and what is surfaced when both are silent equally
//! often.

use super::QuestionOutcome;
use crate::rank::{FOLLOWS, Hit, MOST};

/// Standard deviations of a 95 % interval.
const DEVIATIONS: f64 = 1.96;

/// A share of the answerable questions, ours and BM25's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Ours.
    pub ours: f64,
    /// BM25's.
    pub plain: f64,
    /// Half the 95 % interval of the difference. Both are asked the same questions, so only those count that one gets
    /// right and the other does not.
    pub interval: f64,
}

impl Difference {
    fn of(pairs: impl Iterator<Item = (bool, bool)>) -> Self {
        let (mut all, mut ours, mut plain, mut unlike) = (0.0, 0.0, 0.0, 0.0);
        for (one, other) in pairs {
            all += 1.0;
            ours += f64::from(u8::from(one));
            plain += f64::from(u8::from(other));
            unlike += f64::from(u8::from(one != other));
        }
        let all = f64::max(all, 1.0);
        let difference: f64 = ours - plain;
        let interval = DEVIATIONS * (unlike - difference * difference / all).max(0.0).sqrt() / all;
        Self { ours: ours / all, plain: plain / all, interval }
    }

    /// The lowest value that is not below BM25 by more than the interval.
    pub fn least(&self) -> f64 {
        self.plain - self.interval
    }
}

/// Figures that are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The top memory is wanted.
    pub first: Difference,
    /// One of the top five is wanted.
    pub five: Difference,
    /// A surfaced memory is wanted, with a threshold at which BM25 is silent as often as we are.
    pub surfaced: Difference,
}

impl Comparison {
    /// Compares answers to the same questions, in the same order.
    pub fn of(ours: &[QuestionOutcome<'_>], plain: &[QuestionOutcome<'_>]) -> Self {
        let enough = enough(ours, plain);
        let pairs = || ours.iter().zip(plain).filter(|(one, _)| !one.question.wanted.is_empty());
        let within = |count: usize| {
            move |answer: &QuestionOutcome<'_>| {
                answer.ranked.iter().take(count).any(|hit| answer.question.wanted.contains(&hit.path))
            }
        };
        let ranked = |count: usize| {
            let has = within(count);
            Difference::of(pairs().map(move |(one, other)| (has(one), has(other))))
        };
        let surfaced = pairs().map(|(one, other)| {
            let wanted = &one.question.wanted;
            let best = best(other);
            let follows = |hit: &&Hit| best >= enough && hit.share >= best * FOLLOWS;
            let plain = other.ranked.iter().take(MOST).filter(follows).any(|hit| wanted.contains(&hit.path));
            (one.surfaced.iter().any(|path| wanted.contains(path)), plain)
        });
        Self { first: ranked(1), five: ranked(MOST), surfaced: Difference::of(surfaced) }
    }
}

/// BM25's score of the top memory.
fn best(answer: &QuestionOutcome<'_>) -> f32 {
    answer.ranked.first().map_or(0.0, |hit| hit.share)
}

/// The threshold at which BM25 is silent on as many unanswerable questions as we are.
fn enough(ours: &[QuestionOutcome<'_>], plain: &[QuestionOutcome<'_>]) -> f32 {
    let nothing = |answer: &&QuestionOutcome<'_>| answer.question.wanted.is_empty();
    let silent = ours.iter().filter(nothing).filter(|answer| answer.surfaced.is_empty()).count();
    let mut scores: Vec<f32> = plain.iter().filter(nothing).map(best).collect();
    scores.sort_by(f32::total_cmp);
    scores.get(silent).copied().unwrap_or(f32::INFINITY)
}
