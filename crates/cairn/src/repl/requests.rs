//! What a command leaves for the terminal to do: a question to ask, a list to open, words to say.

use std::path::PathBuf;

use engine::context::Reach as Covered;
use settings::permission::{Answer, Question};
use tokio::sync::oneshot;

use super::back::Choosing;
use super::picker::Entry;

/// A question, and where its answer goes.
pub(super) type PendingQuestion = (Question, oneshot::Sender<Answer>);

/// A list to choose from, and what the choice is for.
pub(super) struct Choices {
    pub(super) title: String,
    pub(super) list: Vec<Entry>,
    pub(super) what: Choosing,
}

/// What is to be done next.
#[derive(Default)]
pub(super) struct Requests {
    /// A question of an agent in the background that is to be asked now.
    pub(super) taken: Option<PendingQuestion>,
    /// A list that is open.
    pub(super) choices: Option<Choices>,
    /// What the prompt is to hold.
    pub(super) prompt: Option<String>,
    pub(super) leaving: bool,
    /// A compaction that was asked for: what is wished of it, and what it covers.
    pub(super) compacting: Option<(Option<String>, Covered)>,
    /// What a command says to the model in the user's place.
    pub(super) saying: Option<String>,
    /// A file that is to be opened in the user's editor.
    pub(super) editing: Option<PathBuf>,
    /// Files that the user has changed while the agent was at work.
    pub(super) edited: Vec<PathBuf>,
}

impl Requests {
    /// Opens a list.
    pub(super) fn choose(&mut self, title: &str, list: Vec<Entry>, what: Choosing) {
        self.choices = Some(Choices { title: title.to_owned(), list, what });
    }
}
