//! Folders of public repositories, if there are any: everything in them loads, and what is told of them is right.

#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "it looks through folders and says what it saw")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use extensions::ExtensionTrouble;
use extensions::plugin::{MarketplaceEntry, Plugin, PluginOrigin, PluginPlace};
use extensions::registry::{SkillFolder, SkillRegistry};
use extensions::skill::{Skill, SkillKind, SkillSource};
use extensions::skill_listing::{FALLBACK_BUDGET, listing};
use serde_json::Value;
use settings::Weight;
use settings::agent_definitions::{DefinitionSource, DefinitionSources, Registry};
use settings::trust::{Trust, TrustPlace};

use crate::skipped::skipped_on_this_machine;

/// Names the folder with a subfolder for each repository.
const CORPUS: &str = "CAIRN_TEST_CORPUS";
/// The deepest level of folders that is looked at.
const DEPTH: usize = 12;

/// Errors that are right: a part of what they say, and why the file cannot be used.
const RIGHT: &[(&str, &str)] = &[
    ("it has no name", "fixtures of plugins without one"),
    ("does not begin with `---`", "a page about agents beside them"),
    ("it has no description", "a page with keys of its own beside agents"),
];

/// A folder below a repository that holds skills, commands or agents.
fn holders(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut below: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    below.sort();
    let holds = |name: &str| below.iter().any(|path| path.ends_with(name));
    if ["skills", "commands", "agents", ".claude-plugin"].into_iter().any(holds) {
        found.push(folder.to_owned());
    }
    for path in below.iter().filter(|path| depth > 0 && !path.ends_with(".git") && !path.ends_with("node_modules")) {
        holders(path, depth - 1, found);
    }
}

/// What is told of a repository, by whether it is right.
#[derive(Default)]
struct CorpusReport {
    /// All files of skills, wherever they are.
    files: usize,
    skills: usize,
    commands: usize,
    agents: usize,
    plugins: usize,
    wrong: Vec<String>,
    /// Errors that are right and warnings, counted.
    told: BTreeMap<String, usize>,
}

impl CorpusReport {
    fn hear(&mut self, weight: Weight, text: &str, what: &str) {
        let is_right = RIGHT.iter().any(|(part, _)| what.contains(part));
        if weight == Weight::Error && !is_right {
            self.wrong.push(text.to_owned());
        }
        let kind: String = what.split(['"', '`']).step_by(2).collect();
        *self.told.entry(format!("{weight:?} {kind}")).or_default() += 1;
    }

    fn hear_all(&mut self, troubles: &[ExtensionTrouble]) {
        troubles.iter().for_each(|trouble| self.hear(trouble.weight, &trouble.to_string(), &trouble.what));
    }

    fn count(&mut self, skills: &[Skill]) {
        self.skills += skills.iter().filter(|skill| skill.kind == SkillKind::Skill).count();
        self.commands += skills.iter().filter(|skill| skill.kind == SkillKind::Command).count();
    }

    fn agents(&mut self, sources: &DefinitionSources) {
        let registry = Registry::load(sources);
        self.agents += registry.agents().filter(|agent| agent.source != DefinitionSource::BuiltIn).count();
        let troubles = registry.troubles().iter();
        troubles.for_each(|trouble| self.hear(trouble.weight, &trouble.to_string(), &trouble.what));
    }
}

/// True for a file that is no link.
fn is_plain(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// The skills that a folder has, counted without reading them.
fn skill_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder.join("skills")).into_iter().flatten().flatten();
    let is_own = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(|entry| is_own(entry) && is_plain(&entry.path().join("SKILL.md"))).count()
}

/// The plugins that lie in a marketplace and have no description of their own.
fn marketplace(folder: &Path) -> Vec<PluginPlace> {
    let file = folder.join(".claude-plugin/marketplace.json");
    let Ok(text) = std::fs::read(&file) else { return Vec::new() };
    let text: Value = serde_json::from_slice(&text).unwrap();
    let entries = text["plugins"].as_array().into_iter().flatten().filter_map(Value::as_object).cloned();
    let place = |fields: serde_json::Map<String, Value>| {
        let folder = folder.join(fields["source"].as_str()?);
        let own = folder.join(".claude-plugin/plugin.json");
        let id = format!("{}@corpus", fields["name"].as_str()?);
        let entry = Some(MarketplaceEntry { file: file.clone(), fields });
        (!own.is_file()).then_some(PluginPlace { folder, id, origin: PluginOrigin::Installed, entry })
    };
    entries.filter_map(place).collect()
}

