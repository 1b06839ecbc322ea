//! A command that the user types himself: it runs unasked, and the model hears of it later.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tools::{Bash, Call, Output, Tool, run_all};
use transcript::{Purpose, Usage, tool_names};

use super::{Agent, Turn};
use crate::event::Event;
use crate::run::Ending;
use crate::run::{End, NOT_RUN};

impl Agent {
    /// Runs a command the user typed. Nothing is asked and no model is called; the model sees command and output with
    /// the user's next words.
    pub async fn shell(&mut self, command: &str, cancel: &CancellationToken) -> Turn {
        let mut turn = Turn {
            end: End::Ended(Ending::Answered),
            text: String::new(),
            rounds: 0,
            usage: Usage::default(),
            below: 0,
        };
        let id = format!("shell-{}", self.session().world().fresh_id());
        let (tool, input) = (tool_names::BASH.to_owned(), serde_json::json!({"command": command}));
        self.driver.tell(Event::ToolStarted { id: id.clone(), tool: tool.clone(), input: input.clone() });
        let scope = self.driver.scope.clone().with_cancel(cancel.clone());
        let mut call = Call::new(tool.clone(), input);
        if scope.sandbox().is_some() {
            call.input["dangerouslyDisableSandbox"] = true.into(); // it is the model that is kept in there
        }
        let bash: [Arc<dyn Tool>; 1] = [Arc::new(Bash)]; // what the model may use is no limit to the user
        let output = run_all(vec![call], &bash, &scope, |_, _| {}).await.pop();
        let output = output.unwrap_or_else(|| Output::failed(NOT_RUN));
        turn.text = output.text();
        let shown = self.driver.bounded_output(&id, &turn.text);
        let text = format!("I ran a command.\n<command>{command}</command>\n<output>\n{shown}\n</output>");
        if let Err(error) = self.driver.inject(Purpose::Command, &text) {
            turn.end = End::NotWritten(error);
        }
        self.driver.tell(Event::ToolEnded { id, tool, output });
        turn
    }
}
