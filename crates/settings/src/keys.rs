//! The table of all setting keys. Loading, findings, the permission to set a key, the reference and the JSON Schema all
//! come from it.
//!
//! A key that means the same in Claude Code has the name it has there; older names of ours are still read.

use serde_json::Value;

use super::entries::{HIDDEN_FILE, HIDDEN_VARIABLE, HOOK, PRICE, PROVIDER, SERVER, STATUS_LINE as LINE};
use super::kind::object;
pub use super::kind::{EntryForm, Field, Kind, ValuePart};

/// A setting key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SettingKey {
    /// Its name, with dots between the names of nested objects.
    pub name: &'static str,
    /// An older name that is still read.
    pub older: Option<&'static str>,
    /// Type of its value.
    pub kind: Kind,
    /// Files that may set it.
    pub reach: MaySet,
    /// Description for the reference and the schema.
    pub about: &'static str,
    /// Section of the reference it belongs to.
    pub group: SettingGroup,
}

/// A section of the settings reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingGroup {
    /// The model and its answers.
    Model,
    /// Permissions and the environment of commands.
    Permissions,
    /// The sandbox.
    Sandbox,
    /// Memory, learning, dreams and instruction files.
    Memory,
    /// The context window.
    Window,
    /// Agents, messages and budgets.
    Agents,
    /// Plugins.
    Plugins,
    /// Hooks.
    Hooks,
    /// The screen, notifications and the event log.
    Screen,
    /// Thresholds and experiments that few people change; they have a page of their own.
    Tuning,
}

impl SettingGroup {
    /// The sections of the page that everybody reads, in order.
    pub const MAIN: [Self; 9] = [
        Self::Model,
        Self::Permissions,
        Self::Sandbox,
        Self::Memory,
        Self::Window,
        Self::Agents,
        Self::Plugins,
        Self::Hooks,
        Self::Screen,
    ];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Model => "Model and answers",
            Self::Permissions => "Permissions and commands",
            Self::Sandbox => "Sandbox",
            Self::Memory => "Memory and instructions",
            Self::Window => "Context window",
            Self::Agents => "Agents, messages and budgets",
            Self::Plugins => "Plugins",
            Self::Hooks => "Hooks",
            Self::Screen => "Screen and notifications",
            Self::Tuning => "Tuning",
        }
    }
}

/// The files that may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaySet {
    /// Any file, even in an untrusted directory: the key can only make Cairn more careful.
    Anyone,
    /// The user's files, and the project's once the user trusts them.
    Trusted,
    /// Never the project's files.
    Own,
}

impl MaySet {
    /// Description for the reference.
    pub fn words(self) -> &'static str {
        match self {
            Self::Anyone => "any",
            Self::Trusted => "yours; the project's once trusted",
            Self::Own => "yours only",
        }
    }
}

/// Modes that a session can start in. `manual` is another name of `default` in Claude Code.
const MODES: &[&str] = &["default", "manual", "acceptEdits", "plan", "bypassPermissions"];

/// Levels of effort.
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];

/// Ways to notify the user.
const CHANNELS: &[&str] =
    &["terminal_bell", "auto", "iterm2", "iterm2_with_bell", "kitty", "ghostty", "notifications_disabled"];

/// Kinds of background that colours are chosen for.
const THEMES: &[&str] = &["auto", "dark", "light"];

/// Keys of the prompt.
const EDITOR_MODES: &[&str] = &["normal", "vim"];

macro_rules! keys {
    ($($group:ident {
        $($constant:ident = $name:literal $(or $older:literal)?, $kind:expr, $reach:ident, $about:literal;)*
    })*) => {
        $($(#[doc = $about] pub const $constant: SettingKey = SettingKey {
            name: $name, older: older!($($older)?), kind: $kind, reach: MaySet::$reach, about: $about,
            group: SettingGroup::$group,
        };)*)*
        /// All keys that are read, group by group.
        pub const KEYS: &[SettingKey] = &[$($($constant,)*)*];
    };
}

macro_rules! older {
    () => {
        None
    };
    ($older:literal) => {
        Some($older)
    };
}

