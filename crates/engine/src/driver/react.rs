//! When the provider says no: a request it finds too long is made shorter and sent again, once until the model has replied.

use context::{Fact, LayerRole, Occasion};
use learning::knowledge::Knowledge;
use provider::Error as ProviderError;
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::window::Window;
use transcript::{Purpose, Role};

use super::Driver;

/// Where the provider does not say how much was too much, this part of the conversation is.
const OVER_PART: u64 = 5;
/// In a window that turns out smaller, a reply has no more than this part.
const REPLY_PART: u64 = 3;
/// What follows a reply that ended because the window was full: a request ends with the user.
const CUT_OFF: &str = "[The reply was cut off: the window was full. There is room now; go on.]";

impl Driver {
    /// The provider refused: says whether it is worth sending again.
    pub(super) async fn react(
        &mut self,
        error: &ProviderError,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        if !self.talk.layers.reactive {
            return Ok(false);
        }
        if let ProviderError::MediaTooLarge { place, .. } = error {
            // As often as there are pictures to leave out.
            return self.leave_out_media(*place);
        }
        let ProviderError::Overflow { tokens, limit, .. } = error else { return Ok(false) };
        if self.reacted {
            return Ok(false);
        }
        let window = &mut self.talk.layers.window;
        if let Some(limit) = limit.filter(|limit| *limit < window.size) {
            // The server knows its window better than the table.
            let reply = window.size - window.effective;
            *window = Window { size: limit, effective: limit - reply.min(limit / REPLY_PART) };
        }
        let count = self.session.log().view().tally().count();
        let gap = tokens.zip(*limit).map(|(tokens, limit)| tokens.saturating_sub(limit));
        let over = gap.unwrap_or(count / OVER_PART);
        let window = self.talk.layers.window;
        self.record(Fact::Refused { over, window: (window.size, window.effective) })?;
        let occasion = Occasion::Refused { over };
        let walked = self.walk(&occasion, knowledge, cancel).await?;
        // What was staged goes first, and may be enough; there is no more of it then.
        self.reacted = !walked.done.contains(&LayerRole::Collapse);
        Ok(!walked.cancelled && self.session.log().view().tally().count() < count)
    }

    /// The reply ended because the window is full: says whether room was made.
    pub(crate) async fn overflowed(
        &mut self,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let message = "the reply did not fit the window".to_owned();
        let error = ProviderError::Overflow { tokens: None, limit: None, message };
        let room = self.react(&error, knowledge, cancel).await?;
        let newest = self.session.log().view().blocks().last().map(|(_, role, _)| role);
        if room && newest == Some(Role::Assistant) {
            self.inject(Purpose::CutOff, CUT_OFF)?;
        }
        Ok(room)
    }
}
