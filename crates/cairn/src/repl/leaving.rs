//! Work that leaving a session waits for: a running dream, and learning if `--extract` asks for it. Otherwise what is
//! left to learn stays in its queue, and the next session learns it.

use std::fmt;

use engine::Agent;
use learning::extract::CLOSING;
use tokio_util::sync::CancellationToken;

use crate::args::RunArgs;

/// Something that is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) enum UnfinishedWork {
    /// Learning, and a dream.
    Learning,
    /// A dream.
    Dream,
}

impl UnfinishedWork {
    /// The work to wait for before an agent is left, if any.
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

impl fmt::Display for UnfinishedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Learning => "writing down what was learnt",
            Self::Dream => "waiting for a dream",
        })
    }
}
