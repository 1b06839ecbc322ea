//! Runs the hooks that match an event.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::Mutex;
use settings::hook_definitions::{Hook, HookEvent, HookRepetition, HookSettings, HookWait, Kind};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tools::permission::{RuleVerdict, Rules, fits};
use tools::program::Program;
use tools::{Environment, Subject};

use super::callback::{self, CallbackReply, HookCallbacks};
use super::hook_input::{CommonInput, HookInput};
use super::hook_output::{HookOutput, HookOutputs};
use super::hook_question::{HookAnswerer, HookInquiry, HookQuestion};
use super::long_input;
use super::server_call::ServerCall;
use crate::servers::SessionServers;

/// Limit on background hooks at the same time.
const MOST_IN_BACKGROUND: usize = 16;

/// The hooks of a session. Clones share their state.
#[derive(Clone, Default)]
pub struct Hooks {
    settings: Arc<HookSettings>,
    /// The embedding program, if it has hooks of its own.
    program: Option<Arc<dyn HookCallbacks>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Hooks with `once` that have run.
    done: HashSet<String>,
    /// Hooks running in the background.
    background: Vec<AbortOnDropHandle<HookOutputs>>,
    /// Stops the background hooks.
    stop: CancellationToken,
}

/// Environment in which hooks run.
#[derive(Clone)]
pub struct HookContext {
    /// Input common to all.
    pub common: CommonInput,
    /// The project's directory.
    pub project: PathBuf,
    /// The variables of commands.
    pub environment: Environment,
    /// The guard program.
    pub guard: Option<PathBuf>,
    /// File in which commands may set variables for later ones.
    pub variables: PathBuf,
    /// Models that can be asked, if any.
    pub asking: Option<Arc<HookInquiry>>,
    /// Servers whose tools can be called, if any.
    pub servers: Option<Arc<SessionServers>>,
    /// Reads an environment variable of this program.
    pub variable: Option<fn(&str) -> Option<String>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

impl Hooks {
    /// The hooks of the settings.
    pub fn new(settings: HookSettings) -> Self {
        Self { settings: Arc::new(settings), ..Self::default() }
    }

    /// Appends more hooks, as far as those may run.
    #[must_use]
    pub fn and(mut self, more: Vec<Hook>) -> Self {
        let settings = Arc::make_mut(&mut self.settings);
        let whose = settings.whose;
        settings.list.extend(more.into_iter().filter(|hook| whose.lets_run(hook.origin.source)).map(Arc::new));
        self
    }

    /// Returns whether hooks of the embedding program may run.
    pub fn let_a_programs_run(&self) -> bool {
        self.settings.whose.lets_run(settings::SettingsSource::Flag)
    }

    /// Appends the hooks of the embedding program.
    #[must_use]
    pub fn driven(mut self, more: Vec<Hook>, program: Arc<dyn HookCallbacks>) -> Self {
        self.program = Some(program);
        self.and(more)
    }

    /// Replaces earlier hooks; those that have run once stay done, and those of the embedding program stay.
    #[must_use]
    pub fn instead_of(mut self, before: &Self) -> Self {
        self.state = before.state.clone();
        self.program.clone_from(&before.program);
        let stay = before.list().iter().filter(|hook| matches!(hook.kind, Kind::Callback { .. }));
        let stay: Vec<Hook> = stay.map(|hook| Hook::clone(hook)).collect();
        self.and(stay)
    }

    /// The settings that define them.
    pub fn settings(&self) -> &HookSettings {
        &self.settings
    }

    /// All hooks.
    pub fn list(&self) -> &[Arc<Hook>] {
        &self.settings.list
    }

    /// Returns whether there are hooks for an event.
    pub fn any(&self, hook_event: HookEvent) -> bool {
        self.list().iter().any(|hook| hook.hook_event == hook_event)
    }

    /// Hooks that match an event: identical ones once, and none that ran with `once`.
    pub fn concerned(&self, hook_input: &HookInput) -> Vec<Arc<Hook>> {
        let names: Vec<&str> = hook_input.names.iter().map(String::as_str).collect();
        let mut known = HashSet::new();
        let state = self.state.lock();
        let mut concerned = Vec::new();
        for hook in self.list().iter().filter(|hook| hook.hook_event == hook_input.hook_event) {
            let fits = hook_input.names.is_empty() || hook.matcher.is_for(&names);
            let identity = identity(hook);
            if fits && is_meant(hook, hook_input) && !state.done.contains(&identity) && known.insert(identity) {
                concerned.push(hook.clone());
            }
        }
        concerned
    }

