//! One request: the prologue, the messages and where the cache breakpoints stand.

use std::sync::Arc;

use crate::mark::Marks;
use crate::message::{Message, Prologue};

/// A request, ready for a provider to put on the wire.
#[derive(Debug, Clone)]
pub struct Request {
    /// Tools, system, model and parameters.
    pub prologue: Arc<Prologue>,
    /// The view.
    pub messages: Vec<Message>,
    /// Where the cache breakpoints stand.
    pub marks: Marks,
}
