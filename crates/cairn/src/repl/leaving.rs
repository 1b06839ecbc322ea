//! What leaving a session waits for: a dream under way, and what is left to learn where that was asked for (`--extract`).
//! Otherwise what is left stays in its queue, and the next session learns it.

use std::fmt;

use engine::Agent;
use learning::extract::CLOSING;
use tokio_util::sync::CancellationToken;

use crate::args::RunArgs;

/// Something that is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Awaited {
    /// What is left to learn, and a dream.
    Learning,
    /// A dream.
    Dream,
}

impl Awaited {
    /// What is waited for before an agent is left, if anything is.
    pub(super) fn of(agent: &Agent, args: &RunArgs) -> Option<Self> {
        if args.extract && agent.has_to_learn() {
            return Some(Self::Learning);
        }
        agent.is_dreaming().then_some(Self::Dream)
    }

    /// Waits for it, for up to a minute; `stop` ends it.
    pub(super) async fn wait(self, agent: &mut Agent, stop: &CancellationToken) -> Result<(), engine::Error> {
        match self {
            Self::Learning => agent.finish_learning(stop).await,
            Self::Dream => agent.finish_dreams(CLOSING, stop).await,
        }
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Learning => "writing down what was learnt",
            Self::Dream => "waiting for a dream",
        })
    }
}
