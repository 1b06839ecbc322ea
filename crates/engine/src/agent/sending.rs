//! An agent and those it sends out: what it is told of them, and what it is itself where it was sent.

use std::path::PathBuf;
use std::sync::Arc;

use context::Fact;
use jiff::SignedDuration;
use learning::ledger::LABEL;
use session::Error;
use settings::agents::FORK;
use tokio_util::sync::CancellationToken;
use transcript::{Purpose, tool_names};

use super::{Agent, Parts};
use crate::agents::{Branch, Children, HeardAgent, Seat, lost, notification};
use crate::driver::Driver;
use crate::errand::{Ended, Errand, How, Phase};
use crate::event::Event;
use crate::gate::ModelCall;
use crate::label::Labels;

/// Tools that send out agents or write to them.
const SITTING: [&str; 2] = [tool_names::AGENT, tool_names::SEND_MESSAGE];
/// What a fork is told that wants to fork.
const NO_FORK: &str = "A fork cannot be forked again. Do it yourself, or name a type in subagent_type.";

/// Why a session sends no agents out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    /// It was not given any.
    NotGiven,
    /// It began without them. To add them would cost its cache, which is kept for so long after a reply.
    BeganWithout(SignedDuration),
    /// A rule denies the tool.
    Forbidden,
}

impl Agent {
    /// The agents it may send out, and those that are out.
    pub fn agents(&self) -> Option<&Arc<Children>> {
        self.contacts.agents.as_ref()
    }

    /// Why it sends nobody out, where it does not.
    pub fn alone(&self) -> Option<Alone> {
        self.alone
    }

    /// The model's name.
    pub(crate) fn model(&self) -> &str {
        &self.driver.talk.name
    }

    /// Tells those who send out agents, or write to them, where the session stands.
    pub(super) fn sit(&self, calls: &[ModelCall], cancel: &CancellationToken) {
        let Some(children) = &self.contacts.agents else { return };
        if !calls.iter().any(|call| SITTING.contains(&call.tool.as_str())) {
            return;
        }
        let is_fork = |call: &ModelCall| {
            let kind = call.input["subagent_type"].as_str().unwrap_or_default();
            call.tool == tool_names::AGENT && (kind.is_empty() || kind == FORK)
        };
        let (driver, session) = (&self.driver, &self.driver.session);
        // Whether it is a fork itself, the conversation says.
        let branch = match driver.request().filter(|_| calls.iter().any(is_fork)) {
            Some(_) if session.beside().any(|beside| beside.fork.is_some()) => Err(NO_FORK),
            Some(request) => Ok(Branch::new(request, session.log().clone())),
            None => Err("There is nothing to fork from."),
        };
        children.sit(Seat {
            parts: self.parts(),
            scope: driver.scope.clone().with_cancel(cancel.clone()),
            session: session.path().to_owned(),
            directory: session.directory().to_owned(),
            world: session.world().clone(),
            prompt: driver.gate.prompt().map(str::to_owned),
            branch,
        });
    }

    /// What it is made of by now.
    fn parts(&self) -> Parts {
        let Driver { talk, prompt, work, lineage, out, gate, .. } = &self.driver;
        Parts {
            talk: talk.clone(),
            prompt: prompt.clone(),
            work: work.clone(),
            consent: gate.consent.clone(),
            lineage: lineage.clone(),
            contacts: self.contacts.clone(),
            out: out.clone(),
            said: self.said.clone(),
            reload: self.reload.clone(),
        }
    }

    /// What says from time to time what it is doing, where its requests are kept for that.
    pub fn labels(&self) -> Labels {
        let (talk, out) = (&self.driver.talk, &self.driver.out);
        Labels {
            latest: self.driver.lineage.latest.clone().unwrap_or_default(),
            model: talk.model.clone(),
            small: talk.small.clone(),
            ledger: out.ledger.clone(),
            world: self.session().world().clone(),
            every: self.contacts.labelled,
            known: 0,
            used: Vec::new(),
        }
    }

    /// Writes down what was used to say what it is doing.
    pub fn account_for_labels(&mut self, labels: Labels) -> Result<(), Error> {
        let used = labels.used.into_iter().filter(|(_, usage)| usage.total() > 0);
        used.map(|(model, usage)| (LABEL.to_owned(), model, usage))
            .try_for_each(|(agent, model, usage)| self.driver.record(Fact::Side { agent, model, usage }))
    }

    /// Keeps memories of its own there: nothing that holds a secret is written.
    #[must_use]
    pub fn remembering(mut self, directory: PathBuf) -> Self {
        self.driver.memories = Some(directory);
        self
    }