    /// Runs the hooks that match an event, and waits for them.
    pub async fn run(&self, hook_input: &HookInput, context: &HookContext, cancel: &CancellationToken) -> HookOutputs {
        let input = hook_input.json(&context.common);
        let mut running = Vec::new();
        for hook in self.concerned(hook_input) {
            if hook.times == HookRepetition::Once {
                self.state.lock().done.insert(identity(&hook));
            }
            let one = HookRun {
                hook: hook.clone(),
                input: input.clone(),
                environment: environment(hook_input, context, &hook),
                context: context.clone(),
                url: self.may_post(&hook),
                headers: self.headers(&hook, context),
                program: self.program.clone(),
                cancel: cancel.clone(),
            };
            if hook.waiting == HookWait::Yes {
                running.push(async move { (hook, one.run().await) });
                continue;
            }
            // The turn's end does not end it; the session's does.
            let one = HookRun { cancel: self.session_ends(), ..one };
            self.run_in_background(async move { HookOutputs(vec![(hook, one.run().await)]) });
        }
        HookOutputs(join_all(running).await)
    }

    /// Takes the outputs of background hooks that have ended.
    pub async fn take_background_outputs(&self) -> HookOutputs {
        let ended: Vec<_> = {
            let background = &mut self.state.lock().background;
            let (ended, running) = std::mem::take(background).into_iter().partition(AbortOnDropHandle::is_finished);
            *background = running;
            ended
        };
        HookOutputs(join_all(ended).await.into_iter().flatten().flat_map(|answers: HookOutputs| answers.0).collect())
    }

    /// Runs hooks in the background.
    pub(crate) fn run_in_background(&self, running: impl Future<Output = HookOutputs> + Send + 'static) {
        let mut state = self.state.lock();
        if state.background.len() < MOST_IN_BACKGROUND {
            state.background.push(AbortOnDropHandle::new(tokio::spawn(running)));
        }
    }

    /// A token that is cancelled at the session's end.
    pub(crate) fn session_ends(&self) -> CancellationToken {
        self.state.lock().stop.clone()
    }

    /// Stops the background hooks, and waits until they are gone.
    pub async fn end(&self) {
        let running = {
            let mut state = self.state.lock();
            state.stop.cancel();
            std::mem::take(&mut state.background)
        };
        join_all(running).await;
    }

    fn may_post(&self, hook: &Hook) -> Result<(), String> {
        let (Kind::Http { url, .. }, Some(allowed)) = (&hook.kind, &self.settings.urls) else { return Ok(()) };
        let fits = |pattern: &String| fits(pattern, url);
        if allowed.iter().any(fits) { Ok(()) } else { Err(format!("{url} is not in allowedHttpHookUrls")) }
    }

    fn headers(&self, hook: &Hook, context: &HookContext) -> BTreeMap<String, String> {
        let Kind::Http { headers, variables, .. } = &hook.kind else { return BTreeMap::new() };
        let allowed = |name: &str| {
            let everywhere =
                self.settings.variables.as_ref().is_none_or(|names| names.iter().any(|known| known == name));
            everywhere && variables.iter().any(|known| known == name)
        };
        let value = |name: &str| {
            let read = context.variable.filter(|_| allowed(name));
            read.and_then(|read| read(name)).unwrap_or_default()
        };
        headers.iter().map(|(name, text)| (name.clone(), filled(text, value))).collect()
    }
}

/// Identity by which two hooks count as the same.
fn identity(hook: &Hook) -> String {
    let condition = hook.condition.as_ref().map(ToString::to_string);
    format!("{} {:?} {condition:?} {:?}", hook.hook_event.name(), hook.kind, hook.variables)
}

/// Returns whether a call matches the hook's `if`; true if that cannot be decided.
fn is_meant(hook: &Hook, hook_input: &HookInput) -> bool {
    let (Some(rule), Some((tool, subject))) = (&hook.condition, &hook_input.call) else { return true };
    let rules = Rules { ask: vec![rule.clone()], ..Rules::default() };
    matches!(rules.decide(tool, subject), RuleVerdict::Ask(_))
        || (rule.covers(tool) && rule.is_about_every_call())
        || (rule.covers(tool) && *subject == Subject::Whole)
}

/// Environment variables of a command.
fn environment(hook_input: &HookInput, context: &HookContext, hook: &Hook) -> Environment {
    let mut environment = context.environment.clone();
    let mut give = |name: &str, value: String| environment.given.insert(name.to_owned(), value);
    give("CLAUDE_PROJECT_DIR", context.project.display().to_string());
    give("CLAUDE_CODE_SESSION_ID", context.common.session.clone());
    give("CLAUDECODE", "1".to_owned());
    if let Some((tool, input)) = hook_input.tool() {
        give("TOOL_NAME", tool.to_owned());
        give("TOOL_INPUT", long_input::value(input.to_string()));
    }
    hook.variables.iter().for_each(|(name, value)| {
        give(name, value.clone());
    });
    if hook_input.hook_event.leaves_variables() {
        give("CLAUDE_ENV_FILE", context.variables.display().to_string());
    }
    environment
}

/// Fills in variables, `$NAME` or `${NAME}`, in a text.
fn filled(text: &str, value: impl Fn(&str) -> String) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, length) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        if name.is_empty() || !name.chars().all(is_name) {
            out.push('$');
            rest = after;
            continue;
        }
        out.push_str(&value(name));
        rest = &after[length..];
    }
    out + rest
}

