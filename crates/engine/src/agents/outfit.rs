//! What an agent is made of that is sent out: what its parent is, less what its definition takes away.

use std::path::Path;
use std::sync::Arc;

use session::{Beside, Error, Session};
use settings::Ground;
use settings::agents::{Definition, MOST_ROUNDS, Narrowed, OF_PLANS, built_in, narrow};
use tools::Tool;
use transcript::line::{Body, Source};
use transcript::tool_names;
use transcript::window::{Window, WindowHints};

use super::child::{Begins, Order, Seat, Who};
use super::children::Children;
use crate::agent::Parts;

/// What a fork is told that calls a tool which is its parent's alone.
const NOT_FORKS: &str = "A fork cannot do this: it belongs to the conversation it was branched off from.";

/// What one run may read and write, in tokens: as its definition says, and never more than the settings let an agent, or
/// the one who sends it out has.
pub(super) fn budget(seat: &Seat, who: &Who) -> Option<u64> {
    let own = match who {
        Who::Typed(definition) => definition.budget,
        Who::Fork => None,
    };
    own.into_iter().chain(seat.parts.out.ledger.budget().agent_tokens).chain(seat.parts.talk.limits.budget).min()
}

/// What a typed agent is made of.
pub(super) fn typed(
    seat: &Seat,
    children: &Children,
    definition: &Definition,
    model: Option<String>,
    directory: &Path,
    transcript: &Path,
) -> Result<Parts, Error> {
    let ground = Ground { directory, home: seat.scope.home() };
    let mut definition = definition.clone();
    let memory = super::memory::place(&definition, children);
    if memory.is_some() {
        super::memory::add_tools(&mut definition);
    }
    let (tools, narrowed) = narrow(&definition, &seat.parts.work.tools, &ground)?;
    let mut parts = seat.parts.clone();
    // Those that know their session are made anew for it, and plans are a person's.
    let sends = tools.iter().any(|tool| tool.name() == tool_names::AGENT);
    parts.work.tools = own(tools).into_iter().filter(|tool| !OF_PLANS.contains(&tool.name())).collect();
    parts.contacts.agents = sends.then(|| children.below()).flatten();
    parts.lineage.branch = None;
    parts.consent.policy.narrowed = seat.parts.consent.policy.narrowed.below(narrowed);
    if let Some(mode) = definition.mode {
        parts.consent.policy.mode = seat.parts.consent.policy.mode.below(mode);
    }
    if let Some(model) = model.or_else(|| definition.model.clone()).filter(|model| model != "inherit") {
        choose(&mut parts, &model);
    }
    parts.talk.limits.max_rounds = Some(definition.max_turns.unwrap_or(MOST_ROUNDS));
    parts.talk.effort = definition.effort.or(parts.talk.effort);
    parts.consent.hooks = parts.consent.hooks.and(settings::agents::hooks_in(&definition, directory).0);
    let session = seat.parts.lineage.sent.as_ref().map_or(&seat.session, |sent| &sent.session);
    let prompt = built_in::prompt(&definition, &session::folder_of(transcript), session)?;
    (parts.prompt.system, parts.prompt.appended, parts.prompt.sections) = (Some(prompt), None, Vec::new());
    if let Some(memory) = &memory {
        parts.prompt.sections.push(memory.prompt());
        parts.consent.policy.rules.allow.extend(memory.rules(&ground)?);
    }
    Ok(parts)
}

