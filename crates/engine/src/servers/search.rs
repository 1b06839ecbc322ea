//! The tool that loads tools of servers: the one definition of theirs that every request has.
//!
//! Its result refers to what it has found, and the next request declares that: see [`LoadedTools`](super::LoadedTools).

use std::cmp::Reverse;
use std::fmt::Write;

use futures_util::future::{BoxFuture, ready};
use memory::quoting::quoted;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tools::{Access, Output, Scope, Subject, TypedTool};
use transcript::{Block, tool_names};

use super::{OfferedTool, ServerTools, SessionServer};

/// Definitions in one answer, unless the model asks for another number.
const USUAL_RESULTS: usize = 5;
/// The most definitions in one answer.
const MOST_RESULTS: usize = 20;
/// The fewest letters of a word that tells tools apart: "a" and "of" do not.
const SHORTEST_WORD: usize = 3;
/// Prefix of a query that names tools.
const BY_NAME: &str = "select:";

/// Loads tools of MCP servers, which reminders list by name. Those in the result can then be called like any other.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ToolSearchInput {
    /// Words to look for, or `select:NAME,NAME`.
    pub query: String,
    /// Number of results, 5 if absent.
    pub max_results: Option<usize>,
}

/// The tool that finds tools.
pub struct ToolSearch(ServerTools);

impl ToolSearch {
    /// Creates the tool for the servers of an agent.
    pub fn of(tools: ServerTools) -> Self {
        Self(tools)
    }

    fn answer(&self, input: &ToolSearchInput) -> Output {
        let all = self.0.offered();
        let query = input.query.trim();
        if query.is_empty() {
            return Output::failed("ToolSearch needs a query.");
        }
        let most = input.max_results.unwrap_or(USUAL_RESULTS).clamp(1, MOST_RESULTS);
        let found = found(query, &all, most);
        let names: Vec<&str> = found.iter().map(|tool| tool.name.as_str()).collect();
        let about = json!({"matches": names, "query": query, "total_deferred_tools": all.len()});
        let output = match found.as_slice() {
            [] => Output::done(self.nothing(query, all.len()), "nothing found"),
            _ => Output::of(references(&names), names.join(", ")),
        };
        Output { about: Some(about), ..output }
    }

    fn nothing(&self, query: &str, all: usize) -> String {
        let mut text = format!("No tool matches {query:?}; there are {all} on connected servers.");
        let waiting = self.0.servers().all().into_iter().filter(|server| server.tool_names().is_empty());
        for server in waiting {
            let _ = write!(text, "\n{}: {}.", quoted(&server.name), state(&server));
        }
        text
    }
}

fn state(server: &SessionServer) -> String {
    use mcp::ServerState::{Connecting, Failed, NeedsLogin, Off, Ready};
    match server.status().map(|status| status.state.clone()) {
        Some(Connecting) => "it is being connected".to_owned(),
        Some(Ready) => "it has no tools".to_owned(),
        Some(NeedsLogin) => "it needs a login by the user".to_owned(),
        Some(Failed(why)) => format!("it failed: {}", quoted(&why)),
        Some(Off) => "it is switched off".to_owned(),
        None => "the user has not allowed it".to_owned(),
    }
}

/// Tools by name, for people and for the provider, which puts their definitions there.
fn references(names: &[&str]) -> Vec<Block> {
    let reference = |name: &&str| Block::from_value(json!({"type": "tool_reference", "tool_name": name}));
    let text = Block::text(format!("Loaded: {}.", names.join(", ")));
    [text].into_iter().chain(names.iter().map(reference)).collect()
}

/// The tools whose definitions an answer has.
pub(crate) fn loaded(output: &Output) -> Vec<String> {
    let matches = output.about.as_ref().and_then(|about| about["matches"].as_array());
    matches.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect()
}

/// The tools that a query means, the best first.
fn found(query: &str, all: &[OfferedTool], most: usize) -> Vec<OfferedTool> {
    if let Some(names) = query.strip_prefix(BY_NAME) {
        let named = names.split(',').map(str::trim).filter_map(|name| all.iter().find(|tool| is_named(tool, name)));
        return named.take(MOST_RESULTS).cloned().collect();
    }
    let words: Vec<String> = words(query);
    let mut scored: Vec<(usize, &OfferedTool)> = all.iter().map(|tool| (score(tool, &words), tool)).collect();
    scored.retain(|(score, _)| *score > 0);
    scored.sort_by_key(|(score, tool)| (Reverse(*score), tool.name.clone()));
    scored.into_iter().take(most).map(|(_, tool)| tool.clone()).collect()
}

fn is_named(tool: &OfferedTool, name: &str) -> bool {
    tool.name == name || tool.offer.name == name
}

/// A word in the name counts more than one in the description; all of them more than some.
fn score(tool: &OfferedTool, words_of_query: &[String]) -> usize {
    const IN_NAME: usize = 5;
    let name = words(&format!("{} {}", tool.name, tool.offer.title.as_deref().unwrap_or_default()));
    let about = words(&tool.offer.description);
    let score_of = |word: &String| match () {
        () if name.contains(word) => 2 * IN_NAME,
        () if name.iter().any(|part| part.contains(word.as_str())) => IN_NAME,
        () if about.contains(word) => 2,
        () if about.iter().any(|part| part.starts_with(word.as_str())) => 1,
        () => 0,
    };
    words_of_query.iter().map(score_of).sum()
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|part| part.chars().count() >= SHORTEST_WORD).map(str::to_lowercase).collect()
}

impl TypedTool for ToolSearch {
    type Input = ToolSearchInput;
    const NAME: &'static str = tool_names::TOOL_SEARCH;
    const ACCESS: Access = Access::ReadOnly;

    fn subject(&self, _: &ToolSearchInput, _: &Scope) -> Subject {
        Subject::Whole
    }

    fn run(&self, input: ToolSearchInput, _: Scope) -> BoxFuture<'static, Output> {
        Box::pin(ready(self.answer(&input)))
    }
}
