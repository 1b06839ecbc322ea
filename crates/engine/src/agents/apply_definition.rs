//! Applies a definition to an agent: its parent's parts, reduced by what the definition takes away.
//!
//! A subagent gets a copy of its parent's parts; a teammate is a session of its own that takes a role at its start.
//! Neither gains any permission by it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use extensions::expand::{ExpandPlan, ExpandValues};
use extensions::skill::Skill;
use session::{Error, LineMeta, Session};
use settings::BasePaths;
use settings::agent_definitions::{
    Definition, MOST_ROUNDS, OF_PLANS, OfferedTools, ToolRestriction, built_in, narrow, offers, servers_in,
};
use tools::Tool;
use transcript::line::{Body, TextSource};
use transcript::tool_names;

use super::branch::Branch;
use super::child::{ParentSnapshot, SpawnKind};
use super::memory::{self, AgentMemoryPlace};
use super::subagents::Subagents;
use crate::agent::Parts;
use crate::servers::ToolSearch;
use crate::skills::Skills;

/// Error for a fork that calls a tool reserved for its parent.
const NOT_FORKS: &str = "A fork cannot do this: it belongs to the conversation that it was forked from.";

/// Token budget of one run: the definition's, capped by the settings for subagents and by the parent's own budget.
pub(super) fn budget(parent: &ParentSnapshot, who: &SpawnKind) -> Option<u64> {
    let own = match who {
        SpawnKind::Typed(definition) => definition.budget,
        SpawnKind::Fork(_) => None,
    };
    own.into_iter().chain(parent.parts.out.ledger.budget().agent_tokens).chain(parent.parts.talk.limits.budget).min()
}

/// Applies what every typed agent takes from its definition: own memories, fewer tools, narrower permissions, effort
/// and system prompt. `transcript` is its own file, `session` that of the conversation it works for.
fn apply(
    parts: &mut Parts,
    definition: &Definition,
    memory: Option<&AgentMemoryPlace>,
    base_paths: &BasePaths<'_>,
    (transcript, session): (&Path, &Path),
) -> Result<(), Error> {
    let mut definition = definition.clone();
    if let Some(memory) = memory {
        memory::add_tools(&mut definition);
        parts.prompt.sections.push(memory.prompt());
        parts.consent.policy.rules.allow.extend(memory.rules(base_paths)?);
    }
    parts.prompt.sections.extend(skills(&definition, parts.work.skills.as_deref(), base_paths.directory));
    let (tools, narrowed) = narrow(&definition, &parts.work.tools, base_paths)?;
    parts.work.tools = tools;
    narrow_servers(parts, &definition);
    parts.consent.policy.narrowed = parts.consent.policy.narrowed.below(narrowed);
    parts.talk.effort = definition.effort.or(parts.talk.effort);
    parts.prompt.system = Some(built_in::prompt(&definition, &session::folder_of(transcript), session)?);
    Ok(())
}

/// Leaves it the tools of servers that its definition offers, with all of the servers that the definition brings along.
fn narrow_servers(parts: &mut Parts, definition: &Definition) {
    let Some(mut servers) = parts.work.servers.clone() else { return };
    let (own, mut offered) = (servers_in(definition), definition.clone());
    if !own.servers.is_empty() {
        servers = servers.with_own(&own);
        let has_search = parts.work.tools.iter().any(|tool| tool.name() == tool_names::TOOL_SEARCH);
        if !has_search && !definition.without.iter().any(|name| name == tool_names::TOOL_SEARCH) {
            parts.work.tools.push(Arc::new(ToolSearch::of(servers.clone())));
        }
        if let OfferedTools::Only(names) = &mut offered.tools {
            names.extend(servers.prefixes(own.servers.keys()).iter().map(|prefix| format!("{prefix}*")));
        }
    }
    let servers = servers.only(move |tool| offers(&offered, tool));
    for tool in parts.work.tools.iter_mut().filter(|tool| tool.name() == tool_names::TOOL_SEARCH) {
        *tool = Arc::new(ToolSearch::of(servers.clone()));
    }
    parts.work.servers = Some(servers);
}

/// The skills that a definition names, as sections of the system prompt. Commands in them are not run.
fn skills(definition: &Definition, known: Option<&Skills>, directory: &Path) -> Vec<String> {
    let named = definition.skills.iter().filter_map(|name| known?.find(name));
    let section = |skill: Skill| {
        let (name, folder) = (skill.name.clone(), skill.folder().map(Path::to_owned));
        let values = ExpandValues { project: Some(directory), skill: folder.as_deref(), ..ExpandValues::default() };
        let text = ExpandPlan::new(&skill.withheld(), "", &values).text(&[]).unwrap_or_default();
        let base = folder.map(|folder| format!("Base directory for this skill: {}\n\n", folder.display()));
        format!("# Skill {name}\n\n{}{}", base.unwrap_or_default(), text.trim())
    };
    named.map(section).collect()
}

