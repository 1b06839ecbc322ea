//! The four types of memory, and the model's instructions for keeping memories.
//!
//! The rules are a section of the system prompt: they hold no user data, so their bytes stay the same as long as the
//! directory and the switches do. They are templates beside this file; [`rules`] renders the variant that applies.

use std::fmt;
use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, context};

/// A type of memory. There are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The user: role, knowledge, preferences.
    User,
    /// Ways to work: corrections and confirmations.
    Feedback,
    /// The project: goals, decisions, dates.
    Project,
    /// Pointers to other systems.
    Reference,
}

impl Kind {
    /// All four types.
    pub const ALL: [Self; 4] = [Self::User, Self::Feedback, Self::Project, Self::Reference];

    /// Its word in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Feedback => "feedback",
            Self::Project => "project",
            Self::Reference => "reference",
        }
    }

    /// The type for a word in a file.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| word.trim().eq_ignore_ascii_case(kind.name()))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Variant of the rules for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant<'a> {
    /// A long-lived session: it appends to a daily log and a dream distils it.
    DailyLog,
    /// A private directory and one shared with collaborators below it.
    Team {
        /// The shared directory.
        directory: &'a Path,
    },
    /// A private directory.
    Private,
}

/// Values that the rules depend on.
#[derive(Debug, Clone, Copy)]
pub struct TaxonomyContext<'a> {
    /// The variant.
    pub variant: Variant<'a>,
    /// The private directory.
    pub directory: &'a Path,
    /// Leaves out the index step.
    pub skip_index: bool,
    /// `CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES`.
    pub extra_guidelines: Option<&'a str>,
    /// Search of past context, if the section on it is wanted.
    pub search_past: Option<SearchPast<'a>>,
}

/// Search of past context.
#[derive(Debug, Clone, Copy)]
pub struct SearchPast<'a> {
    /// Directory of the transcripts.
    pub transcripts: &'a Path,
    /// Tool to search with.
    pub with: SearchTool,
}

/// A tool that the model has for searching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchTool {
    /// Our own tool.
    Grep,
    /// A shell command.
    Shell,
}

/// The templates, by the name they are included by.
const TEMPLATES: [(&str, &str); 11] = [
    ("agent.md", include_str!("prompts/agent.md")),
    ("extract.md", include_str!("prompts/extract.md")),
    ("extract-rules.md", include_str!("prompts/extract-rules.md")),
    ("rules.md", include_str!("prompts/rules.md")),
    ("daily.md", include_str!("prompts/daily.md")),
    ("types.md", include_str!("prompts/types.md")),
    ("scope.md", include_str!("prompts/scope.md")),
    ("not-saved.md", include_str!("prompts/not-saved.md")),
    ("saving.md", include_str!("prompts/saving.md")),
    ("using.md", include_str!("prompts/using.md")),
    ("past.md", include_str!("prompts/past.md")),
];

/// The section of the system prompt about memory.
pub fn rules(from: &TaxonomyContext<'_>) -> String {
    let (template, team) = match from.variant {
        Variant::DailyLog => ("daily.md", None),
        Variant::Team { directory } => ("rules.md", Some(directory.display().to_string())),
        Variant::Private => ("rules.md", None),
    };
    let values = context! {
        directory => from.directory.display().to_string(),
        team => team,
        index => !from.skip_index,
        extra => from.extra_guidelines.map(str::trim).filter(|text| !text.is_empty()),
        transcripts => from.search_past.map(|past| past.transcripts.display().to_string()),
        grep => from.search_past.is_some_and(|past| past.with == SearchTool::Grep),
        index_lines => crate::index::LINE_LIMIT,
        line_length => crate::index::LINE_LENGTH,
    };
    render(template, values)
}

/// The section of an agent's system prompt about memories of its own: `scope` says in a sentence whose they are,
/// `index` is the content of its index.
pub fn agent_rules(directory: &Path, scope: &str, index: Option<&str>) -> String {
    let values = context! {
        directory => directory.display().to_string(),
        scope => scope,
        content => index.map(crate::quoting::quoted),
        file => crate::index::FILE,
        index => true,
        index_lines => crate::index::LINE_LIMIT,
        line_length => crate::index::LINE_LENGTH,
    };
    render("agent.md", values)
}

/// Renders one of the templates. A test checks that each one renders.
pub(crate) fn render(template: &str, values: minijinja::Value) -> String {
    let mut environment = Environment::new();
    // A tag on a line of its own leaves no line behind.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    for (name, source) in TEMPLATES {
        if environment.add_template(name, source).is_err() {
            return String::new();
        }
    }
    let rendered = environment.get_template(template).and_then(|template| template.render(values));
    rendered.map(|text| text.trim().to_owned()).unwrap_or_default()
}
