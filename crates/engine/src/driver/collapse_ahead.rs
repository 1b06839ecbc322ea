//! Summaries written ahead: a fork summarises a span in the background, and its text is a fact of the log until it
//! replaces the span.

use context::Fact;
use context::layer::{SummaryAhead, WritingTask};
use context::state::Summary;
use learning::fork::{Fork, ForkError, ForkResult};
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::{Id, Usage};

use super::side_work::{self, SideWork, SideWorkResult, quoted};
use crate::live::LiveSession;

/// Kind of this background work.
const KIND: &str = "collapse";
/// Limit on rounds: a fork that may call no tool gets a second chance to answer in words.
const ROUNDS: u32 = 2;

/// Result of summarising a span.
#[derive(Debug)]
pub(super) struct SpanSummary {
    first: Id,
    last: Id,
    model: String,
    outcome: Result<ForkResult, ForkError>,
    usage: Usage,
}

impl SideWork {
    /// Starts to summarise a span, unless another one is being summarised.
    pub(super) fn stage(&mut self, live: &mut LiveSession, stage: &SummaryAhead) -> Result<(), Error> {
        let WritingTask { about, directive, most_output, patience, .. } = &stage.write;
        let context::layer::WritingSubject::Conversation { end } = about else { return Ok(()) };
        let Some(parent) = live.fork_request(*end).filter(|_| !self.background.is_running(KIND)) else { return Ok(()) };
        let (first, last, model) = (stage.first.clone(), stage.last.clone(), parent.prologue.model.clone());
        let fork = Fork {
            rounds: ROUNDS,
            patience: *patience,
            most_output: Some(*most_output),
            ..Fork::new(KIND, &live.talk.model, parent, directive, &live.out.ledger)
        };
        live.record(Fact::Staged { first: first.clone(), last: last.clone() })?;
        let work = async move {
            let (outcome, usage) = fork.run().await;
            SideWorkResult::Collapse(SpanSummary { first, last, model, outcome, usage })
        };
        self.background.start(KIND, *patience * 2, live.session.world().now(), work);
        Ok(())
    }

    /// Waits for a summary that is being written. Returns `None` if there is none, or if it fails.
    pub(super) async fn wait_for_staged(
        &mut self,
        live: &mut LiveSession,
        write: &WritingTask,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        if write.kind != KIND || !self.background.is_running(KIND) {
            return Ok(None);
        }
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            ended = self.background.wait_for(KIND, write.patience, live.session.world().now()) => ended,
        };
        if let Some(ended) = ended {
            side_work::take_in(live, ended)?;
        }
        Ok(match live.session.state().staged.as_ref().map(|staged| &staged.summary) {
            Some(Summary::Written(text)) => Some(text.clone()),
            _ => None,
        })
    }
}

/// Records the summary of a span.
pub(super) fn take_in(live: &mut LiveSession, summarised: SpanSummary) -> Result<(), Error> {
    let SpanSummary { first, last, model, outcome, usage } = summarised;
    live.record(Fact::Side { agent: KIND.to_owned(), model, usage })?;
    let summary = outcome.ok().map(|forked| quoted(&forked.text));
    live.record(Fact::Summarised { first, last, summary })
}