/// A hook that is about to run.
struct HookRun {
    hook: Arc<Hook>,
    input: serde_json::Value,
    environment: Environment,
    context: HookContext,
    url: Result<(), String>,
    headers: BTreeMap<String, String>,
    program: Option<Arc<dyn HookCallbacks>>,
    cancel: CancellationToken,
}

impl HookRun {
    async fn run(self) -> HookOutput {
        let (hook_event, limit) = (self.hook.hook_event, self.hook.limit());
        if let Some(why) = self.judges_unseen_input() {
            return HookOutput::refusing(hook_event, why);
        }
        if let Kind::Command { command, args } = &self.hook.kind {
            let words = match args {
                Some(args) => std::iter::once(command).chain(args).cloned().collect(),
                None => Program::shell(command),
            };
            // A directory that is gone is no reason not to run.
            let there = self.context.common.directory.is_dir();
            let directory = if there { &self.context.common.directory } else { &self.context.project };
            let program = Program {
                words,
                input: self.input.to_string(),
                directory,
                environment: &self.environment,
                guard: self.context.guard.as_deref(),
                confinement: None,
                limit,
            };
            return match program.run(&self.cancel).await {
                Ok(ran) => HookOutput::of_command(hook_event, &ran, limit),
                Err(why) => HookOutput::failed(format!("it did not run: {why}")),
            };
        }
        match &self.hook.kind {
            Kind::Http { url, .. } => self.in_time(self.posted(url)).await.unwrap_or_else(HookOutput::failed),
            Kind::Callback { id, on_failure } => {
                let back = self.in_time(self.called_back(id)).await.unwrap_or_else(CallbackReply::Failed);
                callback::output_of(*on_failure, hook_event, back)
            }
            Kind::Prompt { prompt, model } => self.ask_model(HookAnswerer::Model, prompt, model.as_deref()).await,
            Kind::Agent { prompt, model } => self.ask_model(HookAnswerer::Agent, prompt, model.as_deref()).await,
            Kind::McpTool { server, tool, input } => {
                let call = ServerCall { hook: &self.hook, server, tool, arguments: input, event: &self.input };
                let ran = self.in_time(call.run(self.context.servers.as_deref())).await;
                ran.unwrap_or_else(HookOutput::failed)
            }
            Kind::NotYet { .. } | Kind::Command { .. } => HookOutput::default(),
        }
    }

    /// Reason to deny the call, if the hook would judge an input that it cannot see.
    fn judges_unseen_input(&self) -> Option<String> {
        let input = self.input.get("tool_input")?.to_string();
        long_input::denial(&self.hook.kind, self.hook.hook_event, &input, &self.context)
    }

    /// Result of some work, unless it is stopped or times out.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, String> {
        let limit = self.hook.limit();
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err("it was stopped".to_owned()),
            done = tokio::time::timeout(limit, work) => {
                done.map_err(|_| format!("it took longer than {} s", limit.as_secs_f64()))
            }
        }
    }

    async fn called_back(&self, id: &str) -> CallbackReply {
        match &self.program {
            Some(program) => program.call_back(id, &self.input, self.input["tool_use_id"].as_str()).await,
            None => CallbackReply::Gone,
        }
    }

    async fn ask_model(&self, who: HookAnswerer, prompt: &str, model: Option<&str>) -> HookOutput {
        let Some(asking) = &self.context.asking else { return HookOutput::failed("there is no model to ask") };
        let (hook_event, limit) = (self.hook.hook_event, self.hook.limit());
        let transcript = &self.context.common.transcript;
        let question = HookQuestion { who, hook_event, prompt, model, input: &self.input, transcript, limit };
        question.ask(asking, &self.cancel).await
    }

    async fn posted(&self, url: &str) -> HookOutput {
        if let Err(why) = &self.url {
            return HookOutput::failed(why.clone());
        }
        match provider::post(url, &self.headers, self.input.to_string(), self.hook.limit()).await {
            Ok(answered) if (200..300).contains(&answered.status) => {
                HookOutput::of_text(self.hook.hook_event, &answered.text)
            }
            Ok(answered) => HookOutput::failed(format!("the server answered with {}", answered.status)),
            Err(why) => HookOutput::failed(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_hold_the_variables_they_may() {
        let value = |name: &str| if name == "TOKEN" { "t".to_owned() } else { String::new() };
        assert_eq!(filled("Bearer $TOKEN, ${TOKEN}x $OTHER$ $", value), "Bearer t, tx $ $");
    }

    #[test]
    fn a_url_is_allowed_by_a_pattern() {
        assert!(fits("https://hooks.example.com/*", "https://hooks.example.com/a"));
        assert!(!fits("https://hooks.example.com/*", "https://hooks.example.com.evil/a"));
        assert!(fits("http://localhost:*", "http://localhost:8080/x") && !fits("http://a", "http://ab"));
    }
}
