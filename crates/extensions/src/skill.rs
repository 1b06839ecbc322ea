//! A skill or a command, as its file says: keys on top, then the text.
//!
//! Every key is optional. A value that cannot be understood is left out and told of; it never costs the skill. What would
//! let a skill do more than be read is kept apart, in its [`SkillRights`].

mod fields;

use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use memory::frontmatter;
use serde_json::Value;
use transcript::Effort;

use crate::shell_lines::has_shell_lines;
use crate::trouble::ExtensionTrouble;
use fields::Fields;

/// A skill or a command that can be called by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// The name it is called by, complete: `deploy`, `git:commit`, `plugin:deploy`.
    pub name: String,
    /// The name it gives itself, for people.
    pub label: Option<String>,
    /// A skill, or a command.
    pub kind: SkillKind,
    /// The owner of its file.
    pub source: SkillSource,
    /// Its file.
    pub file: PathBuf,
    /// Its description: the key, else the first paragraph of the text.
    pub description: String,
    /// When the model should use it.
    pub when_to_use: Option<String>,
    /// The arguments it takes, as shown while typing.
    pub argument_hint: Option<String>,
    /// Names for its arguments, by position.
    pub arguments: Vec<String>,
    /// Its visibility to the model.
    pub model_use: ModelUse,
    /// Its visibility to people.
    pub user_use: UserUse,
    /// Tools that are not used while it works.
    pub disallowed_tools: Vec<String>,
    /// Patterns of files; with any, it is listed once a file that matches was touched.
    pub paths: Vec<String>,
    /// The text, as it is written.
    pub body: String,
    /// Its rights beyond being read.
    pub rights: SkillRights,
    /// The folders of its plugin.
    pub plugin: Option<PluginFolders>,
}

/// A skill or a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillKind {
    /// A folder with a `SKILL.md`.
    Skill,
    /// A file below `commands`.
    Command,
}

/// The owner of a skill's file; the first is the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillSource {
    /// The organisation's.
    Policy,
    /// The user's.
    User,
    /// The project's.
    Project,
    /// A plugin's.
    Plugin,
}

impl SkillSource {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::User => "user",
            Self::Project => "project",
            Self::Plugin => "plugin",
        }
    }
}

/// The visibility of a skill to the model, which can call what it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelUse {
    /// By its name and description.
    Listed,
    /// By its name alone.
    NameOnly,
    /// Not at all.
    Hidden,
}

/// The visibility of a skill to people, who can call what they see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserUse {
    /// As `/name`.
    Callable,
    /// Not at all.
    Hidden,
}

/// The rights of a skill beyond being read.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillRights {
    /// All that it asks for.
    Granted(SkillGrants),
    /// Nothing: it is a project's, and the user has not trusted it. With what it asks for, in words for people.
    Withheld(Vec<String>),
}

impl SkillRights {
    /// The grants, if there are any.
    pub fn granted(&self) -> Option<&SkillGrants> {
        match self {
            Self::Granted(grants) => Some(grants),
            Self::Withheld(_) => None,
        }
    }
}

/// The requests of a trusted skill beyond being read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SkillGrants {
    /// Rules for calls that run unasked during the turn, as they are written.
    pub allowed_tools: Vec<String>,
    /// The model of the turn; none is the session's.
    pub model: Option<String>,
    /// The effort of the turn.
    pub effort: Option<Effort>,
    /// Hooks for the rest of the session, as settings write them.
    pub hooks: Option<Value>,
    /// The place it works in.
    pub context: SkillContext,
    /// The shell that its lines run in.
    pub shell: Option<String>,
    /// Lines of its text that run as commands.
    pub shell_lines: ShellLines,
}

/// The place a skill works in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SkillContext {
    /// In the conversation.
    #[default]
    Conversation,
    /// In an agent of its own.
    Fork {
        /// The type of the agent; the general one if none is named.
        agent: Option<String>,
        /// Foreground if the conversation waits for it.
        waiting: ForkWait,
    },
}

/// Background or foreground: the conversation waits only for an agent in the foreground.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForkWait {
    /// It goes on.
    #[default]
    Background,
    /// It waits.
    Foreground,
}

/// The presence of lines in a text that run as commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShellLines {
    /// It has none.
    #[default]
    Absent,
    /// It has some.
    Present,
}

/// The folders of a plugin, as its texts name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFolders {
    /// `${CLAUDE_PLUGIN_ROOT}`: the plugin itself.
    pub root: PathBuf,
    /// `${CLAUDE_PLUGIN_DATA}`: what it keeps across versions.
    pub data: PathBuf,
}

