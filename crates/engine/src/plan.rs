//! Plans and tasks: tools for work that takes more than a few steps.
//!
//! A [plan](mode) is a file beside the session; the mode that only looks ends when the user approves of it. The
//! [tasks](mail::tasks) are one list, beside the session or [shared](mail::board) by a team. What only the user knows is [asked](ask).
//! All are offered where somebody can be asked, the list also in a team, and nowhere else: their definitions cost tokens in
//! every request.

pub mod ask;
pub mod mode;
pub(crate) mod reminder;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mail::task_file::Board;
use mail::tasks;
use settings::permission::SharedMode;
use tools::Tool;

/// The file of the plan, beside the session.
const PLAN: &str = "plan.md";
/// The largest plan that is shown again.
const LARGEST: u64 = 100_000;

/// The tools, for a session in a mode that they may change.
pub fn offered(mode: &SharedMode, board: &Board) -> Vec<Arc<dyn Tool>> {
    let asking: [Arc<dyn Tool>; 3] = [
        Arc::new(ask::AskUserQuestion),
        Arc::new(mode::EnterPlanMode(mode.clone())),
        Arc::new(mode::ExitPlanMode(mode.clone())),
    ];
    asking.into_iter().chain(listed(board)).collect()
}

/// The tools for the list alone.
pub fn listed(board: &Board) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(tasks::TaskCreate(board.clone())),
        Arc::new(tasks::TaskGet(board.clone())),
        Arc::new(tasks::TaskList(board.clone())),
        Arc::new(tasks::TaskUpdate(board.clone())),
    ]
}

/// Where a session's plan is.
pub fn file(folder: &Path) -> PathBuf {
    folder.join(PLAN)
}

/// The plan that was approved, as it is shown again after a compaction.
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

    /// PLAN-1: all definitions together stay within what they may cost in every request.
    #[test]
    fn what_is_offered_costs_less_than_700_tokens() {
        let definitions: Vec<String> = offered(&SharedMode::default(), &Board::default())
            .iter()
            .map(|tool| serde_json::to_string(&tool.definition()).unwrap())
            .collect();
        let bytes: usize = definitions.iter().map(String::len).sum();
        // Of JSON like this a token has more than three bytes; counted with three it is on the safe side.
        assert!(bytes / 3 <= 700, "{bytes} bytes: {definitions:#?}");
    }
}
