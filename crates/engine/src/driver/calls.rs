//! Runs the calls of a reply: each passes the [gate](crate::gate), runs, and is answered in the log.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use learning::saver::Saver;
use serde_json::Value;
use session::{Error, LineMeta, SeenFile};
use settings::hook_definitions::HookEvent;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::permission::Rights;
use tools::{Output, Runs, Scope, Subject, Tool, ToolCall, run_all};
use transcript::block::Kind;
use transcript::line::{Body, TextSource};
use transcript::{Block, Injected, Purpose, tool_names};

use super::{Driver, MemoryChange};
use crate::event::Event;
use crate::gate::{EndedCall, GateSite, ModelCall, Ruling};
use crate::hooks::response::TextBefore;
use crate::run::REPEATS_BEFORE_NOTE;
use crate::servers;

impl Driver {
    /// The calls of a reply, before any of them runs.
    pub(crate) fn calls(&mut self, blocks: &[Block]) -> Vec<ModelCall> {
        self.take_variables();
        blocks.iter().filter_map(|block| self.call_in(block)).collect()
    }

    /// Runs the calls of a reply: adjacent calls that allow it in parallel, the others one by one. A call is judged
    /// after all before it have run, since they may have changed the directory its paths start from.
    pub(crate) async fn call_tools(
        &mut self,
        calls: &mut [ModelCall],
        repeats: u32,
        caller: Option<Arc<impl Any + Send + Sync>>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let mut scope = self.live.scope.clone().with_cancel(cancel.clone());
        if let Some(caller) = caller {
            scope = scope.with_caller(caller);
        }
        let mut results = Vec::new();
        for group in calls.chunk_by_mut(|one, next| one.runs == Runs::Parallel && next.runs == Runs::Parallel) {
            let directory = scope.directory();
            let mut allowed = Vec::new();
            for call in group {
                if let Some((subject, rights, before)) = self.may_run(call, &scope, &mut results, cancel).await? {
                    allowed.push((&*call, subject, rights, before));
                }
            }
            if self.gate.has_hooks_on_results() {
                self.run_seen_by_hooks(&allowed, repeats, &scope, &mut results, cancel).await?;
            } else {
                self.run_unseen(&allowed, repeats, &scope, &mut results, cancel).await?;
            }
            self.gate.moved(&self.live.site(), &directory, cancel).await;
            self.write_used()?;
        }
        let words = self.gate.results(&self.live.site(), &results, cancel).await;
        self.attach_words(words)
    }

