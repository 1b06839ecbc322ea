//! Is it worth it? The arithmetic behind every change of bytes that were already sent.
//!
//! The provider has cached what was sent. Taking tokens out of it saves reading them in the rounds to come, and costs
//! writing everything behind them again. So a change pays when
//!
//! ```text
//! cleared × read × rounds  >  suffix × (write − read) + what is written down of it before
//! ```
//!
//! Prices are relative to input that is not cached.

use std::fmt;

use transcript::Usage;
use transcript::mark::Ttl;
use transcript::price::Price;

/// Rounds to come, when too little is known of the session.
const USUAL_ROUNDS: u32 = 8;
/// Remaining requests of a session by the number it had: the medians of recorded sessions.
const TO_COME: [(u32, u32); 3] = [(20, 33), (40, 22), (80, 21)];
/// Number of turns that are looked at.
const TURNS: usize = 5;
/// Number of turns below which nothing is known.
const FEW_TURNS: usize = 3;

/// Prices of tokens, relative to uncached input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Writing to the cache.
    pub write: f64,
    /// Reading from it.
    pub read: f64,
    /// Output.
    pub output: f64,
}

impl Rates {
    /// The rates of a model; the usual ones if its price is unknown.
    pub fn of(price: Option<Price>, ttl: Ttl) -> Self {
        let price = price.filter(|price| price.input > 0.0).unwrap_or(Price::new(1.0, 5.0));
        let write = match ttl {
            Ttl::FiveMinutes => price.cache_write_5m,
            Ttl::OneHour => price.cache_write_1h,
        };
        Self { write: write / price.input, read: price.cache_read / price.input, output: price.output / price.input }
    }
}

impl Rates {
    /// Cost of a request, in tokens of uncached input.
    pub fn cost(&self, usage: &Usage) -> f64 {
        usage.input_tokens as f64
            + usage.cache_creation_input_tokens as f64 * self.write
            + usage.cache_read_input_tokens as f64 * self.read
            + usage.output_tokens as f64 * self.output
    }
}

/// Lengths of the turns in this session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnPace {
    /// Rounds of the finished turns, the newest last.
    turns: Vec<u32>,
    /// Rounds of the current turn.
    now: u32,
    /// Rounds of the session.
    all: u32,
}

impl TurnPace {
    /// Records a round.
    pub fn round(&mut self) {
        self.now += 1;
        self.all += 1;
    }

    /// Records the beginning of a turn.
    pub fn turn(&mut self) {
        if self.now > 0 {
            self.turns.push(std::mem::take(&mut self.now));
            let old = self.turns.len().saturating_sub(TURNS);
            self.turns.drain(..old);
        }
    }

    /// Expected remaining rounds: the median of the last turns.
    pub fn expected(&self) -> u32 {
        if self.turns.len() < FEW_TURNS {
            return USUAL_ROUNDS;
        }
        let mut turns = self.turns.clone();
        turns.sort_unstable();
        turns[turns.len() / 2]
    }

    /// True at the start of a turn: the user wrote, and nothing was answered yet.
    pub fn is_start_of_turn(&self) -> bool {
        self.now == 0
    }

    /// Expected remaining rounds of the session, by the number it had.
    pub fn to_come(&self) -> u32 {
        let mut known = TO_COME[0];
        for next in TO_COME {
            let ((from, before), (to, after)) = (known, next);
            if self.all <= to {
                let part = f64::from(self.all.max(from) - from) / f64::from((to - from).max(1));
                return before - (f64::from(before - after) * part) as u32;
            }
            known = next;
        }
        known.1
    }

    /// Expected remaining rounds, for decisions that can wait: a turn that has been long stays long.
    pub fn expected_of_long_turns(&self) -> u32 {
        self.expected().max(self.now)
    }
}

/// A change of sent bytes, with its price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PricedChange {
    /// Tokens that leave the view.
    pub cleared: u64,
    /// Tokens behind the first changed byte that stay, and have to be written again.
    pub suffix: u64,
    /// Additional cost in tokens of uncached input: writing the digest.
    pub digest_cost: f64,
    /// Rounds to come.
    pub rounds: u32,
    /// Prices.
    pub rates: Rates,
    /// State of the provider's cache.
    pub cache: Cache,
}

/// State of the provider's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The provider still has what was sent.
    Warm,
    /// The provider no longer has it: all that stays is written anyway, and what is cleared need not be.
    Cold,
}

impl PricedChange {
    /// Savings over the remaining rounds.
    pub fn saves(&self) -> f64 {
        self.cleared as f64 * self.rates.read * f64::from(self.rounds) + self.saves_at_once()
    }

