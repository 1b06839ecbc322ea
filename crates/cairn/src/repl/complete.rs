//! Completes words: slash commands and their arguments, `@` files, and `@agent-` agents.

use std::path::{Path, PathBuf};

use settings::agent_definitions::Registry;

use super::menu::CompletionMenu;
use super::{fuzzy, slash};

/// The most files and agents.
const OFFERED: usize = 50;
/// Prefix of an agent's name in a message.
const AGENT: &str = "agent-";
/// The most characters of an agent's description.
const ABOUT: usize = 50;
/// The most directory entries that are looked at.
const LOOKED_AT: usize = 5_000;

/// A way to complete the word before the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The text that replaces the word.
    pub(crate) text: String,
    /// Its description.
    pub(crate) about: String,
}

/// Sources of completions besides commands.
pub(super) struct CompletionSources<'a> {
    /// The working directory.
    pub(super) directory: &'a Path,
    /// The home directory, which `~` stands for.
    pub(super) home: Option<PathBuf>,
    pub(super) agents: Option<&'a Registry>,
    /// Skills that can be called like commands.
    pub(super) skills: Vec<Completion>,
    /// Resources of MCP servers.
    pub(super) resources: Vec<Completion>,
    /// Commands and agents in the background.
    pub(super) tasks: Vec<Completion>,
}

/// The letters after `@` before the cursor, if a file of the project can be meant by them.
pub(super) fn file_letters(before: &str) -> Option<&str> {
    let name = before[word_start(before)..].strip_prefix('@')?;
    let is_elsewhere = name.starts_with(['/', '~', '"']) || name.starts_with("..");
    (!before.starts_with('/') || before.contains(' ')).then_some(name).filter(|_| !is_elsewhere)
}

/// The beginning of the word before the cursor.
pub(super) fn word_start(before: &str) -> usize {
    before.rfind([' ', '\n']).map_or(0, |at| at + 1)
}

/// The menu for the word before the cursor; `files` are the project's that fit it.
pub(super) fn complete(before: &str, sources: CompletionSources<'_>, files: Option<Vec<String>>) -> CompletionMenu {
    let CompletionSources { directory, home, agents, skills, resources, tasks } = sources;
    if let Some(typed) = before.strip_prefix('/').filter(|typed| !typed.contains([' ', '\n'])) {
        let command = |command: &slash::SlashCommand| Completion {
            text: format!("/{}", command.name),
            about: command.about.into(),
        };
        let mut all: Vec<Completion> = slash::COMMANDS.iter().map(command).chain(skills).collect();
        all = fuzzy::best(typed, all, |one| &one.text[1..], usize::MAX);
        all.sort_by_key(|one| one.text[1..] != *typed); // what is spelled out is meant
        return CompletionMenu::new(before.len(), all);
    }
    if let Some((command, argument)) = before.strip_prefix('/').and_then(|rest| rest.split_once(' '))
        && !argument.contains([' ', '\n'])
        && !slash::arguments(command).is_empty()
    {
        let values = fuzzy::best(argument, slash::arguments(command).iter(), |value| value, usize::MAX);
        let candidates = values.iter().map(|value| Completion { text: (**value).to_owned(), about: String::new() });
        // The command can be meant without one.
        let menu = if argument.is_empty() { CompletionMenu::offering } else { CompletionMenu::new };
        return menu(argument.len(), candidates.collect());
    }
    let word = &before[word_start(before)..];
    if ["/tasks stop ", "/tasks front "].iter().any(|start| before.strip_prefix(start) == Some(word)) {
        let tasks = tasks.into_iter().filter(|task| task.text != word);
        return CompletionMenu::new(word.len(), fuzzy::best(word, tasks, |task| &task.text, usize::MAX));
    }
    match word.strip_prefix('@') {
        Some(name) => {
            let mut found = agents.map(|agents| agents_like(name, agents)).unwrap_or_default();
            match files {
                Some(files) => found.extend(files.iter().filter(|path| *path != name).map(|path| file(path))),
                None => found.extend(files_like(name, directory, home.as_deref())),
            }
            let is_meant = |one: &Completion| name.len() > 1 && one.text.contains(name) && one.text[1..] != *name;
            found.extend(resources.into_iter().filter(is_meant));
            found.truncate(OFFERED);
            CompletionMenu::new(word.len(), found)
        }
        None => CompletionMenu::default(),
    }
}

/// The agents that can be meant, once it is clear that one is.
fn agents_like(name: &str, agents: &Registry) -> Vec<Completion> {
    if name.is_empty() || !(AGENT.starts_with(name) || name.starts_with(AGENT)) {
        return Vec::new();
    }
    let wanted = name.strip_prefix(AGENT).unwrap_or_default().to_lowercase();
    let fits = agents.agents().filter(|agent| agent.name.to_lowercase().starts_with(&wanted));
    let about = |text: &str| crate::styled_text::one_line(text, ABOUT);
    fits.map(|agent| Completion { text: format!("@{AGENT}{}", agent.name), about: about(&agent.description) }).collect()
}

