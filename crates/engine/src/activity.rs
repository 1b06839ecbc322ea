//! Labels: three to five words on what a background agent or a teammate is doing, renewed from time to time.
//!
//! A label comes from a side question: to the agent's own conversation while that is cached and so costs little, else
//! to the cheapest model, which is shown the end of it. Nothing waits for a label, and none is requested while nothing
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

/// Default interval between labels, in seconds.
const EVERY: u64 = 30;
/// Fewest messages that a label can be made from.
const LEAST_MESSAGES: usize = 3;
/// Most words in a label, and the number of words above which an answer is not a label.
const MOST_WORDS: usize = 5;
const NO_LABEL: usize = 12;
/// Limits on an answer: time and length.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST_OUTPUT: u64 = 60;
/// Characters of a conversation's end that the cheapest model is shown.
const SHOWN: usize = 4_000;
/// Seconds for which the provider keeps a cached prefix.
const CACHED: i64 = 300;
/// Price of a cached token as a share of an uncached one.
const CACHED_SHARE: f64 = 0.1;
/// Price of a token where none is known: only the ratio of the two matters.
const UNPRICED: f64 = 1.0;

const QUESTION: &str = "In three to five words, in the present tense, what are you doing right now? Name the file or thing \
                        if there is one, as in \"Reading the cache tests\". Answer with these words alone; call no tool.";

/// The last request that an agent sent, with its time.
#[derive(Debug, Clone, Default)]
pub struct LastRequest(Arc<Mutex<Option<(Request, Timestamp)>>>);

impl LastRequest {
    /// Records that a request was sent.
    pub(crate) fn sent(&self, request: &Request, now: Timestamp) {
        *self.0.lock() = Some((request.clone(), now));
    }

    fn get(&self) -> Option<(Request, Timestamp)> {
        self.0.lock().clone()
    }
}

/// Interval between labels for a configured number of seconds; `None` if it is 0.
pub fn every(seconds: Option<u64>) -> Option<Duration> {
    Some(seconds.unwrap_or(EVERY)).filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

/// Describes what one agent is doing, for as long as it is polled.
pub struct ActivityReporter {
    pub(crate) latest: LastRequest,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) small: Option<SmallModel>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) world: World,
    pub(crate) every: Option<Duration>,
    /// Length of the conversation at the last question.
    pub(crate) known: usize,
    /// Tokens used by the questions, by model.
    pub(crate) used: Vec<(String, Usage)>,
}

impl ActivityReporter {
    /// Returns the next label once it differs from the last; asks nothing while none is wanted.
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

    /// Builds the question, for whichever model answers it at the lower price.
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

/// Extracts the label from an answer, if there is one.
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

    /// AGENT-4: the interval is 30 seconds by default, and 0 turns labels off.
    #[test]
    fn how_often_it_is_said_can_be_chosen() {
        let every = [None, Some(1), Some(0)].map(every);
        assert_eq!(every, [Some(Duration::from_secs(30)), Some(Duration::from_secs(1)), None]);
    }
}
