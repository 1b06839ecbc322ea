//! The numbers that decide when clearing pays and what it holds back.
//!
//! They were chosen on some of several hundred recorded sessions, which `cargo run --release -p session --example
//! fit_clearing -- FOLDER` prices. docs/decisions/0022 says how, and what came of it on the others.

/// The numbers that decide when clearing pays and what it holds back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClearNumbers {
    /// Age in rounds up to which results of reading stay.
    pub read_rounds: usize,
    /// The same for a file that the user's last words name.
    pub named_rounds: usize,
    /// Tokens from which on results are cleared in the middle of a turn too: carrying so much is expensive.
    pub midturn_tokens: u64,
    /// The same as a part of what fits into the window before it is tight, where that is less.
    pub midturn_share: f64,
    /// Part of the price of clearing that carrying the results must have cost before.
    pub patience: f64,
    /// Limit on the net cost of clearing, if the session ended soon, as a part of its whole cost.
    pub budget: f64,
    /// "Soon" at the start of a turn, in rounds. Divided by the price of writing to the cache: the more that costs, the sooner
    /// it has to be earned back.
    pub rounds_at_start: u32,
    /// The same in the middle of a turn: it is less likely to end now.
    pub rounds_midturn: u32,
    /// Expected number of times that a file is read or edited again from an old result.
    pub uses: f64,
    /// The same for a file that the user's last words name, or that was edited in the last few rounds.
    pub likely_uses: f64,
    /// Number of those rounds.
    pub edited_rounds: usize,
}

impl Default for ClearNumbers {
    fn default() -> Self {
        Self {
            read_rounds: 12,
            named_rounds: 40,
            midturn_tokens: 100_000,
            midturn_share: 0.68,
            patience: 0.8,
            budget: 0.025,
            rounds_at_start: 1,
            rounds_midturn: 8,
            uses: 0.2,
            likely_uses: 0.5,
            edited_rounds: 5,
        }
    }
}