    /// Runs allowed calls, and logs the result of each as soon as it has ended.
    async fn run_unseen(
        &mut self,
        allowed: &[AllowedCall<'_>],
        repeats: u32,
        scope: &Scope,
        results: &mut Vec<CallReport>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let (tools, savers) = self.tools_for(allowed, scope).await;
        let (mut written, mut unsettled) = (Ok(()), Vec::new());
        run_all(to_run(allowed), &tools, scope, |index, output| {
            let output = made(output, repeats, scope);
            if !output.made.is_empty() {
                unsettled.push((index, output));
            } else if written.is_ok() {
                written = self.end(&allowed[index], output, scope, results);
            }
        })
        .await;
        self.saved_by(&savers);
        written?;
        for (index, output) in unsettled {
            let output = self.settle(output, scope, cancel).await;
            self.end(&allowed[index], output, scope, results)?;
        }
        Ok(())
    }

    /// Like [`run_unseen`](Self::run_unseen), but hooks see results first: those of one call while others still run, so
    /// that only that call's result waits for them.
    async fn run_seen_by_hooks(
        &mut self,
        allowed: &[AllowedCall<'_>],
        repeats: u32,
        scope: &Scope,
        results: &mut Vec<CallReport>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let (tools, savers) = self.tools_for(allowed, scope).await;
        let (ending, mut ended) = mpsc::unbounded_channel();
        let started = tokio::time::Instant::now();
        let running = run_all(to_run(allowed), &tools, scope, move |index, output| {
            let _ = ending.send((index, output.clone(), started.elapsed())); // it is heard to the end
        });
        tokio::pin!(running);
        let (mut runs, mut seen) = (true, FuturesUnordered::new());
        loop {
            tokio::select! {
                biased;
                Some((index, output, took)) = ended.recv() => {
                    let output = self.settle(made(&output, repeats, scope), scope, cancel).await;
                    let (call, subject, _, before) = &allowed[index];
                    let sent = self.listing.sent_by(&call.id);
                    let ended = EndedCall { call, subject, before, output: &output, took, sent };
                    let hooks = self.gate.hooks_on_result(&self.live.site(), &ended, cancel);
                    seen.push(async move { (index, output, hooks.await) });
                }
                Some((index, output, answers)) = seen.next() => {
                    let output = self.gate.after_hooks(&self.live.site(), output, &answers);
                    self.write_used()?;
                    self.end(&allowed[index], output, scope, results)?;
                }
                _ = &mut running, if runs => runs = false,
                else => break,
            }
        }
        self.saved_by(&savers);
        Ok(())
    }

    /// The tools that run calls, with savers for the memories that the calls write.
    async fn tools_for(&self, allowed: &[AllowedCall<'_>], scope: &Scope) -> (Vec<Arc<dyn Tool>>, Vec<Arc<Saver>>) {
        let tools = self.live.work.for_calls(allowed.iter().map(|(call, ..)| call.tool.as_str()));
        let written = allowed.iter().filter_map(|(call, subject, ..)| match subject {
            Subject::Path { real, .. } => {
                matches!(call.tool.as_str(), tool_names::WRITE | tool_names::EDIT).then_some(real.as_path())
            }
            _ => None,
        });
        let written: Vec<&Path> = written.filter(|real| self.memories.hold(real)).collect();
        if written.is_empty() {
            return (tools, Vec::new());
        }
        let author = learning::extract::conversation_author(&self.live.session, &self.live.talk.name);
        let savers = self.memories.savers(&written, author, scope.project().to_owned()).await;
        (savers.iter().fold(tools, |tools, saver| learning::saving::with_saver(&tools, saver)), savers)
    }

    /// Takes in the memories that were saved and removed.
    fn saved_by(&mut self, savers: &[Arc<Saver>]) {
        for saver in savers {
            saver.end();
            let (tally, directory) = (saver.tally(), saver.directory());
            let saved = tally.saved.iter().map(|path| MemoryChange::Saved(directory.join(path)));
            let removed = tally.removed.iter().map(|path| MemoryChange::Removed(directory.join(path)));
            self.memory_changes.extend(saved.chain(removed));
        }
    }

    /// Settles the guarded paths that a command made.
    async fn settle(&mut self, output: Output, scope: &Scope, cancel: &CancellationToken) -> Output {
        super::guarded_paths::settle(&mut self.gate, &GateSite { scope, ..self.live.site() }, output, cancel).await
    }

    /// Logs the result of a call that has ended.
    fn end(
        &mut self,
        (call, subject, ..): &AllowedCall<'_>,
        output: Output,
        scope: &Scope,
        results: &mut Vec<CallReport>,
    ) -> Result<(), Error> {
        self.tell_batch(results, call, &output);
        self.write_result(call, output, &scope.clone().for_call(subject))
    }

    /// Collects results for the hooks that run when all calls have ended.
    fn tell_batch(&self, results: &mut Vec<CallReport>, call: &ModelCall, output: &Output) {
        if self.gate.consent.hooks.any(HookEvent::PostToolBatch) {
            results.push(call_report(call, output));
        }
    }

    fn call_in(&self, block: &Block) -> Option<ModelCall> {
        let Kind::ToolUse { id, name } = block.kind() else { return None };
        let (id, tool) = (id.to_string(), name.to_string());
        let mut input = block.input().unwrap_or_default();
        crate::plan::ask::unanswered(name, &mut input);
        let known = self.live.work.find(&tool);
        let runs = known.map_or(Runs::Parallel, |known| known.runs(&input));
        Some(ModelCall { id, tool, input, runs, invalid: provider::invalid_input(block) })
    }

    /// Asks the gate about a call. An allowed call is announced, and the file it will change is kept; a refused one is
    /// answered. What was judged is what is kept and what runs: symlinks are followed once.
    async fn may_run(
        &mut self,
        call: &mut ModelCall,
        scope: &Scope,
        results: &mut Vec<CallReport>,
        cancel: &CancellationToken,
    ) -> Result<Option<(Subject, Rights, TextBefore)>, Error> {
        if let Some(text) = &call.invalid {
            let why = format!("The input of this call is not JSON, so it was not run. It began: {text:.200}");
            self.write_result(call, Output::failed(why), scope)?;
            return Ok(None);
        }
        let ruling = self.gate.decide(&GateSite { scope, ..self.live.site() }, call, cancel).await;
        self.write_used()?;
        let (id, tool, input) = (call.id.clone(), call.tool.clone(), call.input.clone());
        let mut refuse = |driver: &mut Self, call: &ModelCall, why: String| {
            let (id, tool, input) = (id.clone(), tool.clone(), input.clone());
            driver.live.tell(Event::ToolDenied { id, tool, input, why: why.clone() });
            let output = Output::failed(why);
            driver.tell_batch(results, call, &output);
            driver.write_result(call, output, scope)
        };
        let (subject, rights) = match ruling {
            Ruling::Run(subject, rights) => (subject, rights),
            Ruling::Refused { why } => {
                refuse(self, call, why)?;
                return Ok(None);
            }
        };
        let scope = &scope.clone().for_call(&subject);
        let known = self.live.work.find(&call.tool);
        let changes = known.and_then(|known| known.changes(&call.input, scope));
        let before = self.gate.before(changes.as_ref());
        if let Some(path) = changes {
            let refused = self.memories.hold(&path).then(|| learning::knowledge::refuses(&call.input, &path)).flatten();
            if let Some(why) = refused {
                refuse(self, call, why)?;
                return Ok(None);
            }
            self.live.session.keep(&path)?;
        }
        self.live.tell(Event::ToolStarted { id, tool, input });
        Ok(Some((subject, rights, before)))
    }

    fn write_result(&mut self, call: &ModelCall, output: Output, scope: &Scope) -> Result<(), Error> {
        let result = Block::tool_result(&call.id, &output.content, output.outcome);
        let loaded = if call.tool == tool_names::TOOL_SEARCH { servers::loaded(&output) } else { Vec::new() };
        let beside = LineMeta { result: output.for_programs(), loaded, ..self.line_meta(call, scope) };
        self.live.session.append_with(Body::User { blocks: vec![result], source: TextSource::Direct }, &beside)?;
        self.live.tell(Event::ToolEnded { id: call.id.clone(), tool: call.tool.clone(), output });
        Ok(())
    }

    /// Metadata that a later session needs of this call: the file it saw, the directory it changed to.
    fn line_meta(&self, call: &ModelCall, scope: &Scope) -> LineMeta {
        let known = self.live.work.find(&call.tool);
        let seen = known.and_then(|known| match known.subject(&call.input, scope) {
            tools::Subject::Path { real, .. } => {
                let stamp = scope.seen(&real)?;
                Some(SeenFile { path: real, len: stamp.len, hash: stamp.hash.to_hex().to_string() })
            }
            _ => None,
        });
        let directory = (call.tool == tool_names::BASH).then(|| scope.directory());
        LineMeta { seen, directory, ..LineMeta::default() }
    }
}

/// An allowed call, its subject, its rights, and the earlier text of the file it changes.
type AllowedCall<'a> = (&'a ModelCall, Subject, Rights, TextBefore);

fn to_run(allowed: &[AllowedCall<'_>]) -> Vec<ToolCall> {
    let call = |(call, subject, rights, _): &AllowedCall<'_>| ToolCall {
        name: call.tool.clone(),
        input: call.input.clone(),
        subject: Some(subject.clone()),
        rights: rights.clone(),
        id: Some(call.id.clone()),
    };
    allowed.iter().map(call).collect()
}

/// Output of a call, with the guarded paths that its command made.
fn made(output: &Output, repeats: u32, scope: &Scope) -> Output {
    let output = if repeats >= REPEATS_BEFORE_NOTE { note_repeats(output, repeats) } else { output.clone() };
    Output { made: [output.made.clone(), scope.jobs().take_made()].concat(), ..output }
}

/// A call and its result as the model sees it: tool, input, id, and text, or blocks if there are others.
type CallReport = (String, Value, String, Value);

fn call_report(call: &ModelCall, output: &Output) -> CallReport {
    // What an agent reports is told in blocks, as Claude Code has it.
    let is_text = call.tool != tool_names::AGENT && output.content.iter().all(|block| *block.kind() == Kind::Text);
    let seen = match is_text {
        true => Value::from(output.text()),
        false => output.content.iter().map(Block::value).collect(),
    };
    (call.tool.clone(), call.reported_input(), call.id.clone(), seen)
}

/// Adds a note to the result of a call that keeps being repeated with the same input.
fn note_repeats(output: &Output, repeats: u32) -> Output {
    let note = format!(
        "<system-reminder>This is call number {repeats} in a row with the same input, and its result will not change. \
         Try something else, or say what is in the way.</system-reminder>"
    );
    let mut output = output.clone();
    output.content.push(Injected::framed(Purpose::Repeated, &note).block());
    output
}
