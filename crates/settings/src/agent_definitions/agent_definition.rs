//! The definition of one agent, from a file or an object.

use std::path::PathBuf;

use memory::frontmatter;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tools::Subject;
use tools::permission::{Mode, RuleVerdict, Rules};
use transcript::{Effort, tool_names};

use super::agent_hooks::hooks_of;
use super::agent_servers::entries;
use super::find::PluginAgent;
use super::registry::DefinitionSource;
use crate::trust::{Claim, Kind, TrustSite, claim_words};

/// The agent type that continues from the conversation as it stands.
pub const FORK: &str = "fork";
/// The most requests of one run, if the definition does not say.
pub const MOST_ROUNDS: u32 = 200;

/// The keys of a definition.
pub const KEYS: [&str; 18] = [
    "name",
    "description",
    "prompt",
    "tools",
    "disallowedTools",
    "model",
    "effort",
    "maxTurns",
    "budget",
    "memory",
    "color",
    "background",
    "isolation",
    "permissionMode",
    "skills",
    "initialPrompt",
    "mcpServers",
    "hooks",
];

/// The longest name, in bytes.
const MOST_NAME: usize = 64;

/// An agent that can be started as a subagent.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Its purpose, as the model is told.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it is offered.
    pub tools: OfferedTools,
    /// Tools it is not offered, whatever `tools` says.
    pub without: Vec<String>,
    /// The model; its parent's if none is named.
    pub model: Option<String>,
    /// Effort asked of its model, if the model supports it.
    pub effort: Option<Effort>,
    /// The most requests of one run.
    pub max_turns: Option<u32>,
    /// The most tokens one run may read and write, together with the agents it starts; past it no further request is
    /// made.
    pub budget: Option<u64>,
    /// Scope of its own memories, if it has any.
    pub memory: Option<AgentMemoryScope>,
    /// Its colour on the screen.
    pub color: Option<String>,
    /// Foreground or background.
    pub runs: Runs,
    /// Working directory: its parent's, or a worktree of its own.
    pub isolation: Isolation,
    /// Permission mode; never more than its parent's.
    pub mode: Option<Mode>,
    /// Skills it starts with.
    pub skills: Vec<String>,
    /// The first message it gets.
    pub initial_prompt: Option<String>,
    /// Its own MCP servers, as written.
    pub servers: Option<Value>,
    /// Its own hooks, as written.
    pub hooks: Option<Value>,
    /// Source of the definition.
    pub source: DefinitionSource,
    /// Its file.
    pub file: Option<PathBuf>,
    /// Trust in the definition.
    pub standing: DefinitionStatus,
}

/// The part of a definition that is in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionStatus {
    /// All of it.
    Whole,
    /// Only its restrictions: its directory is not trusted with it, and it replaces nothing.
    Narrowed,
}

/// The tools an agent is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferedTools {
    /// All that its parent has.
    All,
    /// Only the named tools, as rules name them.
    Only(Vec<String>),
}

/// Scope of an agent's own memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentMemoryScope {
    /// With the user, for all projects.
    User,
    /// In the project, for everybody.
    Project,
    /// In the project, for this user.
    Local,
}

impl AgentMemoryScope {
    /// Its name in a definition.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// Foreground or background.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Runs {
    /// The parent waits for it.
    #[default]
    Foreground,
    /// The parent goes on meanwhile.
    Background,
}

/// The directory an agent works in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Its parent's.
    #[default]
    None,
    /// A git worktree of its own.
    Worktree,
}

impl Isolation {
    /// True if it works in its parent's directory.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// Isolation that a call asks for; none if it leaves that to the definition.
    pub fn of_call(asked: Option<&str>) -> Result<Option<Self>, String> {
        match asked {
            None | Some("" | "none") => Ok(None),
            Some("worktree") => Ok(Some(Self::Worktree)),
            Some(other) => Err(format!("isolation must be \"worktree\", not {other:?}.")),
        }
    }
}

