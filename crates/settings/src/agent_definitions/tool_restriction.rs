//! The restriction of an agent to some of its parent's tools and calls.

use std::sync::Arc;

use session::Error;
use tools::permission::{Decision, Mode, Rights, Rule, RuleVerdict, Rules, Situation, decide};
use tools::{Access, Subject, Tool};
use transcript::tool_names;

/// The beginning of the names of servers' tools.
const SERVERS: &str = "mcp__";

use super::agent_definition::{Definition, OfferedTools};
use crate::effective_values::BasePaths;
use crate::rules;

/// Read-only commands, as a definition writes it.
const READ_ONLY: &str = "read-only";

/// The calls that a definition lets an agent make.
#[derive(Debug, Clone, Default)]
pub struct ToolRestriction {
    /// Rules by tool, one of which has to cover the call.
    only: Vec<(String, Rules)>,
    /// True if commands may only read.
    looks: bool,
    /// Tools that are offered only to keep the cached prefix, and the reason why they do not run.
    never: Vec<(&'static str, &'static str)>,
    /// The restriction of its parent.
    above: Option<Box<ToolRestriction>>,
}

impl ToolRestriction {
    /// Restriction of an agent that is started under this one.
    #[must_use]
    pub fn below(&self, mut own: Self) -> Self {
        own.above = Some(Box::new(self.clone()));
        own
    }

    /// Restriction of a fork: it is offered all tools of its parent but may not use these.
    pub fn without(tools: impl IntoIterator<Item = &'static str>, why: &'static str) -> Self {
        Self { never: tools.into_iter().map(|tool| (tool, why)).collect(), ..Self::default() }
    }

    /// The rights that the agent has for a call; the error says why it may not make it.
    pub fn left(
        &self,
        situation: &Situation<'_>,
        access: Access,
        tool: &str,
        subject: &Subject,
    ) -> Result<Rights, String> {
        let above = match &self.above {
            Some(above) => above.left(situation, access, tool, subject)?,
            None => Rights::Full,
        };
        if let Some((_, why)) = self.never.iter().find(|(name, _)| *name == tool) {
            return Err((*why).to_owned());
        }
        let Some((_, only)) = self.only.iter().find(|(name, _)| name == tool) else { return Ok(above) };
        if only.decide(tool, subject) == RuleVerdict::Allow {
            return Ok(above);
        }
        let looking = Situation { mode: Mode::Plan, rules: &Rules::default(), ..*situation };
        if tool == tool_names::BASH
            && self.looks
            && let Decision::Allow(rights) = decide(&looking, access, tool, subject)
        {
            return Ok(rights);
        }
        let mut named: Vec<String> = only.allow.iter().map(ToString::to_string).collect();
        if tool == tool_names::BASH && self.looks {
            named.push("commands that only read".to_owned());
        }
        Err(format!("This agent may use {tool} only for {}.", named.join(", ")))
    }
}

/// The tools that a definition leaves of its parent's, and the restriction of each.
pub fn narrow(
    definition: &Definition,
    tools: &[Arc<dyn Tool>],
    base_paths: &BasePaths<'_>,
) -> Result<(Vec<Arc<dyn Tool>>, ToolRestriction), Error> {
    let mut narrowed = ToolRestriction::default();
    let mut offered: Vec<Arc<dyn Tool>> = tools.to_vec();
    if let OfferedTools::Only(names) = &definition.tools {
        offered.retain(|tool| {
            names.iter().any(|name| covers(base(name), tool.name())) || is_search_for(tool.name(), names)
        });
        for tool in &offered {
            let mine: Vec<&String> = names.iter().filter(|name| base(name) == tool.name()).collect();
            // Named once without a pattern, or by its server, all its calls are meant.
            if mine.is_empty() || mine.iter().any(|name| !name.contains('(')) {
                continue;
            }
            let looks = |name: &str| {
                name.strip_suffix(')').and_then(|name| name.split_once('(')).map(|(_, what)| what) == Some(READ_ONLY)
            };
            narrowed.looks |= tool.name() == tool_names::BASH && mine.iter().any(|name| looks(name));
            let patterns: Vec<String> =
                mine.into_iter().filter(|name| !looks(name)).flat_map(|name| each(name)).collect();
            let allow: Vec<Rule> = rules(&patterns, base_paths)?;
            narrowed.only.push((tool.name().to_owned(), Rules { allow, ..Rules::default() }));
        }
    }
    offered.retain(|tool| !definition.without.iter().any(|name| base(name) == tool.name() && !name.contains('(')));
    Ok((offered, narrowed))
}

/// Splits `Agent(one, two)` into one rule for each agent.
fn each(name: &str) -> Vec<String> {
    match agents_named(name) {
        Some(names) => names.map(|name| format!("Agent({name})")).collect(),
        None => vec![name.to_owned()],
    }
}

/// The agents that `Agent(one, two)` names.
pub(super) fn agents_named(tool: &str) -> Option<impl Iterator<Item = &str>> {
    let (_, names) = tool.trim().strip_suffix(')')?.split_once('(').filter(|_| base(tool) == tool_names::AGENT)?;
    Some(names.split(',').map(str::trim))
}

/// True if a definition offers a tool.
pub fn offers(definition: &Definition, tool: &str) -> bool {
    let named = match &definition.tools {
        OfferedTools::Only(names) => names.iter().any(|name| covers(base(name), tool)),
        OfferedTools::All => true,
    };
    named && !definition.without.iter().any(|name| covers(base(name), tool) && !name.contains('('))
}

/// True if a name covers a tool: `mcp__server` is every tool of that server, `mcp__*` those of all.
fn covers(name: &str, tool: &str) -> bool {
    let of_server =
        |name: &str| name.starts_with(SERVERS) && tool.strip_prefix(name).is_some_and(|rest| rest.starts_with("__"));
    name == tool || name == "mcp__*" && tool.starts_with(SERVERS) || of_server(name.trim_end_matches("__*"))
}

/// True if a tool finds others that these names offer.
fn is_search_for(tool: &str, names: &[String]) -> bool {
    tool == tool_names::TOOL_SEARCH && names.iter().any(|name| base(name).starts_with(SERVERS))
}

/// The tool that a name in a definition refers to.
pub(super) fn base(name: &str) -> &str {
    match name.split('(').next().unwrap_or_default().trim() {
        tool_names::TASK => tool_names::AGENT,
        name => name,
    }
}
