//! What a tool is: to the engine ([`Tool`]), and to the one who writes it ([`TypedTool`]).
//!
//! `Tool` speaks JSON, since calls come from a model and some tools come from elsewhere (MCP). `Typed` speaks the
//! tool's own input type; every `Typed` is a `Tool`, and turning JSON into the type, with an error the model can act on,
//! happens in one place.

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

/// How many read-only calls run at the same time.
pub const CONCURRENT: usize = 10;

/// A tool, as the engine sees it.
pub trait Tool: Send + Sync {
    /// The name the model calls it by.
    fn name(&self) -> &str;

    /// What the model is told. The same bytes every time.
    fn definition(&self) -> ToolDefinition;

    /// What this call would do.
    fn access(&self, input: &Value) -> Access;

    /// What permission rules look at.
    fn subject(&self, input: &Value, scope: &Scope) -> Subject;

    /// Whether it can run at the same time as others. What it may do is another question: [`Tool::access`].
    fn runs(&self, input: &Value) -> Runs {
        Runs::of(self.access(input))
    }

    /// How many calls of one reply run at the same time.
    fn most_beside(&self) -> usize {
        CONCURRENT
    }

    /// The file this call would write, symbolic links followed, so that its content can be kept before.
    fn changes(&self, _input: &Value, _scope: &Scope) -> Option<PathBuf> {
        None
    }

    /// How much of its output may stay in the conversation.
    fn limit(&self) -> Limit;

    /// Runs it. Bad input is a failed output.
    fn run(&self, input: Value, scope: Scope) -> BoxFuture<'static, Output>;
}

/// A tool whose input has a type. The doc comment of the type is the tool's description.
pub trait TypedTool: Send + Sync + 'static {
    /// What it is called with.
    type Input: DeserializeOwned + JsonSchema;

    /// The name the model calls it by.
    const NAME: &'static str;

    /// How much of its output may stay in the conversation.
    const LIMIT: Limit = Limit::Characters(100_000);

    /// How many calls of one reply run at the same time.
    const MOST_BESIDE: usize = CONCURRENT;

    /// What its calls would do, where that is the same for all.
    const ACCESS: Access = Access::Changes;

    /// What this call would do.
    fn access(&self, _input: &Self::Input) -> Access {
        Self::ACCESS
    }

    /// What permission rules look at: the call as a whole, where it is about nothing that has a name.
    fn subject(&self, _input: &Self::Input, _scope: &Scope) -> Subject {
        Subject::Whole
    }

    /// Whether it can run at the same time as others.
    fn runs(&self, input: &Self::Input) -> Runs {
        Runs::of(self.access(input))
    }

    /// The file this call would write, symbolic links followed.
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

    fn most_beside(&self) -> usize {
        T::MOST_BESIDE
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

/// Whether a call can run at the same time as others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// It can.
    Beside,
    /// It runs when those before it have ended, and those after it wait.
    Alone,
}

impl Runs {
    /// As usual: what only looks does not mind others.
    pub fn of(access: Access) -> Self {
        if access == Access::ReadOnly { Self::Beside } else { Self::Alone }
    }
}

/// How much of an output stays in the conversation before the engine puts it into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// In Unicode scalars.
    Characters(usize),
    /// It bounds itself.
    Unlimited,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// What the model reads.
    pub content: Vec<Block>,
    /// Whether it failed.
    pub outcome: Outcome,
    /// What a person reads, in one line.
    pub summary: String,
    /// The file it changed.
    pub changed: Option<PathBuf>,
    /// The guarded paths that a command made in a sandbox: whoever runs it says what becomes of them.
    pub made: Vec<MadePath>,
    /// What other programs are told of it, in Claude Code's form; the model does not read it.
    pub about: Option<Value>,
}

impl Output {
    /// It worked, and this is what the model reads.
    pub fn done(text: impl AsRef<str>, summary: impl Into<String>) -> Self {
        Self::of(vec![Block::text(text)], summary)
    }

    /// It worked, with content that is more than text.
    pub fn of(content: Vec<Block>, summary: impl Into<String>) -> Self {
        Self { content, outcome: Outcome::Done, summary: summary.into(), changed: None, made: Vec::new(), about: None }
    }

    /// It failed, and this is why. The first line is the summary.
    pub fn failed(why: impl AsRef<str>) -> Self {
        let why = why.as_ref();
        Self {
            content: vec![Block::text(why)],
            outcome: Outcome::Failed,
            summary: why.lines().next().unwrap_or_default().to_owned(),
            changed: None,
            made: Vec::new(),
            about: None,
        }
    }

    /// What other programs are told of it: where that repeats what the model reads, they read the same.
    pub fn for_programs(&self) -> Option<Value> {
        let mut about = self.about.clone()?;
        if let Some(content) = about.get_mut("content") {
            *content = self.content.iter().map(Block::value).collect();
        }
        Some(about)
    }

    /// Names the file it changed.
    #[must_use]
    pub fn with_changed(mut self, path: &Path) -> Self {
        self.changed = Some(path.to_owned());
        self
    }

    /// Its text, without pictures and documents.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// How many characters a tool may return when it does not say.
const USUAL_LIMIT: usize = 100_000;

/// How many characters a tool may return; none if it bounds itself. A tool nobody knows has the usual limit.
pub fn limit_of(tools: &[Arc<dyn Tool>], name: &str) -> Option<usize> {
    match tools.iter().find(|known| known.name() == name).map(|known| known.limit()) {
        Some(Limit::Unlimited) => None,
        Some(Limit::Characters(characters)) => Some(characters),
        None => Some(USUAL_LIMIT),
    }
}
