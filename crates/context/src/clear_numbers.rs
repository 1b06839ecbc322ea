//! The numbers that decide when clearing pays and what it holds back.
//!
//! `gain` and `carried` were searched on a third of several hundred recorded sessions, by `cargo run --release -p session
//! --example fit_clearing -- --fit FOLDER`; `budget` was chosen on two thirds of them. docs/decisions/0022 says how, and what
//! came of it on others.

/// The numbers that decide when clearing pays and what it holds back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClearNumbers {
    /// Where the window has room, clearing has to save so many times what it costs: the session may end soon.
    pub gain: f64,
    /// Carrying what goes has to have cost this part of what being rid of it costs.
    pub carried: f64,
    /// Were the session to end now, clearing may have cost it so much more, as a part of what it cost in all.
    pub budget: f64,
    /// Where the window is full: how often a file is read or edited again from what an old result of it showed.
    pub uses: f64,
    /// The same, of a file that the user's last words name.
    pub uses_named: f64,
}

impl Default for ClearNumbers {
    fn default() -> Self {
        Self { gain: 2.0, carried: 0.5, budget: 0.06, uses: 0.3, uses_named: 4.0 }
    }
}
