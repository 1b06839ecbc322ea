//! Checks after each reply: provider-side edits, and cache breaks.

use context::Fact;
use context::breaks::{CacheBreak, Cause, DeclaredChange, Detector};
use session::{Error, Session};
use transcript::commit::{Act, Commit, Reason};
use transcript::line::Body;
use transcript::{Reply, Request, Usage};

use crate::event::Event;
use crate::live::LiveSession;

/// Watches the provider's cache: its expected contents, and deliberate changes.
pub(super) struct CacheWatch {
    detector: Detector,
    /// Number of log lines that the detector has seen.
    accounted: usize,
}

impl CacheWatch {
    /// Starts to watch a session.
    pub(super) fn of(session: &Session) -> Self {
        Self { detector: Detector::default(), accounted: session.log().lines().len() }
    }

    /// Processes a reply: records a commit for what the provider left out, and a fact for a cache break.
    pub(super) fn answered(&mut self, live: &mut LiveSession, request: Request, reply: &Reply) -> Result<(), Error> {
        let now = live.session.world().now();
        if let Some(usage) = reply.remarks.compaction {
            let (agent, model) = ("compact".to_owned(), reply.model.clone());
            live.out.ledger.record(&agent, &model, &usage);
            live.record(Fact::Side { agent, model, usage })?;
        }
        if reply.remarks.cleared_tokens > 0 {
            let act = Act::ServerEdit { cleared_results: reply.remarks.cleared_results };
            let (freed, why) = (Some(reply.remarks.cleared_tokens), Some("the provider left them out".to_owned()));
            live.session.append(Body::Commit(Commit { act, reason: Reason { freed, changes_from: None, why } }))?;
        }
        self.declare_commits(&live.session);
        match self.detector.answered(request, &reply.usage, live.talk.ttl, now) {
            Some(broke) => tell_break(live, broke, None, reply.remarks.cache_miss.as_deref()),
            None => Ok(()),
        }
    }

    /// Processes a fork's reply: it should have read the conversation's cached prefix.
    pub(super) fn forked(&mut self, live: &mut LiveSession, kind: &str, usage: &Usage) -> Result<(), Error> {
        let now = live.session.world().now();
        match self.detector.forked(usage, live.talk.ttl, now) {
            Some(broke) => tell_break(live, broke, Some(kind), None),
            None => Ok(()),
        }
    }

    /// Declares that the newest commit changes the request on purpose, for a reason that its kind does not tell.
    pub(super) fn declare(&mut self, session: &Session, what: &str) {
        let commit = session.log().lines().last().and_then(|line| line.id.clone());
        self.detector.declare(DeclaredChange { commit, what: what.to_owned() });
    }

    /// Declares all commits since the last reply that change the request, whoever made them.
    fn declare_commits(&mut self, session: &Session) {
        let lines = session.log().lines();
        for line in lines.get(self.accounted..).unwrap_or_default() {
            if let Body::Commit(commit) = &line.body
                && commit.act.changes_sent()
            {
                let what = commit.act.name().to_owned();
                self.detector.declare(DeclaredChange { commit: line.id.clone(), what });
            }
        }
        self.accounted = lines.len();
    }
}

fn tell_break(live: &mut LiveSession, broke: CacheBreak, agent: Option<&str>, told: Option<&str>) -> Result<(), Error> {
    let (expected, read, declared) = (broke.expected, broke.read, broke.is_declared());
    let told = told.map(|told| format!(" (the provider says: {told})"));
    let cause = broke.cause.to_string() + &told.unwrap_or_default();
    live.tell(Event::CacheBroke(broke.clone()));
    let commit = match broke.cause {
        Cause::Commit { commit, .. } => commit,
        _ => None,
    };
    let agent = agent.map(str::to_owned);
    live.record(Fact::CacheBreak { expected, read, cause, declared, commit, agent })
}
