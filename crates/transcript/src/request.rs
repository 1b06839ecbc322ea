//! One request: the prologue, the messages and the cache breakpoints.

use std::sync::Arc;

use crate::block::Block;
use crate::mark::Marks;
use crate::message::{Message, Prologue, Role};

/// A request, ready to be sent by a provider.
#[derive(Debug, Clone)]
pub struct Request {
    /// Tools, system, model and parameters.
    pub prologue: Arc<Prologue>,
    /// The view.
    pub messages: Vec<Message>,
    /// Cache breakpoints.
    pub marks: Marks,
}

impl Request {
    /// A request with a single text, nothing of it cached.
    pub fn about(prologue: Prologue, text: impl AsRef<str>) -> Self {
        let messages = vec![Message { role: Role::User, blocks: vec![Block::text(text.as_ref())] }];
        Self { prologue: Arc::new(prologue), messages, marks: Marks::default() }
    }
}