keys! {
    Model {
        MODEL = "model", Kind::Text, Trusted, "The model, unless `--model` or a resumed session names one. A project may only choose among the models of the server you use.";
        EFFORT = "effortLevel", Kind::OneOf(EFFORTS), Trusted, "The effort asked of the model, if it supports that. `--effort` overrides it for one session, an agent's definition for that agent.";
        SMALL_MODEL = "smallModel", Kind::Text, Trusted, "The model for side questions, such as which memories matter.";
        LANGUAGE = "language", Kind::Text, Trusted, "The language in which the model answers.";
        OUTPUT_STYLE = "outputStyle", Kind::Text, Trusted, "The style of answers: `Explanatory`, `Learning`, or a file of your own in `~/.claude/output-styles`.";
        MAX_OUTPUT_TOKENS = "maxOutputTokens", Kind::Count, Trusted, "The most tokens a reply may have.";
        PROVIDERS = "providers", Kind::Entries(PROVIDER), Own, "Other servers by name; the model `NAME/MODEL` uses one.";
        PRICES = "prices", Kind::Entries(PRICE), Trusted, "Prices by model, in dollars for a million tokens.";
    }
    Permissions {
        MODE = "permissions.defaultMode", Kind::OneOf(MODES), Trusted, "The mode that sessions start in: how much may happen without asking. A project cannot set `bypassPermissions`.";
        ALLOW = "permissions.allow", Kind::Texts, Trusted, "Rules for calls that run without asking.";
        ASK = "permissions.ask", Kind::Texts, Anyone, "Rules for calls that you are always asked about.";
        DENY = "permissions.deny", Kind::Texts, Anyone, "Rules for calls that never run; they override all others.";
        DIRECTORIES = "permissions.additionalDirectories", Kind::Texts, Trusted, "More directories to work in.";
        PRIVATE_HOSTS = "webPrivateHosts", Kind::Texts, Own, "Hosts that WebFetch may contact though they are at private addresses, as `NAME` or `NAME:PORT`, such as `localhost:3000`.";
        WEB_SEARCH = "webSearch", Kind::Switch, Trusted, "Offer WebSearch, which has the provider search the web. Default: on for the Messages API at its own address. Servers that only speak its protocol may not search; providers of the type `openai` never do.";
        NO_BYPASS = "permissions.disableBypassPermissionsMode", Kind::OneOf(&["disable"]), Trusted, "Disables the mode `bypassPermissions`, whatever a flag or another file says.";
        ENV = "env", Kind::Variables, Trusted, "Environment variables for the commands that tools run. Your own also apply where Cairn itself reads a variable. A project cannot set variables that load code, redirect traffic or hold a key.";
        COMMAND_CREDENTIALS = "commandCredentials", Kind::Switch, Own, "Pass variables that look like credentials (`…_TOKEN`, `…_KEY`, addresses with a password) to commands that you allow. Commands that run unasked never get them, and no command gets the keys to the model.";
    }
    Sandbox {
        SANDBOX = "sandbox.enabled", Kind::Switch, Trusted, "Run commands in a sandbox.";
        SANDBOX_UNASKED = "sandbox.autoAllowBashIfSandboxed", Kind::Switch, Trusted, "Run commands without asking if the sandbox is fully enforced.";
        SANDBOX_WITHOUT = "sandbox.allowUnsandboxedCommands", Kind::Switch, Trusted, "Let a command run outside the sandbox if you agree.";
        SANDBOX_MUST = "sandbox.failIfUnavailable", Kind::Switch, Trusted, "Run no command if the sandbox is not available.";
        SANDBOX_EXCLUDED = "sandbox.excludedCommands", Kind::Texts, Trusted, "Commands that run outside the sandbox, after asking.";
        SANDBOX_WRITE = "sandbox.filesystem.allowWrite", Kind::Texts, Trusted, "More paths that commands in the sandbox may write to.";
        SANDBOX_NO_WRITE = "sandbox.filesystem.denyWrite", Kind::Texts, Trusted, "Paths that they may not write to.";
        SANDBOX_READ = "sandbox.filesystem.allowRead", Kind::Texts, Trusted, "More paths that they may read.";
        SANDBOX_NO_READ = "sandbox.filesystem.denyRead", Kind::Texts, Trusted, "Paths that they may not read.";
        SANDBOX_DOMAINS = "sandbox.network.allowedDomains", Kind::Texts, Trusted, "Hosts that they may connect to. Single hosts cannot be enforced: any entry opens the whole network, and unless it is `*` you are asked about each command.";
        SANDBOX_NO_DOMAINS = "sandbox.network.deniedDomains", Kind::Texts, Trusted, "Hosts that they may not connect to.";
        SANDBOX_SOCKETS = "sandbox.network.allowUnixSockets", Kind::Texts, Trusted, "Unix sockets, by path, that they may connect to.";
        SANDBOX_ALL_SOCKETS = "sandbox.network.allowAllUnixSockets", Kind::Switch, Trusted, "Let them connect to any Unix socket.";
        SANDBOX_NO_VARIABLES = "sandbox.credentials.envVars", Kind::List(HIDDEN_VARIABLE), Trusted, "Variables that are removed from their environment.";
        SANDBOX_NO_FILES = "sandbox.credentials.files", Kind::List(HIDDEN_FILE), Trusted, "Files with credentials that they may not read.";
    }
    Memory {
        AUTO_MEMORY = "autoMemoryEnabled", Kind::Switch, Trusted, "Use memory at all.";
        RECALL = "recall", Kind::Switch, Trusted, "Attach the memories that matter to your messages.";
        EXTRACT = "extract", Kind::Switch, Trusted, "Learn after turns: write down as memories what later sessions should know.";
        EXTRACT_HEADLESS = "extractHeadless", Kind::Switch, Trusted, "Learn in runs without a terminal (`-p`) too, as with `--extract`.";
        EXTRACT_EXCLUDES = "extractExcludes", Kind::Texts, Anyone, "Files and directories to learn nothing from: turns that touch one and sessions in one are skipped. Patterns as in rules for Read.";
        DREAM = "dream", Kind::Switch, Trusted, "Dream automatically: merge, correct and remove memories after some days and sessions.";
        DREAM_MODEL = "dreamModel", Kind::Text, Trusted, "The model that dreams. It has to be on the server you use. Default: the model of the session.";
        DAILY_LOG = "dailyLog", Kind::Switch, Trusted, "Append what is worth remembering to a daily log instead of writing memories; `/dream` turns the log into memories.";
        MEMORY_DIRECTORY = "autoMemoryDirectory", Kind::Text, Own, "The directory of memories.";
        TEAM_DELETIONS = "teamDeletions", Kind::Switch, Own, "Delete a file of team memory for everyone when you delete it. If false, it comes back with the next pull.";
        EXCLUDES = "claudeMdExcludes", Kind::Texts, Trusted, "Patterns of instruction files that are not loaded.";
    }
    Window {
        AUTO_COMPACT = "autoCompactEnabled" or "autoCompact", Kind::Switch, Trusted, "Compact automatically when the window is full.";
        MICROCOMPACT = "microcompact", Kind::Switch, Trusted, "Clear old tool results to make room.";
        NOTES = "notes", Kind::Switch, Trusted, "Keep notes of the session, ready for the next compaction.";
        KEEP_INSTRUCTIONS = "keepInstructions", Kind::Switch, Trusted, "Keep what you forbade or required (\"never…\", \"always ask before…\") in view, in your own words, through every compaction.";
    }
    Agents {
        SERVERS = "mcpServers", Kind::Entries(SERVER), Trusted, "MCP servers by name, as `.mcp.json` has them: `command`, `args` and `env`, or `type` and `url`. `cairn mcp add` writes them here.";
        DISABLED_SERVERS = "disabledMcpServers" or "disabledMcpjsonServers", Kind::Texts, Anyone, "Names of MCP servers that are not started.";
        AGENTS = "agents", Kind::Agents, Trusted, "Agents by name, each with its `prompt` and the keys of an agent's file. Until you trust them, a project's agents can only restrict.";
        TEAMMATES = "teammates", Kind::Switch, Own, "Let the model start teammates: agents in their own processes that exchange messages with the session. Off by default; it extends SendMessage and the task list.";
        MESSAGES = "messages", Kind::OneOf(&["ask", "allow"]), Own, "Messages from other sessions: `ask` once for each sender, or `allow` all.";
        BUDGET_USD = "budget.usdPerDay", Kind::Amount, Own, "The most that background work (notes, selectors, learning, dreams) may cost a day, in dollars. When it is spent, that work pauses until tomorrow; the conversation goes on. Default: 2.";
        BUDGET_TOKENS = "budget.tokensPerDay", Kind::Count, Own, "The most that background work may read and write a day, in tokens, whatever the model. Default: 2,000,000 for models without a price, no limit for the others.";
        BUDGET_PROJECT_USD = "budget.projectUsdPerDay", Kind::Amount, Own, "The same for each project, in dollars.";
        BUDGET_PROJECT_TOKENS = "budget.projectTokensPerDay", Kind::Count, Own, "The same for each project, in tokens.";
        BUDGET_AGENT_TOKENS = "budget.tokensPerAgent", Kind::Count, Own, "The most tokens a subagent may read and write on its task, together with the agents it starts. A definition's `budget` can be lower. When it is spent, the agent stops after the round and says so.";
    }
    Plugins {
        ENABLED_PLUGINS = "enabledPlugins", Kind::Switches, Trusted, "Plugins that Claude Code has installed, as `NAME@MARKETPLACE`, and whether they are used. A project's settings can use only those that you have installed.";
        PLUGIN_DIRECTORIES = "pluginDirectories", Kind::Texts, Own, "Folders of plugins to use, without installing them. `--plugin-dir` names one for a run.";
    }
    Hooks {
        NO_HOOKS = "disableAllHooks", Kind::Switch, Trusted, "Turn off all hooks and the custom status line. An organisation's still run, unless its own settings turn them off.";
        MANAGED_HOOKS = "allowManagedHooksOnly", Kind::Switch, Own, "Run only an organisation's hooks.";
        HTTP_HOOKS = "allowedHttpHookUrls", Kind::Texts, Own, "URLs that http hooks may post to; `*` matches anything. Default: any URL.";
        HTTP_VARIABLES = "httpHookAllowedEnvVars", Kind::Texts, Own, "Variables that headers of http hooks may contain. Default: those that each hook names.";
        ON_PRE_TOOL_USE = "hooks.PreToolUse", Kind::Hooks(HOOK), Trusted, "Before a call runs: a hook can deny it, have you asked about it, allow it as a rule would, or change its input.";
        ON_POST_TOOL_USE = "hooks.PostToolUse", Kind::Hooks(HOOK), Trusted, "After a call: a hook can change what the model sees of the result, and add to it.";
        ON_POST_TOOL_USE_FAILURE = "hooks.PostToolUseFailure", Kind::Hooks(HOOK), Trusted, "After a call that failed.";
        ON_POST_TOOL_BATCH = "hooks.PostToolBatch", Kind::Hooks(HOOK), Trusted, "After all calls of a reply: a hook can end the turn.";
        ON_PERMISSION_REQUEST = "hooks.PermissionRequest", Kind::Hooks(HOOK), Trusted, "Before you are asked about a call: a hook can answer, unless a rule says to ask.";
        ON_PERMISSION_DENIED = "hooks.PermissionDenied", Kind::Hooks(HOOK), Trusted, "After a call was denied by a rule, by the mode, or because nobody could be asked.";
        ON_USER_PROMPT_SUBMIT = "hooks.UserPromptSubmit", Kind::Hooks(HOOK), Trusted, "Before a message of yours is sent: a hook can hold it back, or add to it.";
        ON_SESSION_START = "hooks.SessionStart", Kind::Hooks(HOOK), Trusted, "When a session starts, is resumed, cleared, forked or compacted: a hook can add to it.";
        ON_SESSION_END = "hooks.SessionEnd", Kind::Hooks(HOOK), Trusted, "When a session ends.";
        ON_STOP = "hooks.Stop", Kind::Hooks(HOOK), Trusted, "When the model has answered: a hook can make it continue, at most 8 times in a row.";
        ON_SUBAGENT_START = "hooks.SubagentStart", Kind::Hooks(HOOK), Trusted, "When a subagent starts; the matcher applies to its type. What a hook adds goes to the subagent.";
        ON_SUBAGENT_STOP = "hooks.SubagentStop", Kind::Hooks(HOOK), Trusted, "When a subagent has answered: a hook can make it continue.";
        ON_STOP_FAILURE = "hooks.StopFailure", Kind::Hooks(HOOK), Trusted, "When a turn ends with an error, or a Stop hook fails.";
        ON_PRE_COMPACT = "hooks.PreCompact", Kind::Hooks(HOOK), Trusted, "Before a compaction: a hook can prevent it.";
        ON_POST_COMPACT = "hooks.PostCompact", Kind::Hooks(HOOK), Trusted, "After a compaction.";
        ON_INSTRUCTIONS_LOADED = "hooks.InstructionsLoaded", Kind::Hooks(HOOK), Trusted, "When an instruction file is loaded.";
        ON_CONFIG_CHANGE = "hooks.ConfigChange", Kind::Hooks(HOOK), Trusted, "When a settings file changes during a session: a hook can keep the change from taking effect.";
        ON_CWD_CHANGED = "hooks.CwdChanged", Kind::Hooks(HOOK), Trusted, "When a command changes the working directory.";
        ON_FILE_CHANGED = "hooks.FileChanged", Kind::Hooks(HOOK), Trusted, "When a file in the working directory that the matcher names changes. Checked before each request.";
        ON_NOTIFICATION = "hooks.Notification", Kind::Hooks(HOOK), Trusted, "When the session waits for you.";
    }
    Screen {
        THEME = "theme", Kind::OneOf(THEMES), Own, "The background that colours are chosen for. `auto`, the default, takes `COLORFGBG` at its word where the terminal sets it, and dark otherwise.";
        EDITOR_MODE = "editorMode", Kind::OneOf(EDITOR_MODES), Own, "The keys of the prompt: `vim`, or the usual ones.";
        STATUS_LINE = "statusLine", Kind::Entry(LINE), Trusted, "A line above the status line, printed by a command of yours.";
        CHANNEL = "preferredNotifChannel", Kind::OneOf(CHANNELS), Own, "How to tell you that the session waits for you: by the bell, or by a notification of iTerm2, Kitty or Ghostty. `auto` detects the terminal.";
        IDLE = "messageIdleNotifThresholdMs", Kind::Count, Own, "The time without input after which you are told that the session waits for you, in milliseconds. Default: 60000.";
        EVENT_LOG = "eventLog", Kind::Text, Own, "A file to which events are appended, one JSON object a line: names, counts and reasons, but no text of yours, of the model or of files.";
    }
    Tuning {
        SELECTOR_MODEL = "selectorModel", Kind::Text, Trusted, "The model that chooses which memories matter, if not the small one. A mid-sized one chooses better; it is asked once a turn.";
        SKIP_INDEX = "skipIndex", Kind::Switch, Trusted, "Memory without an index: none is written, and none is loaded at the start.";
        SEARCH_PAST = "searchPastContext", Kind::Switch, Trusted, "Tell the model how to search memories and past sessions.";
        EXTRACT_EVERY = "extractEvery", Kind::Count, Trusted, "Learn after this many turns. The rest is learnt when the session ends. Default: 1.";
        EXTRACT_SHARE = "extractShare", Kind::Count, Trusted, "The most that learning may cost, in percent of the session's other cost; what is learnt when the session ends does not count. 0 means no limit. Default: 8.";
        EXTRACT_GATE = "extractGate", Kind::Switch, Trusted, "Skip turns in which nothing looks worth remembering, before a model is asked.";
        DREAM_HOURS = "dreamHours", Kind::Count, Trusted, "The fewest hours between two automatic dreams. Default: 24.";
        DREAM_SESSIONS = "dreamSessions", Kind::Count, Trusted, "The fewest other sessions used between two automatic dreams. Default: 5.";
        LABEL_SECONDS = "labelSeconds", Kind::Count, Trusted, "Seconds after which the label of a background agent or teammate is renewed; 0 means never. The small model is asked, or the agent's own if that costs less. Default: 30.";
        CACHE_TTL = "cacheTtl", Kind::OneOf(&["5m", "1h"]), Trusted, "The time that the provider keeps the cached prefix.";
        COMPACT_WHEN = "compactWhen", Kind::OneOf(&["window", "economy"]), Trusted, "When to shorten the context: when the window is full, or as soon as that is cheaper than carrying it on.";
        CLEAR_WHEN = "clearWhen", Kind::OneOf(&["pays", "window", "never"]), Trusted, "When to clear old tool results: as soon as that is cheaper than carrying them on, when the window fills up, or never.";
        DIGEST = "digest", Kind::Switch, Trusted, "Write a digest of results before they are cleared, if the model has not put them in its own words.";
        TIME_MICROCOMPACT = "timeMicrocompact", Kind::Switch, Trusted, "Clear old tool results when a session continues after a pause.";
        MICROCOMPACT_MINUTES = "microcompactMinutes", Kind::Count, Trusted, "The length of that pause, in minutes. Default: 60, when the provider's cache has expired.";
        MICROCOMPACT_KEEP = "microcompactKeep", Kind::Count, Trusted, "The number of newest results that are then kept, at least one.";
        RESULT_LIMITS = "resultLimits", Kind::Counts, Trusted, "The most characters of a result that stay in view, by tool, before the rest goes to a file. Default: 30,000 for Bash, 20,000 for Grep, 10,000 for `Hook` (what a hook says), 50,000 for the others. Read limits its own results.";
        MESSAGE_LIMIT = "messageResultLimit", Kind::Count, Trusted, "The most characters that the results of one message may have together. Default: 200,000.";
        NOTES_COMPACT = "notesCompact", Kind::Switch, Trusted, "Let notes take the place of a summary.";
        NOTES_FIRST = "notesAfterTokens", Kind::Count, Trusted, "The tokens of a conversation after which notes begin. Default: 10,000.";
        NOTES_MORE = "notesEveryTokens", Kind::Count, Trusted, "The tokens after which notes are updated again. Default: 5,000.";
        NOTES_CALLS = "notesEveryCalls", Kind::Count, Trusted, "Notes also wait for this many calls before an update, unless a reply makes none. Default: 3.";
        NOTES_SHARE = "notesShare", Kind::Count, Trusted, "The most that notes may cost, in percent of the session's cost; 0 means no limit.";
        KEEP_TOKENS = "keepTokens", Kind::Count, Trusted, "When notes take the place of a summary: the fewest tokens of newest messages that stay. Default: 10,000.";
        KEEP_MESSAGES = "keepMessages", Kind::Count, Trusted, "The fewest messages with text that then stay. Default: 5.";
        KEEP_MOST = "keepMostTokens", Kind::Count, Trusted, "The most tokens that the messages that stay may have. Default: 40,000.";
        RESTORE_FILES = "restoreFiles", Kind::Count, Trusted, "The number of recently read files that are shown again after a compaction.";
        REACTIVE = "reactive", Kind::Switch, Trusted, "Shorten a request that the provider refuses as too long, and send it again.";
        REACTIVE_ONLY = "reactiveOnly", Kind::Switch, Trusted, "Compact nothing until the provider refuses a request as too long.";
        SNIP = "snip", Kind::Switch, Trusted, "Drop the oldest messages instead of compacting. Nothing from them is written down: the model has to look them up.";
        COLLAPSE = "collapse", Kind::Switch, Trusted, "Replace spans of old messages with summaries when the window is nearly full, instead of compacting.";
        CACHE_EDITS = "cacheEdits", Kind::Switch, Trusted, "Have the provider drop old tool results from its cache, if it can (a private beta of the Messages API). Nothing from them is written down.";
        CACHE_EDITS_AFTER = "cacheEditsAfter", Kind::Count, Trusted, "The number of droppable results above which the provider is asked to drop them.";
        API_CONTEXT_MANAGEMENT = "apiContextManagement", Kind::Switch, Trusted, "Have the provider leave out old tool results itself, if it can (Messages API). Nothing from them is written down.";
        API_THINKING = "apiThinkingTurns", Kind::Count, Trusted, "The number of turns whose thinking the provider then keeps. Default: all.";
        API_COMPACTION = "apiCompaction", Kind::Switch, Trusted, "Have the provider summarise a full window itself, if it can (Messages API). Nothing is written down before.";
        TOKEN_ESTIMATE = "tokenEstimate", Kind::OneOf(&["fitted", "rough"]), Trusted, "How tokens are estimated: fitted to the session, or at four bytes a token.";
        CACHE_DIAGNOSIS = "cacheDiagnosis", Kind::Switch, Trusted, "Ask the provider why its cache was not used, if it can say so (Messages API).";
    }
}

impl SettingKey {
    /// The key of that name or older name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name || key.older == Some(name))
    }

    /// The name under which a file sets it, and its value there.
    pub(super) fn find<'a>(&self, settings: &'a Value) -> Option<(&'static str, &'a Value)> {
        let at = |name: &'static str| {
            let value = name.split('.').try_fold(settings, |value, part| value.get(part))?;
            Some((name, value))
        };
        at(self.name).or_else(|| at(self.older?))
    }
}

/// The JSON Schema of a settings file. Unknown keys may hold anything.
pub fn schema() -> Value {
    let named = |key: &SettingKey| {
        let older = key.older.map(|older| (older, key.kind, format!("An older name of `{}`.", key.name)));
        std::iter::once((key.name, key.kind, key.about.to_owned())).chain(older)
    };
    let mut schema = object(KEYS.iter().flat_map(named), &[]);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Settings that Cairn reads".into();
    schema
}
