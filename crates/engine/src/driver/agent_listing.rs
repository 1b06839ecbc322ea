//! The listing of agents in view: an attachment, so that the definition of the Agent tool stays constant.

use std::sync::Arc;

use session::{Error, LineMeta, Session};
use tools::permission::Rules;
use transcript::{Id, Injected, Purpose};

use crate::subagent::Subagent;

/// The subagents of a session, as its driver knows them.
pub(crate) trait SubagentHost: Send + Sync {
    /// Sets the rules: denied agents are no longer listed.
    fn held_to(&self, rules: &Rules);

    /// Listing of the agents that may be started, for the model.
    fn listing(&self) -> String;

    /// The subagent that a call started.
    fn sent_by(&self, call: &str) -> Option<Arc<Subagent>>;
}

/// The listing of a session's agents.
#[derive(Default)]
pub(crate) struct AgentListing {
    /// Its subagents, if it may have any.
    pub(crate) subagents: Option<Arc<dyn SubagentHost>>,
    /// The line that holds the listing, when last checked.
    line: Option<Id>,
}

impl AgentListing {
    /// Lists the agents again, at the end of the conversation.
    pub(crate) fn renew(&mut self) {
        self.line = None;
    }

    /// The subagent that a call started.
    pub(super) fn sent_by(&self, call: &str) -> Option<Arc<Subagent>> {
        self.subagents.as_ref()?.sent_by(call)
    }

    /// Makes sure that the listing is in view.
    pub(super) fn show(&mut self, session: &mut Session, rules: &Rules) -> Result<(), Error> {
        let Some(subagents) = &self.subagents else { return Ok(()) };
        subagents.held_to(rules);
        if self.line.as_ref().is_some_and(|line| session.log().view().shows(line)) {
            return Ok(());
        }
        let listing = Injected::new(Purpose::Agents, &subagents.listing());
        let hash = blake3::hash(listing.text().as_bytes()).to_hex()[..16].to_owned();
        self.line = session.shown_with(|beside| beside.agents.as_ref() == Some(&hash));
        if self.line.is_none() {
            session.inject(&listing, LineMeta { agents: Some(hash), ..LineMeta::default() })?;
            self.line = session.log().tip().cloned();
        }
        Ok(())
    }
}
