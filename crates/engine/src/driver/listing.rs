//! The listing of agents in view: an attachment, so that the definition of the Agent tool stays constant.

use std::sync::Arc;

use session::{Error, LineMeta, Session};
use tools::permission::Rules;
use transcript::{Id, Injected, Purpose};

use crate::subagent::Subagent;

/// The subagents of a session, as its driver knows them.
pub(crate) trait SubagentHost: Send + Sync {
    /// From now on those that these rules deny are not to be listed.
    fn held_to(&self, rules: &Rules);

    /// Those that may be sent out, in words for the model.
    fn listing(&self) -> String;

    /// The one that a call sent out.
    fn sent_by(&self, call: &str) -> Option<Arc<Subagent>>;
}

/// The listing of a session's agents.
#[derive(Default)]
pub(crate) struct AgentListing {
    /// Its subagents, where it may have any.
    pub(crate) subagents: Option<Arc<dyn SubagentHost>>,
    /// The line that lists them, as it was last seen.
    line: Option<Id>,
}

impl AgentListing {
    /// Another list is to be told of, after all that was said.
    pub(crate) fn renew(&mut self) {
        self.line = None;
    }

    /// The subagent that a call sent out.
    pub(super) fn sent_by(&self, call: &str) -> Option<Arc<Subagent>> {
        self.subagents.as_ref()?.sent_by(call)
    }

    /// Sees to it that a session has it in view.
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
