//! What an agent is told that writes down what a session leaves behind.
//!
//! It is a fork of the conversation, so what stands here is all that is paid in full: where the session has been given the
//! rules for memory already, they are not said again, and of what is known only so much is listed.

use std::path::Path;

use minijinja::context;

use crate::scan::{Header, one_line};
use crate::taxonomy::render;

/// How many memories are listed.
const LISTED: usize = 60;

/// How much of a description is.
const DESCRIPTION: usize = 90;

/// How many bytes the list may have: with the rest it stays below a tenth of a conversation of 50,000 tokens.
const LIST_BYTES: usize = 6_000;

/// What the words depend on.
#[derive(Debug, Clone, Copy)]
pub struct Directive<'a> {
    /// How many of the newest messages it is about; none is all of them.
    pub messages: Option<usize>,
    /// The memory directory.
    pub directory: &'a Path,
    /// The directory that is shared, if there is one.
    pub team: Option<&'a Path>,
    /// Whether the rules for memory have to be said: the session has not been given them.
    pub rules: bool,
    /// Whether there is an index.
    pub index: bool,
    /// What is known already, the newest first.
    pub known: &'a [Header],
}

/// What the agent is told.
pub fn directive(from: &Directive<'_>) -> String {
    let mut manifest = String::new();
    let mut listed = 0;
    for header in from.known.iter().take(LISTED) {
        let description = header.description.as_deref().map(|text| one_line(text, DESCRIPTION));
        let line = Header { description, modified: None, ..header.clone() }.to_string();
        if manifest.len() + line.len() > LIST_BYTES {
            break;
        }
        manifest = if manifest.is_empty() { line } else { manifest + "\n" + &line };
        listed += 1;
    }
    let more = from.known.len() - listed;
    render(
        "extract.md",
        context! {
            all => from.messages.is_none(),
            count => from.messages,
            directory => from.directory.display().to_string(),
            team => from.team.map(|path| path.display().to_string()),
            rules => from.rules,
            index => from.index,
            manifest => (!manifest.is_empty()).then(|| crate::neutral::quoted(&manifest).to_string()),
            more => (more > 0).then_some(more),
        },
    )
}

/// Whether a system prompt has the rules for memory.
pub fn has_rules(system: &str) -> bool {
    system.contains(include_str!("prompts/not-saved.md").lines().next().unwrap_or_default())
}

/// Whether a text of the user's has any sign of something to remember. It errs to yes: what it passes over is never looked
/// at by a model.
pub fn signals(text: &str) -> bool {
    let _ = text;
    true
}
