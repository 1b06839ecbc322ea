//! The listing of agents in view: an attachment, so that the definition of the Agent tool stays constant.

use std::sync::Arc;

use session::{Beside, Error};
use tools::permission::Rules;
use transcript::{Injected, Purpose};

use super::Driver;
use crate::errand::Errand;

/// The subagents of a session, as its driver knows them.
pub(crate) trait Subagents: Send + Sync {
    /// From now on those that these rules deny are not to be listed.
    fn held_to(&self, rules: &Rules);

    /// Those that may be sent out, in words for the model.
    fn listing(&self) -> String;

    /// The one that a call sent out.
    fn sent_by(&self, call: &str) -> Option<Arc<Errand>>;
}

impl Driver {
    /// Sees to it that the agents it may send out are listed in view: a layer may have taken the list away.
    pub(crate) fn list_agents(&mut self) -> Result<(), Error> {
        let Some(subagents) = self.subagents.clone() else { return Ok(()) };
        subagents.held_to(&self.gate.consent.policy.rules);
        if self.listed.as_ref().is_some_and(|line| self.session.log().view().shows(line)) {
            return Ok(());
        }
        let listing = Injected::new(Purpose::Agents, &subagents.listing());
        let hash = blake3::hash(listing.text().as_bytes()).to_hex()[..16].to_owned();
        self.listed = self.session.shown_with(|beside| beside.agents.as_ref() == Some(&hash));
        if self.listed.is_none() {
            self.session.inject(&listing, Beside { agents: Some(hash), ..Beside::default() })?;
            self.listed = self.session.log().tip().cloned();
        }
        Ok(())
    }
}
