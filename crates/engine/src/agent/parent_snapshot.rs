//! Snapshot of an agent that is handed to its tools, from which subagents start.

use std::sync::Arc;

use settings::agent_definitions::FORK;
use tokio_util::sync::CancellationToken;
use tools::permission::Rules;
use transcript::tool_names;

use super::{Agent, Parts};
use crate::agents::{Branch, Caller, ParentSnapshot};
use crate::gate::ModelCall;
use crate::live::LiveSession;

/// Tools that start subagents, or wake them by writing to them.
const STARTING: [&str; 2] = [tool_names::AGENT, tool_names::SEND_MESSAGE];
/// Error for a fork that tries to fork.
const NO_FORK: &str = "A fork cannot be forked again. Do it yourself, or name a type in subagent_type.";
/// Error for a fork before anything was said.
const NOTHING_TO_FORK: &str = "There is nothing to fork from.";

/// The agent as it is now, for calls that start subagents. A subagent woken later by another one starts from here too.
/// Of the rules for this turn it gets these.
pub(super) fn caller(
    agent: &Agent,
    calls: &[ModelCall],
    of_turn: Rules,
    cancel: &CancellationToken,
) -> Option<Arc<Caller>> {
    let subagents = agent.contacts.agents.as_ref()?;
    if !calls.iter().any(|call| STARTING.contains(&call.tool.as_str())) {
        return None;
    }
    let live = &agent.driver.live;
    let session = &live.session;
    let parent = Arc::new(ParentSnapshot {
        parts: parts(agent, of_turn),
        scope: live.scope.clone().with_cancel(cancel.clone()),
        session: session.path().to_owned(),
        directory: session.directory().to_owned(),
        world: session.world().clone(),
        prompt: agent.driver.gate.prompt().map(str::to_owned),
        memories: agent.driver.memories.clone(),
    });
    subagents.set_parent(parent.clone());
    // Whether it is a fork itself, the conversation says.
    let branch = match live.request().filter(|_| calls.iter().any(is_fork)) {
        Some(_) if session.line_metas().any(|beside| beside.fork.is_some()) => Err(NO_FORK),
        Some(request) => Ok(Branch::new(request, session.log().clone())),
        None => Err(NOTHING_TO_FORK),
    };
    Some(Arc::new(Caller { parent, branch }))
}

fn is_fork(call: &ModelCall) -> bool {
    let kind = call.input["subagent_type"].as_str().unwrap_or_default();
    call.tool == tool_names::AGENT && (kind.is_empty() || kind == FORK)
}

/// The agent's current parts.
fn parts(agent: &Agent, of_turn: Rules) -> Parts {
    let LiveSession { talk, prompt, work, lineage, out, .. } = &agent.driver.live;
    let mut consent = agent.driver.gate.consent.clone();
    consent.policy.of_turn = of_turn;
    Parts {
        talk: talk.clone(),
        prompt: prompt.clone(),
        work: work.clone(),
        consent,
        lineage: lineage.clone(),
        contacts: agent.contacts.clone(),
        out: out.clone(),
        configuration: agent.configuration.clone(),
        reload: agent.reload.clone(),
    }
}
