//! A hook as the settings define it, with its origin and author.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tools::permission::{Places, Rule};

use super::hook_event::HookEvent;
use super::matcher::Matcher;
use crate::{SetValue, ValueOrigin};

/// Default timeout of a question to a model.
const PROMPT_PATIENCE: Duration = Duration::from_secs(30);
/// Default timeout of an agent.
const AGENT_PATIENCE: Duration = Duration::from_secs(60);

/// A hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// The event at which it runs.
    pub hook_event: HookEvent,
    /// Its filter.
    pub matcher: Matcher,
    /// The filter as written.
    pub matcher_text: String,
    /// The action: a command, a request, a question or an agent.
    pub kind: Kind,
    /// Calls it runs for; all if none is given.
    pub condition: Option<Rule>,
    /// Its frequency.
    pub times: HookRepetition,
    /// Waited for or not.
    pub waiting: HookWait,
    /// Its own timeout, if it has one.
    pub timeout: Option<Duration>,
    /// Text shown while it runs.
    pub status: Option<String>,
    /// Its place in the settings.
    pub origin: ValueOrigin,
    /// Variables of its own: the folders of the plugin it is from.
    pub variables: BTreeMap<String, String>,
}

/// The kind of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A command.
    Command {
        /// A shell command line; with arguments, a program.
        command: String,
        /// The program's arguments.
        args: Option<Vec<String>>,
    },
    /// A POST to a server.
    Http {
        /// The URL.
        url: String,
        /// Headers of the request.
        headers: BTreeMap<String, String>,
        /// Variables that headers may contain.
        variables: Vec<String>,
    },
    /// A question to a small model.
    Prompt {
        /// The question.
        prompt: String,
        /// The model; the small one if none is given.
        model: Option<String>,
    },
    /// An agent that checks whether something holds.
    Agent {
        /// The question.
        prompt: String,
        /// The model; the small one if none is given.
        model: Option<String>,
    },
    /// A call of a tool of an MCP server.
    McpTool {
        /// The server's name.
        server: String,
        /// The tool's name there.
        tool: String,
        /// The call's input, with `${path}` for parts of the event's.
        input: Map<String, Value>,
    },
    /// A callback of the controlling program.
    Callback {
        /// The program's id for it.
        id: String,
        /// Consequence of a failure.
        on_failure: OnFailure,
    },
    /// An unsupported or incomplete hook: it does not run.
    NotYet {
        /// Its type.
        name: String,
    },
}

/// Consequence of a failed hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The failure is ignored.
    Continue,
    /// The failure counts as a refusal.
    Block,
}

/// Frequency of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRepetition {
    /// At every event.
    Always,
    /// Once in a session.
    Once,
}

/// Waiting for a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookWait {
    /// The turn waits for it.
    Yes,
    /// The turn goes on; its output comes with a later request.
    No,
}

/// The author of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookAuthor {
    /// The user, the organisation, or whoever started the program.
    User,
    /// The project's files: its output is data, not a request.
    Project,
}

impl Hook {
    /// The hook that a settings value defines, and warnings about it.
    pub(crate) fn of(set: &SetValue, places: &Places) -> Option<(Self, Vec<String>)> {
        let hook_event = HookEvent::by_name(set.key.name.strip_prefix("hooks.")?)?;
        let (hook, matcher_text) = (&set.value["hook"], set.value["matcher"].as_str());
        let mut told = Vec::new();
        let (matcher, wrong) = Matcher::parse(matcher_text);
        told.extend(wrong.map(|why| format!("its matcher cannot be understood, so it never runs ({why})")));
        let (kind, wrong) = Kind::of(hook)?;
        told.extend(wrong);
        let condition = hook["if"].as_str().and_then(|text| match Rule::parse(text, places) {
            Ok(rule) => Some(rule),
            Err(error) => {
                told.push(format!("its `if` is invalid, so it runs for every call: {error}"));
                None
            }
        });
        let timeout = hook["timeout"].as_f64().filter(|seconds| *seconds > 0.0);
        let hook = Self {
            hook_event,
            matcher,
            matcher_text: matcher_text.unwrap_or_default().to_owned(),
            kind,
            condition,
            times: if hook["once"] == true { HookRepetition::Once } else { HookRepetition::Always },
            waiting: if hook["async"] == true { HookWait::No } else { HookWait::Yes },
            timeout: timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            status: hook["statusMessage"].as_str().map(str::to_owned),
            origin: set.origin.clone(),
            variables: BTreeMap::new(),
        };
        Some((hook, told))
    }

    /// The author of its output.
    pub fn author(&self) -> HookAuthor {
        if self.origin.source.is_below_project() { HookAuthor::Project } else { HookAuthor::User }
    }

    /// Its timeout.
    pub fn limit(&self) -> Duration {
        let (usual, most) = self.hook_event.patience();
        let usual = match self.kind {
            Kind::Prompt { .. } => usual.min(PROMPT_PATIENCE),
            Kind::Agent { .. } => usual.min(AGENT_PATIENCE),
            _ => usual,
        };
        let limit = self.timeout.unwrap_or(usual);
        most.map_or(limit, |most| limit.min(most))
    }

    /// Its name for people: the command, URL or question.
    pub fn shown(&self) -> String {
        match &self.kind {
            Kind::Command { command, args: None } => command.clone(),
            Kind::Command { command, args: Some(args) } => format!("{command} {}", args.join(" ")),
            Kind::Http { url, .. } => url.clone(),
            Kind::Prompt { prompt, .. } => format!("prompt: {prompt}"),
            Kind::Agent { prompt, .. } => format!("agent: {prompt}"),
            Kind::McpTool { server, tool, .. } => format!("{tool} of {server}"),
            Kind::Callback { id, .. } => format!("callback {id}"),
            Kind::NotYet { name } => format!("({name})"),
        }
    }
}

impl Kind {
    fn of(hook: &Value) -> Option<(Self, Option<String>)> {
        let text = |key: &str| hook[key].as_str().map(str::to_owned);
        let texts = |key: &str| -> Option<Vec<String>> {
            Some(hook[key].as_array()?.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect())
        };
        let kind = hook["type"].as_str()?;
        let made = match kind {
            "command" => text("command").map(|command| Self::Command { command, args: texts("args") }),
            "http" => text("url").map(|url| {
                let headers = hook["headers"].as_object().into_iter().flatten();
                let headers = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                Self::Http { url, headers: headers.collect(), variables: texts("allowedEnvVars").unwrap_or_default() }
            }),
            "prompt" => text("prompt").map(|prompt| Self::Prompt { prompt, model: text("model") }),
            "agent" => text("prompt").map(|prompt| Self::Agent { prompt, model: text("model") }),
            "mcp_tool" => text("server").zip(text("tool")).map(|(server, tool)| Self::McpTool {
                server,
                tool,
                input: hook["input"].as_object().cloned().unwrap_or_default(),
            }),
            _ => None,
        };
        match made {
            Some(made) => Some((made, None)),
            None => {
                let lacks = match kind {
                    "http" => "url",
                    "agent" => "prompt",
                    "mcp_tool" => "server` and `tool",
                    other => other,
                };
                let why = format!("a hook of the type {kind} needs `{lacks}`; this one does not run");
                Some((Self::NotYet { name: kind.to_owned() }, Some(why)))
            }
        }
    }
}
