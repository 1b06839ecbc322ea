//! `# fact`: a memory that the user writes in the prompt.

use memory::import::first_sentence;
use memory::remember::MemoryOrigin;
use memory::store::NewMemory;

use super::conversation::Conversation;
use crate::memory_shelves::CommandShelves;
use crate::styled_text::{Colour, TextStyle};

/// The most characters of a memory's name.
const NAME: usize = 60;

/// The fact in a line that is one: `# ` and words on one line. What has more lines is Markdown, and `#12` an issue.
pub(super) fn fact_in(line: &str) -> Option<&str> {
    let fact = line.strip_prefix("# ").map(str::trim).filter(|fact| !fact.is_empty())?;
    (!fact.contains('\n')).then_some(fact)
}

/// Saves it among the project's memories.
pub(super) fn save(talk: &mut Conversation, fact: &str) {
    let Some(directory) = talk.session.memory.clone() else {
        talk.view.hint = Some("memory is off, so nothing was saved".into());
        return;
    };
    let name = crate::styled_text::one_line(first_sentence(fact).trim_end_matches('.'), NAME);
    let new = NewMemory {
        path: None,
        name,
        description: fact.to_owned(),
        asked: None,
        kind: Some(memory::Kind::Feedback),
        applies_to: Vec::new(),
        body: fact.to_owned(),
    };
    let saved = CommandShelves::of(&talk.place, Some(&directory), false).and_then(|shelves| {
        let origin = MemoryOrigin { at: Some(shelves.now()), ..MemoryOrigin::default() };
        let origin = MemoryOrigin { session: Some(talk.session.status.session.clone()), ..origin };
        shelves.as_the_user(&directory, |store| Ok(store.remember(&new, &origin, Some(&talk.place.directory))?))
    });
    match saved {
        Ok(saved) => {
            let text = format!("memory saved: {}; /memory shows or edits it", saved.path);
            talk.view.page.note(&text, TextStyle::of(Colour::Green));
            for warning in &saved.warnings {
                talk.view.page.warning(&warning.to_string());
            }
            talk.requests.edited.push(directory.join(&saved.path));
            talk.take_in_edited();
        }
        Err(error) => talk.view.page.note(&format!("{error:#}"), TextStyle::of(Colour::Red)),
    }
}

#[cfg(test)]
mod tests {
    use super::fact_in;

    #[test]
    fn one_line_behind_a_hash_and_a_blank_is_a_fact() {
        assert_eq!(fact_in("# we use tabs"), Some("we use tabs"));
        for message in ["#12 fails", "## Heading", "# Heading\ntext", "#", "# ", "no"] {
            assert_eq!(fact_in(message), None, "{message:?}");
        }
    }
}
