//! The flags of a session. Doc comments here are the help text.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, ValueEnum, ValueHint};
use settings::SettingSources;
use tools::permission::Mode;
use transcript::Effort;
use transcript::price::Dollars;

use crate::env;
use crate::telemetry::Telemetry;
use crate::trusted_settings::RunTrust;

// The parts of the help.
const IN_AND_OUT: &str = "Input and output";
const SESSION: &str = "Session";
const PERMISSIONS: &str = "Permissions";
const SETTINGS: &str = "Settings";

/// How to run a session.
#[derive(Debug, Clone, Default, Parser)]
pub(crate) struct RunArgs {
    /// Whether commands run in a sandbox, as `/sandbox` says.
    #[arg(skip)]
    pub(crate) sandbox: Option<bool>,

    /// Whether the session takes the place of one that was left by `/clear`.
    #[arg(skip)]
    pub(crate) cleared: bool,

    /// The team this session is a teammate in.
    #[arg(long, hide = true, requires = "agent_name")]
    pub(crate) team_name: Option<String>,

    /// Its name there.
    #[arg(long, hide = true, requires = "team_name")]
    pub(crate) agent_name: Option<String>,

    /// By what it knows its lead's letters.
    #[arg(long, hide = true, requires = "agent_name")]
    pub(crate) lead_key: Option<String>,

    /// What it is there, by the name of a definition.
    #[arg(long, hide = true, requires = "agent_name")]
    pub(crate) agent_type: Option<String>,

    /// Whether it works in a git worktree of its own.
    #[arg(long, hide = true, requires = "agent_name")]
    pub(crate) in_worktree: bool,

    /// Who else hears of what happens.
    #[arg(skip)]
    pub(crate) telemetry: Telemetry,

    /// Write down what was learnt before it ends: without a terminal, and when a session is left. Otherwise the next session does.
    #[arg(long, help_heading = SESSION)]
    pub(crate) extract: bool,

    /// Without a terminal: after the answer, bring memories into order if that is due, and wait for it.
    #[arg(long, help_heading = SESSION)]
    pub(crate) dream: bool,

    /// What to ask. With a pipe on stdin, its text is added.
    pub(crate) prompt: Option<String>,

    /// Answer once and exit, without a terminal.
    #[arg(short, long)]
    pub(crate) print: bool,

