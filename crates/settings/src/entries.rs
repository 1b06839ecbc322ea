//! What the entries of settings are made of: prices, servers, hooks and the like.

use crate::kind::{Entry, Field, Kind};

pub(super) const PRICE: Entry = Entry {
    keys: &[
        Field { name: "input", kind: Kind::Amount, about: "Input that was not cached." },
        Field { name: "output", kind: Kind::Amount, about: "Output." },
        Field { name: "cacheWrite5m", kind: Kind::Amount, about: "Written to the cache for five minutes." },
        Field { name: "cacheWrite1h", kind: Kind::Amount, about: "Written to the cache for an hour." },
        Field { name: "cacheRead", kind: Kind::Amount, about: "Read from the cache." },
    ],
    required: &["input", "output", "cacheWrite5m", "cacheWrite1h", "cacheRead"],
};

pub(super) const PROVIDER: Entry = Entry {
    keys: &[
        Field {
            name: "type",
            kind: Kind::OneOf(&["openai", "anthropic"]),
            about: "The protocol: chat completions (`openai`, also when nothing is said) or the Messages API.",
        },
        Field { name: "baseUrl", kind: Kind::Text, about: "The server's address." },
        Field { name: "keyEnv", kind: Kind::Text, about: "The environment variable that holds its key." },
        Field { name: "model", kind: Kind::Text, about: "The model, when only the entry is named." },
        Field { name: "window", kind: Kind::Count, about: "Its window, in tokens." },
        Field { name: "price", kind: Kind::Entry(PRICE), about: "What it costs: dollars for a million tokens." },
    ],
    required: &["baseUrl"],
};

pub(super) const HIDDEN_FILE: Entry = Entry {
    keys: &[
        Field { name: "path", kind: Kind::Text, about: "The file." },
        Field { name: "mode", kind: Kind::OneOf(&["deny"]), about: "That it may not be read." },
    ],
    required: &["path"],
};

pub(super) const HIDDEN_VARIABLE: Entry = Entry {
    keys: &[
        Field { name: "name", kind: Kind::Text, about: "The variable." },
        Field { name: "mode", kind: Kind::OneOf(&["deny"]), about: "That it is taken out." },
    ],
    required: &["name"],
};

pub(super) const HOOK: Entry = Entry {
    keys: &[
        Field {
            name: "type",
            kind: Kind::OneOf(&["command", "http", "prompt", "agent", "mcp_tool"]),
            about: "What runs: a command, a POST to a URL, a question to the small model, an agent that looks first. There are no MCP servers yet.",
        },
        Field { name: "command", kind: Kind::Text, about: "The command, a line of shell; with `args` a program." },
        Field { name: "args", kind: Kind::Texts, about: "The program's arguments: no shell is between." },
        Field { name: "url", kind: Kind::Text, about: "Where the input is posted to. No other host is contacted." },
        Field {
            name: "headers",
            kind: Kind::Variables,
            about: "Headers of the request; `$NAME` is a variable of `allowedEnvVars`.",
        },
        Field { name: "allowedEnvVars", kind: Kind::Texts, about: "Variables that headers may hold." },
        Field {
            name: "prompt",
            kind: Kind::Text,
            about: "The question to the model or the agent; `$ARGUMENTS` is the hook's input.",
        },
        Field {
            name: "model",
            kind: Kind::Text,
            about: "The model that is asked; the small one where nothing is said.",
        },
        Field { name: "timeout", kind: Kind::Amount, about: "How long it may take, in seconds." },
        Field { name: "if", kind: Kind::Text, about: "A permission rule: it runs for calls that the rule is about." },
        Field { name: "once", kind: Kind::Switch, about: "Whether it runs once in a session." },
        Field {
            name: "async",
            kind: Kind::Switch,
            about: "Whether nobody waits for it. What it says comes with a later request.",
        },
        Field { name: "statusMessage", kind: Kind::Text, about: "What is shown while it runs." },
    ],
    required: &["type"],
};

pub(super) const STATUS_LINE: Entry = Entry {
    keys: &[
        Field { name: "type", kind: Kind::OneOf(&["command"]), about: "That it is a command." },
        Field {
            name: "command",
            kind: Kind::Text,
            about: "The command, a line of shell. It gets what it may show as JSON on standard input.",
        },
        Field { name: "padding", kind: Kind::Amount, about: "Blanks before it." },
        Field { name: "refreshInterval", kind: Kind::Count, about: "Run it again after so many seconds." },
    ],
    required: &["type", "command"],
};
