//! `cairn agents`: the agents that can be started, and the problems with the others.

mod start;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use settings::Weight;
use settings::agent_definitions::{Definition, DefinitionStatus, Isolation, ListedAgent, OfferedTools, Registry, Runs};
use tools::permission::Rules;

use crate::agent_sources;
use crate::exit::Code;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{bold, cyan, dim};
use crate::trusted_settings::{self, RunTrust};

/// List, create and check the agents that a session can start.
///
/// An agent is a Markdown file with a name and a description on top and its system prompt below, in `agents` of the config
/// home or in `.claude/agents` of a project. Of several with one name a project's wins over yours.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
}

const EXAMPLES: &str = "\
Examples:
  cairn agents list             the agents that can be started here
  cairn agents show Explore     one of them, in full
  cairn agents new reviewer     a file to begin with, in this project
  cairn agents check            what is wrong with definitions; exit code 1 if anything is
  cairn agents start scout 'where are retries decided?'   an agent in a process of its own
  cairn agents start --type Explore scout 'what uses this?'   one with a definition";

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Print the agents, and where each comes from.
    List {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print an agent: its tools and its prompt.
    Show {
        /// Its name.
        name: String,
    },
    /// Create a file for a new agent, to be edited.
    New {
        /// Its name.
        name: String,
        /// For all projects, not for this one.
        #[arg(long)]
        user: bool,
    },
    /// Check all definitions.
    Check,
    /// Start a teammate: an agent in a process of its own, which works for you until it is done.
    ///
    /// Its messages to you are printed, and so is its last reply. It ends when this command ends.
    Start(start::StartArgs),
}

/// Lists, shows, makes or checks.
pub(crate) async fn run(args: &AgentsArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let judged = trusted_settings::judge(&place, None, RunTrust::No)?;
    let registry = agent_sources::registry(&place, &judged.settings, &judged.trust, &judged.plugins, None)?;
    match &args.command {
        AgentsCommand::List { json } => list(&registry, &judged.settings.rules, *json),
        AgentsCommand::Show { name } => show(&registry, name),
        AgentsCommand::New { name, user } => new(&place, name, *user),
        AgentsCommand::Check => check(&registry),
        AgentsCommand::Start(args) => start::run(&place, &registry, args).await,
    }
}

fn list(registry: &Registry, rules: &Rules, as_json: bool) -> anyhow::Result<Code> {
    if as_json {
        data!("{}", registry.all().iter().map(|listed| object(listed, rules)).collect::<Value>())?;
        return Ok(Code::Success);
    }
    for ListedAgent { agent, replaced_by } in registry.all() {
        let source = agent_sources::source_text(agent, *replaced_by, agent.is_denied(rules));
        data!([bold(&agent.name), "  ", dim(&source)])?;
        data!(["  ", agent.description.as_str()])?;
    }
    Ok(Code::Success)
}

fn object(listed: &ListedAgent, rules: &Rules) -> Value {
    let ListedAgent { agent, replaced_by } = listed;
    json!({
        "name": agent.name, "description": agent.description, "source": agent.source.name(), "file": agent.file,
        "model": agent.model, "effort": agent.effort, "maxTurns": agent.max_turns, "budget": agent.budget, "tools": tools(agent), "disallowedTools": agent.without,
        "replacedBy": replaced_by.map(|source| source.name()), "trusted": agent.standing == DefinitionStatus::Whole,
        "denied": agent.is_denied(rules),
    })
}

fn tools(agent: &Definition) -> Option<&[String]> {
    match &agent.tools {
        OfferedTools::All => None,
        OfferedTools::Only(names) => Some(names),
    }
}

/// The agent of a name, or a list of those there are.
fn named<'a>(registry: &'a Registry, name: &str) -> anyhow::Result<&'a Definition> {
    let names = || registry.agents().map(|agent| agent.name.as_str()).collect::<Vec<_>>().join(", ");
    registry.find(name).ok_or_else(|| anyhow::anyhow!("there is no agent named {name}; there are {}", names()))
}

/// The other keys of a definition, in words.
fn rest(agent: &Definition) -> Vec<(&'static str, String)> {
    let worktree = (agent.isolation == Isolation::Worktree).then(|| "worktree".to_owned());
    let background = (agent.runs == Runs::Background).then(|| "true".to_owned());
    let memory = agent.memory.map(|memory| memory.name().to_owned());
    let all = [
        ("effort", agent.effort.map(|effort| effort.name().to_owned())),
        ("maxTurns", agent.max_turns.map(|most| most.to_string())),
        ("budget", agent.budget.map(|budget| format!("{budget} tokens"))),
        ("permissionMode", agent.mode.map(|mode| mode.name().to_owned())),
        ("memory", memory),
        ("isolation", worktree),
        ("background", background),
        ("color", agent.color.clone()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn show(registry: &Registry, name: &str) -> anyhow::Result<Code> {
    let agent = named(registry, name)?;
    let from = agent.file.as_ref().map_or_else(|| agent.source.name().to_owned(), |file| file.display().to_string());
    data!([bold(&agent.name), "  ", dim(&from)])?;
    data!([agent.description.as_str()])?;
    let tools = tools(agent).map_or_else(|| "all of the session's".to_owned(), |names| names.join(", "));
    data!([cyan("tools: "), tools.as_str()])?;
    if !agent.without.is_empty() {
        data!([cyan("without: "), agent.without.join(", ")])?;
    }
    data!([cyan("model: "), agent.model.as_deref().unwrap_or("the session's")])?;
    for (name, value) in rest(agent) {
        data!([cyan(&format!("{name}: ")), value.as_str()])?;
    }
    data!("\n{}", agent.prompt)?;
    Ok(Code::Success)
}

fn new(place: &ProgramPaths, name: &str, user: bool) -> anyhow::Result<Code> {
    let folder = match user {
        true => place.home.path().join("agents"),
        false => place.directory.join(".claude/agents"),
    };
    let fine = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
    anyhow::ensure!(
        !name.is_empty() && name.chars().all(fine),
        "{name:?} is not a valid name for an agent: use letters, digits, - and _"
    );
    let text = format!(
        "---\nname: {name}\ndescription: When this agent is of use, in a sentence the model reads.\ntools: Read, Grep, Glob\n---\n\n\
         You do one task for another agent, who sees nothing of your work but your last message.\n"
    );
    let file = folder.join(format!("{name}.md"));
    files::create_new(&file, text.as_bytes())?;
    talk!("Created {}. Edit it, then run `cairn agents check`.", file.display());
    talk!("In a session the model starts it when its description fits, or you ask for it with @agent-{name}.");
    if !user {
        talk!(
            "A session in this directory asks once whether you trust it; until then its own model, memory and \
                hooks are ignored."
        );
    }
    Ok(Code::Success)
}

fn check(registry: &Registry) -> anyhow::Result<Code> {
    for trouble in registry.troubles() {
        data!("{trouble}")?;
    }
    if registry.troubles().iter().any(|trouble| trouble.weight > Weight::Note) {
        return Ok(Code::Failure);
    }
    talk!("{} agents, nothing wrong.", registry.agents().count());
    Ok(Code::Success)
}
