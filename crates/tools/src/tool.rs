//! The tool traits: [`Tool`] for the engine, and [`TypedTool`] for authors.
//!
//! `Tool` uses JSON, since calls come from a model and some tools come from elsewhere (MCP). `TypedTool` uses the
//! tool's own input type; every `TypedTool` is a `Tool`, and parsing JSON into the type, with an error the model can
//! act on, happens in one place.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use transcript::block::{Block, Outcome};
use transcript::message::ToolDefinition;

use crate::confinement::MadePath;
use crate::input;
use crate::scope::Scope;
use crate::subject::{Access, Subject};

/// Limit on parallel read-only calls.
pub const CONCURRENT: usize = 10;

/// A tool, as the engine sees it.
pub trait Tool: Send + Sync {
    /// The name by which the model calls it.
    fn name(&self) -> &str;

    /// Definition for the model. The same bytes every time.
    fn definition(&self) -> ToolDefinition;

    /// Effect of this call.
    fn access(&self, input: &Value) -> Access;

    /// Subject for permission rules.
    fn subject(&self, input: &Value, scope: &Scope) -> Subject;

    /// Parallel or exclusive execution. Permission is another question: [`Tool::access`].
    fn runs(&self, input: &Value) -> Runs {
        Runs::of(self.access(input))
    }

    /// Limit on parallel calls in one reply.
    fn most_at_once(&self) -> usize {
        CONCURRENT
    }

    /// The file this call would write, with symlinks resolved, so that its content can be kept before.
    fn changes(&self, _input: &Value, _scope: &Scope) -> Option<PathBuf> {
        None
    }

    /// Limit on its output in the conversation.
    fn limit(&self) -> Limit;

    /// Runs it. Bad input is a failed output.
    fn run(&self, input: Value, scope: Scope) -> BoxFuture<'static, Output>;
}

/// A tool whose input has a type. The doc comment of the type is the tool's description.
pub trait TypedTool: Send + Sync + 'static {
    /// Type of its input.
    type Input: DeserializeOwned + JsonSchema;

    /// The name by which the model calls it.
    const NAME: &'static str;

    /// Limit on its output in the conversation.
    const LIMIT: Limit = Limit::Characters(100_000);

    /// Limit on parallel calls in one reply.
    const MOST_AT_ONCE: usize = CONCURRENT;

    /// Effect of its calls, if that is the same for all.
    const ACCESS: Access = Access::Changes;

    /// Effect of this call.
    fn access(&self, _input: &Self::Input) -> Access {
        Self::ACCESS
    }

    /// Subject for permission rules: the call as a whole, unless it has something with a name.
    fn subject(&self, _input: &Self::Input, _scope: &Scope) -> Subject {
        Subject::Whole
    }

    /// Parallel or exclusive execution.
    fn runs(&self, input: &Self::Input) -> Runs {
        Runs::of(self.access(input))
    }

    /// The file this call would write, with symlinks resolved.
    fn changes(&self, _input: &Self::Input, _scope: &Scope) -> Option<PathBuf> {
        None
    }

    /// Runs it.
    fn run(&self, input: Self::Input, scope: Scope) -> BoxFuture<'static, Output>;
}

impl<T: TypedTool> Tool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn definition(&self) -> ToolDefinition {
        input::definition::<T::Input>(T::NAME)
    }

    fn access(&self, input: &Value) -> Access {
        // A call that cannot be understood will fail; until then nothing is taken for granted.
        input::parse(input.clone()).map_or(Access::Changes, |input| TypedTool::access(self, &input))
    }

    fn subject(&self, input: &Value, scope: &Scope) -> Subject {
        input::parse(input.clone()).map_or(Subject::Whole, |input| TypedTool::subject(self, &input, scope))
    }

    fn runs(&self, input: &Value) -> Runs {
        input::parse(input.clone()).map_or(Runs::Alone, |input| TypedTool::runs(self, &input))
    }

    fn most_at_once(&self) -> usize {
        T::MOST_AT_ONCE
    }

    fn changes(&self, input: &Value, scope: &Scope) -> Option<PathBuf> {
        input::parse(input.clone()).ok().and_then(|input| TypedTool::changes(self, &input, scope))
    }

    fn limit(&self) -> Limit {
        T::LIMIT
    }

    fn run(&self, input: Value, scope: Scope) -> BoxFuture<'static, Output> {
        match input::parse(input) {
            Ok(input) => TypedTool::run(self, input, scope),
            Err(why) => Box::pin(ready(Output::failed(format!("{} was called with bad input: {why}", T::NAME)))),
        }
    }
}

