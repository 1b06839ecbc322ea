//! The selector: a small model that is asked which of a few memories matter to a message.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use memory::recall::Need;
use memory::verdict::{self, RecallCandidate};
use parking_lot::Mutex;
use provider::Model;
use transcript::{Block, Prologue, Reply, Request};

use crate::ledger::{self, Ledger};

/// Time limit for a selector; then the ranker decides alone.
const PATIENCE: Duration = Duration::from_secs(20);

/// Number of cached choices: the same question about the same memories has the same answer.
const KEPT: usize = 64;

/// A small model for side questions.
#[derive(Clone)]
pub struct Selector {
    /// The client.
    pub model: Arc<dyn Model>,
    /// The model's name.
    pub name: String,
    /// Ledger for its costs, asked before each question.
    pub ledger: Arc<Ledger>,
}

impl Selector {
    /// True if the budget leaves room for a question.
    pub(super) fn has_budget(&self) -> bool {
        self.ledger.allows(ledger::SELECT).is_ok()
    }
}

/// Cached choices, by a hash of the question.
pub(super) type Choices = Arc<Mutex<HashMap<u64, Vec<String>>>>;

/// Question for a selector.
pub(super) struct SelectorQuestion {
    pub(super) selector: Selector,
    pub(super) choices: Choices,
    pub(super) message: String,
    pub(super) candidates: Vec<RecallCandidate>,
    /// Keys of the memories that the ranker is sure of.
    pub(super) sure: Vec<String>,
    pub(super) recent_tools: Vec<String>,
    pub(super) now: Timestamp,
}

impl SelectorQuestion {
    /// Asks. On any failure the ranker's choice stands.
    pub(super) async fn select(self) -> Vec<RecallCandidate> {
        let need = verdict::question(&self.message, &self.candidates, &self.recent_tools, self.now);
        let Some(Need::Select { system, prompt, schema, max_tokens }) = need else { return Vec::new() };
        let mut hasher = DefaultHasher::new();
        (&self.selector.name, &prompt).hash(&mut hasher);
        let question = hasher.finish();
        let known = self.choices.lock().get(&question).cloned();
        let chosen = match known {
            Some(chosen) => chosen,
            None => {
                let prologue = Prologue {
                    model: self.selector.name.clone(),
                    max_tokens,
                    system: vec![Block::text(system)],
                    format: Some(schema),
                    ..Prologue::default()
                };
                let Some(chosen) = self.ask(Request::about(prologue, prompt)).await else {
                    return self.of_candidates(&self.sure);
                };
                let mut choices = self.choices.lock();
                if choices.len() >= KEPT {
                    choices.clear();
                }
                choices.insert(question, chosen.clone());
                chosen
            }
        };
        self.of_candidates(&chosen)
    }

    fn of_candidates(&self, keys: &[String]) -> Vec<RecallCandidate> {
        keys.iter().filter_map(|key| self.candidates.iter().find(|one| one.key() == *key)).cloned().collect()
    }

    async fn ask(&self, request: Request) -> Option<Vec<String>> {
        let Selector { ledger, model, .. } = &self.selector;
        ledger.allows(ledger::SELECT).ok()?;
        let events = ledger.ask(ledger::SELECT, model, request);
        let reply = tokio::time::timeout(PATIENCE, reply_of(events)).await.ok().flatten()?;
        let answer = reply.blocks.iter().find_map(Block::as_text).unwrap_or_default();
        let chosen = verdict::chosen(&answer, &self.candidates).ok()?;
        Some(chosen.into_iter().map(RecallCandidate::key).collect())
    }
}

/// The reply, if one comes.
async fn reply_of(mut events: BoxStream<'static, provider::Event>) -> Option<Reply> {
    while let Some(event) = events.next().await {
        match event {
            provider::Event::Done(reply) => return Some(reply),
            provider::Event::Failed(_) => return None,
            _ => {}
        }
    }
    None
}