    /// Savings in the next request already: what is cleared need not be written to a cold cache.
    fn saves_at_once(&self) -> f64 {
        match self.cache {
            Cache::Warm => 0.0,
            Cache::Cold => self.cleared as f64 * (self.rates.write - self.rates.read),
        }
    }

    /// Costs.
    pub fn costs(&self) -> f64 {
        let again = match self.cache {
            Cache::Warm => self.suffix as f64 * (self.rates.write - self.rates.read),
            Cache::Cold => 0.0,
        };
        again + self.digest_cost
    }

    /// Costs that are still to be earned after the next request.
    pub fn outlay(&self) -> f64 {
        (self.costs() - self.saves_at_once()).max(0.0)
    }

    /// True if it pays.
    pub fn pays(&self) -> bool {
        self.saves() > self.costs()
    }
}

impl fmt::Display for PricedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (saves, again) = (self.saves(), self.rates.write - self.rates.read);
        write!(f, "{} tokens × {:.2} × {} rounds saves {saves:.0}; ", self.cleared, self.rates.read, self.rounds)?;
        match self.cache {
            Cache::Warm => write!(f, "writing {} again × {again:.2}", self.suffix)?,
            Cache::Cold => write!(f, "the cache is cold")?,
        }
        if self.digest_cost > 0.0 {
            write!(f, " and {:.0} for writing down what goes", self.digest_cost)?;
        }
        write!(f, " costs {:.0}", self.costs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(cleared: u64, suffix: u64, rounds: u32) -> PricedChange {
        PricedChange {
            cleared,
            suffix,
            digest_cost: 0.0,
            rounds,
            rates: Rates::of(None, Ttl::FiveMinutes),
            cache: Cache::Warm,
        }
    }

    /// MICRO-5: worked examples of the break-even sum, at five minutes and at an hour.
    #[test]
    fn a_change_pays_when_it_saves_more_than_it_costs() {
        assert!(sum(30_000, 10_000, 8).pays(), "24,000 against 11,500");
        assert!(!sum(10_000, 10_000, 8).pays(), "8,000 against 11,500");
        assert!(!sum(30_000, 10_000, 3).pays(), "9,000 against 11,500");
        assert!(sum(1, 0, 1).pays() && !sum(0, 1, 8).pays());
        let cold = PricedChange { cache: Cache::Cold, digest_cost: 13_000.0, ..sum(10_000, 90_000, 3) };
        assert!(cold.pays(), "14,500 against 13,000: the rest is written anyway");
        let hour = PricedChange { rates: Rates::of(None, Ttl::OneHour), ..sum(20_000, 10_000, 9) };
        assert!(!hour.pays(), "18,000 against 19,000");
        let paid = PricedChange { digest_cost: 13_000.0, ..sum(30_000, 10_000, 8) };
        assert!(!paid.pays() && paid.to_string().ends_with("× 1.15 and 13000 for writing down what goes costs 24500"));
        let text = sum(30_000, 10_000, 8).to_string();
        assert_eq!(text, "30000 tokens × 0.10 × 8 rounds saves 24000; writing 10000 again × 1.15 costs 11500");
    }

    /// MICRO-5: rounds to come are the median of the last five turns; eight where fewer than three are known.
    #[test]
    fn the_rounds_to_come_are_the_median_of_the_last_turns() {
        let mut pace = TurnPace::default();
        let turn = |pace: &mut TurnPace, rounds: u32| {
            (0..rounds).for_each(|_| pace.round());
            pace.turn();
            pace.expected()
        };
        assert_eq!([turn(&mut pace, 30), turn(&mut pace, 2)], [8, 8]);
        assert_eq!(turn(&mut pace, 4), 4);
        assert_eq!([turn(&mut pace, 4), turn(&mut pace, 4), turn(&mut pace, 1)], [4, 4, 4]);
        (0..40).for_each(|_| pace.round());
        assert_eq!((pace.expected(), pace.expected_of_long_turns()), (4, 40));
    }

    /// MICRO-5: how many rounds a session still has is told by how many it had, as recorded ones had.
    #[test]
    fn a_session_has_as_many_rounds_to_come_as_recorded_ones_had() {
        let to_come = |all| TurnPace { all, ..TurnPace::default() }.to_come();
        assert_eq!([0, 20, 30, 40, 80, 500].map(to_come), [33, 33, 28, 22, 21, 21]);
        assert!(
            TurnPace::default().is_start_of_turn() && !TurnPace { now: 1, ..TurnPace::default() }.is_start_of_turn()
        );
    }
}
