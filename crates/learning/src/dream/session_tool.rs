//! `Sessions`: the words of earlier sessions, for a dream. It shows one conversation, or the messages that contain
//! certain words; both in parts, and never a line of a transcript.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use memory::quoting;
use schemars::JsonSchema;
use serde::Deserialize;
use session::home::SessionFile;
use tools::{Access, Output, Scope, Subject, TypedTool};

use super::sources::{DreamSources, SessionMessage, counted};
use crate::extract::turn_text::{Speaker, shortened};
use crate::saver::Saver;

/// The name the model calls it by.
pub(super) const NAME: &str = "Sessions";

/// Bytes of a conversation shown in one call.
const PAGE: usize = 10_000;
/// Number of sessions listed.
const LISTED: usize = 40;
/// Messages that a search shows, and characters of each.
const FOUND: usize = 15;
const EXCERPT: usize = 600;
/// Sessions that a search reads, the newest first, and bytes of them.
const SEARCHED: usize = 200;
const SEARCHED_BYTES: u64 = 256 * 1024 * 1024;

/// Shows what was said in earlier sessions of this project: the user's words and the model's answers, with their times.
///
/// With `session` it shows that conversation, from message `from` on. With `words` it finds the messages that hold all of
/// them, in that session or in all, the newest session first. With neither it lists sessions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsInput {
    /// A session, by its name.
    #[serde(default)]
    session: Option<String>,
    /// Narrow words to look for, such as `release freeze`; case does not matter.
    #[serde(default)]
    words: Option<String>,
    /// The message to begin with, from 1.
    #[serde(default)]
    from: Option<usize>,
}

/// Shows what was said in earlier sessions.
pub(super) struct Sessions {
    pub(super) sources: Arc<DreamSources>,
    /// Is told which of the user's words were shown: only these can be quoted.
    pub(super) saver: Arc<Saver>,
}

impl TypedTool for Sessions {
    type Input = SessionsInput;
    const NAME: &'static str = NAME;

    fn access(&self, _: &SessionsInput) -> Access {
        Access::ReadOnly
    }

    fn subject(&self, input: &SessionsInput, _: &Scope) -> Subject {
        Subject::Name(input.session.clone().unwrap_or_default())
    }

    fn run(&self, input: SessionsInput, scope: Scope) -> BoxFuture<'static, Output> {
        let (sources, saver) = (self.sources.clone(), self.saver.clone());
        Box::pin(async move {
            let look = move || SessionLookup { sources: &sources, saver: &saver, scope: &scope }.look(&input);
            let looked = tokio::task::spawn_blocking(look).await;
            looked.unwrap_or_else(|_| Output::failed("The sessions could not be read."))
        })
    }
}

struct SessionLookup<'a> {
    sources: &'a DreamSources,
    saver: &'a Saver,
    scope: &'a Scope,
}

