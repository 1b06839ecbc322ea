//! Reminders of the task list: a model forgets a list that it has not looked at for long, and a compaction takes it away.
//!
//! Only a list with open tasks is shown, so a session without one is sent nothing.

use mail::task_file::TaskStatus;
use session::Error;
use transcript::{Purpose, tool_names};

use crate::gate::ModelCall;
use crate::live::LiveSession;

/// Rounds without a word about the list after which the model is shown it again, and between two reminders.
const STALE_ROUNDS: u32 = 10;

/// The tools that work on the list.
const TASK_TOOLS: [&str; 4] =
    [tool_names::TASK_CREATE, tool_names::TASK_GET, tool_names::TASK_LIST, tool_names::TASK_UPDATE];

/// The rounds of a session since its task list was last in view.
#[derive(Debug, Default)]
pub(crate) struct TaskReminder {
    rounds: u32,
}

impl TaskReminder {
    /// The calls of a round have run: shows the list where it is stale.
    pub(crate) fn round(&mut self, calls: &[ModelCall], live: &mut LiveSession) -> Result<(), Error> {
        if calls.iter().any(|call| TASK_TOOLS.contains(&call.tool.as_str())) {
            self.rounds = 0;
            return Ok(());
        }
        self.rounds += 1;
        if self.rounds < STALE_ROUNDS {
            return Ok(());
        }
        self.rounds = 0;
        show(
            live,
            "You have not used the task list for a while. If it is out of date, update it; if it is right, go on.",
        )
    }
}

/// Shows the list after a compaction.
pub(crate) fn restore(live: &mut LiveSession) -> Result<(), Error> {
    show(live, "You keep a task list.")
}

/// Shows the open tasks under a heading, where there are any and the model can change them.
fn show(live: &mut LiveSession, heading: &str) -> Result<(), Error> {
    let is_offered = live.work.tools.iter().any(|tool| tool.name() == tool_names::TASK_UPDATE);
    let Some(board) = live.work.tasks.as_ref().filter(|_| is_offered) else { return Ok(()) };
    let tasks = board.tasks(live.scope.temporary());
    if tasks.iter().all(|task| task.status == TaskStatus::Completed) {
        return Ok(());
    }
    let lines: Vec<String> = tasks.iter().map(mail::task_file::Task::line).collect();
    // The model wrote it, perhaps after what others wrote.
    let list = memory::quoting::quoted(&lines.join("\n")).into_owned();
    live.inject(Purpose::Tasks, &format!("{heading} It says:\n\n{list}"))
}