/// Reads each `SKILL.md`, wherever it is, and counts them.
fn loose_skills(folder: &Path, depth: usize, wrong: &mut Vec<String>) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let mut count = 0;
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => count += loose_skills(&path, depth - 1, wrong),
            Ok(kind) if kind.is_file() && path.ends_with("SKILL.md") => {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                let (_, troubles) = Skill::parse(&text, "x".to_owned(), SkillKind::Skill, SkillSource::User, &path);
                let errors = troubles.iter().filter(|trouble| trouble.weight == Weight::Error);
                wrong.extend(errors.map(ToString::to_string));
                count += 1;
            }
            _ => {}
        }
    }
    count
}

fn look(folder: &Path, data: &Path, trust: &Trust) -> CorpusReport {
    let mut report = CorpusReport::default();
    for place in marketplace(folder) {
        match Plugin::load(&place, data) {
            Ok(plugin) => {
                report.count(&plugin.skills);
                report.hear_all(&plugin.troubles);
                report.agents(&DefinitionSources { plugins: plugin.agents, ..DefinitionSources::default() });
                report.plugins += 1;
            }
            Err(trouble) => report.hear_all(&[trouble]),
        }
    }
    let mut all = Vec::new();
    holders(folder, DEPTH, &mut all);
    report.files = loose_skills(folder, DEPTH, &mut report.wrong);
    for holder in all {
        // As a plugin, whether it says so or not.
        let is_plugin = holder.join(".claude-plugin/plugin.json").is_file();
        report.plugins += usize::from(is_plugin);
        match Plugin::load(&PluginPlace::named(&holder, PluginOrigin::Flag), data) {
            Ok(plugin) => {
                let listed = listing(&plugin.skills, |_| 0, FALLBACK_BUDGET);
                let names: usize = plugin.skills.iter().map(|skill| skill.name.chars().count() + 3).sum();
                assert!(listed.chars().count() <= FALLBACK_BUDGET.max(names), "{}", holder.display());
                assert!(plugin.skills.len() >= skill_files(&holder), "{}", holder.display());
                if is_plugin {
                    report.count(&plugin.skills);
                    report.hear_all(&plugin.troubles);
                    report.hear_all(&plugin.hooks(folder).1);
                    report.agents(&DefinitionSources { plugins: plugin.agents, ..DefinitionSources::default() });
                }
            }
            Err(trouble) if is_plugin => report.hear_all(&[trouble]),
            Err(_) => {}
        }
        if is_plugin {
            continue;
        }
        // As a folder of the user's.
        let user = SkillFolder { source: SkillSource::User, folder: holder.clone(), bounds: None };
        let registry = SkillRegistry::load(&[user], trust);
        report.count(registry.all());
        report.hear_all(&registry.troubles);
        let folders = vec![(DefinitionSource::User, holder.join("agents"))];
        report.agents(&DefinitionSources { folders, ..DefinitionSources::default() });
    }
    report
}

/// SKILL-1, SKILL-2, PLUGIN-1: what people have published loads, and nothing of it is refused without a reason.
#[test]
fn published_skills_and_plugins_load() {
    let Some(corpus) = std::env::var_os(CORPUS).map(PathBuf::from) else {
        return skipped_on_this_machine("CAIRN_TEST_CORPUS names no folder of public repositories");
    };
    let home = tempfile::tempdir().unwrap();
    let place = TrustPlace { config_home: home.path(), claude_json: None, directory: home.path(), home: None };
    let trust = Trust::read(place);
    let mut repositories: Vec<PathBuf> =
        std::fs::read_dir(corpus).unwrap().flatten().map(|entry| entry.path()).collect();
    repositories.sort();
    let mut wrong = Vec::new();
    for folder in repositories.iter().filter(|path| path.is_dir()) {
        let CorpusReport { files, skills, commands, agents, plugins, told, wrong: of_it } =
            look(folder, home.path(), &trust);
        eprintln!(
            "{}: {files} SKILL.md; {skills} skills, {commands} commands, {agents} agents, {plugins} plugins",
            folder.display()
        );
        told.iter().for_each(|(what, times)| eprintln!("    {times} x {what}"));
        assert!(skills + commands + agents > 0, "{}", folder.display());
        wrong.extend(of_it);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
