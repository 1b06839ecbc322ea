//! A question to a small model: which memories matter to what was said?

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use memory::rank::{Doing, Question};
use memory::recall::{self, MANIFEST, Need, State};
use memory::shelf::Shelf;
use memory::{Header, scan};
use provider::Model;
use tools::Scope;
use transcript::{Block, Prologue, Reply, Request};

use crate::ledger::{self, Ledger};

/// How long a selector may think before the ranker's word stands alone.
const PATIENCE: Duration = Duration::from_secs(20);

/// A small model for side questions.
#[derive(Clone)]
pub struct Selector {
    /// The client.
    pub model: Arc<dyn Model>,
    /// The model's name.
    pub name: String,
    /// Where what it uses is written down, and asked for before.
    pub ledger: Arc<Ledger>,
}

/// What it is asked.
pub(super) struct Asking {
    pub(super) selector: Selector,
    pub(super) shelf: Arc<Shelf>,
    pub(super) scope: Scope,
    pub(super) state: State,
    pub(super) message: String,
    pub(super) doing: Doing,
    pub(super) now: Timestamp,
}

impl Asking {
    /// Asks. On any failure nothing is chosen: the ranker's word, which is in the request already, stands.
    pub(super) async fn select(&self) -> Vec<String> {
        if self.selector.ledger.allows(ledger::SELECT).is_err() {
            return Vec::new();
        }
        let candidates = self.candidates();
        let Some(Need::Select { system, prompt, schema, max_tokens }) =
            recall::select(&self.message, &candidates, &self.doing.tools)
        else {
            return Vec::new();
        };
        let prologue = Prologue {
            model: self.selector.name.clone(),
            max_tokens,
            system: vec![Block::text(system)],
            format: Some(schema),
            ..Prologue::default()
        };
        let request = Request::about(prologue, prompt);
        let Selector { ledger, model, name, .. } = &self.selector;
        let events = ledger.count(ledger::SELECT, Some(name), model.stream(request));
        let answer = tokio::time::timeout(PATIENCE, reply_of(events)).await;
        let Some(reply) = answer.ok().flatten() else { return Vec::new() };
        let answer = reply.blocks.iter().find_map(Block::as_text).unwrap_or_default();
        recall::chosen(&answer, &candidates).unwrap_or_default()
    }

    /// The memories to choose from: not surfaced, not read, and of very many the likeliest; the newest while it is not
    /// known which these are.
    fn candidates(&self) -> Vec<Header> {
        let headers = scan::headers(self.shelf.root()).unwrap_or_default();
        let was_read = |path: &str| self.scope.seen(&self.shelf.file(path)).is_some();
        let mut candidates = recall::candidates(&headers, &self.state, was_read);
        if candidates.len() > MANIFEST {
            let question = Question { text: &self.message, doing: &self.doing, now: self.now };
            if let Some(ranker) = self.shelf.ranker() {
                let best = ranker.likeliest(&question, MANIFEST);
                candidates.retain(|header| best.contains(&header.path));
            }
            candidates.truncate(MANIFEST);
        }
        candidates
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
