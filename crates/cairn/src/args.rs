//! The flags of a session. Doc comments here are the help text.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, ValueEnum, ValueHint};
use settings::SettingSources;
use tools::permission::Mode;
use transcript::Effort;
use transcript::price::Dollars;

use crate::env;
use crate::server_host::ServerHost;
use crate::telemetry::Telemetry;
use crate::trusted_settings::RunTrust;

// The parts of the help.
const IN_AND_OUT: &str = "Input and output";
const SESSION: &str = "Session";
const PERMISSIONS: &str = "Permissions";
const SETTINGS: &str = "Settings";

/// Flags of a session.
#[derive(Debug, Clone, Default, Parser)]
pub(crate) struct RunArgs {
    /// The sandbox, as set by `/sandbox`.
    #[arg(skip)]
    pub(crate) sandbox: Option<bool>,

    /// True if the session replaces one that was left by `/clear`.
    #[arg(skip)]
    pub(crate) cleared: bool,

    /// The team this session is a teammate in.
    #[arg(long, hide = true, requires = "agent_name")]
    pub(crate) team_name: Option<String>,

    /// Its name there.
    #[arg(long, hide = true, requires = "team_name")]
    pub(crate) agent_name: Option<String>,

    /// The key by which it recognises its lead's messages.
    #[arg(long, hide = true, requires = "agent_name")]
    pub(crate) lead_key: Option<String>,

    /// Its type there: the name of a definition.
    #[arg(long, hide = true, requires = "agent_name")]
    pub(crate) agent_type: Option<String>,

    /// It works in a git worktree of its own.
    #[arg(long, hide = true, requires = "agent_name")]
    pub(crate) in_worktree: bool,

    /// The program that drives the session, if it has servers of its own.
    #[arg(skip)]
    pub(crate) server_host: ServerHost,

    /// Destination of telemetry.
    #[arg(skip)]
    pub(crate) telemetry: Telemetry,

    /// Learn before the session ends, with or without a terminal; otherwise the next session does.
    #[arg(long, help_heading = SESSION)]
    pub(crate) extract: bool,

    /// Without a terminal: dream after the answer if a dream is due, and wait for it.
    #[arg(long, help_heading = SESSION)]
    pub(crate) dream: bool,

    /// Your message. Text piped to stdin is added.
    pub(crate) prompt: Option<String>,

    /// Answer once and exit, without a terminal.
    #[arg(short, long)]
    pub(crate) print: bool,

    /// Use a session of plain lines, for screen readers and dumb terminals.
    #[arg(long, conflicts_with = "print")]
    pub(crate) plain: bool,

    /// Format of the answer.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = IN_AND_OUT)]
    pub(crate) output_format: OutputFormat,

    /// Format of stdin: text for the prompt, or messages, one JSON object a line, each a turn.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = IN_AND_OUT)]
    pub(crate) input_format: InputFormat,

    /// With text: report progress on stderr, even without a terminal.
    #[arg(long, help_heading = IN_AND_OUT)]
    pub(crate) verbose: bool,

    /// With stream-json: also print pieces of replies as they arrive.
    #[arg(long, help_heading = IN_AND_OUT)]
    pub(crate) include_partial_messages: bool,

