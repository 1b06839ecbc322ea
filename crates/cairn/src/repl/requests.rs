//! Requests of a command to the terminal: a question to ask, a list to open, a message to send.

use std::path::PathBuf;

use engine::context::CompactionReach;
use settings::permission::{PermissionAnswer, Question};
use tokio::sync::oneshot;

use super::picker::PickerEntry;
use super::resume_and_rewind::ListPurpose;

/// A question, and where its answer goes.
pub(super) type PendingQuestion = (Question, oneshot::Sender<PermissionAnswer>);

/// A list to choose from, and what the choice is for.
pub(super) struct ChoiceList {
    pub(super) title: String,
    pub(super) list: Vec<PickerEntry>,
    pub(super) what: ListPurpose,
}

/// Requests that are still to be carried out.
#[derive(Default)]
pub(super) struct PendingRequests {
    /// A question of an agent in the background that is to be asked now.
    pub(super) taken: Option<PendingQuestion>,
    /// A list that is open.
    pub(super) choices: Option<ChoiceList>,
    /// New text of the prompt.
    pub(super) prompt: Option<String>,
    pub(super) leaving: bool,
    /// A compaction that was asked for: what is wished of it, and what it covers.
    pub(super) compacting: Option<(Option<String>, CompactionReach)>,
    /// A message that a command sends to the model in the user's place.
    pub(super) saying: Option<String>,
    /// A file that is to be opened in the user's editor.
    pub(super) editing: Option<PathBuf>,
    /// Files that the user has changed while the agent was at work.
    pub(super) edited: Vec<PathBuf>,
}

impl PendingRequests {
    /// Opens a list.
    pub(super) fn choose(&mut self, title: &str, list: Vec<PickerEntry>, what: ListPurpose) {
        self.choices = Some(ChoiceList { title: title.to_owned(), list, what });
    }

    /// Opens a list of the values that a command can have, each with its description.
    pub(super) fn choose_command(&mut self, title: &str, command: &str, values: &[(&str, &str)]) {
        let entry =
            |(label, about): &(&str, &str)| PickerEntry { label: (*label).to_owned(), about: (*about).to_owned() };
        let lines = values.iter().map(|(value, _)| format!("{command} {value}")).collect();
        self.choose(title, values.iter().map(entry).collect(), ListPurpose::Command(lines));
    }
}
