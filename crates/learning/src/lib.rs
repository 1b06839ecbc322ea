//! Learning: what a session knows, what it writes down for later ones, and what that may cost.
//!
//! [`knowledge`] is instructions and memory as attachments; [`extract`] writes down what was learnt after a turn; [`dream`]
//! brings memories into order; [`saver`] is the one way in which agents save; [`restricted`] judges those that nobody watches. [`fork`] asks a question beside the
//! conversation, [`background`] holds work that nobody waits for, and the [`ledger`] what was spent.

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
