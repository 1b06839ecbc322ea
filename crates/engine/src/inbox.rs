//! What the user says while the agent works: kept until the next round begins, and until then it can be taken back.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use transcript::Block;

/// Messages that wait. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Inbox {
    waiting: Arc<Mutex<VecDeque<Vec<Block>>>>,
}

impl Inbox {
    /// Puts a message at the end.
    pub fn push(&self, said: Vec<Block>) {
        self.waiting.lock().push_back(said);
    }

    /// Takes back the newest one.
    pub fn take_back(&self) -> Option<Vec<Block>> {
        self.waiting.lock().pop_back()
    }

    /// What waits, oldest first.
    pub fn peek(&self) -> Vec<Vec<Block>> {
        self.waiting.lock().iter().cloned().collect()
    }

    /// Takes the oldest one: its round has come.
    pub fn next(&self) -> Option<Vec<Block>> {
        self.waiting.lock().pop_front()
    }
}
