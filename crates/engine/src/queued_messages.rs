//! The user's messages while the agent works: kept until the next round starts, and until then they can be taken back.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use transcript::Block;

/// Waiting messages. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct QueuedMessages {
    waiting: Arc<Mutex<VecDeque<Vec<Block>>>>,
}

impl QueuedMessages {
    /// Appends a message.
    pub fn push(&self, said: Vec<Block>) {
        self.waiting.lock().push_back(said);
    }

    /// Takes back the newest message.
    pub fn take_back(&self) -> Option<Vec<Block>> {
        self.waiting.lock().pop_back()
    }

    /// The waiting messages, oldest first.
    pub fn peek(&self) -> Vec<Vec<Block>> {
        self.waiting.lock().iter().cloned().collect()
    }

    /// Takes the oldest message, for the next round.
    pub fn next(&self) -> Option<Vec<Block>> {
        self.waiting.lock().pop_front()
    }
}
