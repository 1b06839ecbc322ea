//! Entering plan mode, and leaving it with a plan that the user approves.

use futures_util::future::{BoxFuture, ready};
use mail::Messenger;
use mail::mailbox::{ControlMessage, LEAD};
use schemars::JsonSchema;
use serde::Deserialize;
use settings::permission::SharedMode;
use tools::permission::Mode;
use tools::{Access, Output, Scope, TypedTool};
use transcript::tool_names;

use super::file;

/// Asks the user to let you plan before you change anything.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct EnterPlanModeInput {}

/// Enters the mode that only looks.
#[derive(Debug, Clone)]
pub struct EnterPlanMode(pub SharedMode);

impl TypedTool for EnterPlanMode {
    type Input = EnterPlanModeInput;
    const NAME: &'static str = tool_names::ENTER_PLAN_MODE;
    const ACCESS: Access = Access::Asks;

    fn run(&self, _: EnterPlanModeInput, _: Scope) -> BoxFuture<'static, Output> {
        self.0.set(Mode::Plan);
        let text = "Plan mode: look, change nothing, and hand in the plan with ExitPlanMode.";
        Box::pin(ready(Output::done(text, "planning")))
    }
}

/// In plan mode: hands in the plan, in Markdown. Once the user approves it, you begin.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ExitPlanModeInput {
    /// The changes, in order, and how each is checked.
    pub plan: String,
}

/// Leaves plan mode, once the user approves.
#[derive(Debug, Clone)]
pub struct ExitPlanMode(pub SharedMode);

impl TypedTool for ExitPlanMode {
    type Input = ExitPlanModeInput;
    const NAME: &'static str = tool_names::EXIT_PLAN_MODE;
    const ACCESS: Access = Access::Asks;

    fn run(&self, input: ExitPlanModeInput, scope: Scope) -> BoxFuture<'static, Output> {
        // Whoever approved may have chosen another mode with it.
        if self.0.get() == Mode::Plan {
            self.0.set(Mode::Default);
        }
        let path = file(scope.temporary());
        let kept = match files::replace(&path, input.plan.as_bytes()) {
            Ok(_) => format!("It is kept in {}.", path.display()),
            Err(error) => format!("It could not be kept ({error})."),
        };
        let text = format!("The user approved the plan. {kept} Begin.");
        Box::pin(ready(Output::done(text, "the plan is approved")))
    }
}

/// Submits a teammate's plan: it goes to the lead, whose answer arrives as a message and ends plan mode.
#[derive(Debug, Clone)]
pub struct HandInPlan(pub Messenger);

impl TypedTool for HandInPlan {
    type Input = ExitPlanModeInput;
    const NAME: &'static str = tool_names::EXIT_PLAN_MODE;
    const ACCESS: Access = Access::Session;

    fn run(&self, input: ExitPlanModeInput, scope: Scope) -> BoxFuture<'static, Output> {
        let post = self.0.clone();
        Box::pin(async move {
            let path = file(scope.temporary());
            let kept = files::replace(&path, input.plan.as_bytes());
            let file = path.display().to_string();
            let word = ControlMessage::PlanRequest { request: post.fresh(), plan: input.plan, file };
            let sent = post.say(LEAD, &word, Some("a plan to approve")).await;
            match (kept, sent) {
                (_, Err(error)) => Output::failed(format!("The plan could not be sent: {error}")),
                (Err(error), _) => Output::failed(format!("The plan could not be kept: {error}")),
                (Ok(_), Ok(_)) => {
                    let text = "The plan is with the lead. End your turn: its answer comes as a message.";
                    Output::done(text, "the plan was sent to the lead")
                }
            }
        })
    }
}
