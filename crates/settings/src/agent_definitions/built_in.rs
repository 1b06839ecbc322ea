//! The built-in agents, and the paths that two of them need: the documentation that one answers from, and the settings
//! that the other writes.
//!
//! The documentation is compiled in, so that it matches this version and needs no network. It is written as files
//! next to the transcript of the agent that reads it with the usual tools; no other agent is told of it.

use std::path::Path;

use session::Error;

use super::agent_definition::Definition;
use super::registry::DefinitionSource;

/// Texts of all built-in definitions.
pub(super) const ALL: [&str; 5] = [
    include_str!("general-purpose.md"),
    include_str!("explore.md"),
    include_str!("plan.md"),
    include_str!("cairn-guide.md"),
    include_str!("statusline-setup.md"),
];

/// The pages of the documentation.
const PAGES: [(&str, &str); 9] = [
    ("guide.md", include_str!("../../../../docs/guide.md")),
    ("settings.md", include_str!("../../../../docs/settings.md")),
    ("settings-tuning.md", include_str!("../../../../docs/settings-tuning.md")),
    ("hooks.md", include_str!("../../../../docs/hooks.md")),
    ("cli.md", include_str!("../../../../docs/cli.md")),
    ("environment.md", include_str!("../../../../docs/environment.md")),
    ("dreams.md", include_str!("../../../../docs/dreams.md")),
    ("team.md", include_str!("../../../../docs/team.md")),
    ("skills.md", include_str!("../../../../docs/skills.md")),
];

/// Placeholder for the folder of the documentation.
const DOCS: &str = "{{ docs }}";
/// Placeholder for the user's settings file.
const SETTINGS: &str = "{{ settings }}";

/// The prompt of an agent, with its placeholders filled in. `folder` is the agent's folder for files; `session` is the
/// file of the user's session, below the config home.
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
