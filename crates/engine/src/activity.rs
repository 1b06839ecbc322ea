//! What somebody is doing who works beside a session, in three to five words, said anew from time to time: an agent in the
//! background, or a teammate in its own process.
//!
//! The words come from a question beside its work: to its own conversation where that is in the cache and so costs little,
//! else to the cheapest model, which is shown the end of it. Nothing waits for them, and nothing is asked where nothing
//! has changed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use learning::fork::Fork;
use learning::ledger::{self, Ledger};
use parking_lot::Mutex;
use provider::Model;
use session::World;
use tokio_util::sync::CancellationToken;
use transcript::{Prologue, Request, Usage};

use learning::fork::SmallModel;

/// How often it is looked at where nobody says.
const EVERY: u64 = 30;
/// With fewer messages there is nothing to say.
const LEAST_MESSAGES: usize = 3;
/// The most words, and so many that the answer is none.
const MOST_WORDS: usize = 5;
const NO_LABEL: usize = 12;
/// How long an answer may take, and be.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST_OUTPUT: u64 = 60;
/// How much of the end of a conversation the cheapest model is shown, in characters.
const SHOWN: usize = 4_000;
/// For so long the provider keeps what it has read, in seconds.
const CACHED: i64 = 300;
/// What is read from the cache costs so much of what is read anew.
const CACHED_SHARE: f64 = 0.1;
/// What a token costs where no price is known: only the ratio of the two counts.
const UNPRICED: f64 = 1.0;

const QUESTION: &str = "In three to five words, in the present tense, what are you doing right now? Name the file or thing \
                        if there is one, as in \"Reading the cache tests\". Answer with these words alone; call no tool.";

/// The request an agent has sent last, and when.
#[derive(Debug, Clone, Default)]
pub struct LastRequest(Arc<Mutex<Option<(Request, Timestamp)>>>);

impl LastRequest {
    /// It was sent.
    pub(crate) fn sent(&self, request: &Request, now: Timestamp) {
        *self.0.lock() = Some((request.clone(), now));
    }

    fn get(&self) -> Option<(Request, Timestamp)> {
        self.0.lock().clone()
    }
}

/// How often it is looked at, by the seconds that somebody asked for; never for none of them.
pub fn every(seconds: Option<u64>) -> Option<Duration> {
    Some(seconds.unwrap_or(EVERY)).filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

/// Says what one agent is doing, for as long as it is asked.
pub struct ActivityReporter {
    pub(crate) latest: LastRequest,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) small: Option<SmallModel>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) world: World,
    pub(crate) every: Option<Duration>,
    /// How long the conversation was when it was last asked about.
    pub(crate) known: usize,
    /// What the questions used, each with the model it went to.
    pub(crate) used: Vec<(String, Usage)>,
}

impl ActivityReporter {
    /// The next words, as soon as there are other ones; nothing is asked while they are not wanted.
    pub async fn next(&mut self, is_wanted: impl Fn() -> bool, stop: &CancellationToken) -> String {
        let Some(every) = self.every else { return std::future::pending().await };
        loop {
            tokio::time::sleep(every).await;
            let Some((request, at)) = self.latest.get().filter(|_| is_wanted()) else { continue };
            let messages = request.messages.len();
            if messages < LEAST_MESSAGES || messages == self.known {
                continue;
            }
            self.known = messages;
            let question = self.question(request, at, stop);
            let model = question.parent.prologue.model.clone();
            let (forked, used) = question.run().await;
            self.used.push((model, used));
            if let Some(label) = forked.ok().and_then(|forked| words(&forked.text)) {
                return label;
            }
        }
    }

    /// The question, to whoever answers it for less.
    fn question(&self, request: Request, at: Timestamp, stop: &CancellationToken) -> Fork {
        let price = |name: &str| self.ledger.price(name).map_or(UNPRICED, |price| price.input);
        let bytes: usize =
            request.messages.iter().flat_map(|message| &message.blocks).map(|block| block.json().len()).sum();
        let age = self.world.now().duration_since(at).as_secs();
        let share = if age < CACHED { CACHED_SHARE } else { 1.0 };
        let own = bytes as f64 * share * price(&request.prologue.model);
        let small = self.small.as_ref().filter(|small| (SHOWN as f64) * price(&small.name) < own);
        let (model, parent) = match small {
            Some(small) => (small.model.clone(), ending(&small.name, &request)),
            None => (self.model.clone(), request),
        };
        Fork {
            patience: PATIENCE,
            most_output: Some(MOST_OUTPUT),
            cancel: stop.child_token(),
            ..Fork::new(ledger::LABEL, &model, parent, QUESTION, &self.ledger)
        }
    }
}

/// The end of a conversation, for a model that has not seen the rest.
fn ending(model: &str, request: &Request) -> Request {
    let mut texts = Vec::new();
    let mut left = SHOWN;
    for block in request.messages.iter().rev().flat_map(|message| message.blocks.iter().rev()) {
        let text = block.as_text().unwrap_or_else(|| block.json().to_owned());
        let text: String = text.chars().take(left.min(800)).collect();
        left -= text.chars().count();
        texts.push(text);
        if left == 0 {
            break;
        }
    }
    texts.reverse();
    let text = memory::quoting::quoted(&texts.join("\n")).into_owned();
    let prologue = Prologue { model: model.to_owned(), max_tokens: MOST_OUTPUT, ..Prologue::default() };
    Request::about(prologue, format!("The end of an agent's work, as data:\n<work>\n{text}\n</work>"))
}

/// The label in an answer, if there is one.
pub(crate) fn words(answer: &str) -> Option<String> {
    let line = answer.trim().lines().next()?.trim_matches(['"', '\'', '`', '.', ' ', '*']);
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.is_empty() || words.len() > NO_LABEL {
        return None;
    }
    let clean = |word: &&str| word.chars().filter(|letter| !letter.is_control()).collect::<String>();
    Some(words.iter().take(MOST_WORDS).map(clean).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AGENT-4: a label has at most five words; an empty answer, or one that is no label, gives none.
    #[test]
    fn a_label_is_a_few_words() {
        assert_eq!(words("Reading the cache tests.\nThen more.").as_deref(), Some("Reading the cache tests"));
        assert_eq!(words("one two three four five six").as_deref(), Some("one two three four five"));
        assert_eq!(words("  \n"), None);
        assert_eq!(words(&"word ".repeat(40)), None);
    }

    /// AGENT-4: every 30 seconds where nobody says, and never where somebody says so.
    #[test]
    fn how_often_it_is_said_can_be_chosen() {
        let every = [None, Some(1), Some(0)].map(every);
        assert_eq!(every, [Some(Duration::from_secs(30)), Some(Duration::from_secs(1)), None]);
    }
}
