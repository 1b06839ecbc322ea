//! Files that the user's message names: after `@`, or a picture by its absolute path, as terminals paste it.
//!
//! Each is read as the model would read it, under the same gate: one outside the working directories is asked about, one
//! that a rule denies is left out. A text may be pasted and anybody's, so a name alone permits nothing, and so many files
//! are read and no more.

use serde_json::json;
use session::{Error, LineMeta, SeenFile};
use tokio_util::sync::CancellationToken;
use tools::{Output, Runs, ToolCall, run_all};
use transcript::block::Kind;
use transcript::{Block, Injected, Outcome, Purpose, tool_names};

use super::{Agent, server_mentions};
use crate::event::{AttachedFile, Event};
use crate::gate::{ModelCall, Ruling};

/// The most files of one message.
const MOST: usize = 10;
/// The most bytes of their texts together: about a quarter of a usual window.
const BYTES: usize = 150_000;
/// Endings of pictures that are attached by their path alone.
const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];
/// Signs that end a sentence rather than a name.
pub(super) const SENTENCE_ENDS: [char; 8] = ['.', ',', ';', ':', '!', '?', ')', '"'];

/// The text in which names of files are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AttachmentSource {
    /// None: names are only names.
    #[default]
    Nothing,
    /// The user's messages.
    Messages,
    /// This text, which is a part of the user's message: the rest is from somewhere else.
    Text(String),
}

/// A file that a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileMention {
    /// Its path, as it was written.
    path: String,
    /// The first line, and the number of lines, where a part is named.
    part: Option<(u64, u64)>,
}

/// The files of a message, read.
#[derive(Default)]
pub(super) struct Attachments {
    /// Pictures and documents, which stand before the message's text.
    pub(super) media: Vec<Block>,
    texts: Vec<(Injected, LineMeta)>,
    told: Vec<AttachedFile>,
}

/// Reads the files that a text names.
pub(super) async fn attachments_of(
    agent: &mut Agent,
    text: &str,
    cancel: &CancellationToken,
) -> Result<Attachments, Error> {
    let mut all = Attachments::default();
    let text = match &agent.attaches {
        AttachmentSource::Nothing => return Ok(all),
        AttachmentSource::Messages => text.to_owned(),
        AttachmentSource::Text(text) => text.clone(),
    };
    take_resources(agent, &text, &mut all, cancel).await;
    let has_read = agent.driver.live.work.tools.iter().any(|tool| tool.name() == tool_names::READ);
    if !has_read {
        return Ok(all);
    }
    let mut bytes = 0;
    let scope = agent.driver.live.scope.clone();
    let mentions = mentions(&text, |path| scope.place(path).1.is_file());
    for (at, mention) in mentions.into_iter().enumerate() {
        let name = mention.path.clone();
        if at >= MOST || bytes > BYTES {
            let why = "there are too many files, or they are too long".to_owned();
            all.told.push(AttachedFile { name, outcome: Err(why) });
            continue;
        }
        let output = read(agent, &mention, cancel).await?;
        let summary = output.summary.trim_start_matches("Read ").to_owned();
        if output.outcome == Outcome::Failed {
            all.told.push(AttachedFile { name, outcome: Err(summary) });
            continue;
        }
        let is_media = |block: &Block| matches!(block.kind(), Kind::Image | Kind::Document);
        let (media, texts): (Vec<Block>, Vec<Block>) = output.content.into_iter().partition(is_media);
        all.media.extend(media);
        let content = texts.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n");
        if !content.is_empty() {
            bytes += content.len();
            let (named, real) = scope.place(&mention.path);
            let seen = scope.seen(&real).map(|stamp| SeenFile {
                path: real,
                len: stamp.len,
                hash: stamp.hash.to_hex().to_string(),
            });
            let text = format!(
                "The user's message names {}. Read shows it as:\n\n{}",
                memory::quoting::quoted(&named.display().to_string()),
                memory::quoting::quoted(&content)
            );
            all.texts.push((Injected::new(Purpose::Attached, &text), LineMeta { seen, ..LineMeta::default() }));
        }
        all.told.push(AttachedFile { name, outcome: Ok(summary) });
    }
    Ok(all)
}

/// Takes the resources of servers that a text names.
async fn take_resources(agent: &mut Agent, text: &str, all: &mut Attachments, cancel: &CancellationToken) {
    let mut named: Vec<String> = words(text).into_iter().filter(|word| word.starts_with('@')).collect();
    named.sort();
    named.dedup();
    for word in named {
        let Some(read) = server_mentions::resource(agent, &word, cancel).await else { continue };
        let name = word.trim_start_matches('@').to_owned();
        if all.told.len() >= MOST {
            let why = "there are too many files and resources".to_owned();
            all.told.push(AttachedFile { name, outcome: Err(why) });
            continue;
        }
        let outcome = read.map(|found| {
            all.media.extend(found.media);
            all.texts.extend(found.text);
            "from its server".to_owned()
        });
        all.told.push(AttachedFile { name, outcome });
    }
}