impl PluginFolders {
    /// The variables by which a plugin's programs know its folders.
    pub fn variables(&self) -> [(&'static str, String); 2] {
        let shown = |path: &Path| path.display().to_string();
        [("CLAUDE_PLUGIN_ROOT", shown(&self.root)), ("CLAUDE_PLUGIN_DATA", shown(&self.data))]
    }
}

impl Skill {
    /// Reads the text of a file. It never fails; what cannot be understood is told of.
    pub fn parse(
        text: &str,
        name: String,
        kind: SkillKind,
        source: SkillSource,
        file: &Path,
    ) -> (Self, Vec<ExtensionTrouble>) {
        let top = frontmatter::read(text);
        let mut fields = Fields::new(&top, text, file);
        let body = text.get(top.body_start()..).unwrap_or_default().to_owned();
        let description = fields.text("description").filter(|text| !text.is_empty());
        let description = description.unwrap_or_else(|| first_paragraph(&body));
        let context = match fields.text("context").as_deref() {
            Some("fork") => SkillContext::Fork {
                agent: fields.text("agent"),
                waiting: match fields.switch("background") {
                    Some(false) => ForkWait::Foreground,
                    Some(true) | None => ForkWait::Background,
                },
            },
            None | Some("inline" | "conversation" | "") => SkillContext::Conversation,
            Some(other) => {
                fields.doubt("context", format!("unknown context {other:?}; the skill works in the conversation"));
                SkillContext::Conversation
            }
        };
        let effort = fields.text("effort").and_then(|word| {
            let effort = Effort::ALL.into_iter().find(|effort| effort.name() == word);
            if effort.is_none() {
                fields.doubt("effort", format!("unknown effort {word:?}; the session's effort is used"));
            }
            effort
        });
        let grants = SkillGrants {
            allowed_tools: fields.list("allowed-tools"),
            model: fields.text("model").filter(|model| !model.is_empty() && model != "inherit"),
            effort,
            hooks: fields.object("hooks"),
            context,
            shell: fields.text("shell"),
            shell_lines: if has_shell_lines(&body) { ShellLines::Present } else { ShellLines::Absent },
        };
        let is_skill = kind == SkillKind::Skill;
        let skill = Self {
            name,
            label: fields.text("name").filter(|_| is_skill),
            kind,
            source,
            file: file.to_owned(),
            description,
            when_to_use: fields.text("when_to_use").filter(|text| !text.is_empty()),
            argument_hint: fields.hint("argument-hint"),
            arguments: fields.list("arguments"),
            model_use: match fields.switch("disable-model-invocation") {
                Some(true) => ModelUse::Hidden,
                Some(false) | None => ModelUse::Listed,
            },
            user_use: match fields.switch("user-invocable") {
                Some(false) => UserUse::Hidden,
                Some(true) | None => UserUse::Callable,
            },
            disallowed_tools: fields.list("disallowed-tools"),
            paths: if is_skill { fields.list("paths") } else { Vec::new() },
            rights: SkillRights::Granted(grants),
            body,
            plugin: None,
        };
        (skill, fields.troubles)
    }

    /// The folder that its texts are about: that of its `SKILL.md`. Commands have none.
    pub fn folder(&self) -> Option<&Path> {
        self.file.parent().filter(|_| self.kind == SkillKind::Skill)
    }

    /// True if it is listed once this file, given by its path from the project, was touched.
    pub fn is_about(&self, relative: &Path) -> bool {
        let matches = |pattern: &String| {
            let glob = GlobBuilder::new(pattern.trim_start_matches("./")).literal_separator(true).build();
            glob.is_ok_and(|glob| glob.compile_matcher().is_match(relative))
        };
        self.paths.is_empty() || self.paths.iter().any(matches)
    }

    /// Its requests beyond being read, each in a few words.
    pub fn requests(&self) -> Vec<String> {
        match &self.rights {
            SkillRights::Granted(grants) => grants.words(),
            SkillRights::Withheld(words) => words.clone(),
        }
    }

    /// The same skill without anything beyond being read.
    #[must_use]
    pub fn withheld(mut self) -> Self {
        let words = self.requests();
        if !words.is_empty() {
            self.rights = SkillRights::Withheld(words);
        }
        self
    }
}

impl SkillGrants {
    /// Each in a few words.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.allowed_tools.iter().map(|rule| format!("allow {rule}")));
        words.extend(self.model.iter().map(|model| format!("model {model}")));
        words.extend(self.effort.iter().map(|effort| format!("effort {}", effort.name())));
        words.extend(self.hooks.iter().map(|hooks| format!("hooks {hooks}")));
        if let SkillContext::Fork { agent, .. } = &self.context {
            words.push(format!("agent {}", agent.as_deref().unwrap_or("of its own")));
        }
        if self.shell_lines == ShellLines::Present {
            words.push("commands in its text".to_owned());
        }
        words
    }
}

/// The first paragraph of a text that is no heading, in one line; the first heading if there is nothing else.
fn first_paragraph(body: &str) -> String {
    let lines = body.lines().map(str::trim);
    let mut paragraph =
        lines.skip_while(|line| line.is_empty() || line.starts_with('#')).take_while(|line| !line.is_empty());
    let text = paragraph.by_ref().collect::<Vec<_>>().join(" ");
    if !text.is_empty() {
        return text;
    }
    let heading = body.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(|line| !line.is_empty());
    heading.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