/// Parallel or exclusive execution of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// It can run in parallel with others.
    Parallel,
    /// It runs after those before it have ended, and those after it wait.
    Alone,
}

impl Runs {
    /// The default: read-only calls run in parallel.
    pub fn of(access: Access) -> Self {
        if matches!(access, Access::ReadOnly | Access::Network) { Self::Parallel } else { Self::Alone }
    }
}

/// Limit on an output in the conversation, above which the engine spills it to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// In Unicode scalars.
    Characters(usize),
    /// The tool bounds its output itself.
    Unlimited,
}

/// Text of a changed file before and after, for people: neither the model nor the log gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRewrite {
    /// Text before; empty if the file is new.
    pub before: Arc<str>,
    /// Text after.
    pub after: Arc<str>,
}

/// Output of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Content for the model.
    pub content: Vec<Block>,
    /// Success or failure.
    pub outcome: Outcome,
    /// Summary for people, in one line.
    pub summary: String,
    /// The file it changed.
    pub changed: Option<PathBuf>,
    /// The text of that file before and after, where the tool knows both.
    pub rewrite: Option<TextRewrite>,
    /// The guarded paths that a command made in a sandbox: the caller decides what becomes of them.
    pub made: Vec<MadePath>,
    /// Metadata for other programs, in Claude Code's format; the model does not read it.
    pub about: Option<Value>,
}

impl Output {
    /// A successful output with text for the model.
    pub fn done(text: impl AsRef<str>, summary: impl Into<String>) -> Self {
        Self::of(vec![Block::text(text)], summary)
    }

    /// A successful output with more than text.
    pub fn of(content: Vec<Block>, summary: impl Into<String>) -> Self {
        Self {
            content,
            outcome: Outcome::Done,
            summary: summary.into(),
            changed: None,
            rewrite: None,
            made: Vec::new(),
            about: None,
        }
    }

    /// A failed output with its reason. The first line is the summary.
    pub fn failed(why: impl AsRef<str>) -> Self {
        let why = why.as_ref();
        Self {
            content: vec![Block::text(why)],
            outcome: Outcome::Failed,
            summary: why.lines().next().unwrap_or_default().to_owned(),
            changed: None,
            rewrite: None,
            made: Vec::new(),
            about: None,
        }
    }

    /// Metadata for other programs: if it repeats the content for the model, they read the same.
    pub fn for_programs(&self) -> Option<Value> {
        let mut about = self.about.clone()?;
        if let Some(content) = about.get_mut("content") {
            *content = self.content.iter().map(Block::value).collect();
        }
        Some(about)
    }

    /// Sets the file it changed.
    #[must_use]
    pub fn with_changed(mut self, path: &Path) -> Self {
        self.changed = Some(path.to_owned());
        self
    }

    /// Sets the text of that file before and after.
    #[must_use]
    pub fn with_rewrite(mut self, before: &str, after: &str) -> Self {
        self.rewrite = Some(TextRewrite { before: before.into(), after: after.into() });
        self
    }

    /// Its text, without images and documents.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// Default limit on a tool's output, in characters.
const USUAL_LIMIT: usize = 100_000;

/// Limit on a tool's output in characters; `None` if it bounds itself. An unknown tool has the default limit.
pub fn limit_of(tools: &[Arc<dyn Tool>], name: &str) -> Option<usize> {
    match tools.iter().find(|known| known.name() == name).map(|known| known.limit()) {
        Some(Limit::Unlimited) => None,
        Some(Limit::Characters(characters)) => Some(characters),
        None => Some(USUAL_LIMIT),
    }
}