/// A fault in a definition: the key, if there is one, and the reason.
pub(super) type DefinitionFault = (Option<&'static str>, String);

impl Definition {
    /// Reads a Markdown file: frontmatter, then the prompt.
    pub(super) fn of_file(text: &str, source: DefinitionSource) -> Result<Self, DefinitionFault> {
        Self::of_text(text, "", source)
    }

    /// The same; `usual` is its name if it gives itself none.
    fn of_text(text: &str, usual: &str, source: DefinitionSource) -> Result<Self, DefinitionFault> {
        let top = frontmatter::read(text);
        if !top.is_present() {
            return Err((None, "it does not begin with `---` and the keys name and description".to_owned()));
        }
        let mut fields = top.fields.clone();
        let prompt = text[top.body_start()..].trim();
        if !prompt.is_empty() {
            fields.insert("prompt".to_owned(), Value::String(prompt.to_owned()));
        }
        let name = top.text("name").filter(|name| !name.is_empty()).unwrap_or_else(|| usual.to_owned());
        Self::of_object(&name, &fields, source)
    }

    /// Reads a definition of a plugin: under the plugin's name, and without what only the user may give an agent.
    pub(super) fn of_plugin(text: &str, plugin: &PluginAgent) -> Result<Self, DefinitionFault> {
        let usual = plugin.file.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let agent = Self::of_text(text, &usual, DefinitionSource::Plugin)?;
        let name = format!("{}:{}", plugin.prefix, agent.name);
        Ok(Self { name, hooks: None, servers: None, mode: None, ..agent })
    }

    /// Reads an object of settings or of a flag under its name.
    pub(super) fn of_object(
        name: &str,
        fields: &Map<String, Value>,
        source: DefinitionSource,
    ) -> Result<Self, DefinitionFault> {
        let fine = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | ':' | '.');
        // It is part of a path, where the agent has memories of its own.
        let is_hidden = name.starts_with('.') || name.contains("..") || name.contains(":.");
        if name.is_empty() || name.len() > MOST_NAME || is_hidden || !name.chars().all(fine) {
            let why =
                format!("{name:?} is not a valid name: use up to {MOST_NAME} letters, digits, `-`, `_`, `.` and `:`");
            return Err((Some("name"), if name.is_empty() { "it has no name".to_owned() } else { why }));
        }
        if name == FORK {
            return Err((
                Some("name"),
                format!("the name {name} is reserved for forks of the conversation; choose another"),
            ));
        }
        let of = Fields(fields);
        let description = of.text("description")?.ok_or((None, "it has no description".to_owned()))?;
        let prompt = of.text("prompt")?.ok_or((None, "it has no prompt".to_owned()))?;
        let memory = match fields.get("memory") {
            Some(Value::Object(map)) => Fields(map).one_of("scope", MEMORIES)?,
            _ => of.one_of("memory", MEMORIES)?,
        };
        Ok(Self {
            name: name.to_owned(),
            description,
            prompt,
            tools: match of.list("tools")? {
                None => OfferedTools::All,
                Some(names) if names.iter().any(|name| name == "*") => OfferedTools::All,
                Some(names) => OfferedTools::Only(names),
            },
            without: of.list("disallowedTools")?.unwrap_or_default(),
            model: of.text("model")?.filter(|model| model != "inherit" && is_model(model)),
            effort: match fields.get("effort") {
                Some(Value::Number(_)) => None,
                _ => of.one_of("effort", &Effort::ALL.map(|effort| (effort.name(), effort)))?,
            },
            max_turns: of.count("maxTurns")?,
            budget: of.count("budget")?.map(u64::from),
            memory,
            color: of.text("color")?,
            runs: of
                .one_of("background", &[("true", Runs::Background), ("false", Runs::Foreground)])?
                .unwrap_or_default(),
            isolation: of
                .one_of("isolation", &[("worktree", Isolation::Worktree), ("none", Isolation::None)])?
                .unwrap_or_default(),
            mode: of.one_of("permissionMode", MODES)?,
            skills: of.list("skills")?.unwrap_or_default(),
            initial_prompt: of.text("initialPrompt")?,
            servers: fields.get("mcpServers").filter(|value| !value.is_null()).cloned(),
            hooks: fields.get("hooks").filter(|value| !value.is_null()).cloned(),
            source,
            file: None,
            standing: DefinitionStatus::Whole,
        })
    }

    /// The definition without whatever would add permissions, for a directory that is not trusted with it.
    pub(super) fn narrowed(mut self) -> Self {
        (self.hooks, self.servers, self.memory, self.model, self.effort) = (None, None, None, None, None);
        self.mode = self.mode.filter(|mode| *mode == Mode::Plan);
        self.max_turns = self.max_turns.map(|most| most.min(MOST_ROUNDS));
        Self { standing: DefinitionStatus::Narrowed, ..self }
    }

    /// The parts that need trust, each in a few words.
    pub(super) fn asks_for(&self) -> Vec<String> {
        let commands = hooks_of(self).0;
        let hooks = commands.iter().map(|hook| format!("hook {}: {}", hook.hook_event.name(), hook.shown()));
        let word = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
        let memory = MEMORIES.iter().find(|(_, memory)| Some(*memory) == self.memory);
        let mode = self.mode.filter(|mode| *mode != Mode::Plan);
        let mode = MODES.iter().find(|(_, one)| Some(*one) == mode);
        let entries = entries(self).0;
        let servers = entries.iter().map(|(name, entry)| format!("server {}", claim_words(name, entry)));
        let turns = self.max_turns.filter(|most| *most > MOST_ROUNDS);
        hooks
            .chain(servers)
            .chain(mode.map(|(name, _)| format!("mode {name}")))
            .chain(word("model", &self.model))
            .chain(self.effort.map(|effort| format!("effort {}", effort.name())))
            .chain(memory.map(|(name, _)| format!("memory {name}")))
            .chain(turns.map(|most| format!("{most} turns")))
            .collect()
    }

    /// The claim that a project makes with it, over its whole text: name, purpose and what it adds.
    pub(super) fn claim(&self, text: &str, place: &str, site: &TrustSite) -> Claim {
        let adds = self.asks_for();
        let adds = if adds.is_empty() { String::new() } else { format!(" ({})", adds.join(", ")) };
        let what =
            format!("{}: {}{adds}", self.name, self.description.split_whitespace().collect::<Vec<_>>().join(" "));
        Claim::new(Kind::Agent, what, text, place, site)
    }

    /// True if a rule denies starting it.
    pub fn is_denied(&self, rules: &Rules) -> bool {
        is_denied(&self.name, rules)
    }

    /// Its entry in the list that the model sees: purpose and tools.
    pub fn listing(&self) -> String {
        let tools = match &self.tools {
            OfferedTools::All if self.without.is_empty() => "all".to_owned(),
            OfferedTools::All => format!("all but {}", self.without.join(", ")),
            OfferedTools::Only(names) => names.join(", "),
        };
        let description = self.description.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}: {description} (Tools: {tools})", self.name)
    }
}