    /// A session of plain lines, for screen readers and dumb terminals.
    #[arg(long, conflicts_with = "print")]
    pub(crate) plain: bool,

    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = IN_AND_OUT)]
    pub(crate) output_format: OutputFormat,

    /// What comes on stdin: text for the prompt, or messages, one JSON object a line, each a turn.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = IN_AND_OUT)]
    pub(crate) input_format: InputFormat,

    /// With text: tell what happens on stderr, also where no terminal is.
    #[arg(long, help_heading = IN_AND_OUT)]
    pub(crate) verbose: bool,

    /// With stream-json: also print pieces of replies as they arrive.
    #[arg(long, help_heading = IN_AND_OUT)]
    pub(crate) include_partial_messages: bool,

    /// Go on with a session of this project, by id, by the beginning of one, or by file.
    #[arg(short, long, value_name = "ID", help_heading = SESSION)]
    pub(crate) resume: Option<String>,

    /// Go on with the newest session of this project.
    #[arg(short, long = "continue", conflicts_with = "resume", help_heading = SESSION)]
    pub(crate) continue_: bool,

    /// Go on in a copy, and leave the session as it is.
    #[arg(long, help_heading = SESSION)]
    pub(crate) fork_session: bool,

    /// The id of a new session (a UUID).
    #[arg(long, value_name = "UUID", conflicts_with_all = ["resume", "continue_"], help_heading = SESSION)]
    pub(crate) session_id: Option<String>,

    /// The model: a name, or `opus`, `sonnet`, `haiku`; `[1m]` at its end asks for the large window.
    #[arg(long)]
    pub(crate) model: Option<String>,

    /// How hard the model tries; one that cannot be asked for this is asked for the most below it, or for nothing.
    #[arg(long, value_name = "LEVEL", value_parser = efforts(), help_heading = SESSION)]
    pub(crate) effort: Option<Effort>,

    /// Betas of the API that every request asks for, with commas between.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = SESSION)]
    pub(crate) betas: Vec<String>,

    /// The most requests in one turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = SESSION)]
    pub(crate) max_turns: Option<u32>,

    /// How many tokens the task may take in all. The model is told, and nothing else holds it to that.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..), help_heading = SESSION)]
    pub(crate) task_budget: Option<u64>,

    /// End a turn when the session has cost so many dollars. A request that is under way still ends.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, help_heading = SESSION)]
    pub(crate) max_budget_usd: Option<Dollars>,

    /// Tools that may run without asking, such as 'Bash(git *)' or Edit.
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_name = "RULES", num_args = 1.., help_heading = PERMISSIONS)]
    pub(crate) allowed_tools: Vec<String>,

    /// Tools that may not run. Without a pattern, as in Bash, the model is not offered it.
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", value_name = "RULES", num_args = 1.., help_heading = PERMISSIONS)]
    pub(crate) disallowed_tools: Vec<String>,

    /// The tools the model is offered, such as 'Read,Grep'; 'default' is all, '' none.
    #[arg(long, value_name = "NAMES", num_args = 1.., help_heading = PERMISSIONS)]
    pub(crate) tools: Vec<String>,

    /// How much may happen without asking.
    #[arg(long, value_name = "MODE", value_parser = modes(), help_heading = PERMISSIONS)]
    pub(crate) permission_mode: Option<Mode>,

    /// The same as --permission-mode bypassPermissions, and stronger.
    #[arg(long, help_heading = PERMISSIONS)]
    pub(crate) dangerously_skip_permissions: bool,

    /// Let the mode bypassPermissions be chosen later, without starting in it.
    #[arg(long, help_heading = PERMISSIONS)]
    pub(crate) allow_dangerously_skip_permissions: bool,

    /// With stream-json: `stdio` asks the program on stdin and stdout what would be asked of a person.
    #[arg(long, value_name = "TOOL", value_parser = ["stdio"], help_heading = PERMISSIONS)]
    pub(crate) permission_prompt_tool: Option<String>,

    /// Only the loop, its tools and what is said: no instruction files, memory, hooks, servers, notes or background work,
    /// and a system prompt of a few lines.
    #[arg(long, help_heading = SETTINGS)]
    pub(crate) bare: bool,

    /// Let this directory's files do what they ask for (rules, directories, variables, …), for this run.
    #[arg(long, help_heading = PERMISSIONS)]
    pub(crate) trust: bool,

    /// Text in place of the system prompt.
    #[arg(long, value_name = "TEXT", help_heading = SETTINGS)]
    pub(crate) system_prompt: Option<String>,

    /// Text after the system prompt.
    #[arg(long, value_name = "TEXT", help_heading = SETTINGS)]
    pub(crate) append_system_prompt: Option<String>,

    /// More agents that can be sent out: a JSON object, each by its name, with description and prompt.
    #[arg(long, value_name = "JSON", help_heading = SETTINGS)]
    pub(crate) agents: Option<String>,

    /// More directories to work in.
    #[arg(long, value_name = "DIR", num_args = 1.., value_hint = ValueHint::DirPath, help_heading = PERMISSIONS)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Whose settings, instruction files and agents count: user, project and local, with commas between; '' is none of
    /// them. What the project's files ask for still needs your trust.
    #[arg(long, value_name = "SOURCES", help_heading = SETTINGS)]
    pub(crate) setting_sources: Option<SettingSources>,

    /// One more settings file, or settings as JSON; stronger than the others.
    #[arg(long, value_name = "FILE_OR_JSON", value_hint = ValueHint::FilePath, help_heading = SETTINGS)]
    pub(crate) settings: Option<String>,
}

impl RunArgs {
    /// Whether the project's files are trusted for this run.
    pub(crate) fn one_run(&self) -> RunTrust {
        if self.trust { RunTrust::Trusted } else { RunTrust::No }
    }

    /// Whether only the loop, its tools and what is said are wanted.
    pub(crate) fn is_bare(&self) -> bool {
        self.bare || env::SIMPLE.flag() == Some(true)
    }

    /// The mode that is asked for, in whichever words.
    pub(crate) fn mode(&self) -> Option<Mode> {
        let all = self.dangerously_skip_permissions.then_some(Mode::BypassPermissions);
        all.or(self.permission_mode)
    }
}

/// Reads an amount of dollars above zero.
fn dollars(text: &str) -> Result<Dollars, String> {
    let amount = text.parse().ok().and_then(Dollars::new);
    amount.ok_or_else(|| format!("{text} is no amount of dollars above zero, such as 0.50"))
}

/// Reads how hard a model is to try.
fn efforts() -> impl TypedValueParser<Value = Effort> {
    let names = PossibleValuesParser::new(Effort::ALL.map(Effort::name));
    names.try_map(|name| serde_json::from_value::<Effort>(name.into()))
}

/// Reads how much may happen without asking.
pub(crate) fn modes() -> impl TypedValueParser<Value = Mode> {
    let about = |mode: Mode| match mode {
        Mode::Default => "Looking inside the working directories",
        Mode::AcceptEdits => "Also editing files there",
        Mode::Plan => "Only looking; all else is denied",
        Mode::BypassPermissions => "Everything a rule does not forbid",
    };
    let names = PossibleValuesParser::new(Mode::ALL.map(|mode| PossibleValue::new(mode.name()).help(about(mode))));
    names.try_map(|name| serde_json::from_value::<Mode>(name.into()))
}

/// What comes on stdin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Text that is added to the prompt.
    #[default]
    Text,
    /// One JSON object a line: the user's messages, in the order they come. Implies --print.
    StreamJson,
}

/// How an answer is printed.
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
