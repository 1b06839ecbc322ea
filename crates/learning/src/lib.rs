//! Learning: the knowledge of a session, what it writes down for later ones, and the cost of both.
//!
//! [`knowledge`] attaches instructions and memories; [`extract`] writes memories after a turn; [`dream`] puts memories
//! in order; [`saver`] is the one way in which agents save; [`unattended`] is the policy of agents that nobody watches.
//! [`fork`] asks a question outside the conversation, [`background`] holds work that nobody waits for, and the
//! [`ledger`] records spending.

pub mod background;
pub mod dream;
mod excluded_sessions;
mod exclusions;
pub mod extract;
pub mod fork;
pub mod knowledge;
pub mod ledger;
mod protection;
pub mod saver;
pub mod saving;
pub mod unattended;

pub use ledger::Ledger;
