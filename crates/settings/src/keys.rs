//! The keys that are read, in one table. Reading, its findings, who may set what, the reference and the JSON Schema all
//! come from it.
//!
//! A key that means the same in Claude Code has its name there; a name of ours that was there before is still read.

use serde_json::Value;

use super::entries::{HIDDEN_FILE, HIDDEN_VARIABLE, HOOK, PRICE, PROVIDER, STATUS_LINE as LINE};
use super::kind::object;
pub use super::kind::{EntryForm, Field, Kind, ValuePart};

/// A key that is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SettingKey {
    /// Its name; a dot stands between an object and what is in it.
    pub name: &'static str,
    /// A name it had before, which is still read.
    pub older: Option<&'static str>,
    /// What its value is.
    pub kind: Kind,
    /// Whose files may set it.
    pub reach: MaySet,
    /// What it does.
    pub about: &'static str,
}

/// Whose files may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaySet {
    /// Anybody's, also those of a directory nobody has trusted: all that it can ask for is caution.
    Anyone,
    /// Those below the project as soon as the user trusts them.
    Trusted,
    /// Never those below the project.
    Own,
}

impl MaySet {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Anyone => "any",
            Self::Trusted => "yours; the project's once you trust it",
            Self::Own => "yours only",
        }
    }
}

/// The modes a session can start in. `manual` is what Claude Code calls `default` as well.
const MODES: &[&str] = &["default", "manual", "acceptEdits", "plan", "bypassPermissions"];

/// How hard a model can be asked to try.
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];

/// The ways in which a person is told of being waited for.
const CHANNELS: &[&str] =
    &["terminal_bell", "auto", "iterm2", "iterm2_with_bell", "kitty", "ghostty", "notifications_disabled"];

