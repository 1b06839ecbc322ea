//! Completes words: slash commands and their arguments, `@` files, and `@agent-` agents.

use std::path::Path;

use settings::agents::Registry;

use super::slash;

/// The most candidates.
const OFFERED: usize = 16;
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

/// The word before the cursor that can be completed, and what it can become.
pub(crate) fn complete(before: &str, directory: &Path, agents: Option<&Registry>) -> (usize, Vec<Completion>) {
    if before.starts_with('/') && !before.contains([' ', '\n']) {
        let typed = &before[1..];
        let mut fits: Vec<_> = slash::COMMANDS.iter().filter(|command| command.name.starts_with(typed)).collect();
        fits.sort_by_key(|command| command.name != typed); // what is spelled out is meant
        let candidate = |command: &slash::SlashCommand| Completion {
            text: format!("/{}", command.name),
            about: command.about.into(),
        };
        return (before.len(), fits.into_iter().map(candidate).take(OFFERED).collect());
    }
    if let Some((command, argument)) = before.strip_prefix('/').and_then(|rest| rest.split_once(' '))
        && !argument.contains(' ')
    {
        let values = slash::arguments(command).iter().filter(|value| value.starts_with(argument));
        let candidates = values.map(|value| Completion { text: (*value).to_owned(), about: String::new() });
        return (argument.len(), candidates.take(OFFERED).collect());
    }
    let start = before.rfind([' ', '\n']).map_or(0, |at| at + 1);
    let word = &before[start..];
    match word.strip_prefix('@') {
        Some(name) => {
            let mut found = agents.map(|agents| agents_like(name, agents)).unwrap_or_default();
            found.extend(files_like(name, directory));
            found.truncate(OFFERED);
            (word.len(), found)
        }
        None => (0, Vec::new()),
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

fn files_like(path: &str, directory: &Path) -> Vec<Completion> {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let prefix = if folder.is_empty() && !path.starts_with('/') { String::new() } else { format!("{folder}/") };
    let Ok(mut entries) = files::list(directory.join(&prefix)) else { return Vec::new() };
    entries.truncate(LOOKED_AT);
    let mut found: Vec<Completion> = entries
        .into_iter()
        .filter_map(|entry| {
            let file = entry.name.to_str()?;
            let hidden = file.starts_with('.') && !name.starts_with('.');
            let fits = file.to_lowercase().starts_with(&name.to_lowercase());
            (fits && !hidden).then(|| {
                let slash = if entry.kind == files::EntryKind::Directory { "/" } else { "" };
                Completion { text: format!("@{prefix}{file}{slash}"), about: String::new() }
            })
        })
        .collect();
    found.sort_by(|a, b| a.text.cmp(&b.text));
    found.truncate(OFFERED);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(before: &str, directory: &Path) -> Vec<String> {
        let agents = Registry::load(&settings::agents::DefinitionSources::default());
        complete(before, directory, Some(&agents)).1.into_iter().map(|candidate| candidate.text).collect()
    }

    #[test]
    fn commands_files_agents_and_arguments_are_completed() {
        let root = tempfile::tempdir().unwrap();
        files::replace(root.path().join("src/main.rs"), b"").unwrap();
        files::replace(root.path().join("setup.md"), b"").unwrap();
        assert_eq!(texts("/re", root.path()), ["/resume", "/rewind"]);
        assert_eq!(texts("/mode", root.path()), ["/mode", "/model"]);
        assert_eq!(texts("look at @s", root.path()), ["@setup.md", "@src/"]);
        assert_eq!(texts("@src/", root.path()), ["@src/main.rs"]);
        assert_eq!(texts("let @agent-E", root.path()), ["@agent-Explore"]);
        assert!(texts("@ag", root.path()).contains(&"@agent-general-purpose".to_owned()));
        assert_eq!(texts("@", root.path()), ["@setup.md", "@src/"], "files first");
        assert_eq!(texts("plain words", root.path()), Vec::<String>::new());
    }
}
