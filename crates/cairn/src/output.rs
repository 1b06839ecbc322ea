//! Output of a headless run: text, one JSON object, or one a line.
//!
//! The JSON has the shapes of Claude Code's `--output-format`, so that scripts written for it work here; those of
//! events are in `lines`.

mod lines;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::Event;
use engine::agent::Turn;
use engine::event::SubagentNews;
use engine::run::{RunEnd, TurnEnd};
use engine::servers::{SessionServer, SessionServers};
use extensions::plugin::Plugin;
use extensions::skill::{Skill, SkillKind, UserUse};
use parking_lot::Mutex;
use serde_json::{Value, json};
use session::World;
use session::stats::Teammate;
use settings::agent_definitions::Registry;
use tokio::time::Instant;
use transcript::price::Prices;
use transcript::{Usage, tool_names};

use crate::args::{OutputFormat, RunArgs};
use crate::event_text;
use crate::exit::Code;
use crate::out::{self, data, talk};
use crate::server_setup::status_word;
use crate::shutdown::ShutdownCause;
use crate::styled_text::{bold, dim, green, one_line, red};

/// Prints the events and the results of a headless run.
pub(crate) struct Output {
    format: OutputFormat,
    /// True if pieces of replies are printed as they arrive.
    partial: bool,
    /// True if a person is told what happens.
    watched: bool,
    directory: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: String,
    /// The line about the session before each turn, until it is printed.
    init: Option<Value>,
    to_begin: bool,
    servers: Option<Arc<SessionServers>>,
    denials: Vec<Value>,
    /// When the request went out that is under way.
    request_start: Option<Instant>,
    /// Time spent waiting for the model in this turn.
    waited: Duration,
    /// Cost of all turns, once there was one.
    cost: Option<Value>,
}

/// Facts about a turn.
#[derive(Debug)]
pub(crate) struct TurnFacts<'a> {
    /// Prices of tokens.
    pub(crate) prices: &'a Prices,
    /// Its duration.
    pub(crate) took: Duration,
    /// The cause of the shutdown, if there is one.
    pub(crate) closed: Option<ShutdownCause>,
    /// Usage since the program began, for whatever purpose, by model.
    pub(crate) used: BTreeMap<String, Usage>,
    /// Usage of teammates since then.
    pub(crate) teammates: Vec<Teammate>,
}

impl TurnFacts<'_> {
    /// Total cost with teammates, if every price is known, and usage by model.
    fn spent(&self) -> (Option<f64>, Value) {
        let mut used = self.used.clone();
        for (model, usage) in self.teammates.iter().flat_map(|mate| &mate.models) {
            *used.entry(model.clone()).or_default() += *usage;
        }
        let cost = |(model, usage): (&String, &Usage)| self.prices.of(model).map(|price| price.cost(usage));
        let of = |(model, usage): (&String, &Usage)| {
            let used = json!({
                "inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens,
                "cacheReadInputTokens": usage.cache_read_input_tokens,
                "cacheCreationInputTokens": usage.cache_creation_input_tokens,
                "webSearchRequests": usage.web_searches, "costUSD": cost((model, usage)),
            });
            (model.clone(), used)
        };
        // The sum of nothing is a negative zero.
        let all: Option<f64> = used.iter().map(cost).sum();
        (all.map(|all| all + 0.0), Value::Object(used.iter().map(of).collect()))
    }
}

