//! Summaries that are written before they are needed: a fork summarises a span in the background, and what it wrote is a
//! fact of the log until the span gives way to it.

use context::Fact;
use context::layer::{Stage, Write};
use context::state::Summary;
use learning::fork::{Fork, ForkError, ToolPolicy};
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::{Block, Id, Usage};

use super::{Driver, Ended};

/// This kind of work in the background.
const KIND: &str = "collapse";
/// A fork that may call no tool gets a second chance to say so in words.
const ROUNDS: u32 = 2;

/// What came of summarising a span.
#[derive(Debug)]
pub(super) struct Summarised {
    first: Id,
    last: Id,
    model: String,
    outcome: Result<String, ForkError>,
    usage: Usage,
}

impl Driver {
    /// Begins to summarise a span, unless another is being summarised.
    pub(super) fn stage(&mut self, stage: &Stage) -> Result<(), Error> {
        let Write { about, directive, most_output, patience, .. } = &stage.write;
        let context::layer::About::Conversation { end } = about else { return Ok(()) };
        let Some(parent) = self.fork_request(*end).filter(|_| !self.background.is_running(KIND)) else { return Ok(()) };
        let (first, last, model) = (stage.first.clone(), stage.last.clone(), parent.prologue.model.clone());
        let fork = Fork {
            kind: KIND,
            model: self.talk.model.clone(),
            parent,
            directive: Block::text(directive),
            tools: ToolPolicy::Deny,
            rounds: ROUNDS,
            patience: *patience,
            most_output: Some(*most_output),
            budget: None,
            ledger: self.out.ledger.clone(),
            cancel: CancellationToken::new(),
        };
        self.record(Fact::Staged { first: first.clone(), last: last.clone() })?;
        let work = async move {
            let (outcome, usage) = match fork.run().await {
                Ok(forked) => (Ok(forked.text), forked.usage),
                Err((error, usage)) => (Err(error), usage),
            };
            Ended::Collapse(Summarised { first, last, model, outcome, usage })
        };
        self.background.start(KIND, *patience * 2, self.session.world().now(), work);
        Ok(())
    }

    /// Takes in what was written of a span.
    pub(super) fn summarised(&mut self, summarised: Summarised) -> Result<(), Error> {
        let Summarised { first, last, model, outcome, usage } = summarised;
        self.record(Fact::Side { agent: KIND.to_owned(), model, usage })?;
        let summary = outcome.ok().map(|text| super::carry::quoted(&text));
        self.record(Fact::Summarised { first, last, summary })
    }

    /// What somebody is writing already is waited for. None if nobody is, or nothing comes of it.
    pub(super) async fn wait_for_staged(
        &mut self,
        write: &Write,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        if write.kind != KIND || !self.background.is_running(KIND) {
            return Ok(None);
        }
        let now = self.session.world().now();
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            ended = self.background.wait_for(KIND, write.patience, now) => ended,
        };
        if let Some(ended) = ended {
            self.took_in(ended)?;
        }
        Ok(match self.session.state().staged.as_ref().map(|staged| &staged.summary) {
            Some(Summary::Written(text)) => Some(text.clone()),
            _ => None,
        })
    }
}
