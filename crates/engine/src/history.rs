//! History: what was said, though it is no longer in view.
//!
//! Nothing that leaves the view leaves the log. This tool reads the log: the session's own from its beginning, and those
//! of earlier sessions of the project. It finds messages by words, by the files they touched and by time, and shows any
//! message as it was. It reads the file each time, so it knows of everything that was written, and keeps nothing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Access, Output, Scope, Subject, Typed};
use transcript::block::Kind;
use transcript::commit::Act;
use transcript::line::{Body, Line, Source};
use transcript::{Block, Id};

use crate::record;

/// How many messages a search shows.
const SHOWN: usize = 20;
/// How many earlier sessions are searched, the newest first.
const SESSIONS: usize = 40;
/// Longer files of earlier sessions are passed over.
const SESSION_BYTES: u64 = 50_000_000;
/// How much of a message a search shows around the first word found, in characters.
const AROUND: usize = 160;
/// How much of a message is shown at a time, in characters.
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
    /// Whether to search earlier sessions too.
    #[serde(default)]
    pub all: Option<bool>,
    /// Where to begin in a long message, in characters.
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

impl Typed for History {
    type Input = HistoryInput;
    const NAME: &'static str = "History";

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

/// A message as it was.
struct Message {
    id: Id,
    /// Ids of its calls, or of the calls it answers.
    calls: Vec<String>,
    time: Option<Timestamp>,
    who: &'static str,
    text: String,
}

fn look(session: &Path, input: &HistoryInput, scope: &Scope) -> Output {
    let messages = match read(session) {
        Ok(messages) => messages,
        Err(why) => return Output::failed(why),
    };
    if let Some(id) = input.id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
        return by_id(&messages, id, input.offset.unwrap_or(0));
    }
    let wanted = match Wanted::of(input) {
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

/// What is searched for.
struct Wanted {
    words: Vec<String>,
    path: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Wanted {
    fn of(input: &HistoryInput) -> Result<Self, String> {
        let time = |text: &Option<String>| match text.as_deref() {
            None => Ok(None),
            Some(text) => {
                let day = || text.parse::<jiff::civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
                let time = text.parse().ok().or_else(|| day().map(|day| day.timestamp()));
                time.map(Some).ok_or_else(|| format!("{text:?} is no time; write it like 2026-11-15T10:00:00Z"))
            }
        };
        let query = input.query.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
        let wanted = Self { words, path: input.path.clone(), since: time(&input.since)?, until: time(&input.until)? };
        if wanted.words.is_empty() && wanted.path.is_none() && wanted.since.is_none() && wanted.until.is_none() {
            return Err("say what to look for: an id, a query, a path or a time".to_owned());
        }
        Ok(wanted)
    }

    /// Where a message speaks of it: the place of the first word.
    fn place_in(&self, message: &Message) -> Option<usize> {
        let early = self.since.is_some_and(|since| message.time.is_none_or(|time| time < since));
        let late = self.until.is_some_and(|until| message.time.is_none_or(|time| time > until));
        if early || late || self.path.as_ref().is_some_and(|path| !message.text.contains(path.as_str())) {
            return None;
        }
        let text = message.text.to_lowercase();
        let places: Option<Vec<usize>> = self.words.iter().map(|word| text.find(word.as_str())).collect();
        let path = || self.path.as_ref().and_then(|path| message.text.find(path.as_str()));
        Some(places?.into_iter().next().or_else(path).unwrap_or(0))
    }
}

impl Wanted {
    /// Whether all words occur as words of their own.
    fn is_whole_in(&self, message: &Message) -> bool {
        let text = message.text.to_lowercase();
        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        let is_whole = |at: usize, word: &str| {
            edge(text[..at].chars().next_back()) && edge(text[at + word.len()..].chars().next())
        };
        self.words.iter().all(|word| text.match_indices(word.as_str()).any(|(at, _)| is_whole(at, word)))
    }
}

fn search(messages: &[Message], wanted: &Wanted, session: Option<&str>) -> Vec<String> {
    // What was said comes before what was written of it later.
    let of = |who: fn(&str) -> bool| messages.iter().rev().filter(move |message| who(message.who));
    let all = of(|who| !["summary", "beside"].contains(&who)).chain(of(|who| who == "summary"));
    let mut all: Vec<(&Message, usize)> =
        all.filter_map(|message| Some((message, wanted.place_in(message)?))).collect();
    // Who looks for 7 wants no 17: what has the words whole comes first.
    all.sort_by_key(|(message, _)| !wanted.is_whole_in(message));
    let found = all.into_iter().map(|(message, place)| {
        let from = message.text.floor_char_boundary(place.saturating_sub(AROUND).min(message.text.len()));
        let around: String = message.text[from..].chars().take(AROUND * 2).collect();
        let around = around.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}\n  … {around} …", heading(message, session))
    });
    found.collect()
}

fn heading(message: &Message, session: Option<&str>) -> String {
    let time = message.time.map(|time| format!(", {time:.0}")).unwrap_or_default();
    let calls = if message.calls.is_empty() { String::new() } else { format!(", calls {}", message.calls.join(" ")) };
    let session = session.map(|session| format!(", session {session}")).unwrap_or_default();
    format!("{} ({}{time}{calls}{session})", message.id, message.who)
}

fn by_id(messages: &[Message], id: &str, offset: usize) -> Output {
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

/// Where the message of an id stands, or each call of it with its result: a server may have used the id again.
fn places(messages: &[Message], id: &str) -> Vec<(usize, usize)> {
    let names = |message: &Message| message.calls.iter().any(|call| call == id);
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

/// The messages of a session file, in order.
fn read(path: &Path) -> Result<Vec<Message>, String> {
    let (lines, _) = record::lines(path).map_err(|error| error.to_string())?;
    let mut messages: Vec<Message> = lines.iter().filter_map(message).collect();
    // What was looked up here before is only said once.
    let called = |line: &Line| match &line.body {
        Body::Assistant { blocks, .. } => blocks.iter().filter_map(own_call).collect(),
        _ => Vec::new(),
    };
    let own: HashSet<String> = lines.iter().flat_map(called).collect();
    let is_own = |message: &&mut Message| message.who == "result" && message.calls.iter().all(|id| own.contains(id));
    messages.iter_mut().filter(is_own).for_each(|message| message.who = "beside");
    Ok(messages)
}

/// The id of a call of this tool.
fn own_call(block: &Block) -> Option<String> {
    match block.kind() {
        Kind::ToolUse { id, name } if **name == *History::NAME => Some(id.to_string()),
        _ => None,
    }
}

fn message(line: &Line) -> Option<Message> {
    let (who, blocks) = match &line.body {
        Body::User { blocks, source: Source::Said } => ("user", blocks),
        Body::User { blocks, source: Source::Summary } => ("summary", blocks),
        Body::User { blocks, source: Source::Injected } | Body::Attachment { blocks } => ("beside", blocks),
        Body::Assistant { blocks, .. } => ("assistant", blocks),
        Body::Commit(commit) => return written_down(line, &commit.act),
        _ => return None,
    };
    let mut calls = Vec::new();
    let mut texts = Vec::new();
    let mut who = who;
    for block in blocks {
        match block.kind() {
            Kind::Text => texts.extend(block.as_text()),
            Kind::ToolUse { .. } if own_call(block).is_some() => {}
            Kind::ToolUse { id, name } => {
                calls.push(id.to_string());
                texts.push(format!("{name} {}", block.input().unwrap_or_default()));
            }
            Kind::ToolResult { id, .. } => {
                who = "result";
                calls.push(id.to_string());
                texts.push(block.result_text());
            }
            Kind::Image => texts.push("[image]".to_owned()),
            Kind::Document => texts.push("[document]".to_owned()),
            Kind::Thinking | Kind::Other => {}
        }
    }
    let text = texts.join("\n");
    let id = line.id.clone()?;
    (!text.is_empty()).then_some(Message { id, calls, time: line.time, who, text })
}

/// What a commit says in the place of what it took out of view.
fn written_down(line: &Line, act: &Act) -> Option<Message> {
    let text = match act {
        Act::Clear { digest: Some(text), .. } | Act::Collapse { summary: text, .. } => text.clone(),
        _ => return None,
    };
    Some(Message { id: line.id.clone()?, calls: Vec::new(), time: line.time, who: "summary", text })
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
    use super::*;
    use serde_json::json;
    use transcript::Outcome;
    use transcript::commit::{Commit, Extent, Reason, Trigger};

    fn messages(bodies: Vec<Body>) -> Vec<Message> {
        let line = |(at, body)| Line::new(Id::from(format!("line-{at}")), None, Timestamp::UNIX_EPOCH, body);
        bodies.into_iter().enumerate().map(line).filter_map(|line| message(&line)).collect()
    }

    fn round(reply: &str, call: &str, result: &str) -> [Body; 2] {
        let blocks = vec![Block::tool_use(call, "Bash", &json!({"command": "ls"}))];
        let said = Body::Assistant { id: reply.into(), model: "m".into(), blocks, usage: None, stop: None };
        let blocks = vec![Block::tool_result(call, &[Block::text(result)], Outcome::Done)];
        [said, Body::User { blocks, source: Source::Said }]
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
        bodies.push(Body::User { blocks: vec![Block::text("So far: harbours.")], source: Source::Summary });
        let messages = messages(bodies);
        let whole = by_id(&messages, "toolu_1", 0).text();
        assert!(whole.contains("the port is 4711") && !whole.contains("harbours"), "{whole}");
        let found = |query: &str| {
            let wanted = Wanted { words: vec![query.into()], path: None, since: None, until: None };
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
        let wanted = Wanted { words: vec!["step".into(), "3:".into()], path: None, since: None, until: None };
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