/// True if a rule denies starting an agent of this name.
pub(super) fn is_denied(name: &str, rules: &Rules) -> bool {
    matches!(rules.decide(tool_names::AGENT, &Subject::Name(name.to_owned())), RuleVerdict::Deny(_))
}

const MEMORIES: &[(&str, AgentMemoryScope)] =
    &[("user", AgentMemoryScope::User), ("project", AgentMemoryScope::Project), ("local", AgentMemoryScope::Local)];
const MODES: &[(&str, Mode)] = &[
    ("default", Mode::Default),
    ("acceptEdits", Mode::AcceptEdits),
    ("plan", Mode::Plan),
    ("bypassPermissions", Mode::BypassPermissions),
    // Others have these. There is no such mode here, and the strictest that still lets it work is this.
    ("dontAsk", Mode::Default),
    ("auto", Mode::Default),
];

/// True if the text can be the name of a model: not a number or a boolean.
pub(super) fn is_model(text: &str) -> bool {
    text.contains(char::is_alphabetic) && !["true", "false"].contains(&text)
}

/// The keys of a definition, read by type.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn text(&self, key: &'static str) -> Result<Option<String>, DefinitionFault> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(Value::Bool(truth)) => Ok(Some(truth.to_string())),
            Some(_) => Err((Some(key), format!("{key} must be a string"))),
        }
    }

    /// A sequence, or a string split at commas outside parentheses and braces.
    fn list(&self, key: &'static str) -> Result<Option<Vec<String>>, DefinitionFault> {
        let no_list = || (Some(key), format!("{key} must be a list of names"));
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => {
                let names = items.iter().map(|item| item.as_str().map(|name| name.trim().to_owned()));
                names.collect::<Option<_>>().ok_or_else(no_list).map(Some)
            }
            Some(Value::String(text)) => Ok(Some(split(text))),
            Some(_) => Err(no_list()),
        }
    }

    fn count(&self, key: &'static str) -> Result<Option<u32>, DefinitionFault> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match text.parse() {
            Ok(count) if count > 0 => Ok(Some(count)),
            _ => Err((Some(key), format!("{key} must be a number of at least 1, not {text:?}"))),
        }
    }

    fn one_of<T: Copy>(&self, key: &'static str, known: &[(&str, T)]) -> Result<Option<T>, DefinitionFault> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        if let Some((_, value)) = known.iter().find(|(name, _)| *name == text) {
            return Ok(Some(*value));
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Err((Some(key), format!("{key} must be one of {}, not {text:?}", names.join(", "))))
    }
}

/// Splits at commas outside brackets, so that `Bash(git log:*, git diff:*), Read` is two.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_i32;
    let parts = text.split(|one| {
        match one {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            _ => {}
        }
        one == ',' && depth <= 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
