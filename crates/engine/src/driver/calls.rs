//! Running the calls of a reply: each is judged, run, and answered in the log.

use tokio_util::sync::CancellationToken;
use tools::{Call, Output, Scope, Subject, run_all};
use transcript::Block;
use transcript::block::Kind;
use transcript::line::{Body, Source};

use super::Driver;
use crate::agent::NOT_RUN;
use crate::error::Error;
use crate::event::Event;
use crate::permission::Answer;
use crate::run::REPEATS_TOLD;
use crate::session::{Beside, SeenFile};

/// A call the model asks for.
pub(crate) struct Asked {
    id: String,
    pub(crate) tool: String,
    pub(crate) input: serde_json::Value,
    only_looks: bool,
    /// The input as it was written, where it is not JSON.
    invalid: Option<String>,
}

impl Driver {
    /// Runs the calls of a reply: neighbours that only look together, the others one by one. A call is judged when all
    /// before it have run, since they may have moved the directory its paths start from.
    pub(crate) async fn call_tools(
        &mut self,
        calls: Vec<Block>,
        repeats: u32,
        cancel: &CancellationToken,
    ) -> Result<Vec<Asked>, Error> {
        let scope = self.scope.clone().with_cancel(cancel.clone());
        let calls: Vec<Asked> = calls.iter().filter_map(|block| self.asked(block)).collect();
        for group in calls.chunk_by(|one, next| one.only_looks && next.only_looks) {
            let mut allowed = Vec::new();
            for call in group {
                // What is judged is what is kept and what runs: links are followed once.
                let subject = self.subject(call, &scope);
                if self.may_run(call, &scope.clone().for_call(&subject), cancel).await? {
                    allowed.push((call, subject));
                }
            }
            let running = allowed.iter().map(|(call, subject)| Call {
                name: call.tool.clone(),
                input: call.input.clone(),
                subject: Some(subject.clone()),
            });
            let tools = self.parts.tools.clone();
            let mut written = Ok(());
            let mut unsettled = Vec::new();
            run_all(running.collect(), &tools, &scope, |index, output| {
                let output = if repeats >= REPEATS_TOLD { told_of_repeats(output, repeats) } else { output.clone() };
                let made = Output { made: [output.made.clone(), scope.jobs().take_made()].concat(), ..output };
                if !made.made.is_empty() {
                    unsettled.push((index, made));
                } else if written.is_ok() {
                    let (call, subject) = &allowed[index];
                    written = self.write_result(call, made, &scope.clone().for_call(subject));
                }
            })
            .await;
            written?;
            for (index, output) in unsettled {
                let output = self.settle_made(output, &scope, cancel).await;
                let (call, subject) = &allowed[index];
                self.write_result(call, output, &scope.clone().for_call(subject))?;
            }
        }
        Ok(calls)
    }

    fn asked(&self, block: &Block) -> Option<Asked> {
        let Kind::ToolUse { id, name } = block.kind() else { return None };
        let input = block.input().unwrap_or_default();
        let known = self.parts.tools.iter().find(|known| known.name() == &**name);
        let only_looks = known.is_none_or(|known| known.access(&input) == tools::Access::ReadOnly);
        let (id, tool) = (id.to_string(), name.to_string());
        Some(Asked { id, tool, input, only_looks, invalid: provider::invalid_input(block) })
    }

    fn subject(&self, call: &Asked, scope: &Scope) -> Subject {
        let known = self.parts.tools.iter().find(|known| known.name() == call.tool);
        known.map_or(Subject::Whole, |known| known.subject(&call.input, scope))
    }

    /// Asks about a call. One that may run is announced, and the file it is about to change is kept; one that may not
    /// is answered.
    async fn may_run(&mut self, call: &Asked, scope: &Scope, cancel: &CancellationToken) -> Result<bool, Error> {
        if let Some(text) = &call.invalid {
            let why = format!("The input of this call is not JSON, so it was not run. It began: {text:.200}");
            self.write_result(call, Output::failed(why), scope)?;
            return Ok(false);
        }
        let answer = self.judge(&call.tool, &call.input, scope, cancel).await;
        if let Answer::Always(rules) = &answer {
            self.always(rules);
        }
        let (id, tool, input) = (call.id.clone(), call.tool.clone(), call.input.clone());
        if let Answer::Deny { why } | Answer::Unanswered { why } = answer {
            self.tell(Event::ToolDenied { id, tool, input, why: why.clone() });
            self.write_result(call, Output::failed(why), scope)?;
            return Ok(false);
        }
        let known = self.parts.tools.iter().find(|known| known.name() == call.tool);
        if let Some(path) = known.and_then(|known| known.changes(&call.input, scope)) {
            let memories = self.memories.as_deref().filter(|memories| path.starts_with(memories));
            if let Some(why) = memories.and_then(|_| crate::knowledge::refuses(&call.input, &path)) {
                self.tell(Event::ToolDenied { id, tool, input, why: why.clone() });
                self.write_result(call, Output::failed(why), scope)?;
                return Ok(false);
            }
            self.session.keep(&path)?;
        }
        self.tell(Event::ToolStarted { id, tool, input });
        Ok(true)
    }

    async fn judge(&self, tool: &str, input: &serde_json::Value, scope: &Scope, cancel: &CancellationToken) -> Answer {
        let Some(tool) = self.parts.tools.iter().find(|known| known.name() == tool) else {
            return Answer::Allow; // running it says which tools there are
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Answer::Deny { why: NOT_RUN.to_owned() },
            answer = self.parts.policy.judge(&**tool, input, scope, &*self.parts.approver) => answer,
        }
    }

    fn write_result(&mut self, call: &Asked, output: Output, scope: &Scope) -> Result<(), Error> {
        let result = Block::tool_result(&call.id, &output.content, output.outcome);
        let beside = self.beside(call, scope);
        self.session.append_with(Body::User { blocks: vec![result], source: Source::Said }, &beside)?;
        self.tell(Event::ToolEnded { id: call.id.clone(), tool: call.tool.clone(), output });
        Ok(())
    }

    /// What a later session has to know of this call: the file it saw, the directory it moved to.
    fn beside(&self, call: &Asked, scope: &Scope) -> Beside {
        let known = self.parts.tools.iter().find(|known| known.name() == call.tool);
        let seen = known.and_then(|known| match known.subject(&call.input, scope) {
            tools::Subject::Path { real, .. } => {
                let stamp = scope.seen(&real)?;
                Some(SeenFile { path: real, len: stamp.len, hash: stamp.hash.to_hex().to_string() })
            }
            _ => None,
        });
        let directory = (call.tool == "Bash").then(|| scope.directory());
        Beside { seen, directory, ..Beside::default() }
    }
}

/// The same call again gives the same again; the model is told so where it looks.
fn told_of_repeats(output: &Output, repeats: u32) -> Output {
    let note = format!(
        "<system-reminder>This is call number {repeats} in a row with the same input, and its result will not change. \
         Try something else, or say what is in the way.</system-reminder>"
    );
    let mut output = output.clone();
    output.content.push(Block::text(note));
    output
}
