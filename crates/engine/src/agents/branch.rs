//! Forks of a conversation: all forks of one reply begin with the same bytes and differ only in their directive.
//!
//! The first to be sent writes the shared prefix to the provider's cache. The others wait until its reply has begun,
//! since the prefix can be read only then.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use session::Error;
use session::child::{BranchPoint, SubagentMeta};
use tokio::sync::watch;
use transcript::{Log, Request};

/// Shared start of the forks of one reply.
pub(crate) struct Branch {
    /// The request that precedes their own text.
    pub(crate) request: Arc<Request>,
    /// The conversation so far.
    pub(crate) log: Log,
    claimed: AtomicBool,
    begun: watch::Sender<bool>,
}

impl Branch {
    /// Creates the branch for a reply that is about to make calls.
    pub(crate) fn new(request: Request, log: Log) -> Arc<Self> {
        let request = Arc::new(learning::fork::branched(request));
        Arc::new(Self { request, log, claimed: AtomicBool::new(false), begun: watch::channel(false).0 })
    }

    /// Waits until the shared prefix can be read; the first fork goes at once, to write it.
    pub(super) async fn turn(self: &Arc<Self>) -> Option<FirstFork> {
        if !self.claimed.swap(true, Ordering::SeqCst) {
            return Some(FirstFork(self.clone()));
        }
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await; // one that is gone has begun as well
        None
    }

    /// Signals that the first reply has begun.
    pub(super) fn has_begun(&self) {
        self.begun.send_replace(true);
    }

    /// The branch point, so that the fork can be resumed.
    pub(super) fn origin(&self, session: &Path) -> BranchPoint {
        BranchPoint { session: session.to_owned(), line: self.log.tip().map(ToString::to_string) }
    }
}

/// The first fork. Dropping it releases the others.
pub(super) struct FirstFork(Arc<Branch>);

impl Drop for FirstFork {
    fn drop(&mut self) {
        self.0.has_begun();
    }
}

/// The directive for a fork.
pub(super) fn directive(task: &str) -> String {
    include_str!("../prompts/agents/fork.md").trim_end().replace("{{ task }}", task)
}

/// Reads the conversation before a fork, as named in the fork's file.
pub(super) fn before(file: &Path) -> Result<Log, Error> {
    let origin = SubagentMeta::read(file).branched_from;
    // Its own place says where its parent is; what is written in the file only says that there is one.
    let parent = file.parent().and_then(Path::parent).map(|folder| folder.with_extension("jsonl"));
    let (Some(parent), Some(origin)) = (parent, origin) else { return Ok(Log::default()) };
    let (all, mut log) = (session::record::read(&parent)?.log, Log::default());
    for one in all.lines() {
        log.append(one.clone());
        if one.id.as_ref().is_some_and(|id| Some(id.to_string()) == origin.line) {
            break;
        }
    }
    Ok(log)
}
