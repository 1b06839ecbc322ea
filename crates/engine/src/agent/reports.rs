//! Reports from subagents: their results, their usage, and the subagents that were lost.

use std::sync::Arc;

use context::Fact;
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::Purpose;

use crate::agents::{HeardAgent, Subagents, lost, notification};
use crate::event::Event;
use crate::live::LiveSession;
use crate::subagent::{Subagent, SubagentOutcome, SubagentPhase, SubagentResult};

/// Reports from the subagents of a session.
pub(super) struct SubagentReports {
    subagents: Option<Arc<Subagents>>,
    /// Tokens they used in this turn.
    pub(super) used: u64,
}

impl SubagentReports {
    /// Collects the reports of some subagents, if there can be any. Tells of those that were running when the session
    /// last ended.
    pub(super) fn of(subagents: Option<Arc<Subagents>>, live: &mut LiveSession) -> Result<Self, Error> {
        for lost in lost(&live.session) {
            if !lost.is_reported {
                live.inject(Purpose::Report, &lost.notification())?;
                live.tell(Event::Warning(lost.warning()));
            }
            heard_of(live, &lost.past.id, lost.bytes)?;
            for (agent, model, usage) in lost.used {
                live.record(Fact::Side { agent, model, usage })?;
            }
        }
        Ok(Self { subagents, used: 0 })
    }

    /// Tells the model which agents the user's message names.
    pub(super) fn point_at_agents(&self, said: &str, live: &mut LiveSession) -> Result<(), Error> {
        let Some(subagents) = &self.subagents else { return Ok(()) };
        let named = memory::recall::agents(said);
        for agent in subagents.registry().agents().filter(|agent| named.contains(&agent.name)) {
            let text = format!(
                "The user wants the agent {} for this: start it with the Agent tool, with all it has to know.",
                agent.name
            );
            live.inject(Purpose::Wanted, &text)?;
        }
        Ok(())
    }

    /// Records the usage of subagents that ran in the foreground.
    pub(super) fn take_waited_for(&mut self, live: &mut LiveSession) -> Result<(), Error> {
        for subagent in self.subagents.as_ref().map(|subagents| subagents.take_unaccounted()).unwrap_or_default() {
            self.account_for(&subagent, live)?;
        }
        Ok(())
    }

    /// Takes in reports from background subagents. Returns whether there were any.
    pub(super) fn take(&mut self, live: &mut LiveSession) -> Result<bool, Error> {
        self.take_waited_for(live)?;
        let news = self.subagents.as_ref().map(|subagents| subagents.take_news()).unwrap_or_default();
        self.report(&news, live)?;
        Ok(!news.is_empty())
    }

    fn report(&mut self, ended: &[Arc<Subagent>], live: &mut LiveSession) -> Result<(), Error> {
        for subagent in ended {
            if let Some(text) = notification(subagent) {
                live.inject(Purpose::Report, &text)?;
            }
            self.account_for(subagent, live)?;
        }
        Ok(())
    }

    /// Ends all subagents with the session: their outcome is logged, and the user is told which were stopped.
    pub(super) async fn end_agents(&mut self, live: &mut LiveSession) {
        let Some(subagents) = self.subagents.clone() else { return };
        subagents.close().await;
        let news = subagents.take_news();
        // What cannot be written is told when the session goes on.
        let _ = self.take_waited_for(live).and_then(|()| self.report(&news, live));
        let was_stopped = |subagent: &&Arc<Subagent>| {
            matches!(subagent.phase(), SubagentPhase::Ended(SubagentResult { how: SubagentOutcome::Stopped, .. }))
        };
        let stopped: Vec<&str> =
            news.iter().filter(was_stopped).map(|subagent| subagent.description.as_str()).collect();
        if !stopped.is_empty() && live.lineage.sent.is_none() {
            let text = format!("agents were stopped with the session: {}", stopped.join(", "));
            live.tell(Event::Warning(text));
        }
    }

    /// Records the usage of a subagent.
    fn account_for(&mut self, subagent: &Subagent, live: &mut LiveSession) -> Result<(), Error> {
        let SubagentPhase::Ended(ended) = subagent.phase() else { return Ok(()) };
        heard_of(live, &subagent.id, ended.bytes)?;
        self.used += ended.usage.total() + ended.subagent_tokens;
        let agent = subagent.kind.clone();
        live.record(Fact::Side { agent, model: ended.model, usage: ended.usage })?;
        for (who, model, usage) in ended.side_questions {
            live.record(Fact::Side { agent: format!("{}: {who}", subagent.kind), model, usage })?;
        }
        Ok(())
    }

    /// Waits for background subagents when nobody could be told of them later. Returns whether the turn goes on: one
    /// has reported, or the user has stopped it.
    pub(super) async fn wait(&mut self, live: &mut LiveSession, cancel: &CancellationToken) -> Result<bool, Error> {
        let Some(subagents) = self.subagents.clone().filter(|subagents| subagents.is_waited_for()) else {
            return Ok(false);
        };
        tokio::select! {
            () = subagents.news() => {}
            () = cancel.cancelled() => {}
        }
        Ok(self.take(live)? || cancel.is_cancelled())
    }
}

/// Records that the conversation has heard of a subagent, so that it does not count as lost.
fn heard_of(live: &mut LiveSession, id: &str, bytes: u64) -> Result<(), Error> {
    let heard = HeardAgent { id: id.to_owned(), bytes };
    live.session.note(&serde_json::to_value(heard).unwrap_or_default())
}
