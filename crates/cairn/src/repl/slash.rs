//! The commands that begin with a slash.

/// A command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlashCommand {
    /// Without the slash.
    pub(crate) name: &'static str,
    /// Its arguments.
    pub(crate) argument: &'static str,
    /// Its description.
    pub(crate) about: &'static str,
}

macro_rules! commands {
    ($($name:literal $argument:literal $about:literal;)*) => {
        /// All of them, in the order help shows them.
        pub(crate) const COMMANDS: &[SlashCommand] = &[$(SlashCommand { name: $name, argument: $argument, about: $about }),*];
    };
}

commands! {
    "help" "" "the commands and keys";
    "clear" "" "begin a new session";
    "resume" "[ID]" "continue another session of this project";
    "rewind" "[N] [WHAT]" "go back to before a message: conversation, files or both";
    "undo" "" "undo the last rewind, compaction or snip";
    "compact" "[TEXT]" "replace the conversation with a summary; `from` or `up-to`: a part of it";
    "snip" "" "drop everything before a message from the window";
    "context" "" "what fills the window";
    "keep" "[drop N]" "show the standing instructions that are kept in view, or drop one";
    "memory" "[NAME]" "show or edit memories and instruction files";
    "team" "[now|delete]" "the state of team memory, and what others changed";
    "dream" "[WHAT]" "dream now; or `status`, `log`, `diff`, `undo`, `apply`, `stop`";
    "learnt" "" "what was learnt in this session: show, edit, undo (Ctrl-S)";
    "private" "[on|off]" "learn nothing from what follows, or learn again";
    "model" "[NAME]" "choose the model";
    "effort" "[LEVEL]" "show or change the effort that is asked of the model";
    "think" "[on|off]" "thinking before answers, on or off (Alt-T)";
    "init" "" "let the model write an AGENTS.md for this project";
    "review" "[WHAT]" "let the model review what is not committed, a branch or a pull request";
    "theme" "[NAME]" "colours for a dark or a light background";
    "vim" "" "the keys of vim in the prompt, or the usual ones again";
    "add-dir" "[DIR]" "work in another directory as well";
    "copy" "" "copy the newest reply to the clipboard";
    "mode" "[MODE]" "show or change the permission mode (Shift-Tab)";
    "permissions" "[MODE]" "show the rules, or change the mode";
    "hooks" "" "the hooks that run, and where they are defined";
    "tasks" "[WHAT] [ID]" "background work (`stop`, `front`), and the task list";
    "agents" "[NAME]" "the agents that can be started";
    "skills" "[NAME]" "the skills and commands that can be called as /NAME";
    "mcp" "[NAME]" "MCP servers: their state and tools; `NAME on`, `NAME off`";
    "statusline" "[TEXT]" "let an agent set up a custom status line, from your shell's prompt or as you describe";
    "sandbox" "[on|off]" "show the state of the sandbox, or turn it on or off";
    "config" "" "the settings in effect, and where each is set";
    "doctor" "" "the state of this session, and what is wrong with it";
    "cost" "" "what this session used and cost";
    "status" "" "session, model, window, directory";
    "export" "[FILE]" "write the conversation to a Markdown file";
    "expand" "" "show tool calls and recalled memories in full (Ctrl-O)";
    "exit" "" "leave (Ctrl-D)";
}

/// Other names that people are used to.
const ALIASES: [(&str, &str); 4] = [("bashes", "tasks"), ("jobs", "tasks"), ("todos", "tasks"), ("quit", "exit")];

/// The command of this name.
pub(crate) fn find(name: &str) -> Option<&'static SlashCommand> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    COMMANDS.iter().find(|command| command.name == name)
}

/// True if a command can be run as it was completed: it needs no argument.
pub(super) fn runs_alone(text: &str) -> bool {
    let needs_none = |command: &SlashCommand| command.argument.is_empty() || command.argument.starts_with('[');
    text.strip_prefix('/').and_then(find).is_some_and(needs_none)
}

/// The values of an argument, if there is a fixed list.
pub(crate) fn arguments(command: &str) -> &'static [&'static str] {
    match command {
        "mode" | "permissions" => &["default", "acceptEdits", "plan", "bypassPermissions"],
        "model" => &["opus", "sonnet", "haiku"],
        "compact" => &["from", "up-to"],
        "sandbox" | "private" | "think" => &["on", "off"],
        "theme" => &["auto", "dark", "light"],
        "effort" => &["low", "medium", "high", "xhigh", "max"],
        "tasks" => &["stop", "front"],
        "team" => &["now", "delete"],
        "dream" => &["status", "log", "diff", "undo", "apply", "stop"],
        _ => &[],
    }
}

/// Keys that `/help` shows.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while the agent works: queue for its next round"),
    ("Shift-Enter, Alt-Enter, Ctrl-J, \\ Enter", "a new line (Shift-Enter where the terminal tells it apart)"),
    ("Up, Down", "history; an empty prompt takes a queued message back first"),
    ("Ctrl-R", "search earlier input as you type"),
    ("Ctrl-_", "undo typing"),
    ("Tab", "complete a command, a file or an agent after @, an argument"),
    ("Shift-Tab", "the next mode: default, acceptEdits, plan; also while the agent works"),
    ("Esc, Ctrl-C", "interrupt the turn, and teammates; Ctrl-C twice exits"),
    ("Esc Esc", "go back to an earlier message; clear what is typed"),
    ("Ctrl-B", "move the running command or agents to the background"),
    ("Alt-T", "thinking before answers, on or off"),
    ("Ctrl-O", "tool calls and recalled memories in full, to scroll through"),
    ("Ctrl-T", "hide or show the task list"),
    ("Ctrl-L", "clear the screen"),
    ("?", "these keys, in an empty prompt"),
    ("Ctrl-S", "what was learnt: show, edit, undo"),
    ("Ctrl-G", "write the prompt in your editor ($VISUAL, $EDITOR)"),
    ("Ctrl-Z", "suspend; `fg` in the shell continues"),
    ("Ctrl-V", "paste a picture from the clipboard"),
    ("# fact", "save a memory of this project"),
    ("! command", "run a command yourself; the model sees its output"),
    ("@path", "attach a file or an image; type letters of its path to find it"),
    ("@agent-NAME", "ask for an agent; /agents names them"),
];
