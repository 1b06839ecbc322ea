//! One request: the prologue, the messages and where the cache breakpoints stand.

use std::sync::Arc;

use crate::block::Block;
use crate::mark::Marks;
use crate::message::{Message, Prologue, Role};

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

impl Request {
    /// A request about one text, of which nothing is cached.
    pub fn about(prologue: Prologue, text: impl AsRef<str>) -> Self {
        let messages = vec![Message { role: Role::User, blocks: vec![Block::text(text.as_ref())] }];
        Self { prologue: Arc::new(prologue), messages, marks: Marks::default() }
    }
}