impl SessionLookup<'_> {
    fn look(&self, input: &SessionsInput) -> Output {
        let given =
            |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let session = match given(&input.session).map(|id| self.sources.named(&id).ok_or(id)) {
            None => None,
            Some(Ok(session)) => Some(session),
            Some(Err(id)) => {
                return Output::failed(format!("There is no session {id}. Without `session`, Sessions lists them."));
            }
        };
        match (session, given(&input.words)) {
            (None, None) => self.list(),
            (Some(session), None) => self.page(&session, input.from.unwrap_or(1).max(1)),
            (session, Some(words)) => self.search(session, &words),
        }
    }

    fn list(&self) -> Output {
        let mut text = String::new();
        let mut listed = 0;
        for session in self.sources.touched(None) {
            if listed == LISTED || self.scope.cancel().is_cancelled() {
                break;
            }
            if let Some(messages) = self.sources.messages_of(&session) {
                listed += 1;
                text.push_str(&format!("- {}\n", self.heading(&session, &messages)));
            }
        }
        let text = if text.is_empty() { "There are no sessions to learn from.".to_owned() } else { text };
        Output::done(text, format!("{listed} listed"))
    }

    fn page(&self, session: &SessionFile, from: usize) -> Output {
        let Some(messages) = self.sources.messages_of(session) else {
            return Output::failed(format!("Nothing is learnt from session {}. Leave it.", session.id));
        };
        let mut text = format!("{}\n\n", self.heading(session, &messages));
        let mut next = from;
        for message in messages.iter().skip(from - 1) {
            let one = quoting::quoted(&message.rendered(self.sources.zone())).into_owned();
            if next > from && text.len() + one.len() > PAGE {
                text.push_str(&format!("[{} more messages; go on with from = {next}]", messages.len() + 1 - next));
                break;
            }
            self.heard(session, message);
            text.push_str(&one);
            next += 1;
        }
        Output::done(text, format!("{} messages", next - from))
    }

    fn search(&self, only: Option<SessionFile>, words: &str) -> Output {
        let wanted: Vec<String> = words.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let holds = |message: &SessionMessage| {
            let said = message.words.to_lowercase();
            wanted.iter().all(|word| said.contains(word))
        };
        let sessions = only.map_or_else(|| self.sources.touched(None), |one| vec![one]);
        let (mut text, mut found, mut room) = (String::new(), 0, SEARCHED_BYTES);
        for session in sessions.into_iter().take(SEARCHED) {
            if found == FOUND || self.scope.cancel().is_cancelled() || session.len > room {
                break;
            }
            room -= session.len;
            let messages = self.sources.messages_of(&session).unwrap_or_default();
            let matching: Vec<usize> = (0..messages.len()).filter(|at| holds(&messages[*at])).collect();
            if matching.is_empty() {
                continue;
            }
            text.push_str(&format!("{}\n\n", self.heading(&session, &messages)));
            for at in matching.into_iter().take(FOUND - found) {
                let message = &messages[at];
                self.heard(&session, message);
                let excerpt = SessionMessage { words: around(&message.words, &wanted[0]), ..message.clone() };
                let shown = excerpt.rendered(self.sources.zone());
                text.push_str(&format!("[message {}] {}", at + 1, quoting::quoted(&shown)));
                found += 1;
            }
        }
        match found {
            0 => Output::done("Nobody said that in the sessions that are learnt from.", "nothing found"),
            found => Output::done(text, format!("{found} found")),
        }
    }

    fn heading(&self, session: &SessionFile, messages: &[SessionMessage]) -> String {
        let day = |message: Option<&SessionMessage>| {
            let at = message.and_then(|message| message.at)?.to_zoned(self.sources.zone().clone());
            Some(at.strftime("%A, %Y-%m-%d").to_string())
        };
        let (first, last) = (day(messages.first()), day(messages.last()));
        let days = match (first, last) {
            (Some(first), Some(last)) if first != last => format!(", {first} to {last}"),
            (Some(day), _) | (_, Some(day)) => format!(", {day}"),
            (None, None) => String::new(),
        };
        format!("session {} ({}{days})", session.id, counted(messages.len()))
    }

    fn heard(&self, session: &SessionFile, message: &SessionMessage) {
        if message.speaker == Speaker::User {
            self.saver.hear(&message.words, message.at, &session.id, message.id.as_deref());
        }
    }
}

/// The part of a text around a word.
fn around(text: &str, word: &str) -> String {
    let lower = text.to_lowercase();
    // Lower case may have other lengths; then the place is only near.
    let at = text.floor_char_boundary(lower.find(word).unwrap_or_default().min(text.len()));
    let before = text[..at].char_indices().rev().nth(EXCERPT / 2).map_or(0, |(start, _)| start);
    let after = text[at..].char_indices().nth(EXCERPT / 2).map_or(text.len(), |(end, _)| at + end);
    let (open, close) = (if before > 0 { "… " } else { "" }, if after < text.len() { " …" } else { "" });
    format!("{open}{}{close}", shortened(&text[before..after], EXCERPT * 2))
}
