//! Handles the input lines of a controlling program: messages for the queue, answers, and requests, each of which is
//! answered. An unsupported request gets an error, never silence.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::agents::Subagents;
use engine::hooks;
use engine::servers::SessionServer;
use engine::teammates::Teammates;
use serde_json::{Map, Value, json};
use settings::agent_definitions::Definition;
use settings::hook_definitions::Hook;
use settings::permission::SharedMode;
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use tools::{JobState, Jobs};
use transcript::Block;

use super::input_lines::{InputLine, Request};
use super::sdk_host::{AnswerEffect, SdkHost};
use crate::out;
use crate::output::Output;
use crate::server_setup::server_line;

/// Handles the lines of the input.
pub(super) struct InputListener<'a> {
    pub(super) mode: &'a SharedMode,
    /// True if the mode `bypassPermissions` can be chosen.
    pub(super) may_skip: bool,
    pub(super) output: &'a Output,
    pub(super) driving: &'a SdkHost,
    pub(super) agents: Option<&'a Arc<Subagents>>,
    pub(super) teammates: Option<&'a Teammates>,
    pub(super) jobs: Arc<Jobs>,
    /// True if the settings let hooks of the program run.
    pub(super) lets_hooks: bool,
    /// The MCP servers.
    pub(super) servers: Vec<Arc<SessionServer>>,
}

impl InputListener<'_> {
    /// Does what a line asks for; `turn` stops the turn under way. Gives the hooks that the program wants to be called for.
    pub(super) fn take(
        &self,
        line: InputLine,
        queue: &mut VecDeque<Vec<Block>>,
        turn: Option<&CancellationToken>,
    ) -> Vec<Hook> {
        let mut wanted = Vec::new();
        let (id, request) = match line {
            InputLine::UserMessage(blocks) => {
                queue.push_back(blocks);
                return wanted;
            }
            InputLine::Other => return wanted,
            InputLine::Answered { id, response } => {
                if let (AnswerEffect::Stop, Some(turn)) = (self.driving.answered(&id, response), turn) {
                    turn.cancel();
                }
                return wanted;
            }
            InputLine::ControlRequest { id, request } => (id, request),
        };
        let answer = match request {
            Request::Initialize { lacking, .. } if !lacking.is_empty() => {
                Err(format!("cairn does not support this in \"initialize\" yet: {}", lacking.join(", ")))
            }
            Request::Initialize { hooks, .. } if turn.is_some() && !hooks.is_empty() => {
                Err("hooks must be registered before the first turn".to_owned())
            }
            Request::Initialize { agents, hooks, .. } => {
                let (asked, told) = hooks::registered_hooks(&hooks);
                told.iter().for_each(|text| out::warn(text));
                wanted = asked;
                self.begin(&agents)
            }
            Request::Interrupt => {
                match turn {
                    Some(turn) => turn.cancel(),
                    None => self.teammates.iter().for_each(|teammates| drop(teammates.interrupt())),
                }
                Ok(json!({"still_queued": []}))
            }
            Request::SetMode(Mode::BypassPermissions) if !self.may_skip => Err(
                "the session was not started with --allow-dangerously-skip-permissions, or its settings disable the \
                     mode bypassPermissions"
                    .to_owned(),
            ),
            Request::SetMode(mode) => {
                self.mode.set(mode);
                Ok(json!({"mode": mode}))
            }
            Request::NoMode(named) => {
                Err(format!("there is no mode {named}; there are default, acceptEdits, plan and bypassPermissions"))
            }
            Request::StopTask(task) => self.stop(&task),
            Request::Background { call } => Ok(json!({"backgrounded": self.background(call.as_deref())})),
            Request::Servers => Ok(json!({"mcpServers": self.servers.iter().map(server_line).collect::<Vec<_>>()})),
            Request::ConnectServer(name) => self.server(&name, |server| async move { drop(server.connect().await) }),
            Request::SwitchServer { name, on: true } => {
                self.server(&name, |server| async move { drop(server.connect().await) })
            }
            Request::SwitchServer { name, on: false } => {
                self.server(&name, |server| async move { server.switch_off().await })
            }
            Request::ServerMessage => Ok(json!({})),
            Request::Unknown(what) => Err(format!("cairn does not know the control request {what:?}")),
        };
        let response = match answer {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => {
                json!({"subtype": "error", "request_id": id, "error": error, "error_code": "unsupported_request"})
            }
        };
        self.output.line(&json!({"type": "control_response", "response": response}));
        wanted
    }

    /// The session begins, with these agents besides its own: what a program is told of it.
    fn begin(&self, defined: &Map<String, Value>) -> Result<Value, String> {
        match self.agents {
            Some(subagents) => {
                subagents.define(defined).iter().for_each(|wrong| out::warn(wrong));
                self.output.knows(&subagents.registry());
            }
            None if !defined.is_empty() => return Err("this session cannot start agents".to_owned()),
            None => {}
        }
        Ok(self.known())
    }

    /// Facts about the session for a program that begins one.
    fn known(&self) -> Value {
        let registry = self.agents.map(|subagents| subagents.registry());
        let agent = |agent: &Definition| {
            let mut known = json!({"name": agent.name, "description": agent.description});
            if let Some(model) = &agent.model {
                known["model"] = json!(model);
            }
            known
        };
        let agents: Vec<Value> = registry.iter().flat_map(|registry| registry.agents()).map(agent).collect();
        json!({
            "commands": [], "agents": agents, "models": [], "account": {}, "output_style": "default",
            "available_output_styles": ["default"], "hooks_applied": self.lets_hooks, "hook_on_failure_supported": true,
        })
    }

    /// Does something with a server, in the background: it may take a while, and its state tells what came of it.
    fn server<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &str,
        act: impl FnOnce(Arc<SessionServer>) -> F,
    ) -> Result<Value, String> {
        let server = self.servers.iter().find(|server| server.name == name);
        let server = server.ok_or_else(|| format!("there is no MCP server called {name:?}"))?;
        tokio::spawn(act(server.clone()));
        Ok(json!({}))
    }

    /// Ends an agent or a command in the background, by its id.
    fn stop(&self, task: &str) -> Result<Value, String> {
        let subagent = self.agents.and_then(|agents| agents.find(task)).filter(|subagent| subagent.is_out());
        let runs = |job: &tools::Job| job.id == task && job.state == JobState::Running;
        match subagent {
            Some(subagent) => subagent.stop(),
            None if self.jobs.list().iter().any(runs) => {
                let (jobs, id) = (self.jobs.clone(), task.to_owned());
                // It is given time to end by itself, which nobody has to wait for.
                tokio::spawn(async move { jobs.stop(&id).await.is_ok() });
            }
            None => return Err(format!("no agent or command called {task:?} is running")),
        }
        Ok(json!({}))
    }

    /// Lets the turn go on while agents work. Says whether there is one that was meant.
    fn background(&self, call: Option<&str>) -> bool {
        let out = self.agents.map(|agents| agents.list()).unwrap_or_default();
        let meant = out.iter().filter(|subagent| call.is_none() || subagent.call.as_deref() == call);
        meant.filter(|subagent| subagent.send_to_background()).count() > 0 || call.is_none()
    }
}
