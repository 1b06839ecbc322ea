//! The agent's memories are brought into order beside it.

use std::time::Duration;

use context::Fact;
use learning::dream::beside::Dreaming;
use learning::dream::book::Over;
use learning::ledger;
use session::Error;
use tokio_util::sync::CancellationToken;

use super::Agent;

impl Agent {
    /// Lets dreams come beside it.
    #[must_use]
    pub fn with_dreams(mut self, dreaming: Dreaming) -> Self {
        self.dreaming = Some(dreaming);
        self
    }

    /// The dreams beside it, if it may have any.
    pub fn dreams(&mut self) -> Option<&mut Dreaming> {
        self.dreaming.as_mut()
    }

    /// Whether one is under way.
    pub fn is_dreaming(&self) -> bool {
        self.dreaming.as_ref().is_some_and(Dreaming::is_running)
    }

    /// A turn has ended: what is over of dreams is written down, and one begins if it is time.
    pub(super) async fn dream(&mut self) -> Result<(), Error> {
        self.take_in_dreams().await?;
        if let Some(dreaming) = &mut self.dreaming {
            dreaming.turn_ended();
        }
        Ok(())
    }

    /// Writes into the log what is over of dreams.
    pub async fn take_in_dreams(&mut self) -> Result<(), Error> {
        let Some(dreaming) = &mut self.dreaming else { return Ok(()) };
        let ended = dreaming.take_ended().await;
        self.dreamt(ended)
    }

    /// The session ends: a dream under way is waited for, for so long; `stop` ends it.
    pub async fn finish_dreams(&mut self, patience: Duration, stop: &CancellationToken) -> Result<(), Error> {
        let Some(dreaming) = &mut self.dreaming else { return Ok(()) };
        let ended = dreaming.wait(patience, stop).await;
        self.dreamt(ended)
    }

    fn dreamt(&mut self, ended: Vec<Over>) -> Result<(), Error> {
        let model = self.dreaming.as_ref().map(|dreaming| dreaming.model().to_owned()).unwrap_or_default();
        for over in ended {
            let agent = ledger::DREAM.to_owned();
            self.driver.record(Fact::Side { agent, model: model.clone(), usage: over.usage })?;
        }
        Ok(())
    }
}
