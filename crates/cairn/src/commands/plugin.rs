//! `cairn plugin`: the plugins that are used here, what they bring, and what is wrong with them.

use clap::{Args, Subcommand};
use extensions::plugin::Plugin;
use extensions::skill::SkillKind;
use extensions::{ExtensionTrouble, skill::Skill};
use serde_json::{Value, json};
use settings::Weight;
use settings::agent_definitions::{DefinitionSource, Registry};

use crate::agent_sources;
use crate::exit::Code;
use crate::out::{data, talk};
use crate::plugins::LoadedPlugins;
use crate::program_paths::ProgramPaths;
use crate::styled_text::{bold, dim};
use crate::trusted_settings::{self, RunTrust};

/// List and check the plugins that are used here.
///
/// A plugin is a folder with skills, commands, agents, hooks, output styles and servers. Cairn uses those that you have installed
/// and enabled in Claude Code, those of the setting `pluginDirectories`, and those of `--plugin-dir`. It installs none.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

const EXAMPLES: &str = "\
Examples:
  cairn plugin list                 the plugins that are used here
  cairn plugin check ./my-plugin    what a plugin brings, and what is wrong with it; exit code 1 if anything is
  cairn --plugin-dir ./my-plugin    a session that uses it";

#[derive(Debug, Subcommand)]
enum PluginCommand {
    /// Print the plugins that are used here.
    List {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Check plugins: those of the folders, or all that are used here.
    Check {
        /// Folders of plugins.
        #[arg(value_hint = clap::ValueHint::DirPath)]
        folders: Vec<std::path::PathBuf>,
        /// One JSON array of problems.
        #[arg(long)]
        json: bool,
    },
}

/// Lists or checks.
pub(crate) fn run(args: &PluginArgs) -> anyhow::Result<Code> {
    let folders = match &args.command {
        PluginCommand::Check { folders, .. } => folders.clone(),
        PluginCommand::List { .. } => Vec::new(),
    };
    let place = ProgramPaths::from_env()?.of_run(None, &folders);
    let mut judged = trusted_settings::judge(&place, None, RunTrust::No)?;
    if !folders.is_empty() {
        judged.plugins.list.retain(|plugin| plugin.origin == extensions::plugin::PluginOrigin::Flag);
    }
    let registry = agent_sources::registry(&place, &judged.settings, &judged.trust, &judged.plugins, None)?;
    match &args.command {
        PluginCommand::List { json } => list(&judged.plugins, &registry, *json),
        PluginCommand::Check { json, .. } => check(&judged.plugins, &registry, *json),
    }
}

fn list(plugins: &LoadedPlugins, registry: &Registry, as_json: bool) -> anyhow::Result<Code> {
    if as_json {
        data!("{}", plugins.list.iter().map(|plugin| object(plugin, registry)).collect::<Value>())?;
        return Ok(Code::Success);
    }
    for plugin in &plugins.list {
        let version = plugin.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        let about = format!("{}{version}, {}", plugin.id, plugin.origin.words());
        data!([bold(&plugin.name), "  ", dim(&about)])?;
        if !plugin.description.is_empty() {
            data!(["  ", plugin.description.as_str()])?;
        }
        data!(["  ", brings(plugin, registry)])?;
    }
    if plugins.list.is_empty() {
        talk!("No plugins are used here. `--plugin-dir DIR` uses one; those enabled in Claude Code count here too.");
    }
    for trouble in &plugins.troubles {
        talk!("{trouble}");
    }
    Ok(Code::Success)
}

/// The parts of a plugin, counted.
fn brings(plugin: &Plugin, registry: &Registry) -> String {
    let of = |kind| plugin.skills.iter().filter(|skill| skill.kind == kind).count();
    let servers = plugin.server_names().count();
    let hooks = plugin.hooks(&plugin.folders.root).0.len();
    let counts = [
        (of(SkillKind::Skill), "skill"),
        (of(SkillKind::Command), "command"),
        (agents_of(plugin, registry).len(), "agent"),
        (hooks, "hook"),
        (plugin.styles.len(), "output style"),
        (servers, "server"),
    ];
    let words = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| match count {
        1 => format!("1 {word}"),
        more => format!("{more} {word}s"),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "nothing that is used here".to_owned() } else { words.join(", ") }
}

/// The names of its agents that could be read.
fn agents_of<'a>(plugin: &Plugin, registry: &'a Registry) -> Vec<&'a str> {
    let is_its = |name: &str| name.strip_prefix(plugin.name.as_str()).is_some_and(|rest| rest.starts_with(':'));
    let agents = registry.agents().filter(|agent| agent.source == DefinitionSource::Plugin && is_its(&agent.name));
    agents.map(|agent| agent.name.as_str()).collect()
}

fn object(plugin: &Plugin, registry: &Registry) -> Value {
    let names = |kind| {
        let of_kind = |skill: &&Skill| skill.kind == kind;
        plugin.skills.iter().filter(of_kind).map(|skill| skill.name.as_str()).collect::<Vec<_>>()
    };
    json!({
        "name": plugin.name, "id": plugin.id, "version": plugin.version, "description": plugin.description,
        "source": plugin.origin.words(), "path": plugin.folders.root,
        "skills": names(SkillKind::Skill), "commands": names(SkillKind::Command), "agents": agents_of(plugin, registry),
        "hooks": plugin.hooks(&plugin.folders.root).0.len(),
        "outputStyles": plugin.styles.iter().map(|style| style.name.as_str()).collect::<Vec<_>>(),
        "servers": plugin.server_names().collect::<Vec<_>>(),
    })
}

/// A problem as it is printed.
struct PluginTrouble {
    text: String,
    file: std::path::PathBuf,
    line: usize,
    weight: Weight,
}

fn check(plugins: &LoadedPlugins, registry: &Registry, as_json: bool) -> anyhow::Result<Code> {
    let of_files = plugins.troubles.iter().chain(plugins.list.iter().flat_map(|plugin| &plugin.troubles));
    let of_files = of_files.map(|trouble: &ExtensionTrouble| PluginTrouble {
        text: trouble.to_string(),
        file: trouble.file.clone(),
        line: trouble.line,
        weight: trouble.weight,
    });
    let is_theirs = |file: &std::path::Path| plugins.list.iter().any(|plugin| file.starts_with(&plugin.folders.root));
    let of_agents = registry.troubles().iter().filter(|trouble| is_theirs(&trouble.file));
    let of_agents = of_agents.map(|trouble| PluginTrouble {
        text: trouble.to_string(),
        file: trouble.file.clone(),
        line: trouble.line,
        weight: trouble.weight,
    });
    let troubles: Vec<PluginTrouble> = of_files.chain(of_agents).collect();
    let is_wrong = troubles.iter().any(|trouble| trouble.weight > Weight::Note);
    if as_json {
        let shown = |trouble: &PluginTrouble| {
            let is_error = trouble.weight == Weight::Error;
            json!({"file": trouble.file, "line": trouble.line, "text": trouble.text, "error": is_error})
        };
        data!("{}", troubles.iter().map(shown).collect::<Value>())?;
    } else {
        for trouble in &troubles {
            data!("{}", trouble.text)?;
        }
        for plugin in &plugins.list {
            talk!("{}: {}.", plugin.name, brings(plugin, registry));
        }
    }
    Ok(if is_wrong { Code::Failure } else { Code::Success })
}
