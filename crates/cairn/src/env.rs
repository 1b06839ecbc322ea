//! Every environment variable this program reads, each one constant. The help is made from this list.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variable {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its description.
    pub(crate) about: &'static str,
}

macro_rules! variables {
    ($($constant:ident = $name:literal, $about:literal;)*) => {
        $(#[doc = $about] pub(crate) const $constant: Variable = Variable { name: $name, about: $about };)*
        /// All of them.
        pub(crate) const ALL: &[Variable] = &[$($constant),*];
    };
}

variables! {
    API_KEY = "ANTHROPIC_API_KEY", "The API key, sent as `x-api-key`.";
    AUTH_TOKEN = "ANTHROPIC_AUTH_TOKEN", "A token, sent as `authorization: Bearer`; used when there is no key.";
    BASE_URL = "ANTHROPIC_BASE_URL", "The server to talk to.";
    OPENAI_KEY = "OPENAI_API_KEY", "The key for an OpenAI-compatible server; used when there is none for Anthropic.";
    OPENAI_BASE = "OPENAI_BASE_URL", "An OpenAI-compatible server, such as http://127.0.0.1:11434/v1.";
    NO_LOCAL = "CAIRN_NO_LOCAL_SERVER", "1 turns off the search for a model server on this machine when no key is set.";
    MODEL = "ANTHROPIC_MODEL", "The model, when neither a flag nor the settings name one.";
    CONFIG_DIR = "CLAUDE_CONFIG_DIR", "The config home. Default: `~/.claude`.";
    BETAS = "ANTHROPIC_BETAS", "Betas of the API for every request, separated by commas.";
    MAX_OUTPUT = "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "The most tokens a reply may have.";
    MAX_THINKING = "MAX_THINKING_TOKENS", "The budget for thinking; 0 turns it off.";
    MAX_RETRIES = "CLAUDE_CODE_MAX_RETRIES", "The number of times that a failed request is tried again.";
    MAX_CONTEXT = "CLAUDE_CODE_MAX_CONTEXT_TOKENS", "The window of a model that Cairn does not know, in tokens.";
    COMPACT_WINDOW = "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "The largest window to use, in tokens, whatever the model has.";
    NO_COMPACT = "DISABLE_AUTO_COMPACT", "1 turns off automatic compaction.";
    COLLAPSE = "CLAUDE_CONTEXT_COLLAPSE", "1 turns the setting `collapse` on, 0 turns it off, whatever the settings say.";
    SMALL_MODEL = "ANTHROPIC_SMALL_FAST_MODEL", "The model for side questions, such as which memories matter.";
    NO_MEMORY = "CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1 turns memory off, 0 turns it on, whatever the settings say.";
    SIMPLE = "CLAUDE_CODE_SIMPLE", "1 is the same as `--bare`.";
    REMOTE = "CLAUDE_CODE_REMOTE", "1 means a session on a remote machine: no memory unless a directory for it is \
        named.";
    REMOTE_MEMORY = "CLAUDE_CODE_REMOTE_MEMORY_DIR", "The directory in which memory is kept. Default: the config home.";
    MEMORY_PATH = "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "The full path of the memory directory.";
    MEMORY_GUIDELINES = "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES", "Text added to what the model is told about memory.";
    MANAGED_DIR = "CAIRN_MANAGED_DIR", "Another directory with managed settings; the system's override them.";
    TEAM_TOKEN = "CAIRN_TEAM_TOKEN", "The token for team memory, instead of the one that `team join` saved.";
    TEAM_DATABASE = "CAIRN_TEAM_DATABASE", "The database of `team serve`: `postgres://…` or the path of a file.";
    TEAM_OIDC_SECRET = "CAIRN_TEAM_OIDC_SECRET", "The client secret of `team serve` at the issuer.";
    CALL_PATIENCE = "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", "Milliseconds after which a call of an MCP server's tool goes to the background in a session at a terminal. Default: 120000.";
    AGENT_TEAMS = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1 lets the model start teammates, as the setting `teammates` does.";
    RUNTIME_DIR = "XDG_RUNTIME_DIR", "The directory for sockets of sessions, in its subdirectory `cairn`. Default: \
        the config home.";
    HOME = "HOME", "The home directory, for `~` in paths and for the config home.";
    SHELL = "SHELL", "Your shell, which the model is told about. Its commands run in bash.";
    TERM = "TERM", "The kind of terminal; with `dumb`, a session prints plain lines.";
    TERM_PROGRAM = "TERM_PROGRAM", "The terminal program; some can show that Cairn is waiting for you.";
    TELEMETRY = "CLAUDE_CODE_ENABLE_TELEMETRY", "1 sends events to an OpenTelemetry collector, in builds with the feature `otel`: names and counts, no text.";
    COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT", "The address of that collector, such as `http://localhost:4318`.";
    VISUAL = "VISUAL", "The editor for the prompt (Ctrl-G) and for files of `/memory`.";
    EDITOR = "EDITOR", "The same, if VISUAL is not set.";
    COLOURS = "COLORFGBG", "The terminal's colours, where it sets them; the last number is the background's.";
    WAYLAND = "WAYLAND_DISPLAY", "A Wayland session: pictures are pasted by `wl-paste`, in other sessions by `xclip`.";
    NO_COLOR = "NO_COLOR", "Any value turns colours off.";
}

macro_rules! files {
    ($($path:literal, $about:literal;)*) => {
        /// Files and their contents, for the manual. `~/.claude` is the config home unless the environment says
        /// otherwise.
        pub(crate) const FILES: &[(&str, &str)] = &[$(($path, $about)),*];
    };
}

files! {
    "~/.claude/projects/SLUG/ID.jsonl", "A session file: one line for everything said, done and decided.";
    "~/.claude/projects/SLUG/ID/", "The session folder: files as they were before changes, results too long for the \
        window, and notes.";
    "~/.claude/session-memory/config/", "Your own template.md and prompt.md for notes, instead of the built-in ones.";
    "~/.claude/projects/SLUG/memory/", "Memories of the project: Markdown files, with MEMORY.md as their index.";
    "~/.claude/cairn/team.json", "Repositories that share team memory, their servers, and your tokens.";
    "~/.claude/teams/TEAM/", "A lead and its teammates: members, mailboxes and the shared task list.";
    "~/.claude/cairn/mcp-logins/", "Logins to MCP servers, one file each, that only you can read.";
    "~/.claude/cairn/anthropic-key", "The key that cairn login stores.";
    "~/.claude/history.jsonl", "Your prompts, for the history.";
    "~/.claude/settings.json", "Your settings.";
    "~/.claude/output-styles/", "Styles of answers, one Markdown file each.";
    "/etc/claude-code/managed-settings.json", "The organisation's settings, and those in managed-settings.d next to it.";
    ".claude/settings.json", "The project's settings.";
    ".claude/settings.local.json", "Your settings for this project, and the rules from your \"always\" answers.";
}

impl Variable {
    /// Its value, unless it is unset or empty.
    pub(crate) fn get(&self) -> Option<String> {
        named(self.name)
    }

    /// Its value as yes or no; none for anything else.
    pub(crate) fn flag(&self) -> Option<bool> {
        match self.get()?.trim().to_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Some(true),
            "0" | "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    /// Its value as a number; one that is none is an error that says so.
    pub(crate) fn number(&self) -> anyhow::Result<Option<u64>> {
        let parse = |text: String| {
            text.trim().parse().map_err(|_| anyhow::anyhow!("{} should be a number, not {text:?}", self.name))
        };
        self.get().map(parse).transpose()
    }
}

/// The variables of the user's own settings. Like the environment they extend, they are the process's.
static MORE: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Lets the `env` of the user's own settings count from now on. Only the first call has an effect.
pub(crate) fn extend(variables: &BTreeMap<String, String>) {
    let _ = MORE.set(variables.clone());
}

/// A variable by its name, as the settings give it: those of the user's settings are stronger than the environment.
#[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
pub(crate) fn named(name: &str) -> Option<String> {
    let more = MORE.get().and_then(|more| more.get(name).cloned());
    more.or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
}

/// The section of `--help` about variables.
pub(crate) fn help() -> String {
    // The text on a line of its own: some names are long, and what is wrapped keeps its place.
    let line = |variable: &Variable| format!("  {}\n          {}\n", variable.name, variable.about);
    format!("Environment:\n{}", ALL.iter().map(line).collect::<String>())
}

/// The user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    HOME.get().map(PathBuf::from)
}

/// This program, to be run again as a guard. On Linux the running one is meant, also after an update has replaced its file.
pub(crate) fn program() -> Option<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Some(running) } else { std::env::current_exe().ok() }
}

/// The working directory, symbolic links followed.
#[expect(clippy::disallowed_methods, reason = "the one place where the working directory is read")]
pub(crate) fn directory() -> anyhow::Result<PathBuf> {
    let directory =
        std::env::current_dir().map_err(|error| anyhow::anyhow!("the working directory is gone: {error}"))?;
    Ok(files::real(&directory)?)
}
