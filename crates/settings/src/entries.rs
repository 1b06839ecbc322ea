//! What the entries of settings are made of: prices, servers, hooks and the like.

use crate::kind::{EntryForm, Field, Kind};

/// An entry: what it must have, and its fields with what they hold and mean.
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
    "type": Kind::OneOf(&["openai", "anthropic"]), "The protocol: chat completions (`openai`, also when nothing is said) or the Messages API.";
    "baseUrl": Kind::Text, "The server's address.";
    "keyEnv": Kind::Text, "The environment variable that holds its key.";
    "model": Kind::Text, "The model, when only the entry is named.";
    "window": Kind::Count, "Its window, in tokens.";
    "price": Kind::Entry(PRICE), "What it costs: dollars for a million tokens.";
}

entry! { HIDDEN_FILE needs ["path"];
    "path": Kind::Text, "The file.";
    "mode": Kind::OneOf(&["deny"]), "That it may not be read.";
}

entry! { HIDDEN_VARIABLE needs ["name"];
    "name": Kind::Text, "The variable.";
    "mode": Kind::OneOf(&["deny"]), "That it is taken out.";
}

entry! { HOOK needs ["type"];
    "type": Kind::OneOf(&["command", "http", "prompt", "agent", "mcp_tool"]), "What runs: a command, a POST to a URL, a question to the small model, an agent that looks first. There are no MCP servers yet.";
    "command": Kind::Text, "The command, a line of shell; with `args` a program.";
    "args": Kind::Texts, "The program's arguments: no shell is between.";
    "url": Kind::Text, "Where the input is posted to. No other host is contacted.";
    "headers": Kind::Variables, "Headers of the request; `$NAME` is a variable of `allowedEnvVars`.";
    "allowedEnvVars": Kind::Texts, "Variables that headers may hold.";
    "prompt": Kind::Text, "The question to the model or the agent; `$ARGUMENTS` is the hook's input.";
    "model": Kind::Text, "The model that is asked; the small one where nothing is said.";
    "timeout": Kind::Amount, "How long it may take, in seconds.";
    "if": Kind::Text, "A permission rule: it runs for calls that the rule is about.";
    "once": Kind::Switch, "Whether it runs once in a session.";
    "async": Kind::Switch, "Whether nobody waits for it. What it says comes with a later request.";
    "statusMessage": Kind::Text, "What is shown while it runs.";
}

entry! { STATUS_LINE needs ["type", "command"];
    "type": Kind::OneOf(&["command"]), "That it is a command.";
    "command": Kind::Text, "The command, a line of shell. It gets what it may show as JSON on standard input.";
    "padding": Kind::Amount, "Blanks before it.";
    "refreshInterval": Kind::Count, "Run it again after so many seconds.";
}
