//! Learning: what a session knows, what it writes down for later ones, and what that may cost.
//!
//! [`knowledge`] is instructions and memory as attachments; [`extract`] writes down what was learnt after a turn; [`dream`]
//! brings memories into order; [`restricted`] judges agents that nobody watches. [`fork`] asks a question beside the
//! conversation, [`background`] holds work that nobody waits for, and the [`ledger`] what was spent.

mod apart;
pub mod background;
pub mod dream;
pub mod extract;
pub mod fork;
pub mod knowledge;
pub mod ledger;
pub mod restricted;

pub use ledger::Ledger;
