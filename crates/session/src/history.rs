//! History: what was said, though it is no longer in view.
//!
//! Nothing that leaves the view leaves the log. This tool reads the log: the session's own from its beginning, and those
//! of earlier sessions of the project. It finds messages by words, by the files they touched and by time, and shows any
//! message as it was. It reads the file each time, so it knows of everything that was written, and keeps nothing.

mod history_message;
mod history_query;

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Access, Output, Scope, Subject, TypedTool};

use history_message::{HistoryMessage, heading, read};
use history_query::{HistoryQuery, search};
use transcript::tool_names;

/// The most messages that a search shows.
const SHOWN: usize = 20;
/// The most earlier sessions that are searched, the newest first.
const SESSIONS: usize = 40;
/// Longer files of earlier sessions are passed over.
const SESSION_BYTES: u64 = 50_000_000;
/// The most characters of a message that are shown at a time.
const PAGE: usize = 20_000;

/// Looks up what was said earlier in this session, also what is no longer in view, and in earlier sessions of this project.
///
/// With `id` it shows that message as it was, whole. Else it searches for messages with all words of `query`, or which
/// touched the file `path`, or of a time; the newest come first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryInput {
    /// The id of a message or of a tool call, or `first … last`.
    #[serde(default)]
    pub id: Option<String>,
    /// Words.
    #[serde(default)]
    pub query: Option<String>,
    /// Part of the path of a file.
    #[serde(default)]
    pub path: Option<String>,
    /// Not before this time, such as `2026-11-15T10:00:00Z`.
    #[serde(default)]
    pub since: Option<String>,
    /// Not after this time.
    #[serde(default)]
    pub until: Option<String>,
    /// Search earlier sessions too.
    #[serde(default)]
    pub all: Option<bool>,
    /// The start in a long message, in characters.
    #[serde(default)]
    pub offset: Option<usize>,
}

/// Looks up what was said.
#[derive(Debug, Clone)]
pub struct History {
    session: PathBuf,
}

impl History {
    /// The history of the session in a file, and of those beside it.
    pub fn new(session: impl Into<PathBuf>) -> Self {
        Self { session: session.into() }
    }
}

impl TypedTool for History {
    type Input = HistoryInput;
    const NAME: &'static str = tool_names::HISTORY;

    fn access(&self, _: &HistoryInput) -> Access {
        Access::ReadOnly
    }

    fn subject(&self, _: &HistoryInput, _: &Scope) -> Subject {
        Subject::Whole
    }

    fn run(&self, input: HistoryInput, scope: Scope) -> BoxFuture<'static, Output> {
        let session = self.session.clone();
        Box::pin(async move {
            let look = move || look(&session, &input, &scope);
            let output = tokio::task::spawn_blocking(look).await;
            output.unwrap_or_else(|_| Output::failed("the history could not be read"))
        })
    }
}

fn look(session: &Path, input: &HistoryInput, scope: &Scope) -> Output {
    let messages = match read(session) {
        Ok(messages) => messages,
        Err(why) => return Output::failed(why),
    };
    if let Some(id) = input.id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
        return by_id(&messages, id, input.offset.unwrap_or(0));
    }
    let wanted = match HistoryQuery::of(input) {
        Ok(wanted) => wanted,
        Err(why) => return Output::failed(why),
    };
    let mut found: Vec<String> = search(&messages, &wanted, None);
    if input.all == Some(true) {
        for (name, path) in earlier(session) {
            if found.len() >= SHOWN || scope.cancel().is_cancelled() {
                break;
            }
            found.extend(search(&read(&path).unwrap_or_default(), &wanted, Some(&name)));
        }
    }
    let all = found.len();
    found.truncate(SHOWN);
    let summary = format!("{all} found");
    match (all, input.all) {
        (0, Some(true)) => Output::done("Nothing was said about that.", summary),
        (0, _) => {
            Output::done("Nothing was said about that in this session. `all` searches earlier ones too.", summary)
        }
        _ if all > SHOWN => {
            let more = format!("\n\n{} more. Narrow it down by more words, a path or a time.", all - SHOWN);
            Output::done(found.join("\n\n") + &more, summary)
        }
        _ => Output::done(found.join("\n\n"), summary),
    }
}

fn by_id(messages: &[HistoryMessage], id: &str, offset: usize) -> Output {
    let (first, last) = id.split_once('…').map_or((id, id), |(first, last)| (first.trim(), last.trim()));
    let Some((from, to)) = places(messages, first).pop().zip(places(messages, last).pop()) else {
        return Output::failed(format!("there is no message or call {id} in this session; search for words instead"));
    };
    let (from, to) = (from.0, to.1.max(from.1));
    let mut others: Vec<&str> = places(messages, first).iter().map(|(at, _)| messages[*at].id.as_str()).collect();
    others.pop();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("\n\n[Earlier calls with this id are in the messages {}]", others.join(", ")),
    };
    let shown: Vec<String> =
        messages[from..=to].iter().map(|message| format!("{}\n{}", heading(message, None), message.text)).collect();
    let all = shown.join("\n\n");
    let rest: String = all.chars().skip(offset).collect();
    let page: String = rest.chars().take(PAGE).collect();
    let more = rest.chars().count().saturating_sub(PAGE);
    let note = if more > 0 { format!("\n\n[{more} more characters: offset {}]", offset + PAGE) } else { String::new() };
    Output::done(page + &note + &others, format!("{} messages", to - from + 1))
}

