//! Summaries that are written before they are needed: a fork summarises a span in the background, and what it wrote is a
//! fact of the log until the span gives way to it.

use context::Fact;
use context::layer::{SummaryAhead, WritingTask};
use context::state::Summary;
use learning::fork::{Fork, ForkError, ForkResult};
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::{Id, Usage};

use super::side_work::{self, SideWork, SideWorkResult, quoted};
use crate::live::LiveSession;

/// This kind of work in the background.
const KIND: &str = "collapse";
/// A fork that may call no tool gets a second chance to say so in words.
const ROUNDS: u32 = 2;

/// What came of summarising a span.
#[derive(Debug)]
pub(super) struct SpanSummary {
    first: Id,
    last: Id,
    model: String,
    outcome: Result<ForkResult, ForkError>,
    usage: Usage,
}

impl SideWork {
    /// Begins to summarise a span, unless another is being summarised.
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

    /// What somebody is writing already is waited for. None if nobody is, or nothing comes of it.
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

/// Takes in what was written of a span.
pub(super) fn take_in(live: &mut LiveSession, summarised: SpanSummary) -> Result<(), Error> {
    let SpanSummary { first, last, model, outcome, usage } = summarised;
    live.record(Fact::Side { agent: KIND.to_owned(), model, usage })?;
    let summary = outcome.ok().map(|forked| quoted(&forked.text));
    live.record(Fact::Summarised { first, last, summary })
}
