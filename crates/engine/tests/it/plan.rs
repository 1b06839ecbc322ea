//! Plans and tasks through the engine.

use mail::task_file::TaskStatus;
use mail::task_file::{self, Board};
use serde_json::json;
use tools::permission::{Decision, Mode, Rules, Situation, decide};
use tools::{Access, Scope, Subject, ToolCall, run_all};

async fn call(scope: &Scope, tool: &str, input: serde_json::Value) -> String {
    let offered = engine::plan::offered(&Mode::Plan.into(), &Board::default());
    run_all(vec![ToolCall::new(tool, input)], &offered, scope, |_, _| {}).await.pop().unwrap().text()
}

/// PLAN-1: one list, which outlives the calls that made it.
#[tokio::test]
async fn tasks_are_made_changed_and_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let scope = Scope::new(folder.path(), folder.path().join("session"));
    assert_eq!(call(&scope, "TaskList", json!({})).await, "There are no tasks.");
    for subject in ["one", "two"] {
        call(&scope, "TaskCreate", json!({"subject": subject, "description": "do it"})).await;
    }
    let said = call(&scope, "TaskUpdate", json!({"taskId": "2", "status": "in_progress", "addBlockedBy": ["1"]})).await;
    assert_eq!(said, "#2 [in_progress] two [blocked by #1]");
    assert_eq!(call(&scope, "TaskGet", json!({"taskId": "1"})).await, "#1 [pending] one\ndo it");
    call(&scope, "TaskUpdate", json!({"taskId": "1", "status": "deleted"})).await;
    let left = task_file::read(scope.temporary());
    assert_eq!((left.len(), left[0].id.as_str(), left[0].status), (1, "2", TaskStatus::InProgress));
    call(&scope, "TaskCreate", json!({"subject": "three", "description": ""})).await;
    assert_eq!(task_file::read(scope.temporary())[1].id, "3", "no number is used twice");
    assert!(call(&scope, "TaskGet", json!({"taskId": "9"})).await.contains("There is no task #9"));
}

/// PLAN-1: a plan is a file, and its approval ends plan mode; in every mode somebody is asked.
#[tokio::test]
async fn a_plan_is_a_file_and_somebody_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let scope = Scope::new(folder.path(), folder.path().join("session"));
    call(&scope, "ExitPlanMode", json!({"plan": "# Steps"})).await;
    assert_eq!(std::fs::read_to_string(engine::plan::file(scope.temporary())).unwrap(), "# Steps");
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::BypassPermissions] {
        let rules = Rules::default();
        let (directories, directory) = (scope.directories(), scope.directory());
        let situation = Situation {
            mode,
            rules: &rules,
            directories: &directories,
            directory: &directory,
            home: None,
            confined: tools::permission::ConfinementLevel::No,
            wall: tools::permission::Wall::Whole,
            leaves: tools::sandbox::SandboxExit::No,
        };
        let decision = decide(&situation, Access::Asks, "ExitPlanMode", &Subject::Whole);
        assert!(matches!(decision, Decision::Ask { .. }), "{mode:?}");
    }
}