macro_rules! keys {
    ($($constant:ident = $name:literal $(or $older:literal)?, $kind:expr, $reach:ident, $about:literal;)*) => {
        $(#[doc = $about] pub const $constant: SettingKey = SettingKey {
            name: $name, older: older!($($older)?), kind: $kind, reach: MaySet::$reach, about: $about,
        };)*
        /// All keys that are read.
        pub const KEYS: &[SettingKey] = &[$($constant),*];
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
    MODEL = "model", Kind::Text, Trusted, "The model, unless `--model` or a resumed session names one. The project's picks among those of the server you use, and names no other.";
    EFFORT = "effortLevel", Kind::OneOf(EFFORTS), Trusted, "How hard the model tries, where it can be asked; `--effort` says it for one session. An agent's definition may say otherwise for that agent.";
    LANGUAGE = "language", Kind::Text, Trusted, "The language in which the model answers.";
    OUTPUT_STYLE = "outputStyle", Kind::Text, Trusted, "How answers read: `Explanatory`, `Learning`, or a style of your own, a file in `~/.claude/output-styles`.";
    MAX_OUTPUT_TOKENS = "maxOutputTokens", Kind::Count, Trusted, "The most tokens a reply may have.";
    CACHE_TTL = "cacheTtl", Kind::OneOf(&["5m", "1h"]), Trusted, "How long the provider keeps the cached prefix.";
    PRICES = "prices", Kind::Entries(PRICE), Trusted, "Prices by model: dollars for a million tokens.";
    PROVIDERS = "providers", Kind::Entries(PROVIDER), Own, "Other servers by name; `NAME/MODEL` as the model talks to one.";
    SMALL_MODEL = "smallModel", Kind::Text, Trusted, "The model for side questions, such as which memories matter.";
    SELECTOR_MODEL = "selectorModel", Kind::Text, Trusted, "The model that is asked which memories matter, where it is to be another than the small one: a middle one chooses better, and is asked once a turn.";
    ENV = "env", Kind::Variables, Trusted, "Environment variables for the commands that tools run; yours also count where Cairn itself reads a variable. The project's may not be ones that load code, redirect traffic or hold a key.";
    COMMAND_CREDENTIALS = "commandCredentials", Kind::Switch, Own, "Whether commands that you allow get variables that look like credentials (`…_TOKEN`, `…_KEY`, addresses with a password). Those that run unasked never get them, and no command gets the keys to the model.";
    RECALL = "recall", Kind::Switch, Trusted, "Whether memories are brought up by themselves.";
    TEAM_DELETIONS = "teamDeletions", Kind::Switch, Own, "Whether a file you delete from team memory is deleted for all. Where not, it comes back with the next pull.";
    AUTO_MEMORY = "autoMemoryEnabled", Kind::Switch, Trusted, "Whether there is memory.";
    SKIP_INDEX = "skipIndex", Kind::Switch, Trusted, "Whether memory has no index: none is kept, and none is loaded at the start.";
    SEARCH_PAST = "searchPastContext", Kind::Switch, Trusted, "Whether the model is told how to search memories and past sessions.";
    MEMORY_DIRECTORY = "autoMemoryDirectory", Kind::Text, Own, "Where memory lies.";
    EXTRACT = "extract", Kind::Switch, Trusted, "Whether what was learnt is written down after turns, as memories.";
    EXTRACT_EVERY = "extractEvery", Kind::Count, Trusted, "After how many turns; 1 where nothing is said. The rest is learnt when the session ends.";
    EXTRACT_SHARE = "extractShare", Kind::Count, Trusted, "The share of a session's other cost that learning may have, in percent, what is learnt before it ends aside; 8 where nothing is said, 0 is no limit.";
    EXTRACT_HEADLESS = "extractHeadless", Kind::Switch, Trusted, "Whether runs without a terminal (`-p`) learn too, as with `--extract`.";
    EXTRACT_EXCLUDES = "extractExcludes", Kind::Texts, Anyone, "Patterns of files and directories that nothing is learnt from: no turn that touches one, no session in one. Written as in rules for Read.";
    EXTRACT_GATE = "extractGate", Kind::Switch, Trusted, "Whether turns in which nothing looks worth remembering are passed over before a model is asked.";
    DREAM = "dream", Kind::Switch, Trusted, "Whether memories are brought into order by themselves, after some days and sessions.";
    DREAM_HOURS = "dreamHours", Kind::Count, Trusted, "How many hours have to pass between two of these dreams; 24 where nothing is said.";
    DREAM_SESSIONS = "dreamSessions", Kind::Count, Trusted, "How many other sessions have to be touched between them; 5 where nothing is said.";
    DREAM_MODEL = "dreamModel", Kind::Text, Trusted, "The model that dreams; the one you talk to where nothing is said. It is one of the server you use.";
    DAILY_LOG = "dailyLog", Kind::Switch, Trusted, "Whether sessions write what is worth remembering into a daily log, which `/dream` distils, instead of memories.";
    TEAMMATES = "teammates", Kind::Switch, Own, "Whether the model may start teammates: processes that work beside the session and can be written to. Off where nothing is said; it adds to what SendMessage says and can do, and the list of tasks.";
    AGENTS = "agents", Kind::Agents, Trusted, "Agents by name, each with what the keys of an agent's file say and its `prompt`. Until you trust them, the project's can only take away.";
    LABEL_SECONDS = "labelSeconds", Kind::Count, Trusted, "How often an agent in the background, or a teammate at work, says anew in a few words what it does, in seconds; 30 where nothing is said, 0 is never. A small model is asked, or its own where that costs less.";
    MESSAGES = "messages", Kind::OneOf(&["ask", "allow"]), Own, "Whether a message from another session is asked about once for each sender, or let in.";
    AUTO_COMPACT = "autoCompactEnabled" or "autoCompact", Kind::Switch, Trusted, "Whether a full window is compacted by itself.";
    COMPACT_WHEN = "compactWhen", Kind::OneOf(&["window", "economy"]), Trusted, "When context is made shorter: when the window is full, or as soon as that is cheaper than carrying it.";
    SNIP = "snip", Kind::Switch, Trusted, "Whether the oldest messages are dropped where compaction would be due. Nothing is written down of them: the model has to look them up.";
    COLLAPSE = "collapse", Kind::Switch, Trusted, "Whether spans of old messages give way to summaries of them when the window is nearly full, in the place of compaction.";
    RESULT_LIMITS = "resultLimits", Kind::Counts, Trusted, "How many characters of a tool's result stay in view, by the tool's name, before the rest goes to a file; 30,000 for Bash, 20,000 for Grep, else 50,000; `Hook`, 10,000, is what a hook says. What Read returns it bounds by itself.";
    MESSAGE_LIMIT = "messageResultLimit", Kind::Count, Trusted, "How many characters the results of one message may have together; 200,000 where nothing is said.";
    MICROCOMPACT = "microcompact", Kind::Switch, Trusted, "Whether old tool results are cleared to make room.";
    DIGEST = "digest", Kind::Switch, Trusted, "Whether what is about to be cleared is written down first, where the model has not done so.";
    TIME_MICROCOMPACT = "timeMicrocompact", Kind::Switch, Trusted, "Whether old tool results are cleared when a session wakes up after an hour.";
    MICROCOMPACT_MINUTES = "microcompactMinutes", Kind::Count, Trusted, "After how many minutes without a reply; 60 where nothing is said, which is when the provider's cache is gone.";
    MICROCOMPACT_KEEP = "microcompactKeep", Kind::Count, Trusted, "How many of the newest results then stay; at least one does.";
    NOTES = "notes", Kind::Switch, Trusted, "Whether notes of the session are kept, for compaction.";
    BUDGET_USD = "budget.usdPerDay", Kind::Amount, Own, "What work in the background (notes, selectors, extraction, dreams) may cost a day, in dollars; 2 where nothing is said. Spent, it pauses until tomorrow; the conversation goes on.";
    BUDGET_TOKENS = "budget.tokensPerDay", Kind::Count, Own, "What it may read and write a day, in tokens, whatever the model. Where nothing is said, models without a price have 2,000,000 and the others no such bound.";
    BUDGET_PROJECT_USD = "budget.projectUsdPerDay", Kind::Amount, Own, "The same for each project, in dollars.";
    BUDGET_PROJECT_TOKENS = "budget.projectTokensPerDay", Kind::Count, Own, "The same for each project, in tokens.";
    BUDGET_AGENT_TOKENS = "budget.tokensPerAgent", Kind::Count, Own, "What an agent that is sent out may read and write on its task, with those it sends out itself, in tokens; a definition's `budget` can be less. Spent, it stops after the round and says so.";
    NOTES_FIRST = "notesAfterTokens", Kind::Count, Trusted, "How many tokens a conversation has when notes begin; 10,000 where nothing is said.";
    NOTES_MORE = "notesEveryTokens", Kind::Count, Trusted, "After how many more tokens they are brought up to date; 5,000 where nothing is said.";
    NOTES_CALLS = "notesEveryCalls", Kind::Count, Trusted, "And after how many calls, unless a reply makes none; 3 where nothing is said.";
    CLEAR_WHEN = "clearWhen", Kind::OneOf(&["pays", "window", "never"]), Trusted, "When old tool results are cleared: as soon as that is cheaper than carrying them, when the window fills up, or never.";
    KEEP_INSTRUCTIONS = "keepInstructions", Kind::Switch, Trusted, "Whether what you forbade or required (\"never…\", \"always ask before…\") stays in view in your own words through every compaction.";
    NOTES_COMPACT = "notesCompact", Kind::Switch, Trusted, "Whether notes take the place of a summary.";
    NOTES_SHARE = "notesShare", Kind::Count, Trusted, "The share of a session's cost that notes may have, in percent; 0 is no limit.";
    KEEP_TOKENS = "keepTokens", Kind::Count, Trusted, "How many tokens of the newest messages stay beside notes that take the place of a summary, at least; 10,000 where nothing is said.";
    KEEP_MESSAGES = "keepMessages", Kind::Count, Trusted, "And how many messages with text; 5 where nothing is said.";
    KEEP_MOST = "keepMostTokens", Kind::Count, Trusted, "Going back for them stops at so many tokens; 40,000 where nothing is said.";
    REACTIVE = "reactive", Kind::Switch, Trusted, "Whether a request that the provider finds too long is made shorter and sent again.";
    REACTIVE_ONLY = "reactiveOnly", Kind::Switch, Trusted, "Whether nothing is compacted before the provider itself says that a request is too long.";
    RESTORE_FILES = "restoreFiles", Kind::Count, Trusted, "How many files that were read last are shown again after a compaction.";
    CACHE_EDITS = "cacheEdits", Kind::Switch, Trusted, "Whether the provider drops old tool results from its cache, where it can (a private beta of the Messages API). Nothing is written down of what it drops.";
    CACHE_EDITS_AFTER = "cacheEditsAfter", Kind::Count, Trusted, "When there are more results than this that may go.";
    API_CONTEXT_MANAGEMENT = "apiContextManagement", Kind::Switch, Trusted, "Whether the provider is asked to leave out old tool results by itself, where it can (Messages API). Nothing is written down of what it leaves out.";
    API_COMPACTION = "apiCompaction", Kind::Switch, Trusted, "Whether the provider is asked to summarise a full window by itself, where it can (Messages API). Nothing is written down before it does.";
    API_THINKING = "apiThinkingTurns", Kind::Count, Trusted, "Of how many turns the provider then keeps the thinking; of all where this is not said.";
    TOKEN_ESTIMATE = "tokenEstimate", Kind::OneOf(&["fitted", "rough"]), Trusted, "How tokens are estimated: fitted to the session, or by four bytes a token.";
    CACHE_DIAGNOSIS = "cacheDiagnosis", Kind::Switch, Trusted, "Whether the provider is asked why its cache did not hold, where it says so (Messages API).";
    NO_HOOKS = "disableAllHooks", Kind::Switch, Trusted, "Whether no hook runs and no command for the status line. An organisation's still do, unless it says so itself.";
    STATUS_LINE = "statusLine", Kind::Entry(LINE), Trusted, "A line of your own above the status line, by a command.";
    CHANNEL = "preferredNotifChannel", Kind::OneOf(CHANNELS), Own, "How you are told that you are waited for: by the bell, or as iTerm2, Kitty or Ghostty show it. `auto` finds out which of these it is.";
    IDLE = "messageIdleNotifThresholdMs", Kind::Count, Own, "After how long without a word of yours you are told so, in milliseconds (60000).";
    EVENT_LOG = "eventLog", Kind::Text, Own, "A file to which what happens is added, a JSON object a line: names, counts and reasons, no text of yours, of the model or of files.";
    MANAGED_HOOKS = "allowManagedHooksOnly", Kind::Switch, Own, "Whether only an organisation's hooks run.";
    HTTP_HOOKS = "allowedHttpHookUrls", Kind::Texts, Own, "Where http hooks may post to, with `*` for anything; anywhere where nothing is said.";
    HTTP_VARIABLES = "httpHookAllowedEnvVars", Kind::Texts, Own, "Variables that headers of http hooks may hold; what each hook allows where nothing is said.";
    ON_PRE_TOOL_USE = "hooks.PreToolUse", Kind::Hooks(HOOK), Trusted, "Before a call runs: a hook can deny it, have it asked about, allow it as a rule would, or change its input.";
    ON_POST_TOOL_USE = "hooks.PostToolUse", Kind::Hooks(HOOK), Trusted, "After a call: a hook can change what the model sees of it, and add to it.";
    ON_POST_TOOL_USE_FAILURE = "hooks.PostToolUseFailure", Kind::Hooks(HOOK), Trusted, "After a call that failed.";
    ON_POST_TOOL_BATCH = "hooks.PostToolBatch", Kind::Hooks(HOOK), Trusted, "After all calls of a reply: a hook can end the turn.";
    ON_PERMISSION_REQUEST = "hooks.PermissionRequest", Kind::Hooks(HOOK), Trusted, "Before somebody is asked about a call: a hook can answer, unless a rule says to ask.";
    ON_PERMISSION_DENIED = "hooks.PermissionDenied", Kind::Hooks(HOOK), Trusted, "After a call was denied by a rule, by the mode, or because nobody can be asked.";
    ON_USER_PROMPT_SUBMIT = "hooks.UserPromptSubmit", Kind::Hooks(HOOK), Trusted, "Before what was said is sent: a hook can hold it back, or add to it.";
    ON_SESSION_START = "hooks.SessionStart", Kind::Hooks(HOOK), Trusted, "When a session starts, is resumed, cleared, forked or compacted: a hook can add to it.";
    ON_SESSION_END = "hooks.SessionEnd", Kind::Hooks(HOOK), Trusted, "When a session ends.";
    ON_STOP = "hooks.Stop", Kind::Hooks(HOOK), Trusted, "When the model has answered: a hook can send it on, at most 8 times in a row.";
    ON_SUBAGENT_START = "hooks.SubagentStart", Kind::Hooks(HOOK), Trusted, "When an agent is sent out; the matcher is on its type. What a hook adds, the agent is told.";
    ON_SUBAGENT_STOP = "hooks.SubagentStop", Kind::Hooks(HOOK), Trusted, "When an agent that was sent out has answered: a hook can send it on.";
    ON_STOP_FAILURE = "hooks.StopFailure", Kind::Hooks(HOOK), Trusted, "When a turn ends by an error, or a Stop hook fails.";
    ON_PRE_COMPACT = "hooks.PreCompact", Kind::Hooks(HOOK), Trusted, "Before a compaction: a hook can prevent it.";
    ON_POST_COMPACT = "hooks.PostCompact", Kind::Hooks(HOOK), Trusted, "After a compaction.";
    ON_INSTRUCTIONS_LOADED = "hooks.InstructionsLoaded", Kind::Hooks(HOOK), Trusted, "When an instruction file is loaded.";
    ON_CONFIG_CHANGE = "hooks.ConfigChange", Kind::Hooks(HOOK), Trusted, "When a settings file changes while a session runs: a hook can keep the change from counting.";
    ON_CWD_CHANGED = "hooks.CwdChanged", Kind::Hooks(HOOK), Trusted, "When a command moves the working directory.";
    ON_FILE_CHANGED = "hooks.FileChanged", Kind::Hooks(HOOK), Trusted, "When one of the files that the matcher names changes in the working directory. It is looked for before each request.";
    ON_NOTIFICATION = "hooks.Notification", Kind::Hooks(HOOK), Trusted, "When a person is waited for.";
    EXCLUDES = "claudeMdExcludes", Kind::Texts, Trusted, "Patterns of instruction files that are not loaded.";
    MODE = "permissions.defaultMode", Kind::OneOf(MODES), Trusted, "How much may happen without asking. The project's is never `bypassPermissions`.";
    NO_BYPASS = "permissions.disableBypassPermissionsMode", Kind::OneOf(&["disable"]), Trusted, "Keeps sessions out of the mode `bypassPermissions`, whatever a flag or another file says.";
    ALLOW = "permissions.allow", Kind::Texts, Trusted, "Rules for calls that run without asking.";
    ASK = "permissions.ask", Kind::Texts, Anyone, "Rules for calls that are always asked about.";
    DENY = "permissions.deny", Kind::Texts, Anyone, "Rules for calls that never run; stronger than all others.";
    DIRECTORIES = "permissions.additionalDirectories", Kind::Texts, Trusted, "More directories to work in.";
    SANDBOX = "sandbox.enabled", Kind::Switch, Trusted, "Whether commands run in a sandbox.";
    SANDBOX_UNASKED = "sandbox.autoAllowBashIfSandboxed", Kind::Switch, Trusted, "Whether commands run unasked where the sandbox holds.";
    SANDBOX_WITHOUT = "sandbox.allowUnsandboxedCommands", Kind::Switch, Trusted, "Whether a command may run outside of the sandbox, after a question.";
    SANDBOX_MUST = "sandbox.failIfUnavailable", Kind::Switch, Trusted, "Whether no command runs where there is no sandbox.";
    SANDBOX_EXCLUDED = "sandbox.excludedCommands", Kind::Texts, Trusted, "Commands that run outside of the sandbox, and are asked about.";
    SANDBOX_WRITE = "sandbox.filesystem.allowWrite", Kind::Texts, Trusted, "More paths that commands in the sandbox may write to.";
    SANDBOX_NO_WRITE = "sandbox.filesystem.denyWrite", Kind::Texts, Trusted, "Paths they may not write to.";
    SANDBOX_READ = "sandbox.filesystem.allowRead", Kind::Texts, Trusted, "More paths that they may read.";
    SANDBOX_NO_READ = "sandbox.filesystem.denyRead", Kind::Texts, Trusted, "Paths they may not read.";
    SANDBOX_DOMAINS = "sandbox.network.allowedDomains", Kind::Texts, Trusted, "Hosts they may talk to; with any, the whole network is open to them.";
    SANDBOX_NO_DOMAINS = "sandbox.network.deniedDomains", Kind::Texts, Trusted, "Hosts they may not talk to.";
    SANDBOX_SOCKETS = "sandbox.network.allowUnixSockets", Kind::Texts, Trusted, "Sockets by path they may connect to.";
    SANDBOX_ALL_SOCKETS = "sandbox.network.allowAllUnixSockets", Kind::Switch, Trusted, "Whether they may connect to any socket by path.";
    SANDBOX_BINDING = "sandbox.network.allowLocalBinding", Kind::Switch, Trusted, "Whether they may listen on this machine.";
    SANDBOX_NO_VARIABLES = "sandbox.credentials.envVars", Kind::List(HIDDEN_VARIABLE), Trusted, "Variables that are taken out of their environment.";
    SANDBOX_NO_FILES = "sandbox.credentials.files", Kind::List(HIDDEN_FILE), Trusted, "Files with keys that they may not read.";
}

impl SettingKey {
    /// The key of that name, or of one it had before.
    pub fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name || key.older == Some(name))
    }

    /// The name it stands under in a file, and its value.
    pub(super) fn find<'a>(&self, settings: &'a Value) -> Option<(&'static str, &'a Value)> {
        let at = |name: &'static str| {
            let value = name.split('.').try_fold(settings, |value, part| value.get(part))?;
            Some((name, value))
        };
        at(self.name).or_else(|| at(self.older?))
    }
}

/// The JSON Schema of a settings file. Keys that are not ours may hold anything.
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