/// What a fork is made of: all that its parent is, so that it sends the same bytes.
pub(super) fn forked(
    seat: &Seat,
    children: &Children,
    session: &mut Session,
    order: &Order,
    id: &str,
) -> Result<Parts, Error> {
    let mut parts = seat.parts.clone();
    parts.work.tools = own(parts.work.tools);
    // At the greatest depth the tool is still offered, and refuses.
    parts.contacts.agents = Some(children.deeper());
    parts.consent.policy.narrowed = seat.parts.consent.policy.narrowed.below(Narrowed::without(OF_PLANS, NOT_FORKS));
    parts.talk.limits.max_rounds = Some(parts.talk.limits.max_rounds.unwrap_or(MOST_ROUNDS).min(MOST_ROUNDS));
    parts.lineage.branch = None;
    if order.begins == Begins::Anew
        && let Ok(branch) = &seat.branch
    {
        parts.lineage.branch = Some(branch.request.clone());
        let blocks = learning::fork::placeholders(&branch.request);
        let beside = Beside { fork: Some(id.to_owned()), ..Beside::default() };
        session.append_with(Body::User { blocks, source: Source::Said }, &beside)?;
    }
    Ok(parts)
}

/// The tools of a parent without what is bound to it.
fn own(tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
    let standard = tools::standard();
    let kept = tools.into_iter().filter(|tool| ![tool_names::AGENT, tool_names::HISTORY].contains(&tool.name()));
    let fresh = |tool: Arc<dyn Tool>| match tool.name() {
        name @ (tool_names::TASK_OUTPUT | tool_names::TASK_STOP) => {
            standard.iter().find(|one| one.name() == name).cloned().unwrap_or_else(|| tool.clone())
        }
        _ => tool,
    };
    kept.map(fresh).collect()
}

/// Lets it talk to another model. A short name stands for the newest of its kind, or for the cheapest there is; a server
/// that has none of these kinds stays with the model of its parent.
fn choose(parts: &mut Parts, model: &str) {
    let name = match (model, &parts.talk.small) {
        ("haiku", Some(small)) => {
            (parts.talk.model, parts.talk.name) = (small.model.clone(), small.name.clone());
            return narrow_window(parts);
        }
        ("haiku", None) => "claude-haiku-4-5",
        ("sonnet", _) => "claude-sonnet-5",
        ("opus", _) => "claude-opus-5",
        (name, _) => name,
    };
    if name == model || parts.talk.name.contains("claude") {
        name.clone_into(&mut parts.talk.name);
        narrow_window(parts);
    }
}

/// A smaller model has a smaller window.
fn narrow_window(parts: &mut Parts) {
    let own = Window::of(&WindowHints {
        model: &parts.talk.name,
        max_output: parts.talk.max_tokens,
        ..WindowHints::default()
    });
    if own.size < parts.talk.layers.window.size {
        parts.talk.layers.window = own;
    }
}

#[cfg(test)]
mod tests {
    use provider::anthropic::{Anthropic, Auth, Config};

    use super::*;
    use learning::fork::Small;

    fn parts(name: &str) -> Parts {
        let model = Anthropic::new(Config::new("http://127.0.0.1:9", Auth::ApiKey("k".into()))).unwrap();
        Parts::new(Arc::new(model), name)
    }

    /// AGENT-1: a short name is a model of the same maker, the cheapest is the one that is set, and elsewhere it means nothing;
    /// a smaller model's window is kept to.
    #[test]
    fn a_short_name_is_a_model_that_is_there() {
        let name = |parent: &str, model: &str| {
            let mut parts = parts(parent);
            choose(&mut parts, model);
            parts.talk.name
        };
        assert_eq!(name("claude-opus-5", "sonnet"), "claude-sonnet-5");
        assert_eq!(name("claude-opus-5", "haiku"), "claude-haiku-4-5");
        assert_eq!(name("qwen3", "opus"), "qwen3");
        assert_eq!(name("qwen3", "qwen3-small"), "qwen3-small");
        let mut large = parts("claude-opus-5");
        large.talk.small = Some(Small { model: large.talk.model.clone(), name: "tiny".into() });
        large.talk.layers.window = Window { size: 1_000_000, effective: 980_000 };
        choose(&mut large, "haiku");
        assert_eq!((large.talk.name.as_str(), large.talk.layers.window.size), ("tiny", 200_000));
    }
}
