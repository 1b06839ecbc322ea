//! The listing of agents in view: an attachment, so that the definition of the Agent tool stays constant.

use session::{Beside, Error};
use transcript::Block;

use super::Driver;

impl Driver {
    /// Sees to it that the agents it may send out are listed in view: a layer may have taken the list away.
    pub(crate) fn list_agents(&mut self) -> Result<(), Error> {
        let Some(children) = self.parts.agents.as_ref() else { return Ok(()) };
        children.held_to(&self.parts.policy.rules);
        if self.listed.as_ref().is_some_and(|line| self.session.log().view().shows(line)) {
            return Ok(());
        }
        let listing = children.listing();
        let hash = blake3::hash(listing.as_bytes()).to_hex()[..16].to_owned();
        self.listed = self.session.shown_with(|beside| beside.agents.as_ref() == Some(&hash));
        if self.listed.is_none() {
            self.attach(vec![Block::text(listing)], &Beside { agents: Some(hash), ..Beside::default() })?;
            self.listed = self.session.log().tip().cloned();
        }
        Ok(())
    }
}
