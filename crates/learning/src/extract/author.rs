//! A conversation whose own model saves memories, as the author of them.

use session::{Session, World};

use super::job::SessionTexts;
use crate::saver::{Author, CONVERSATION};

/// A conversation whose own model saves memories.
pub struct ConversationAuthor {
    texts: SessionTexts,
    session: String,
    message: Option<String>,
    model: String,
    world: World,
}

/// The author of memories in a conversation itself, with its evidence: the text shown to its model, and what the user
/// typed. In a subagent's nobody types: its task is the words of another model.
pub fn conversation_author(session: &Session, model: &str) -> ConversationAuthor {
    let texts = SessionTexts::of(session.log(), session.id());
    ConversationAuthor {
        texts: if session.is_subagents() { texts.without_typed() } else { texts },
        session: session.id().to_owned(),
        message: session.log().tip().map(ToString::to_string),
        model: model.to_owned(),
        world: session.world().clone(),
    }
}

impl ConversationAuthor {
    /// The author. It takes time in proportion to the conversation.
    pub fn author(self) -> Author {
        Author {
            agent: CONVERSATION,
            session: Some(self.session),
            message: self.message,
            model: self.model,
            injected: self.texts.injected(),
            typed: self.texts.typed(),
            newest_source: None,
            world: self.world,
        }
    }
}
