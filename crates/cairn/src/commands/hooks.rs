//! `cairn hooks`: the hooks that run here, and a way to try them.

use clap::{Args, Subcommand};
use engine::hooks::{CommonInput, HookContext, HookInput, HookOutput, HookVerdict, Hooks};
use serde_json::{Map, Value, json};
use settings::hook_definitions::{HookEvent, HookRepetition, HookWait};
use settings::{Settings, ValueStatus};
use tokio_util::sync::CancellationToken;

use crate::exit::Code;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{bold, dim};
use crate::{env, event_text, trusted_settings};

/// List the hooks that run here, and try them.
///
/// Hooks are defined in settings files, under `hooks`, as in Claude Code. Those of a project's files run once you trust
/// them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HooksArgs {
    #[command(subcommand)]
    command: HooksCommand,
}

const EXAMPLES: &str = "\
Examples:
  cairn hooks list                          all of them, and where they are defined
  cairn hooks test PreToolUse               what they say about a command
  cairn hooks test PreToolUse --about Edit --input '{\"tool_input\": {\"file_path\": \"/x\"}}'";

#[derive(Debug, Subcommand)]
enum HooksCommand {
    /// Print the hooks, and those that are left out.
    List {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Run the hooks of an event with a made-up input, and print what they say. Nothing else happens.
    Test {
        /// The event, such as PreToolUse.
        event: String,
        /// The text that matchers look at: a tool, a source, a reason.
        #[arg(long, value_name = "NAME")]
        about: Option<String>,
        /// Fields of the input, as a JSON object, instead of made-up ones.
        #[arg(long, value_name = "JSON")]
        input: Option<String>,
    },
}

/// Lists or tries.
pub(crate) async fn run(args: &HooksArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let settings = trusted_settings::settings(&place, None)?;
    match &args.command {
        HooksCommand::List { json } => list(&settings, *json),
        HooksCommand::Test { event, about, input } => {
            let hook_event = HookEvent::by_name(event).ok_or_else(|| {
                let names: Vec<&str> = HookEvent::ALL.iter().map(|hook_event| hook_event.name()).collect();
                anyhow::anyhow!("there is no event {event}; the events are {}", names.join(", "))
            })?;
            let fields: Map<String, Value> = match input {
                Some(input) => serde_json::from_str(input)
                    .map_err(|error| anyhow::anyhow!("--input is not a JSON object: {error}"))?,
                None => Map::new(),
            };
            let hook_input = HookInput::sample(hook_event, about.as_deref()).with(fields.into());
            test(&place, &settings, &hook_input).await
        }
    }
}

fn list(settings: &Settings, as_json: bool) -> anyhow::Result<Code> {
    let hooks = &settings.hooks.list;
    let is_left_out = |standing: ValueStatus| matches!(standing, ValueStatus::Untrusted | ValueStatus::Never(_));
    let left_out =
        settings.sets.iter().filter(|set| set.key.name.starts_with("hooks.") && is_left_out(set.standing)).count();
    if as_json {
        let hooks: Vec<Value> = hooks
            .iter()
            .map(|hook| {
                json!({
                    "event": hook.hook_event.name(), "matcher": hook.matcher_text, "runs": hook.shown(),
                    "if": hook.condition.as_ref().map(ToString::to_string), "once": hook.times == HookRepetition::Once,
                    "async": hook.waiting == HookWait::No, "timeout": hook.limit().as_secs_f64(),
                    "source": hook.origin.source.name(), "file": hook.origin.file, "line": hook.origin.line,
                })
            })
            .collect();
        data!("{}", Value::Array(hooks))?;
        return Ok(Code::Success);
    }
    for hook in hooks {
        let (when, what) = event_text::hook(hook);
        data!([bold(&when), "  ", what.as_str()])?;
    }
    if hooks.is_empty() {
        talk!("There are no hooks.");
    }
    if left_out > 0 {
        talk!(
            "{left_out} of this directory's files are left out because they are not trusted; a session asks about them."
        );
    }
    Ok(Code::Success)
}

async fn test(place: &ProgramPaths, settings: &Settings, hook_input: &HookInput) -> anyhow::Result<Code> {
    let context = HookContext {
        common: CommonInput {
            session: "00000000-0000-0000-0000-000000000000".to_owned(),
            transcript: place.home.path().join("projects/none.jsonl"),
            directory: place.directory.clone(),
            prompt: None,
            agent: None,
            effort: None,
            mode: settings.mode.unwrap_or_default(),
        },
        project: place.directory.clone(),
        environment: engine::configuration::environment(settings),
        guard: env::program(),
        variables: std::path::PathBuf::from("/dev/null"),
        asking: None,
        servers: None,
        variable: Some(env::named),
    };
    talk!([dim(&hook_input.json(&context.common).to_string())]);
    let answers = Hooks::new(settings.hooks.clone()).run(hook_input, &context, &CancellationToken::new()).await;
    for (hook, said) in &answers.0 {
        data!([bold(&hook.shown()), "  ", words(said).as_str()])?;
    }
    if answers.0.is_empty() {
        talk!("No hook matches.");
    }
    Ok(Code::Success)
}

/// The output of a hook, in words.
fn words(said: &HookOutput) -> String {
    let mut words = Vec::new();
    words.extend(said.failed.as_ref().map(|why| format!("failed: {why}")));
    words.extend(said.verdict.map(|verdict| {
        match verdict {
            HookVerdict::Allow => "allows it",
            HookVerdict::Ask => "asks the user",
            HookVerdict::Deny => "denies it",
        }
        .to_owned()
    }));
    words.extend(said.block.as_ref().map(|why| format!("because: {why}")));
    words.extend(said.stop.as_ref().map(|why| format!("ends the turn: {why}")));
    words.extend(said.context.iter().map(|text| format!("adds: {text}")));
    words.extend(said.message.as_ref().map(|text| format!("tells you: {text}")));
    words.extend(said.input.as_ref().map(|input| format!("changes the input to {input}")));
    words.extend(said.output.as_ref().map(|output| format!("changes the output to {output}")));
    if words.is_empty() { "has nothing to say".to_owned() } else { words.join("; ") }
}
