//! The fields of entries in settings: prices, servers, hooks and the like.

use crate::kind::{EntryForm, Field, Kind};

/// Defines an entry: its required fields, then every field with its type and description.
macro_rules! entry {
    ($entry:ident needs $required:expr; $($name:literal: $kind:expr, $about:literal;)*) => {
        pub(super) const $entry: EntryForm =
            EntryForm { keys: &[$(Field { name: $name, kind: $kind, about: $about }),*], required: &$required };
    };
}

entry! { PRICE needs ["input", "output", "cacheWrite5m", "cacheWrite1h", "cacheRead"];
    "input": Kind::Amount, "Input that was not cached.";
    "output": Kind::Amount, "Output.";
    "cacheWrite5m": Kind::Amount, "Written to the cache for five minutes.";
    "cacheWrite1h": Kind::Amount, "Written to the cache for an hour.";
    "cacheRead": Kind::Amount, "Read from the cache.";
}

entry! { PROVIDER needs ["baseUrl"];
    "type": Kind::OneOf(&["openai", "anthropic"]), "The protocol: chat completions (`openai`, the default) or the Messages API.";
    "baseUrl": Kind::Text, "The server's address.";
    "keyEnv": Kind::Text, "The environment variable that holds its key.";
    "model": Kind::Text, "The model, if only the entry is named.";
    "window": Kind::Count, "Its window, in tokens.";
    "price": Kind::Entry(PRICE), "Its price, in dollars for a million tokens.";
}

entry! { HIDDEN_FILE needs ["path"];
    "path": Kind::Text, "The file.";
    "mode": Kind::OneOf(&["deny"]), "It may not be read.";
}

entry! { HIDDEN_VARIABLE needs ["name"];
    "name": Kind::Text, "The variable.";
    "mode": Kind::OneOf(&["deny"]), "It is removed.";
}

entry! { HOOK needs ["type"];
    "type": Kind::OneOf(&["command", "http", "prompt", "agent", "mcp_tool"]), "The kind of hook: a command, a POST to a URL, a question to the small model, an agent that checks first, or a call of a tool of an MCP server.";
    "command": Kind::Text, "The command: a shell command line, or with `args` a program.";
    "args": Kind::Texts, "The program's arguments; no shell is involved.";
    "url": Kind::Text, "The URL that the input is posted to. No other host is contacted.";
    "headers": Kind::Variables, "Headers of the request; `$NAME` stands for a variable of `allowedEnvVars`.";
    "allowedEnvVars": Kind::Texts, "Variables that headers may contain.";
    "prompt": Kind::Text, "The question to the model or the agent; `$ARGUMENTS` stands for the hook's input.";
    "model": Kind::Text, "The model that is asked. Default: the small model.";
    "server": Kind::Text, "The server whose tool is called, by the name that `cairn mcp list` shows.";
    "tool": Kind::Text, "The tool, by its name there.";
    "input": Kind::Object, "The call's input; `${tool_input.file_path}` and the like stand for parts of the event's input.";
    "timeout": Kind::Amount, "The most time it may take, in seconds.";
    "if": Kind::Text, "A permission rule: the hook runs only for calls that it covers.";
    "once": Kind::Switch, "Run only once in a session.";
    "async": Kind::Switch, "Do not wait for it; its output comes with a later request.";
    "statusMessage": Kind::Text, "Text shown while it runs.";
}

entry! { SERVER needs [];
    "type": Kind::Text, "How it is reached: `stdio` (the default) or `http`.";
    "command": Kind::Text, "The program to start. `${NAME}` and `${NAME:-default}` stand for a variable here and in all that follows.";
    "args": Kind::Texts, "The program's arguments.";
    "env": Kind::Variables, "The program's variables. It gets no other variable that looks like a credential.";
    "url": Kind::Text, "The address, for `http`.";
    "headers": Kind::Variables, "Headers of every request.";
    "headersHelper": Kind::Text, "A command that prints more headers as a JSON object.";
    "timeout": Kind::Count, "The most milliseconds a call may take.";
    "alwaysLoad": Kind::Switch, "Give the model its tools from the start, instead of on demand.";
    "disabled": Kind::Switch, "Do not start it.";
}

entry! { STATUS_LINE needs ["type", "command"];
    "type": Kind::OneOf(&["command"]), "Always a command.";
    "command": Kind::Text, "The shell command line. It gets the data it can show as JSON on standard input.";
    "padding": Kind::Amount, "Spaces before the line.";
    "refreshInterval": Kind::Count, "Seconds after which the command runs again.";
}
