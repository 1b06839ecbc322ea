#![doc = include_str!("../README.md")]

mod cache;
mod cached_prompt;
mod check;
mod clock;
mod count;
mod edits;
mod error;
mod faults;
mod ids;
mod models;
mod refusal;
mod report;
mod request_price;
mod request_view;
mod schema;
mod script;
mod server;
mod stream;
mod trail;
mod when;

pub use cache::Split;
pub use clock::Clock;
pub use error::Error;
pub use faults::{Fault, Overflow};
pub use report::{PrefixBreak, Report, RequestLine, Totals};
pub use request_price::Price;
pub use script::{Defaults, Script, ScriptRule, ScriptedCall, ScriptedSearch};
pub use server::{Options, Simulator};
pub use when::When;