    /// Where the user names agents, the model is told that they are wanted.
    pub(super) fn point_at_agents(&mut self, said: &str) -> Result<(), Error> {
        let Some(children) = self.contacts.agents.clone() else { return Ok(()) };
        let named = memory::recall::agents(said);
        for agent in children.registry().agents().filter(|agent| named.contains(&agent.name)) {
            let text = format!(
                "The user wants the agent {} for this: send it out with the Agent tool, with all it has to know.",
                agent.name
            );
            self.driver.inject(Purpose::Wanted, &text)?;
        }
        Ok(())
    }

    /// Writes down what agents used that were waited for.
    pub(super) fn take_reports_of_waited_for(&mut self) -> Result<(), Error> {
        let Some(children) = self.contacts.agents.clone() else { return Ok(()) };
        for errand in children.take_unaccounted() {
            self.account_for(&errand)?;
        }
        Ok(())
    }

    /// Takes in what has come from agents in the background. Says whether something has.
    pub(super) fn take_reports(&mut self) -> Result<bool, Error> {
        let Some(children) = self.contacts.agents.clone() else { return Ok(false) };
        self.take_reports_of_waited_for()?;
        let news = children.take_news();
        self.report(&news)?;
        Ok(!news.is_empty())
    }

    fn report(&mut self, ended: &[Arc<Errand>]) -> Result<(), Error> {
        for errand in ended {
            if let Some(text) = notification(errand) {
                self.driver.inject(Purpose::Report, &text)?;
            }
            self.account_for(errand)?;
        }
        Ok(())
    }

    /// Ends all agents with the session: what became of them is in the log, and the user hears who was stopped.
    pub(super) async fn end_agents(&mut self) {
        let Some(children) = self.contacts.agents.clone() else { return };
        children.close().await;
        let news = children.take_news();
        // What cannot be written is told when the session goes on.
        let _ = self.take_reports_of_waited_for().and_then(|()| self.report(&news));
        let was_stopped =
            |errand: &&Arc<Errand>| matches!(errand.phase(), Phase::Ended(Ended { how: How::Stopped, .. }));
        let stopped: Vec<&str> = news.iter().filter(was_stopped).map(|errand| errand.description.as_str()).collect();
        if !stopped.is_empty() && self.driver.lineage.sent.is_none() {
            let text = format!("agents were stopped with the session: {}", stopped.join(", "));
            self.driver.tell(Event::Warning(text));
        }
    }

    /// Writes down what an agent used.
    fn account_for(&mut self, errand: &Errand) -> Result<(), Error> {
        let Phase::Ended(ended) = errand.phase() else { return Ok(()) };
        self.heard_of(&errand.id, ended.bytes)?;
        self.below += ended.usage.total() + ended.below;
        let agent = errand.kind.clone();
        self.driver.record(Fact::Side { agent, model: ended.model, usage: ended.usage })?;
        for (who, model, usage) in ended.beside {
            self.driver.record(Fact::Side { agent: format!("{}: {who}", errand.kind), model, usage })?;
        }
        Ok(())
    }

    /// Writes down that the conversation has heard of an agent: it is not lost.
    fn heard_of(&mut self, id: &str, bytes: u64) -> Result<(), Error> {
        let heard = HeardAgent { id: id.to_owned(), bytes };
        self.driver.session.note(&serde_json::to_value(heard).unwrap_or_default())
    }

    /// Tells of agents that were at work when the session last ended.
    pub(super) fn tell_of_lost(&mut self) -> Result<(), Error> {
        for lost in lost(&self.driver.session) {
            if !lost.is_told {
                self.driver.inject(Purpose::Report, &lost.notification())?;
                self.driver.tell(Event::Warning(lost.warning()));
            }
            self.heard_of(&lost.past.id, lost.bytes)?;
            for (agent, model, usage) in lost.used {
                self.driver.record(Fact::Side { agent, model, usage })?;
            }
        }
        Ok(())
    }

    /// Waits for agents in the background where nobody would be told of them later. Says whether the turn goes on: one has
    /// reported, or the user has stopped it.
    pub(super) async fn wait_for_agents(&mut self, cancel: &CancellationToken) -> Result<bool, Error> {
        let Some(children) = self.contacts.agents.clone().filter(|children| children.is_waited_for()) else {
            return Ok(false);
        };
        tokio::select! {
            () = children.news() => {}
            () = cancel.cancelled() => {}
        }
        Ok(self.take_reports()? || cancel.is_cancelled())
    }
}
