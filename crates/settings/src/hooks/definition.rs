//! A hook as the settings define it, with where it stands and whose word it is.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tools::permission::{Places, Rule};

use super::hook_event::HookEvent;
use super::matcher::Matcher;
use crate::{SetValue, ValueOrigin};

/// How long a question to a model may take that does not say.
const PROMPT_PATIENCE: Duration = Duration::from_secs(30);
/// How long an agent may take that does not say.
const AGENT_PATIENCE: Duration = Duration::from_secs(60);

/// A hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// When it runs.
    pub moment: HookEvent,
    /// What it is for.
    pub matcher: Matcher,
    /// As it is written.
    pub matcher_text: String,
    /// What runs.
    pub kind: Kind,
    /// Which calls it is for; all where this is none.
    pub condition: Option<Rule>,
    /// How often it runs.
    pub times: HookRepetition,
    /// Whether it is waited for.
    pub waiting: HookWait,
    /// How long it may take, where it says so.
    pub timeout: Option<Duration>,
    /// What is shown while it runs.
    pub status: Option<String>,
    /// Where it stands.
    pub origin: ValueOrigin,
}

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A command.
    Command {
        /// A line of shell; with arguments a program.
        command: String,
        /// The program's arguments.
        args: Option<Vec<String>>,
    },
    /// A POST to a server.
    Http {
        /// Where to.
        url: String,
        /// With these headers.
        headers: BTreeMap<String, String>,
        /// Variables that headers may hold.
        variables: Vec<String>,
    },
    /// A question to a small model.
    Prompt {
        /// The question.
        prompt: String,
        /// The model; the small one where this is none.
        model: Option<String>,
    },
    /// An agent that looks whether something holds.
    Agent {
        /// What it is asked.
        prompt: String,
        /// The model; the small one where this is none.
        model: Option<String>,
    },
    /// One of the program that drives the session.
    Callback {
        /// What the program calls it.
        id: String,
        /// What follows where it fails.
        on_failure: OnFailure,
    },
    /// One that there is not yet: it does not run.
    NotYet {
        /// Which.
        name: String,
    },
}

/// What follows where a hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// It counts for nothing.
    Continue,
    /// It counts as a no.
    Block,
}

/// How often a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRepetition {
    /// Whenever its moment comes.
    Always,
    /// Once in a session.
    Once,
}

/// Whether a hook is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookWait {
    /// It is.
    Yes,
    /// What it says comes with a later request.
    No,
}

/// Whose word a hook's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookAuthor {
    /// The user's, the organisation's, or that of who started the program.
    User,
    /// That of the project's files: data, and no request.
    Project,
}

impl Hook {
    /// The hook that a value of the settings defines, and what is to be said of it.
    pub(crate) fn of(set: &SetValue, places: &Places) -> Option<(Self, Vec<String>)> {
        let moment = HookEvent::named(set.key.name.strip_prefix("hooks.")?)?;
        let (hook, matcher_text) = (&set.value["hook"], set.value["matcher"].as_str());
        let mut told = Vec::new();
        let (matcher, wrong) = Matcher::parse(matcher_text);
        told.extend(wrong.map(|why| format!("its matcher cannot be understood, so it never runs ({why})")));
        let (kind, wrong) = Kind::of(hook)?;
        told.extend(wrong);
        let condition = hook["if"].as_str().and_then(|text| match Rule::parse(text, places) {
            Ok(rule) => Some(rule),
            Err(error) => {
                told.push(format!("its `if` counts for every call: {error}"));
                None
            }
        });
        let timeout = hook["timeout"].as_f64().filter(|seconds| *seconds > 0.0);
        let hook = Self {
            moment,
            matcher,
            matcher_text: matcher_text.unwrap_or_default().to_owned(),
            kind,
            condition,
            times: if hook["once"] == true { HookRepetition::Once } else { HookRepetition::Always },
            waiting: if hook["async"] == true { HookWait::No } else { HookWait::Yes },
            timeout: timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            status: hook["statusMessage"].as_str().map(str::to_owned),
            origin: set.origin.clone(),
        };
        Some((hook, told))
    }

    /// Whose word its text is.
    pub fn voice(&self) -> HookAuthor {
        if self.origin.source.is_below_project() { HookAuthor::Project } else { HookAuthor::User }
    }

    /// How long it may take.
    pub fn limit(&self) -> Duration {
        let (usual, most) = self.moment.patience();
        let usual = match self.kind {
            Kind::Prompt { .. } => usual.min(PROMPT_PATIENCE),
            Kind::Agent { .. } => usual.min(AGENT_PATIENCE),
            _ => usual,
        };
        let limit = self.timeout.unwrap_or(usual);
        most.map_or(limit, |most| limit.min(most))
    }

    /// Its name for people: what it runs.
    pub fn shown(&self) -> String {
        match &self.kind {
            Kind::Command { command, args: None } => command.clone(),
            Kind::Command { command, args: Some(args) } => format!("{command} {}", args.join(" ")),
            Kind::Http { url, .. } => url.clone(),
            Kind::Prompt { prompt, .. } => format!("prompt: {prompt}"),
            Kind::Agent { prompt, .. } => format!("agent: {prompt}"),
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
            _ => {
                let name = kind.to_owned();
                let why = format!(
                    "hooks of the type {name} need MCP servers, which are not there yet; this one does not run"
                );
                return Some((Self::NotYet { name }, Some(why)));
            }
        };
        match made {
            Some(made) => Some((made, None)),
            None => {
                let lacks = match kind {
                    "http" => "url",
                    "agent" => "prompt",
                    other => other,
                };
                let why = format!("a hook of the type {kind} needs `{lacks}`; this one does not run");
                Some((Self::NotYet { name: kind.to_owned() }, Some(why)))
            }
        }
    }
}
