//! Plans and tasks: tools for work that takes more than a few steps.
//!
//! A [plan](mode) is a file next to the session; plan mode ends when the user approves it. The [tasks]
//! are one list, next to the session or shared by a team. Questions that only the user can answer are
//! [asked](ask). All are offered if somebody can be asked, the list also in a team, and nowhere else: their definitions
//! cost tokens in every request.

pub mod ask;
pub mod mode;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mail::task_file::TaskBoard;
use mail::tasks;
use settings::permission::SharedMode;
use tools::Tool;

/// File name of the plan, in the session folder.
const PLAN: &str = "plan.md";
/// Largest plan that is shown again, in bytes.
const LARGEST: u64 = 100_000;

/// The tools, for a session whose mode they may change.
pub fn offered(mode: &SharedMode, board: &TaskBoard) -> Vec<Arc<dyn Tool>> {
    let asking: [Arc<dyn Tool>; 3] = [
        Arc::new(ask::AskUserQuestion),
        Arc::new(mode::EnterPlanMode(mode.clone())),
        Arc::new(mode::ExitPlanMode(mode.clone())),
    ];
    asking.into_iter().chain(listed(board)).collect()
}

/// The tools of the task list alone.
pub fn listed(board: &TaskBoard) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(tasks::TaskCreate(board.clone())),
        Arc::new(tasks::TaskGet(board.clone())),
        Arc::new(tasks::TaskList(board.clone())),
        Arc::new(tasks::TaskUpdate(board.clone())),
    ]
}

/// Path of a session's plan.
pub fn file(folder: &Path) -> PathBuf {
    folder.join(PLAN)
}

/// The approved plan, as shown again after a compaction.
pub(crate) fn restored(folder: &Path) -> Option<String> {
    let path = file(folder);
    let text = String::from_utf8(files::read(&path, LARGEST).ok()?.bytes).ok()?;
    // The model wrote it, perhaps after what others wrote.
    let text = memory::quoting::quoted(&text).into_owned();
    Some(format!("The plan that the user has approved ({}):\n\n{text}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PLAN-1: all definitions together stay within their token budget.
    #[test]
    fn what_is_offered_costs_less_than_700_tokens() {
        let definitions: Vec<String> = offered(&SharedMode::default(), &TaskBoard::default())
            .iter()
            .map(|tool| serde_json::to_string(&tool.definition()).unwrap())
            .collect();
        let bytes: usize = definitions.iter().map(String::len).sum();
        // Of JSON like this a token has more than three bytes; counted with three it is on the safe side.
        assert!(bytes / 3 <= 700, "{bytes} bytes: {definitions:#?}");
    }
}
