//! The commands that begin with a slash.

/// A command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    /// Without the slash.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) argument: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
}

/// All of them, in the order help shows them.
pub(crate) const COMMANDS: &[Command] = &[
    Command { name: "help", argument: "", about: "the commands and keys" },
    Command { name: "clear", argument: "", about: "begin a new session" },
    Command { name: "resume", argument: "[ID]", about: "go on with another session of this project" },
    Command {
        name: "rewind",
        argument: "[N] [WHAT]",
        about: "go back to before a message: conversation, files or both",
    },
    Command { name: "undo", argument: "", about: "undo the last rewind, compaction or snip" },
    Command {
        name: "compact",
        argument: "[WISH]",
        about: "let a summary stand for what was said; `from` or `up-to`: for a part",
    },
    Command { name: "snip", argument: "", about: "drop what precedes a message from the window" },
    Command { name: "context", argument: "", about: "what fills the window" },
    Command { name: "keep", argument: "[drop N]", about: "what you forbade or required and is kept in view; lift one" },
    Command { name: "memory", argument: "[NAME]", about: "show or edit memories and instruction files" },
    Command { name: "team", argument: "[now|delete]", about: "how the shared memory stands and what others changed" },
    Command {
        name: "dream",
        argument: "[WHAT]",
        about: "bring memories into order; `status`, `log`, `diff`, `undo`, `stop`",
    },
    Command {
        name: "learnt",
        argument: "",
        about: "what was learnt in this session: look, change, take back (Ctrl-S)",
    },
    Command { name: "private", argument: "[on|off]", about: "learn nothing from what is said from here on, or again" },
    Command { name: "model", argument: "[NAME]", about: "show or change the model" },
    Command { name: "mode", argument: "[MODE]", about: "show or change what may happen unasked (Shift-Tab)" },
    Command { name: "permissions", argument: "[MODE]", about: "show the rules, or change the mode" },
    Command { name: "hooks", argument: "", about: "the hooks that run, and where they stand" },
    Command {
        name: "tasks",
        argument: "[WHAT] [ID]",
        about: "what runs in the background (`stop`, `front`), and the list of tasks",
    },
    Command { name: "agents", argument: "[NAME]", about: "the agents that can be sent out" },
    Command {
        name: "statusline",
        argument: "[WISH]",
        about: "let an agent set up a status line of your own, from your shell's prompt or as you wish",
    },
    Command { name: "sandbox", argument: "[on|off]", about: "what holds of the sandbox for commands, or change it" },
    Command { name: "cost", argument: "", about: "what this session used and cost" },
    Command { name: "status", argument: "", about: "session, model, window, directory" },
    Command { name: "export", argument: "[FILE]", about: "write the conversation to a Markdown file" },
    Command { name: "expand", argument: "", about: "show the last tool call or recalled memories whole (Ctrl-O)" },
    Command { name: "exit", argument: "", about: "leave (Ctrl-D)" },
];

/// Other names that people's fingers know.
const ALIASES: [(&str, &str); 4] = [("bashes", "tasks"), ("jobs", "tasks"), ("todos", "tasks"), ("quit", "exit")];

/// The command of this name.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
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
        "dream" => &["status", "log", "diff", "undo", "stop"],
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
