//! Where an agent stands when it sends others out: they begin from there.

use tokio_util::sync::CancellationToken;
use transcript::tool_names;

use super::{Agent, Parts};
use crate::agents::{Branch, Seat};
use crate::gate::ModelCall;
use crate::live::LiveSession;
use settings::agents::FORK;

/// Tools that send out agents or write to them.
const SITTING: [&str; 2] = [tool_names::AGENT, tool_names::SEND_MESSAGE];
/// What a fork is told that wants to fork.
const NO_FORK: &str = "A fork cannot be forked again. Do it yourself, or name a type in subagent_type.";

/// Tells those who send out agents, or write to them, where the session stands.
pub(super) fn sit(agent: &Agent, calls: &[ModelCall], cancel: &CancellationToken) {
    let Some(children) = &agent.contacts.agents else { return };
    if !calls.iter().any(|call| SITTING.contains(&call.tool.as_str())) {
        return;
    }
    let is_fork = |call: &ModelCall| {
        let kind = call.input["subagent_type"].as_str().unwrap_or_default();
        call.tool == tool_names::AGENT && (kind.is_empty() || kind == FORK)
    };
    let live = &agent.driver.live;
    let session = &live.session;
    // Whether it is a fork itself, the conversation says.
    let branch = match live.request().filter(|_| calls.iter().any(is_fork)) {
        Some(_) if session.beside().any(|beside| beside.fork.is_some()) => Err(NO_FORK),
        Some(request) => Ok(Branch::new(request, session.log().clone())),
        None => Err("There is nothing to fork from."),
    };
    children.sit(Seat {
        parts: parts(agent),
        scope: live.scope.clone().with_cancel(cancel.clone()),
        session: session.path().to_owned(),
        directory: session.directory().to_owned(),
        world: session.world().clone(),
        prompt: agent.driver.gate.prompt().map(str::to_owned),
        branch,
    });
}

/// What it is made of by now.
fn parts(agent: &Agent) -> Parts {
    let LiveSession { talk, prompt, work, lineage, out, .. } = &agent.driver.live;
    Parts {
        talk: talk.clone(),
        prompt: prompt.clone(),
        work: work.clone(),
        consent: agent.driver.gate.consent.clone(),
        lineage: lineage.clone(),
        contacts: agent.contacts.clone(),
        out: out.clone(),
        said: agent.said.clone(),
        reload: agent.reload.clone(),
    }
}