/// Puts the texts beside the message, and says what was attached.
pub(super) fn attach(agent: &mut Agent, attachments: Attachments) -> Result<(), Error> {
    for (text, meta) in attachments.texts {
        agent.driver.live.session.inject(&text, meta)?;
    }
    if !attachments.told.is_empty() {
        agent.driver.live.tell(Event::Attached { files: attachments.told });
    }
    Ok(())
}

/// Reads one as the model would, if it may be read.
async fn read(agent: &mut Agent, mention: &FileMention, cancel: &CancellationToken) -> Result<Output, Error> {
    let scope = agent.driver.live.scope.clone().with_cancel(cancel.clone());
    let mut input = json!({"file_path": scope.absolute(&mention.path)});
    if let Some((first, lines)) = mention.part {
        (input["offset"], input["limit"]) = (json!(first), json!(lines));
    }
    let id = format!("attached-{}", agent.session().world().fresh_id());
    let tool = tool_names::READ.to_owned();
    let mut call = ModelCall { id: id.clone(), tool, input, runs: Runs::Alone, invalid: None };
    let ruling = agent.driver.gate.decide(&agent.driver.live.site(), &mut call, cancel).await;
    agent.driver.write_used()?;
    let (subject, rights) = match ruling {
        Ruling::Run(subject, rights) => (subject, rights),
        Ruling::Refused { why } => return Ok(Output::failed(why)),
    };
    let run = ToolCall { name: call.tool, input: call.input, subject: Some(subject), rights, id: Some(id) };
    let output = run_all(vec![run], &agent.driver.live.work.tools, &scope, |_, _| {}).await.pop();
    Ok(output.unwrap_or_else(|| Output::failed("it was not read")))
}

/// The files that a text names, each once.
fn mentions(text: &str, is_file: impl Fn(&str) -> bool) -> Vec<FileMention> {
    let mut found: Vec<FileMention> = Vec::new();
    for word in words(text) {
        let mention = match word.strip_prefix('@') {
            Some(named) => named_file(named, &is_file),
            None => {
                let ways = [word.as_str(), word.trim_end_matches(SENTENCE_ENDS)];
                ways.into_iter().find(|path| is_picture(path) && is_file(path)).map(|path| (path.to_owned(), None))
            }
        };
        if let Some((path, part)) = mention
            && found.iter().all(|known| known.path != path || known.part != part)
        {
            found.push(FileMention { path, part });
        }
    }
    found
}

/// The file of a word after `@`: with a part of it, or with the end of a sentence behind it.
fn named_file(named: &str, is_file: impl Fn(&str) -> bool) -> Option<(String, Option<(u64, u64)>)> {
    if is_file(named) {
        return Some((named.to_owned(), None));
    }
    let plain = named.trim_end_matches(SENTENCE_ENDS);
    if plain != named && is_file(plain) {
        return Some((plain.to_owned(), None));
    }
    let (path, lines) = plain.rsplit_once("#L")?;
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.trim_start_matches('L').parse().ok()?);
    is_file(path).then(|| (path.to_owned(), Some((first.max(1), last.saturating_sub(first) + 1))))
}

fn is_picture(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    (path.starts_with('/') || path.starts_with("~/")) && PICTURES.contains(&ending.as_str())
}

/// Words of a text: blanks in quotes, or behind a backslash, belong to a word.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            _ if quote == Some(c) => quote = None,
            // An apostrophe in a word opens nothing.
            '"' | '\'' if quote.is_none() && (word.is_empty() || word == "@") => quote = Some(c),
            '\\' if quote.is_none() && letters.peek() == Some(&' ') => word.extend(letters.next()),
            '\n' => {
                quote = None;
                words.push(std::mem::take(&mut word));
            }
            c if c.is_whitespace() && quote.is_none() => words.push(std::mem::take(&mut word)),
            '(' if word.is_empty() => {}
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TERM-4: names are found where people write them, and what is no file is nothing.
    #[test]
    fn files_are_named_with_blanks_parts_and_ends_of_sentences() {
        let files = ["src/main.rs", "a b.txt", "/x/my pic.png", "/x/c.png", "x.", "~/notes.md"];
        let found = |text: &str| -> Vec<(String, Option<(u64, u64)>)> {
            mentions(text, |path| files.contains(&path)).into_iter().map(|one| (one.path, one.part)).collect()
        };
        let whole = |path: &str| (path.to_owned(), None);
        assert_eq!(found("look at @src/main.rs, then (@src/main.rs) again."), [whole("src/main.rs")]);
        assert_eq!(
            found("@\"a b.txt\" and '/x/my pic.png' and /x/c.png"),
            [whole("a b.txt"), whole("/x/my pic.png"), whole("/x/c.png")]
        );
        assert_eq!(found("/x/my\\ pic.png"), [whole("/x/my pic.png")]);
        assert_eq!(found("@x. @~/notes.md!"), [whole("x."), whole("~/notes.md")]);
        assert_eq!(
            found("@src/main.rs#L10-20 @src/main.rs#L5"),
            [("src/main.rs".to_owned(), Some((10, 11))), ("src/main.rs".to_owned(), Some((5, 1)))]
        );
        assert_eq!(found("ada@src/main.rs @nobody it's @agent-Explore src/main.rs don't"), []);
    }
}