impl Output {
    /// For a run with these arguments in this directory.
    pub(crate) fn new(args: &RunArgs, directory: &Path) -> Self {
        Self {
            format: args.output_format,
            partial: args.include_partial_messages,
            watched: args.verbose || out::stderr().is_terminal(),
            directory: directory.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Shows an event.
    pub(crate) fn event(&self, event: &Event) {
        let mut state = self.state.lock();
        state.heard(event);
        if let Event::Warning(text) = event {
            out::warn(text); // whether anybody watches or not
        }
        if let Event::Retrying { attempt, after, why } = event
            && self.format == OutputFormat::Text
        {
            // Who waits has to know what for, also where nobody watches and it is read in a log.
            let text = format!("attempt {attempt} failed ({why}); again in {:.1} s", after.as_secs_f32());
            talk!([dim(&text)]);
        }
        match self.format {
            OutputFormat::Text if self.watched => progress(event),
            OutputFormat::Text | OutputFormat::Json => {}
            OutputFormat::StreamJson => {
                let Some(line) = lines::of(event, &self.directory, self.partial) else { return };
                if let Event::SessionStarted { .. } = event {
                    (state.init, state.to_begin) = (Some(line), true); // agents may be defined until the turn begins
                    return;
                }
                state.begin();
                print_line(line, &state.session);
            }
        }
    }

    /// A further turn begins.
    pub(crate) fn again(&self) {
        self.state.lock().to_begin = true;
    }

    /// The agents there are.
    pub(crate) fn knows(&self, registry: &Registry) {
        if let Some(init) = &mut self.state.lock().init {
            init["agents"] = registry.agents().map(|agent| agent.name.as_str()).collect();
        }
    }

    /// The MCP servers there are.
    pub(crate) fn knows_servers(&self, servers: Arc<SessionServers>) {
        self.state.lock().servers = Some(servers);
    }

    /// The skills there are.
    pub(crate) fn knows_skills(&self, skills: &[Skill]) {
        if let Some(init) = &mut self.state.lock().init {
            let callable = skills.iter().filter(|skill| skill.user_use == UserUse::Callable);
            init["slash_commands"] = callable.map(|skill| skill.name.as_str()).collect();
            let own =
                skills.iter().filter(|skill| skill.kind == SkillKind::Skill && skill.user_use == UserUse::Callable);
            init["skills"] = own.map(|skill| skill.name.as_str()).collect();
        }
    }

    /// The plugins there are.
    pub(crate) fn knows_plugins(&self, plugins: &[Plugin]) {
        if let Some(init) = &mut self.state.lock().init {
            let of = |plugin: &Plugin| {
                let mut line = json!({"name": plugin.name, "path": plugin.folders.root, "source": plugin.id});
                if let Some(version) = &plugin.version {
                    line["version"] = json!(version);
                }
                line
            };
            init["plugins"] = plugins.iter().map(of).collect();
        }
    }

    /// Prints a line that is no event's, as it is.
    pub(crate) fn line(&self, line: &Value) {
        let _state = self.state.lock(); // one at a time
        let _ = data!("{line}");
    }

    /// Prints the result of a turn and says how the program would end with it.
    pub(crate) fn result(&self, turn: &Turn, facts: &TurnFacts<'_>) -> Code {
        let (subtype, code, trouble) = verdict(&turn.end, facts.closed);
        if facts.closed == Some(ShutdownCause::Unread) {
            return code;
        }
        let mut state = self.state.lock();
        state.begin();
        let (cost, models) = facts.spent();
        state.cost = Some(json!(cost));
        let denials = std::mem::take(&mut state.denials);
        let waited = std::mem::take(&mut state.waited);
        let printed = match self.format {
            OutputFormat::Text => print_text(turn, trouble),
            OutputFormat::Json | OutputFormat::StreamJson => {
                let mut line = json!({
                    "type": "result",
                    "subtype": subtype,
                    "is_error": code != Code::Success,
                    "duration_ms": facts.took.as_millis(),
                    "duration_api_ms": waited.as_millis(),
                    "num_turns": turn.rounds,
                    "result": if code == Code::Success { &turn.text } else { trouble.as_ref().unwrap_or(&turn.text) },
                    "session_id": state.session,
                    "total_cost_usd": cost,
                    "usage": turn.usage,
                    "modelUsage": models,
                    "permission_denials": denials,
                });
                if !facts.teammates.is_empty() {
                    line["teammates"] = json!(facts.teammates);
                }
                if let Some(trouble) = trouble {
                    line["errors"] = json!([trouble]);
                }
                print_line(line, &state.session)
            }
        };
        if printed { code } else { Code::Unread }
    }

    /// Prints a result for a run that could not begin, or broke down.
    pub(crate) fn trouble(&self, error: &anyhow::Error) {
        let (text, state) = (format!("{error:#}"), self.state.lock());
        let line = json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "duration_ms": 0,
            "duration_api_ms": 0, "num_turns": 0, "result": text, "errors": [text], "total_cost_usd": state.cost.clone().unwrap_or(json!(0)),
            "permission_denials": [],
        });
        print_line(line, &state.session);
    }
}

impl State {
    /// Says what is said of the session before a turn.
    fn begin(&mut self) {
        let Some(init) = self.init.as_ref().filter(|_| std::mem::take(&mut self.to_begin)) else { return };
        let mut init = init.clone();
        if let Some(servers) = &self.servers {
            let servers = servers.all();
            let line = |server: &Arc<SessionServer>| json!({"name": server.name, "status": status_word(server)});
            init["mcp_servers"] = servers.iter().map(line).collect();
            let tools = servers.iter().flat_map(|server| server.tool_names()).map(Value::from);
            if let Some(known) = init["tools"].as_array_mut() {
                tools.for_each(|tool| {
                    if !known.contains(&tool) {
                        known.push(tool);
                    }
                });
            }
        }
        print_line(init, &self.session);
    }

    fn heard(&mut self, event: &Event) {
        match event {
            Event::SessionStarted { session, .. } => {
                self.session.clone_from(session);
            }
            Event::Agent { news: SubagentNews::Does(event), .. } if matches!(**event, Event::ToolDenied { .. }) => {
                self.heard(event);
            }
            Event::ToolDenied { id, tool, input, .. } => {
                self.denials.push(json!({"tool_name": tool, "tool_use_id": id, "tool_input": input}));
            }
            Event::RequestSent { .. } => self.request_start = Some(Instant::now()),
            Event::Replied { .. } | Event::TurnEnded { .. } => {
                self.waited += self.request_start.take().map(|asked| asked.elapsed()).unwrap_or_default();
            }
            _ => {}
        }
    }
}

