//! The numbers that decide when clearing pays and what it holds back.
//!
//! `read_rounds` and `budget` were chosen on two thirds of several hundred recorded sessions, which `cargo run --release -p
//! session --example fit_clearing -- FOLDER` prices. docs/decisions/0022 says how, and what came of it on others.

/// The numbers that decide when clearing pays and what it holds back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClearNumbers {
    /// Age in rounds up to which results of reading stay, if the window has room.
    pub read_rounds: usize,
    /// Limit on the net cost of clearing, if the session ended now, as a part of its whole cost.
    pub budget: f64,
    /// Expected number of times that a file is read or edited again from an old result, if the window is full.
    pub uses: f64,
    /// The same for a file that the user's last words name.
    pub uses_named: f64,
}

impl Default for ClearNumbers {
    fn default() -> Self {
        Self { read_rounds: 10, budget: 0.06, uses: 0.3, uses_named: 4.0 }
    }
}