/// Parts of a typed agent.
pub(super) fn typed(
    parent: &ParentSnapshot,
    subagents: &Subagents,
    definition: &Definition,
    model: Option<String>,
    directory: &Path,
    transcript: &Path,
) -> Result<Parts, Error> {
    let base_paths = BasePaths { directory, home: parent.scope.home() };
    let session = parent.parts.lineage.sent.as_ref().map_or(&parent.session, |sent| &sent.session);
    let mut parts = parent.parts.clone();
    (parts.prompt.system_suffix, parts.prompt.sections) = (None, Vec::new());
    let memory = memory::place(definition, subagents);
    apply(&mut parts, definition, memory.as_ref(), &base_paths, (transcript, session))?;
    let sends = parts.work.tools.iter().any(|tool| tool.name() == tool_names::AGENT);
    // Those that know their session are made anew for it, and plans are a person's.
    parts.work.tools = own(parts.work.tools);
    parts.work.tools.retain(|tool| !OF_PLANS.contains(&tool.name()));
    parts.contacts.agents = sends.then(|| subagents.below()).flatten();
    parts.lineage.branch = None;
    if let Some(mode) = definition.mode {
        parts.consent.policy.mode = parent.parts.consent.policy.mode.below(mode);
    }
    if let Some(model) = model.or_else(|| definition.model.clone()).filter(|model| model != "inherit") {
        parts.talk.choose(&model);
    }
    parts.talk.limits.max_rounds = Some(definition.max_turns.unwrap_or(MOST_ROUNDS));
    parts.consent.hooks = parts.consent.hooks.and(settings::agent_definitions::hooks_in(definition, directory).0);
    Ok(parts)
}

/// Turns a session into a teammate of a given type. The model is chosen beforehand, the hooks are those of the
/// session's settings, and the tools for teamwork stay. Returns the directory of its own memories, if it keeps any.
pub fn take_role(
    parts: &mut Parts,
    definition: &Definition,
    base_paths: &BasePaths<'_>,
    session: &Path,
) -> Result<Option<PathBuf>, Error> {
    let memory = parts.contacts.agents.as_ref().and_then(|subagents| memory::place(definition, subagents));
    let of_a_team = |tool: &Arc<dyn Tool>| tool.name() == tool_names::SEND_MESSAGE || OF_PLANS.contains(&tool.name());
    let (kept, others) = std::mem::take(&mut parts.work.tools).into_iter().partition(of_a_team);
    parts.work.tools = others;
    apply(parts, definition, memory.as_ref(), base_paths, (session, session))?;
    parts.work.tools.extend::<Vec<_>>(kept);
    parts.contacts.agents = parts.contacts.agents.take().filter(|_| offers(definition, tool_names::AGENT));
    if let Some(mode) = definition.mode {
        parts.consent.policy.mode.narrow(mode);
    }
    parts.talk.limits.max_rounds = parts.talk.limits.max_rounds.into_iter().chain(definition.max_turns).min();
    parts.talk.limits.budget = parts.talk.limits.budget.into_iter().chain(definition.budget).min();
    Ok(memory.map(|memory| memory.directory))
}

/// Parts of a fork: the same as its parent's, so that it sends the same bytes.
pub(super) fn forked(
    parent: &ParentSnapshot,
    subagents: &Subagents,
    session: &mut Session,
    branch: Option<&Branch>,
    id: &str,
) -> Result<Parts, Error> {
    let mut parts = parent.parts.clone();
    parts.work.tools = own(parts.work.tools);
    // At the greatest depth the tool is still offered, and refuses.
    parts.contacts.agents = Some(subagents.deeper());
    parts.consent.policy.narrowed =
        parent.parts.consent.policy.narrowed.below(ToolRestriction::without(OF_PLANS, NOT_FORKS));
    parts.talk.limits.max_rounds = Some(parts.talk.limits.max_rounds.unwrap_or(MOST_ROUNDS).min(MOST_ROUNDS));
    parts.lineage.branch = None;
    if let Some(branch) = branch {
        parts.lineage.branch = Some(branch.request.clone());
        let blocks = learning::fork::placeholders(&branch.request);
        let beside = LineMeta { fork: Some(id.to_owned()), ..LineMeta::default() };
        session.append_with(Body::User { blocks, source: TextSource::Direct }, &beside)?;
    }
    Ok(parts)
}

/// The tools of a parent without those bound to it.
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

#[cfg(test)]
mod tests {
    use provider::anthropic::{Anthropic, Auth, Config};

    use super::*;
    use learning::fork::SmallModel;

    fn parts(name: &str) -> Parts {
        let model = Anthropic::new(Config::new("http://127.0.0.1:9", Auth::ApiKey("k".into()))).unwrap();
        Parts::new(Arc::new(model), name)
    }

    /// AGENT-1: a short name resolves to a model of the same provider, `haiku` to the configured small model, and with
    /// other providers it has no effect; a smaller model's window is respected.
    #[test]
    fn a_short_name_is_a_model_that_is_there() {
        let name = |parent: &str, model: &str| {
            let mut parts = parts(parent);
            parts.talk.choose(model);
            parts.talk.name
        };
        assert_eq!(name("claude-opus-5", "sonnet"), "claude-sonnet-5");
        assert_eq!(name("claude-opus-5", "haiku"), "claude-haiku-4-5");
        assert_eq!(name("qwen3", "opus"), "qwen3");
        assert_eq!(name("qwen3", "qwen3-small"), "qwen3-small");
        let mut large = parts("claude-opus-5");
        large.talk.small = Some(SmallModel { model: large.talk.model.clone(), name: "tiny".into() });
        large.talk.layers.window = transcript::window::Window { size: 1_000_000, effective: 980_000 };
        large.talk.choose("haiku");
        assert_eq!((large.talk.name.as_str(), large.talk.layers.window.size), ("tiny", 200_000));
    }
}