/// Prints an event as a line, for a person who watches.
fn progress(event: &Event) {
    match event {
        Event::ToolEnded { tool, output, .. } => {
            let failed = output.outcome == transcript::Outcome::Failed;
            let mark = if failed { red("✗ ") } else { green("✓ ") };
            talk!([mark, bold(tool), " ", dim(&one_line(&event_text::ended(output), 100))]);
        }
        Event::ToolStarted { tool, input, .. } if tool == tool_names::BASH => {
            let command = one_line(input["command"].as_str().unwrap_or_default(), 100);
            talk!([dim(&format!("  $ {command}"))]);
        }
        Event::Agent { subagent, news: SubagentNews::Does(event) } => {
            if let Event::ToolStarted { tool, .. } = &**event {
                talk!([dim(&format!("  {}: {tool}", subagent.kind))]);
            }
        }
        Event::Agent { subagent, news: SubagentNews::Ended } => {
            let used = format!("{} requests, {} tokens", subagent.progress().requests, subagent.progress().tokens);
            talk!([dim(&format!("  {} has ended: {used}", subagent.kind))]);
        }
        Event::HookMessage { hook_event, text } => {
            talk!([dim(&format!("{} hook: ", hook_event.name())), text.as_str()]);
        }
        Event::TeammateAsks { name, tool } => talk!(["? ", bold(name), " asks whether it may use ", tool.as_str()]),
        Event::Teammate { name, news, used, .. } => {
            if let Some(text) = event_text::mate_news(name, news, used) {
                talk!([dim(&format!("  {text}"))]);
            }
        }
        Event::MessageArrived { from, text } => talk!(["✉ ", bold(from), " ", dim(&one_line(text, 200))]),
        Event::Warning(_) => {}
        Event::TeamMemory { sentences, .. } => sentences.iter().for_each(|text| talk!([dim(text)])),
        _ => {
            if let Some(text) = event_text::of_layers(event) {
                talk!([dim(&text)]);
            }
        }
    }
}

/// The answer on stdout, what went wrong on stderr. Says whether somebody reads.
fn print_text(turn: &Turn, trouble: Option<String>) -> bool {
    let answer = turn.text.trim_end();
    let wanted = !answer.trim().is_empty() && !matches!(turn.end, TurnEnd::Cancelled);
    let printed = !wanted || data!("{answer}").is_ok();
    if let Some(trouble) = trouble {
        let error = match &turn.end {
            TurnEnd::Failed(error) => anyhow::Error::from(error.clone()),
            _ => anyhow::anyhow!(trouble),
        };
        crate::error::print(&error);
    }
    printed
}

/// Name of a turn's end, exit code, and message if it went wrong.
fn verdict(end: &TurnEnd, closed: Option<ShutdownCause>) -> (&'static str, Code, Option<String>) {
    let (subtype, code) = match end {
        TurnEnd::Ended(RunEnd::Answered) => ("success", Code::Success),
        TurnEnd::Ended(RunEnd::OutputLimit) => ("error_output_limit", Code::Limit),
        TurnEnd::Ended(RunEnd::WindowFull) | TurnEnd::NoRoom(_) => ("error_window_full", Code::Limit),
        TurnEnd::Ended(RunEnd::MaxRounds) => ("error_max_turns", Code::Limit),
        TurnEnd::Ended(RunEnd::BudgetSpent) => ("error_max_tokens_spent", Code::Limit),
        TurnEnd::Ended(RunEnd::CostLimit) => ("error_max_budget_usd", Code::Limit),
        TurnEnd::Ended(RunEnd::Looping) => ("error_looping", Code::Limit),
        TurnEnd::Ended(RunEnd::Refused) => ("error_refused", Code::Refused),
        TurnEnd::Cancelled => {
            let closed = closed.unwrap_or(ShutdownCause::Interrupted);
            return ("error_during_execution", closed.code(), Some(closed.words().to_owned()));
        }
        TurnEnd::Failed(error) => ("error_during_execution", Code::of_provider(error)),
        TurnEnd::NotWritten(_) => ("error_during_execution", Code::Files),
        TurnEnd::Stopped(_) => ("error_stopped_by_hook", Code::Refused),
        TurnEnd::NotCalled(_) => ("error_during_execution", Code::Refused),
    };
    (subtype, code, event_text::trouble(end))
}

/// One JSON line, with the names every line carries. Says whether somebody reads.
fn print_line(mut line: Value, session: &str) -> bool {
    line["session_id"] = json!(session);
    line["uuid"] = json!(World::real().fresh_id());
    data!("{line}").is_ok()
}