/// A file as it stands in the message: in quotes if its name has blanks.
fn file(path: &str) -> Completion {
    let text = if path.contains(' ') { format!("@\"{path}\"") } else { format!("@{path}") };
    Completion { text, about: String::new() }
}

/// The files of one folder: those of the project's top, or of a folder outside of it.
fn files_like(path: &str, directory: &Path, home: Option<&Path>) -> Vec<Completion> {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let prefix = if folder.is_empty() && !path.starts_with('/') { String::new() } else { format!("{folder}/") };
    let place = match (prefix.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => directory.join(&prefix),
    };
    let Ok(mut entries) = files::list(place) else { return Vec::new() };
    entries.truncate(LOOKED_AT);
    let mut found: Vec<(String, bool)> = entries
        .into_iter()
        .filter_map(|entry| Some((entry.name.to_str()?.to_owned(), entry.kind == files::EntryKind::Directory)))
        .filter(|(file, _)| name.starts_with('.') || !file.starts_with('.'))
        .collect();
    found.sort();
    let found = fuzzy::best(name, found, |(file, _)| file, OFFERED);
    found
        .into_iter()
        .map(|(name, is_folder)| file(&format!("{prefix}{name}{}", if is_folder { "/" } else { "" })))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(before: &str, directory: &Path) -> Vec<String> {
        let agents = Registry::load(&settings::agent_definitions::DefinitionSources::default());
        let skill = Completion { text: "/greet".to_owned(), about: String::new() };
        let resource = Completion { text: "@db:demo://notes/1".to_owned(), about: String::new() };
        let home = Some(directory.join("src"));
        let sources = CompletionSources {
            directory,
            home,
            agents: Some(&agents),
            skills: vec![skill],
            resources: vec![resource],
            tasks: vec![Completion { text: "72f6cd80301c".to_owned(), about: String::new() }],
        };
        let mut menu = complete(before, sources, None);
        let mut texts = Vec::new();
        while let Some(text) = menu.first().map(|one| one.text.clone()).filter(|text| !texts.contains(text)) {
            texts.push(text);
            if menu.chosen().is_none() {
                menu.step(true);
            }
            menu.step(true);
        }
        texts
    }

    #[test]
    fn commands_files_agents_and_arguments_are_completed() {
        let root = tempfile::tempdir().unwrap();
        files::replace(root.path().join("src/main.rs"), b"").unwrap();
        files::replace(root.path().join("setup.md"), b"").unwrap();
        assert_eq!(texts("/re", root.path())[..2], ["/resume", "/rewind"]);
        assert_eq!(texts("/mode", root.path()), ["/mode", "/model"]);
        assert_eq!(texts("/prm", root.path()), ["/permissions"]);
        assert_eq!(texts("/gr", root.path())[0], "/greet");
        assert_eq!(texts("/mode ", root.path()).len(), 4);
        assert_eq!(texts("/mode byp", root.path()), ["bypassPermissions"]);
        assert_eq!(texts("/tasks stop ", root.path()), ["72f6cd80301c"]);
        assert_eq!(texts("/tasks front 72", root.path()), ["72f6cd80301c"]);
        assert!(texts("/tasks stop 72f6cd80301c", root.path()).is_empty(), "Enter runs it");
        assert_eq!(texts("look at @s", root.path()), ["@src/", "@setup.md"]);
        assert_eq!(texts("@src/", root.path()), ["@src/main.rs"]);
        assert_eq!(texts("@db:", root.path()), ["@db:demo://notes/1"]);
        assert_eq!(texts("@notes", root.path()), ["@db:demo://notes/1"]);
        assert_eq!(texts("@~/ma", root.path()), ["@~/main.rs"]);
        let found = complete(
            "see @ma",
            CompletionSources {
                directory: root.path(),
                home: None,
                agents: None,
                skills: Vec::new(),
                resources: Vec::new(),
                tasks: Vec::new(),
            },
            Some(vec!["a b/ma.rs".to_owned()]),
        );
        assert_eq!((found.first().unwrap().text.as_str(), found.replaces), ("@\"a b/ma.rs\"", 3));
        assert_eq!(
            (file_letters("see @ma"), file_letters("see @~/x"), file_letters("ada@x")),
            (Some("ma"), None, None)
        );
        assert_eq!(texts("let @agent-E", root.path()), ["@agent-Explore"]);
        assert!(texts("@ag", root.path()).contains(&"@agent-general-purpose".to_owned()));
        assert_eq!(texts("@", root.path()), ["@setup.md", "@src/"], "files first");
        assert_eq!(texts("plain words", root.path()), Vec::<String>::new());
    }
}
