//! The numbers that decide when clearing pays and what it holds back.
//!
//! `read_rounds` and `budget` were chosen on two thirds of several hundred recorded sessions, which `cargo run --release -p
//! session --example fit_clearing -- FOLDER` prices. docs/decisions/0022 says how, and what came of it on others.

/// The numbers that decide when clearing pays and what it holds back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClearNumbers {
    /// Where the window has room, what was read so few rounds ago stays.
    pub read_rounds: usize,
    /// Were the session to end now, clearing may have cost it so much more, as a part of what it cost in all.
    pub budget: f64,
    /// Where the window is full: how often a file is read or edited again from what an old result of it showed.
    pub uses: f64,
    /// The same, of a file that the user's last words name.
    pub uses_named: f64,
}

impl Default for ClearNumbers {
    fn default() -> Self {
        Self { read_rounds: 10, budget: 0.06, uses: 0.3, uses_named: 4.0 }
    }
}