    /// Continue a session of this project, given by its id, the beginning of it, or its file; without one, choose from a list.
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = SESSION)]
    pub(crate) resume: Option<String>,

    /// Continue the newest session of this project.
    #[arg(short, long = "continue", conflicts_with = "resume", help_heading = SESSION)]
    pub(crate) continue_: bool,

    /// Continue in a copy, and leave the session as it is.
    #[arg(long, help_heading = SESSION)]
    pub(crate) fork_session: bool,

    /// The id of a new session (a UUID).
    #[arg(long, value_name = "UUID", conflicts_with_all = ["resume", "continue_"], help_heading = SESSION)]
    pub(crate) session_id: Option<String>,

    /// The model: a name, or `opus`, `sonnet`, `haiku`; the ending `[1m]` asks for the large window.
    #[arg(long)]
    pub(crate) model: Option<String>,

    /// Effort asked of the model; if it does not support this level, the next lower one it supports, or none.
    #[arg(long, value_name = "LEVEL", value_parser = efforts(), help_heading = SESSION)]
    pub(crate) effort: Option<Effort>,

    /// Thinking before answers, as it was switched in the session.
    #[arg(skip)]
    pub(crate) thinking: Option<ThinkingWish>,

    /// API betas that every request asks for, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = SESSION)]
    pub(crate) betas: Vec<String>,

    /// The most requests in one turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = SESSION)]
    pub(crate) max_turns: Option<u32>,

    /// Tokens that the task may take in all. The model is told; nothing else enforces it.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..), help_heading = SESSION)]
    pub(crate) task_budget: Option<u64>,

    /// End a turn when the session has cost so many dollars. A request that is under way still ends.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, help_heading = SESSION)]
    pub(crate) max_budget_usd: Option<Dollars>,

    /// Tools that may run without asking, such as 'Bash(git *)' or Edit.
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_name = "RULES", num_args = 1.., help_heading = PERMISSIONS)]
    pub(crate) allowed_tools: Vec<String>,

    /// Tools that may not run. One without a pattern, such as Bash, is not offered to the model.
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", value_name = "RULES", num_args = 1.., help_heading = PERMISSIONS)]
    pub(crate) disallowed_tools: Vec<String>,

    /// The tools the model is offered, such as 'Read,Grep'; 'default' is all, '' none.
    #[arg(long, value_name = "NAMES", num_args = 1.., help_heading = PERMISSIONS)]
    pub(crate) tools: Vec<String>,

    /// The permission mode: how much may happen without asking.
    #[arg(long, value_name = "MODE", value_parser = modes(), help_heading = PERMISSIONS)]
    pub(crate) permission_mode: Option<Mode>,

    /// The same as --permission-mode bypassPermissions; overrides that flag.
    #[arg(long, help_heading = PERMISSIONS)]
    pub(crate) dangerously_skip_permissions: bool,

    /// Let the mode bypassPermissions be chosen later, without starting in it.
    #[arg(long, help_heading = PERMISSIONS)]
    pub(crate) allow_dangerously_skip_permissions: bool,

    /// With stream-json: `stdio` asks the controlling program for permission, over stdin and stdout.
    #[arg(long, value_name = "TOOL", value_parser = ["stdio"], help_heading = PERMISSIONS)]
    pub(crate) permission_prompt_tool: Option<String>,

    /// Only the loop and its tools: no instruction files, memory, hooks, servers, notes or background work, and a
    /// system prompt of a few lines.
    #[arg(long, help_heading = SETTINGS)]
    pub(crate) bare: bool,

    /// Trust what this directory's files ask for (rules, directories, variables, …), for this run.
    #[arg(long, help_heading = PERMISSIONS)]
    pub(crate) trust: bool,

    /// Text that replaces the system prompt.
    #[arg(long, value_name = "TEXT", help_heading = SETTINGS)]
    pub(crate) system_prompt: Option<String>,

    /// Text to add after the system prompt.
    #[arg(long, value_name = "TEXT", help_heading = SETTINGS)]
    pub(crate) append_system_prompt: Option<String>,

    /// More agents: a JSON object of definitions by name, each with description and prompt.
    #[arg(long, value_name = "JSON", help_heading = SETTINGS)]
    pub(crate) agents: Option<String>,

    /// Use the plugin in this folder; can be given several times.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = SETTINGS)]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// More directories to work in.
    #[arg(long, value_name = "DIR", num_args = 1.., value_hint = ValueHint::DirPath, help_heading = PERMISSIONS)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Sources of settings, instruction files and agents: user, project and local, separated by commas; '' means none of
    /// them. What the project's files ask for still needs your trust.
    #[arg(long, value_name = "SOURCES", help_heading = SETTINGS)]
    pub(crate) setting_sources: Option<SettingSources>,

    /// MCP servers for this session: a file like `.mcp.json`, or its text. Can be given several times.
    #[arg(long, value_name = "FILE_OR_JSON", num_args = 1.., value_hint = ValueHint::FilePath, help_heading = SETTINGS)]
    pub(crate) mcp_config: Vec<String>,

    /// Use only the MCP servers of --mcp-config.
    #[arg(long, help_heading = SETTINGS)]
    pub(crate) strict_mcp_config: bool,

    /// One more settings file, or settings as JSON; overrides the others.
    #[arg(long, value_name = "FILE_OR_JSON", value_hint = ValueHint::FilePath, help_heading = SETTINGS)]
    pub(crate) settings: Option<String>,
}

/// Thinking before answers, switched by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingWish {
    On,
    Off,
}

impl RunArgs {
    /// True if the session to be continued is to be chosen from a list. Afterwards a new one is asked for.
    pub(crate) fn take_choice_of_session(&mut self) -> bool {
        self.resume.take_if(|id| id.is_empty()).is_some()
    }

    /// Trust in the project's files for this run.
    pub(crate) fn one_run(&self) -> RunTrust {
        if self.trust { RunTrust::Trusted } else { RunTrust::No }
    }

    /// True if only the loop and its tools are wanted.
    pub(crate) fn is_bare(&self) -> bool {
        self.bare || env::SIMPLE.flag() == Some(true)
    }

    /// The mode that flags ask for.
    pub(crate) fn mode(&self) -> Option<Mode> {
        let all = self.dangerously_skip_permissions.then_some(Mode::BypassPermissions);
        all.or(self.permission_mode)
    }
}

/// Reads an amount of dollars above zero.
fn dollars(text: &str) -> Result<Dollars, String> {
    let amount = text.parse().ok().and_then(Dollars::new);
    amount.ok_or_else(|| format!("{text} is not an amount of dollars above zero, such as 0.50"))
}

/// Parses a level of effort.
fn efforts() -> impl TypedValueParser<Value = Effort> {
    let names = PossibleValuesParser::new(Effort::ALL.map(Effort::name));
    names.try_map(|name| serde_json::from_value::<Effort>(name.into()))
}

/// Parses a permission mode.
pub(crate) fn modes() -> impl TypedValueParser<Value = Mode> {
    let about = |mode: Mode| match mode {
        Mode::Default => "Reading in the working directories",
        Mode::AcceptEdits => "Also editing files there",
        Mode::Plan => "Only reading; everything else is denied",
        Mode::BypassPermissions => "Everything that no rule denies",
    };
    let names = PossibleValuesParser::new(Mode::ALL.map(|mode| PossibleValue::new(mode.name()).help(about(mode))));
    names.try_map(|name| serde_json::from_value::<Mode>(name.into()))
}

/// Format of stdin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Text that is added to the prompt.
    #[default]
    Text,
    /// One JSON object a line: your messages, in order. Implies --print.
    StreamJson,
}

/// Format of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer as text.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object a line, as things happen.
    StreamJson,
}
