//! The commands that begin with a slash.

/// A command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlashCommand {
    /// Without the slash.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) argument: &'static str,
    /// What it does.
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
    "resume" "[ID]" "go on with another session of this project";
    "rewind" "[N] [WHAT]" "go back to before a message: conversation, files or both";
    "undo" "" "undo the last rewind, compaction or snip";
    "compact" "[WISH]" "let a summary stand for what was said; `from` or `up-to`: for a part";
    "snip" "" "drop what precedes a message from the window";
    "context" "" "what fills the window";
    "keep" "[drop N]" "what you forbade or required and is kept in view; lift one";
    "memory" "[NAME]" "show or edit memories and instruction files";
    "team" "[now|delete]" "how the shared memory stands and what others changed";
    "dream" "[WHAT]" "bring memories into order; `status`, `log`, `diff`, `undo`, `apply`, `stop`";
    "learnt" "" "what was learnt in this session: look, change, take back (Ctrl-S)";
    "private" "[on|off]" "learn nothing from what is said from here on, or again";
    "model" "[NAME]" "show or change the model";
    "mode" "[MODE]" "show or change what may happen unasked (Shift-Tab)";
    "permissions" "[MODE]" "show the rules, or change the mode";
    "hooks" "" "the hooks that run, and where they stand";
    "tasks" "[WHAT] [ID]" "what runs in the background (`stop`, `front`), and the list of tasks";
    "agents" "[NAME]" "the agents that can be sent out";
    "statusline" "[WISH]" "let an agent set up a status line of your own, from your shell's prompt or as you wish";
    "sandbox" "[on|off]" "what holds of the sandbox for commands, or change it";
    "cost" "" "what this session used and cost";
    "status" "" "session, model, window, directory";
    "export" "[FILE]" "write the conversation to a Markdown file";
    "expand" "" "show the last tool call or recalled memories whole (Ctrl-O)";
    "exit" "" "leave (Ctrl-D)";
}

/// Other names that people's fingers know.
const ALIASES: [(&str, &str); 4] = [("bashes", "tasks"), ("jobs", "tasks"), ("todos", "tasks"), ("quit", "exit")];

/// The command of this name.
pub(crate) fn find(name: &str) -> Option<&'static SlashCommand> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    COMMANDS.iter().find(|command| command.name == name)
}

/// What an argument can be, where there is a fixed list.
pub(crate) fn arguments(command: &str) -> &'static [&'static str] {
    match command {
        "mode" | "permissions" => &["default", "acceptEdits", "plan", "bypassPermissions"],
        "model" => &["opus", "sonnet", "haiku"],
        "compact" => &["from", "up-to"],
        "sandbox" | "private" => &["on", "off"],
        "tasks" => &["stop", "front"],
        "team" => &["now", "delete"],
        "dream" => &["status", "log", "diff", "undo", "apply", "stop"],
        _ => &[],
    }
}

/// What `/help` shows, besides the commands.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while the agent works: queue for its next round"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Up, Down", "history; an empty prompt takes a queued message back first"),
    ("Ctrl-R", "search the history for what is typed"),
    ("Tab", "complete a command, a file or an agent after @, an argument"),
    ("Shift-Tab", "the next mode: default, acceptEdits, plan; also while the agent works"),
    ("Esc, Ctrl-C", "stop the turn, teammates too; Ctrl-C twice leaves"),
    ("Ctrl-O", "show the last tool call or recalled memories whole"),
    ("Ctrl-S", "what was learnt: look at it, change it, take it back"),
    ("Ctrl-G", "write the prompt in your editor ($VISUAL, $EDITOR)"),
    ("Ctrl-Z", "stop the program until the shell's fg"),
    ("! command", "run a command yourself; the model sees its output"),
    ("@path", "name a file; pictures are sent along"),
    ("@agent-NAME", "ask for an agent; /agents names them"),
];
