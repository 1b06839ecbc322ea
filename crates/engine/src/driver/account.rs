//! After a reply: what the provider did by itself, and whether its cache held.

use context::Fact;
use context::breaks::{Break, Cause, Declared};
use session::Error;
use transcript::commit::{Act, Commit, Reason};
use transcript::line::Body;
use transcript::{Reply, Request, Usage};

use super::Driver;
use crate::event::Event;

impl Driver {
    /// A reply came: what the provider left out is a commit, and a cache that did not hold a fact.
    pub(super) fn account(&mut self, request: Request, reply: &Reply) -> Result<(), Error> {
        let now = self.session.world().now();
        if let Some(usage) = reply.remarks.compaction {
            let (agent, model) = ("compact".to_owned(), reply.model.clone());
            self.out.ledger.record(&agent, &model, &usage);
            self.record(Fact::Side { agent, model, usage })?;
        }
        if reply.remarks.cleared_tokens > 0 {
            let act = Act::ServerEdit { cleared_results: reply.remarks.cleared_results };
            let (freed, why) = (Some(reply.remarks.cleared_tokens), Some("the provider left them out".to_owned()));
            self.session.append(Body::Commit(Commit { act, reason: Reason { freed, changes_from: None, why } }))?;
        }
        self.declare_commits();
        match self.detector.answered(request, &reply.usage, self.talk.ttl, now) {
            Some(broke) => self.broke(broke, None, reply.remarks.cache_miss.as_deref()),
            None => Ok(()),
        }
    }

    /// A fork was answered: it should have read what the conversation left in the cache.
    pub(super) fn watch_fork(&mut self, kind: &str, usage: &Usage) -> Result<(), Error> {
        let now = self.session.world().now();
        match self.detector.forked(usage, self.talk.ttl, now) {
            Some(broke) => self.broke(broke, Some(kind), None),
            None => Ok(()),
        }
    }

    fn broke(&mut self, broke: Break, agent: Option<&str>, told: Option<&str>) -> Result<(), Error> {
        let (expected, read, declared) = (broke.expected, broke.read, broke.is_declared());
        let told = told.map(|told| format!(" (the provider says: {told})"));
        let cause = broke.cause.to_string() + &told.unwrap_or_default();
        self.tell(Event::CacheBroke(broke.clone()));
        let commit = match broke.cause {
            Cause::Commit { commit, .. } => commit,
            _ => None,
        };
        let agent = agent.map(str::to_owned);
        self.record(Fact::CacheBreak { expected, read, cause, declared, commit, agent })
    }

    /// The newest commit changes what was sent, on purpose, for a reason its kind does not tell.
    pub(super) fn declare(&mut self, what: &str) {
        let commit = self.session.log().lines().last().and_then(|line| line.id.clone());
        self.detector.declare(Declared { commit, what: what.to_owned() });
    }

    /// Commits since the last reply, whoever made them, that change what was sent.
    fn declare_commits(&mut self) {
        let lines = self.session.log().lines();
        for line in lines.get(self.accounted..).unwrap_or_default() {
            if let Body::Commit(commit) = &line.body
                && commit.act.changes_sent()
            {
                let what = commit.act.name().to_owned();
                self.detector.declare(Declared { commit: line.id.clone(), what });
            }
        }
        self.accounted = lines.len();
    }
}
