//! Protected memories, which unattended agents leave alone: those the user wrote, edited or pinned.
//!
//! A memory is an agent's if its head names the agent, and its text is still what the last run of one left. If no run
//! of it is kept any more, it counts as edited if the file was changed after the time in its head. Claude Code names no
//! agent: its memories name a session. `pinned: true` in the head keeps any memory as it is.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use memory::Memory;
use memory::changes::{Changes, USER};
use memory::frontmatter;

/// Longest time from the time in a memory's head to the writing of its file.
const WRITING: SignedDuration = SignedDuration::from_mins(1);

/// The memories that are the user's.
#[derive(Debug, Default)]
pub(crate) struct Protection {
    /// Text that the newest run left in each memory.
    left: HashMap<String, LastText>,
}

#[derive(Debug, PartialEq, Eq)]
enum LastText {
    /// Written by the user's own command.
    Users,
    /// Written by an agent.
    Agents(String),
}

impl Protection {
    /// The protection, as far as changes are kept.
    pub(crate) fn of(changes: &Changes) -> Self {
        let mut left = HashMap::new();
        for run in changes.runs() {
            for change in run.net() {
                let Some(after) = &change.after else { continue };
                let text = body(after);
                // A change of the head alone, such as a repair, says nothing of whose text it is.
                if change.before.as_deref().map(body).as_ref() == Some(&text) {
                    continue;
                }
                let last = if run.head.agent == USER { LastText::Users } else { LastText::Agents(text) };
                left.entry(change.path).or_insert(last);
            }
        }
        Self { left }
    }

    /// The reason a memory with this text is left alone, if there is one; `written` is the time of its file.
    pub(crate) fn protects(&self, path: &str, text: &str, written: Option<Timestamp>) -> Option<&'static str> {
        let front = frontmatter::read(text);
        let pinned = front.text("pinned").or_else(|| front.metadata("pinned"));
        if pinned.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Some("the user pinned it");
        }
        let origin = Memory::parse(path, text.as_bytes(), None, text.len() as u64).origin;
        let is_elsewhere =
            origin.agent.is_none() && (origin.session.is_some() || front.metadata("node_type").is_some());
        let edited_since = origin.at.zip(written).is_some_and(|(at, written)| written > at + WRITING);
        match self.left.get(path) {
            _ if origin.agent.is_none() && !is_elsewhere => Some("the user wrote it by hand"),
            Some(LastText::Users) => Some("the user wrote it"),
            Some(LastText::Agents(left)) if *left != body(text) => Some("the user has edited it"),
            None if edited_since => Some("the user has edited it"),
            Some(LastText::Agents(_)) | None => None,
        }
    }
}

/// The text of a memory below its head.
fn body(text: &str) -> String {
    let from = frontmatter::read(text).body_start();
    text.get(from..).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::changes::{KeptChange, RunHead};

    fn text(head: &str, body: &str) -> String {
        format!("---\nname: A\ndescription: b\ntype: project\n{head}---\n\n{body}\n")
    }

    /// DREAM-3: whose a memory is, by its head and by who changed its text last.
    #[test]
    fn a_memory_is_the_users_if_they_wrote_edited_or_pinned_it() {
        let folder = tempfile::tempdir().unwrap();
        let changes = Changes::at(folder.path());
        let agents = "metadata:\n  agent: extract\n";
        let run = |id: &str, agent: &str, before: Option<&str>, after: &str| {
            let head = RunHead {
                agent: agent.into(),
                session: None,
                model: None,
                at: "2026-11-15T12:00:00Z".into(),
                directory: folder.path().into(),
            };
            let mut run = changes.begin(id, head).unwrap();
            let before = before.map(|body| text(agents, body));
            run.keep(&KeptChange { path: "a.md".into(), before, after: Some(text(agents, after)), line: None })
                .unwrap();
            run.end().unwrap();
        };
        let protects = |head: &str, body: &str| Protection::of(&changes).protects("a.md", &text(head, body), None);
        assert_eq!(protects("", "one"), Some("the user wrote it by hand"));
        assert_eq!(protects(agents, "one"), None, "no run of it is kept");
        let dated = text("metadata:\n  agent: extract\n  modified: 2026-11-01T10:00:00.000Z\n", "one");
        let written = |at: &str| Protection::of(&changes).protects("a.md", &dated, Some(at.parse().unwrap()));
        assert_eq!(written("2026-11-01T10:00:02Z"), None);
        assert_eq!(written("2026-11-09T10:00:00Z"), Some("the user has edited it"), "long after its run was dropped");
        run("1", "extract", None, "one");
        assert_eq!((protects(agents, "one"), protects(agents, "two")), (None, Some("the user has edited it")));
        assert_eq!(protects(&format!("pinned: true\n{agents}"), "one"), Some("the user pinned it"));
        assert_eq!(protects(&format!("pinned: false\n{agents}"), "one"), None);
        run("2", USER, Some("one"), "one");
        assert_eq!(protects(agents, "one"), None, "its head was mended");
        run("3", USER, Some("one"), "two");
        assert_eq!(protects(agents, "two"), Some("the user wrote it"));
        run("4", "extract", Some("two"), "three");
        assert_eq!(protects(agents, "three"), None, "an agent the user talked to has changed it since");
    }

    /// DREAM-3, MEM-1: what Claude Code wrote is an agent's, unless its file was changed after the time in its head, or it is
    /// pinned.
    #[test]
    fn a_memory_of_claude_code_is_an_agents() {
        let protection = Protection::default();
        let protects = |head: &str, written: Option<&str>| {
            protection.protects("a.md", &text(head, "one"), written.map(|at| at.parse().unwrap()))
        };
        let theirs = "metadata:\n  node_type: memory\n  originSessionId: s-1\n";
        let dated = format!("{theirs}  modified: 2026-11-01T10:00:00.000Z\n");
        assert_eq!(protects(theirs, Some("2026-11-09T10:00:00Z")), None, "nothing says when it was written");
        assert_eq!(protects(&dated, Some("2026-11-01T10:00:02Z")), None);
        assert_eq!(protects(&dated, Some("2026-11-01T11:00:00Z")), Some("the user has edited it"));
        assert_eq!(protects(&format!("pinned: true\n{dated}"), None), Some("the user pinned it"));
        assert_eq!(protects("metadata:\n  type: project\n", None), Some("the user wrote it by hand"));
    }
}