/// The places of the message with an id, or of each call with its result: a server may have used the id again.
fn places(messages: &[HistoryMessage], id: &str) -> Vec<(usize, usize)> {
    let names = |message: &HistoryMessage| message.calls.iter().any(|call| call == id);
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match (places.last_mut(), names(message)) {
            (Some(last), true) if message.who == "result" => last.1 = at,
            (_, true) => places.push((at, at)),
            (_, false) if message.id.as_str() == id => places.push((at, at)),
            _ => {}
        }
    }
    places
}

/// The other sessions of the same project, the newest first.
fn earlier(session: &Path) -> Vec<(String, PathBuf)> {
    let Some(folder) = session.parent() else { return Vec::new() };
    let mut entries = files::list(folder).unwrap_or_default();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.modified));
    let sessions = entries.into_iter().filter_map(|entry| {
        let name = entry.name.to_str()?.strip_suffix(".jsonl")?.to_owned();
        let path = folder.join(&entry.name);
        (path != session && entry.len <= SESSION_BYTES).then_some((name, path))
    });
    sessions.take(SESSIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::history_message::message;
    use super::*;
    use jiff::Timestamp;
    use serde_json::json;
    use transcript::commit::{Act, Commit, Extent, Reason, Trigger};
    use transcript::line::{Body, Line, TextSource};
    use transcript::{Block, Id, Outcome};

    fn messages(bodies: Vec<Body>) -> Vec<HistoryMessage> {
        let line = |(at, body)| Line::new(Id::from(format!("line-{at}")), None, Timestamp::UNIX_EPOCH, body);
        bodies.into_iter().enumerate().map(line).filter_map(|line| message(&line)).collect()
    }

    fn round(reply: &str, call: &str, result: &str) -> [Body; 2] {
        let blocks = vec![Block::tool_use(call, "Bash", &json!({"command": "ls"}))];
        let said = Body::Assistant { id: reply.into(), model: "m".into(), blocks, usage: None, stop: None };
        let blocks = vec![Block::tool_result(call, &[Block::text(result)], Outcome::Done)];
        [said, Body::User { blocks, source: TextSource::Direct }]
    }

    fn commit(act: Act) -> Body {
        Body::Commit(Commit { act, reason: Reason::default() })
    }

    /// COMPACT-13: what was cleared is shown as it was; what was written down of it, and summaries, are found by words and
    /// shown by id.
    #[test]
    fn summaries_and_what_was_cleared_are_shown() {
        let mut bodies: Vec<Body> = round("m1", "toolu_1", "the port is 4711").into();
        let results = vec!["toolu_1".into()];
        bodies.push(commit(Act::Clear { results, trigger: Trigger::Auto, digest: Some("A port was found.".into()) }));
        bodies.push(commit(Act::Compact { extent: Extent::Everything, trigger: Trigger::Auto, pre_tokens: 0 }));
        bodies.push(Body::User { blocks: vec![Block::text("So far: harbours.")], source: TextSource::Summary });
        let messages = messages(bodies);
        let whole = by_id(&messages, "toolu_1", 0).text();
        assert!(whole.contains("the port is 4711") && !whole.contains("harbours"), "{whole}");
        let found = |query: &str| {
            let wanted = HistoryQuery { words: vec![query.into()], path: None, since: None, until: None };
            search(&messages, &wanted, None)
        };
        assert!(found("harbours")[0].starts_with("line-4 (summary"), "{:?}", found("harbours"));
        assert!(found("a port was")[0].starts_with("line-2 (summary"));
        assert!(by_id(&messages, "line-4", 0).text().contains("harbours"));
    }

    /// COMPACT-13: what has the words whole comes before what only contains them.
    #[test]
    fn whole_words_come_first() {
        let rounds = (1..40).flat_map(|n| round(&format!("m{n}"), &format!("c{n}"), &format!("step {n}: value v{n}")));
        let messages = messages(rounds.collect());
        let wanted = HistoryQuery { words: vec!["step".into(), "3:".into()], path: None, since: None, until: None };
        let found = search(&messages, &wanted, None);
        assert!(found.len() == 4 && found[0].contains("value v3 "), "{found:?}");
    }

    /// COMPACT-13: of calls that a server gave one id the newest is shown, with its own result, and where the others are.
    #[test]
    fn a_call_whose_id_was_used_again_is_shown_alone() {
        let bodies = [round("m1", "f:0", "one"), round("m2", "f:0", "two"), round("m3", "f:1", "three")];
        let messages = messages(bodies.into_iter().flatten().collect());
        let shown = by_id(&messages, "f:0", 0).text();
        assert!(shown.contains("two") && !shown.contains("one") && !shown.contains("three"), "{shown}");
        assert!(shown.contains("in the messages line-0"), "{shown}");
        assert!(by_id(&messages, "line-0 … line-1", 0).text().contains("one"));
    }
}
