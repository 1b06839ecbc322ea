//! The agents that are part of this program, and what two of them have to know of the machine: where the documentation lies
//! that one answers from, and where the settings are that the other writes into.
//!
//! The documentation is part of the program, so that it is that of this version and needs no network. It is laid out as files
//! beside the transcript of the agent that reads it, with the tools there are; nobody else is told of it.

use std::path::Path;

use session::Error;

use super::definition::Definition;
use super::registry::DefinitionSource;

/// All of them, as they are written.
pub(super) const ALL: [&str; 5] = [
    include_str!("general-purpose.md"),
    include_str!("explore.md"),
    include_str!("plan.md"),
    include_str!("cairn-guide.md"),
    include_str!("statusline-setup.md"),
];

/// The pages of the documentation.
const PAGES: [(&str, &str); 7] = [
    ("guide.md", include_str!("../../../../docs/guide.md")),
    ("settings.md", include_str!("../../../../docs/settings.md")),
    ("hooks.md", include_str!("../../../../docs/hooks.md")),
    ("cli.md", include_str!("../../../../docs/cli.md")),
    ("environment.md", include_str!("../../../../docs/environment.md")),
    ("dreams.md", include_str!("../../../../docs/dreams.md")),
    ("team.md", include_str!("../../../../docs/team.md")),
];

/// What stands for where the documentation lies.
const DOCS: &str = "{{ docs }}";
/// What stands for the user's settings.
const SETTINGS: &str = "{{ settings }}";

/// The prompt of an agent, with the places it names. `folder` is what it may keep files in; `session` is the file of the one
/// that a person talks to, below the config home.
pub fn prompt(definition: &Definition, folder: &Path, session: &Path) -> Result<String, Error> {
    let text = definition.prompt.clone();
    if definition.source != DefinitionSource::BuiltIn || !(text.contains(DOCS) || text.contains(SETTINGS)) {
        return Ok(text);
    }
    let docs = folder.join("docs");
    if text.contains(DOCS) {
        for (name, page) in PAGES {
            files::replace(docs.join(name), page.as_bytes())?;
        }
    }
    let home = session.ancestors().nth(3).unwrap_or(session); // <home>/projects/<slug>/<id>.jsonl
    let settings = home.join("settings.json");
    Ok(text.replace(DOCS, &docs.display().to_string()).replace(SETTINGS, &settings.display().to_string()))
}
