//! The four types of memory, and what the model is told about keeping memories.
//!
//! The rules are a section of the system prompt: they hold no user data, so they are the same bytes for as long as the
//! directory and the switches are. They are templates beside this file; [`rules`] renders the variant that applies.

use std::fmt;
use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, context};

/// A type of memory. There are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Who the user is: role, knowledge, preferences.
    User,
    /// How to work: corrections and confirmations.
    Feedback,
    /// What is going on: goals, decisions, dates.
    Project,
    /// Where to look: other systems.
    Reference,
}

impl Kind {
    /// All four.
    pub const ALL: [Self; 4] = [Self::User, Self::Feedback, Self::Project, Self::Reference];

    /// The word in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Feedback => "feedback",
            Self::Project => "project",
            Self::Reference => "reference",
        }
    }

    /// The type a word in a file means.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| word.trim().eq_ignore_ascii_case(kind.name()))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which rules the model is given.
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

/// What the rules depend on.
#[derive(Debug, Clone, Copy)]
pub struct TaxonomyContext<'a> {
    /// Which variant.
    pub variant: Variant<'a>,
    /// The private directory.
    pub directory: &'a Path,
    /// Whether there is no index step.
    pub skip_index: bool,
    /// `CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES`.
    pub extra_guidelines: Option<&'a str>,
    /// How past context is searched, if the part on it is wanted.
    pub search_past: Option<SearchPast<'a>>,
}

/// How past context is searched.
#[derive(Debug, Clone, Copy)]
pub struct SearchPast<'a> {
    /// Where transcripts lie.
    pub transcripts: &'a Path,
    /// With what.
    pub with: SearchTool,
}

/// A tool that the model is offered, and searches with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchTool {
    /// Our own.
    Grep,
    /// A command in a shell.
    Shell,
}

/// The templates, by the name others include them by.
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

/// The section of an agent's system prompt about memories of its own: `scope` says in a sentence whose they are, `index` is
/// what its index shows.
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

/// Renders one of the templates. That each one renders is a test's matter.
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
