//! The memories that agents nobody asked leave alone: those the user wrote, edited or pinned.
//!
//! A memory is an agent's if its head names the agent, and its text is still what the last run of one left. Where no run of
//! it is kept any more, its head alone counts. `pinned: true` in the head keeps any memory as it is.

use std::collections::HashMap;

use memory::Memory;
use memory::changes::{Changes, USER};
use memory::frontmatter;

/// The memories that are the user's.
#[derive(Debug, Default)]
pub(crate) struct Protection {
    /// What the newest run that changed a memory's text left there.
    left: HashMap<String, LastText>,
}

#[derive(Debug, PartialEq, Eq)]
enum LastText {
    /// The user's own command wrote it.
    Users,
    /// An agent wrote it.
    Agents(String),
}

impl Protection {
    /// As far as changes are kept.
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

    /// Why a memory with this text is left alone, if it is.
    pub(crate) fn protects(&self, path: &str, text: &str) -> Option<&'static str> {
        let front = frontmatter::read(text);
        let pinned = front.text("pinned").or_else(|| front.metadata("pinned"));
        if pinned.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Some("the user pinned it");
        }
        let memory = Memory::parse(path, text.as_bytes(), None, text.len() as u64);
        match self.left.get(path) {
            _ if memory.origin.agent.is_none() => Some("the user wrote it by hand"),
            Some(LastText::Users) => Some("the user wrote it"),
            Some(LastText::Agents(left)) if *left != body(text) => Some("the user has edited it"),
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
    use memory::changes::{Change, Head};

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
            let head = Head {
                agent: agent.into(),
                session: None,
                model: None,
                at: "2026-11-15T12:00:00Z".into(),
                directory: folder.path().into(),
            };
            let mut run = changes.begin(id, head).unwrap();
            let before = before.map(|body| text(agents, body));
            run.keep(&Change { path: "a.md".into(), before, after: Some(text(agents, after)), line: None }).unwrap();
            run.end().unwrap();
        };
        let protects = |head: &str, body: &str| Protection::of(&changes).protects("a.md", &text(head, body));
        assert_eq!(protects("", "one"), Some("the user wrote it by hand"));
        assert_eq!(protects(agents, "one"), None, "no run of it is kept");
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
}
