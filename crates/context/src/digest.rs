//! Digests: written before results are cleared, with what the model would no longer know.
//!
//! A model does not ask for what it does not know of. So before results leave the view, a fork that still sees them
//! writes down what matters in them, and the text stands in the view in place of the newest of them. No digest is
//! written if the model's own replies already have the gist: it wrote much for each result, or it names something that
//! only this result had.
//!
//! When the provider's cache is cold, reading the conversation once more would cost as much as sending it; then the
//! results alone are read, and a small model will do.

use std::collections::HashSet;
use std::time::Duration;

use transcript::Block;
use transcript::block::Kind;
use transcript::commit::{CLEARED, CallName};
use transcript::view::{AnsweredCall, ItemState, View, ViewEntry};

use crate::layer::{Situation, WritingSubject, WritingTask};
use crate::layer_settings::Layers;
use crate::summary_text::named;
use crate::template::fill;

const PROMPT: &str = include_str!("prompts/digest.md");

/// Time to wait for a digest.
const PATIENCE: Duration = Duration::from_secs(15);
/// Tokens of the model's own text per result that count as its gist.
const GIST_TOKENS: u64 = 40;
/// Expected length of a digest per result, in tokens.
const USUAL_TOKENS: f64 = 30.0;
/// Limit on the writer's output, in tokens: one that writes this much writes everything.
const MOST_OUTPUT: u64 = 10_000;
/// Limit on a digest in view, in tokens.
const MOST_TOKENS: u64 = 4_000;
/// And no more than this share of the threshold.
const SHARE: u64 = 12;
/// Bytes of a result that is read alone.
const ALONE_BYTES: usize = 12_000;
/// Number of the user's last messages that are sent along, and the bytes of each.
const LAST_MESSAGES: usize = 3;
const MESSAGE_BYTES: usize = 500;
/// Approximate tokens of the prompt.
const PROMPT_TOKENS: f64 = 200.0;
/// Bytes at the start of a result that contain its heading, after its id and the note that it was cleared.
const BEGINNING_BYTES: usize = 500;
/// Length of the shortest word that counts as a name.
const NAME_BYTES: usize = 4;

/// A digest to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Digest {
    /// The calls whose results are not in the model's own words, in a few words each.
    calls: Vec<String>,
    about: WritingSubject,
    /// Tokens of the results, if they are read alone.
    alone: u64,
}

impl Digest {
    pub(crate) fn write(&self) -> WritingTask {
        WritingTask {
            kind: "clear",
            about: self.about.clone(),
            directive: fill(PROMPT, &[("calls", &self.calls.join("\n"))]).trim_end().to_owned(),
            most_output: MOST_OUTPUT,
            patience: PATIENCE,
        }
    }

    /// Cost of writing it, in tokens of uncached input.
    pub(crate) fn costs(&self, view: &View, now: &Situation<'_>) -> f64 {
        let rates = now.rates();
        let read = match self.about {
            WritingSubject::Conversation { .. } => view.tally().count() as f64 * rates.read,
            WritingSubject::Alone(_) => self.alone as f64,
        };
        read + PROMPT_TOKENS + self.calls.len() as f64 * USUAL_TOKENS * rates.output
    }
}

/// The digest to write before results are cleared; none if the model has put them in its own words.
pub(crate) fn needed(view: &View, results: &HashSet<CallName>, now: &Situation<'_>) -> Option<Digest> {
    if !now.layers.digest {
        return None;
    }
    let unsaid = unsaid(view, results);
    if unsaid.is_empty() {
        return None;
    }
    let calls = unsaid.iter().map(|call| named(call.tool, call.call)).collect();
    let (about, alone) = if now.is_cold() {
        // Who reads nothing else has to know what they will be needed for.
        let words = |entry: ViewEntry<'_>| entry.blocks().iter().find_map(Block::as_text);
        let mut asked: Vec<String> = view.user_messages().rev().filter_map(words).take(LAST_MESSAGES).collect();
        asked.reverse();
        let cut = |text: &String| text[..text.floor_char_boundary(MESSAGE_BYTES)].to_owned();
        let asked = asked.iter().map(cut).collect::<Vec<_>>().join("\n\n");
        let asked = format!("<said by=\"the user, last\">\n{asked}\n</said>");
        let texts: Vec<String> = std::iter::once(asked).chain(unsaid.iter().map(alone)).collect();
        let text = texts.join("\n");
        let tokens = view.tally().estimate(Block::text(&text).size());
        (WritingSubject::Alone(text), tokens)
    } else {
        // Up to the first reply behind the last of them before which the tail of a request stood: so far it is cached.
        let has = |entry: &ViewEntry<'_>| entry.calls().any(|call| results.contains(&call.name()));
        let cached_from = now.cached_from(view);
        let is_cached = |entry: &ViewEntry<'_>| entry.is_reply() && entry.index() >= cached_from;
        let behind = view.visible().rev().take_while(|entry| !has(entry)).filter(is_cached).last();
        let behind = behind.or_else(|| view.visible().rev().find(ViewEntry::is_reply));
        (WritingSubject::Conversation { end: behind.map_or(view.len(), |entry| entry.index()) }, 0)
    };
    Some(Digest { calls, about, alone })
}

/// A result as it is read alone.
fn alone(call: &AnsweredCall<'_>) -> String {
    let text = call.shown.result_text();
    let kept = &text[..text.floor_char_boundary(ALONE_BYTES)];
    format!("<result of=\"{}\">\n{kept}\n</result>", named(call.tool, call.call).replace('"', "'"))
}

/// Text of a digest in place of the newest result.
pub(crate) fn shown(text: &str, view: &View, layers: &Layers) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || is_none(text) {
        return None;
    }
    // What stands there already, from an earlier clearing or in a summary, need not stand there twice.
    let mut earlier: Vec<String> = Vec::new();
    for entry in view.visible() {
        match entry.state() {
            ItemState::Reply => earlier.extend(entry.calls().filter(stands_in).map(|call| call.shown.result_text())),
            ItemState::Covered(_) => earlier.extend(entry.shown().filter_map(|(_, block)| block.as_text())),
            _ => {}
        }
    }
    let known: HashSet<&str> = earlier.iter().flat_map(|text| text.lines()).map(str::trim).collect();
    let new = text.lines().filter(|line| !line.trim().is_empty() && !known.contains(line.trim()));
    // Where it is too much, the newest stays.
    let mut left = layers.part(MOST_TOKENS, SHARE);
    let mut kept: Vec<&str> = Vec::new();
    for line in new.rev() {
        let tokens = view.tally().estimate(Block::text(line).size());
        if tokens > left {
            break;
        }
        left -= tokens;
        kept.push(line);
    }
    kept.reverse();
    let kept = kept.join("\n");
    (!kept.trim().is_empty()).then(|| format!("{CLEARED}\n{HEADING}\n{}", kept.trim_end()))
}

/// True if it says that there is nothing to write down.
fn is_none(text: &str) -> bool {
    text.trim_matches(|c: char| !c.is_alphanumeric()).eq_ignore_ascii_case("none")
}

/// Heading of a digest, after the note that results were cleared.
const HEADING: &str = "What was written down of this and the results cleared before it:";

/// The digest in the text that replaces a result.
pub fn written(text: &str) -> Option<&str> {
    text.strip_prefix(CLEARED)?.trim_start().strip_prefix(HEADING).map(str::trim)
}

/// True if a digest stands in place of a result.
pub(crate) fn stands_in(call: &AnsweredCall<'_>) -> bool {
    // As a tool returned it, it is none.
    if call.result.is_some_and(|result| result.is_same(call.shown)) {
        return false;
    }
    let json = call.shown.json();
    json[..json.floor_char_boundary(BEGINNING_BYTES)].contains(HEADING)
}

/// The results that are not in the model's own words.
fn unsaid<'v>(view: &'v View, results: &HashSet<CallName>) -> Vec<AnsweredCall<'v>> {
    let replies = || view.visible().filter(|entry| entry.state() == ItemState::Reply);
    let going: Vec<(usize, AnsweredCall<'v>)> = replies()
        .flat_map(|entry| entry.calls().map(move |call| (entry.index(), call)))
        .filter(|(_, call)| results.contains(&call.name()))
        .collect();
    let Some(oldest) = going.first().map(|(item, _)| *item) else { return Vec::new() };
    let mut said: Vec<(usize, String)> = Vec::new();
    for entry in replies().filter(|entry| entry.index() > oldest) {
        let texts = entry.blocks().iter().filter(|block| *block.kind() == Kind::Text).filter_map(Block::as_text);
        said.extend(texts.map(|text| (entry.index(), text)));
    }
    let tokens: u64 = said.iter().map(|(_, text)| view.tally().estimate(Block::text(text).size())).sum();
    if tokens >= GIST_TOKENS * going.len() as u64 {
        return Vec::new();
    }
    let mentioned: HashSet<&str> = said.iter().flat_map(|(_, text)| names(text)).collect();
    if mentioned.is_empty() {
        return going.into_iter().map(|(_, call)| call).collect();
    }
    // A name that only one of them has, and no call, says that the model wrote of that one.
    let texts: Vec<String> = going.iter().map(|(_, call)| call.shown.result_text()).collect();
    let has: Vec<HashSet<&str>> =
        texts.iter().map(|text| names(text).filter(|name| mentioned.contains(name)).collect()).collect();
    let inputs: Vec<String> =
        replies().flat_map(|entry| entry.calls()).map(|call| call.call.json().to_owned()).collect();
    let is_own = |name: &&str, at: usize| {
        has.iter().enumerate().all(|(other, names)| other == at || !names.contains(name))
            && !inputs.iter().any(|input| input.contains(name))
    };
    let is_said = |at: usize, item: usize| {
        let later = |name: &&str| said.iter().any(|(reply, text)| *reply > item && names(text).any(|one| one == *name));
        has[at].iter().any(|name| is_own(name, at) && later(name))
    };
    let unsaid = going.into_iter().enumerate().filter(|(at, (item, _))| !is_said(*at, *item));
    unsaid.map(|(_, (_, call))| call).collect()
}

/// Words that are names of something: figures, identifiers, paths.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_alphanumeric() || "_-./:".contains(c);
    let words = text.split(move |c| !inside(c)).map(|word| word.trim_matches(['.', ':', '-', '/']));
    words.filter(|word| word.len() >= NAME_BYTES && is_name(word))
}

fn is_name(word: &str) -> bool {
    let mixed = word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase);
    mixed || word.contains(['_', '-', '.', '/', ':']) || word.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clear::Clear;
    use crate::layer::{Decision, Layer, Need, NeedAnswer};
    use crate::sample::{SampleParts, Session};
    use transcript::commit::Act;

    /// A session whose results have one fact each, and a reply after each as told.
    fn session(say: impl Fn(usize) -> Option<String>) -> Session {
        let mut session = Session::default();
        session.say("go");
        for n in 0..16 {
            session.result("Bash", &format!("the vault key is k{n}-{}\n{}", n * 7_919, "filler text ".repeat(800)));
            if let Some(text) = say(n) {
                session.reply(&text);
            }
        }
        session
    }

    fn need(session: &Session) -> Option<WritingTask> {
        SampleParts::new(100_000).with(|now| match Clear.decide(session.log.view(), now) {
            Decision::Need(Need::Write(write)) => Some(write),
            Decision::Nothing => panic!("it is tight"),
            _ => None,
        })
    }

    /// MICRO-7: what goes and is in nobody's words is written down first; it stands where the newest result stood, and is
    /// paid for in the sum; where nothing comes of it the results go all the same.
    #[test]
    fn what_goes_is_written_down_first() {
        let session = session(|_| None);
        let write = need(&session).unwrap();
        assert!(write.directive.contains("Bash(x)") && write.patience == Duration::from_secs(15));
        assert!(matches!(write.about, WritingSubject::Conversation { .. }));
        let stage = SampleParts::new(100_000);
        let answered = |answer: NeedAnswer| {
            let change = stage.with(|now| Clear.answered(session.log.view(), now, &answer)).unwrap();
            let Act::Clear { digest, results, .. } = change.commit.act else { panic!("it is a clearing") };
            assert_eq!(results.len(), 13);
            (digest, change.commit.reason)
        };
        let (digest, reason) = answered(NeedAnswer::Text("the vault key is k0-0\n".into()));
        let digest = digest.unwrap();
        assert!(digest.starts_with(CLEARED) && written(&digest) == Some("the vault key is k0-0"), "{digest}");
        assert!(reason.why.unwrap().contains("for writing down what goes"));
        let (none, without) = answered(NeedAnswer::Failed("late".into()));
        assert!(none.is_none() && without.freed > reason.freed);
        for nothing in ["", "none", "None.", "`none`"] {
            assert_eq!(answered(NeedAnswer::Text(nothing.into())).0, None, "there was nothing to write down");
        }
    }

    /// MICRO-7: who writes it reads no further than the cache reaches: to the reply behind the last result that goes, or,
    /// where bytes before that were changed since it was sent, to the first reply that came after.
    #[test]
    fn what_is_read_for_it_is_in_the_cache() {
        let session = session(|_| None);
        let mut stage = SampleParts::new(100_000);
        let end = |stage: &SampleParts| match stage.with(|now| Clear.decide(session.log.view(), now)) {
            Decision::Need(Need::Write(WritingTask { about: WritingSubject::Conversation { end }, .. })) => end,
            other => panic!("{other:?}"),
        };
        let replies: Vec<_> = session.log.view().visible().filter(ViewEntry::is_reply).collect();
        assert_eq!(end(&stage), replies[13].index(), "behind the thirteen that go");
        stage.state.changed_behind = Some(replies[10].line().clone());
        assert_eq!(end(&stage), replies[13].index(), "it was sent since");
        stage.state.changed_behind = Some(replies[14].line().clone());
        assert_eq!(end(&stage), replies[15].index());
    }

    /// MICRO-7: what was written down at an earlier clearing is not written down again.
    #[test]
    fn what_stands_there_already_is_not_repeated() {
        let mut session = session(|_| None);
        let stage = SampleParts::new(100_000);
        let clear = |session: &Session, text: &str| {
            stage.with(|now| Clear.answered(session.log.view(), now, &NeedAnswer::Text(text.into()))).unwrap()
        };
        let first = clear(&session, "the key is k0\nthe key is k1");
        session.commit(first.commit.act);
        for n in 16..32 {
            session.result("Bash", &format!("the vault key is k{n}\n{}", "filler text ".repeat(800)));
        }
        let second = clear(&session, "the key is k0\nthe key is k1\n\nthe key is k2").commit.act;
        let Act::Clear { digest: Some(digest), .. } = &second else { panic!("it is a clearing") };
        assert_eq!(written(digest), Some("the key is k2"));
        session.commit(second);
        let shown: String = session.log.view().blocks().map(|(_, _, block)| block.json().to_owned()).collect();
        assert!(shown.contains("the key is k1\"") && shown.contains("the key is k2\""), "both stand there");
    }

    /// MICRO-7: nothing is asked for where the model's own words hold the gist: 40 tokens a result, or what only that result
    /// has; words that are in every result, or in the call, are no gist.
    #[test]
    fn what_the_model_wrote_down_itself_is_not_asked_for() {
        assert_eq!(need(&session(|_| Some("I looked, and found what was there to be found. ".repeat(5)))), None);
        assert_eq!(need(&session(|n| Some(format!("The key is k{n}-{}.", n * 7_919)))), None);
        let half = need(&session(|n| (n % 2 == 0).then(|| format!("The key is k{n}-{}.", n * 7_919)))).unwrap();
        let named = half.directive.matches("Bash(x)").count();
        assert!((5..=7).contains(&named), "{}", half.directive);
        assert!(need(&session(|_| Some("Now the next vault.".into()))).is_some());
    }

    /// MICRO-7: on a cold cache the results are read alone, with the user's last words; with the switch off nothing is written.
    #[test]
    fn on_a_cold_cache_the_results_are_read_alone() {
        let session = session(|_| None);
        let mut stage = SampleParts::new(100_000);
        stage.now = jiff::Timestamp::from_second(400).unwrap();
        let decide = |stage: &SampleParts| stage.with(|now| Clear.decide(session.log.view(), now));
        let Decision::Need(Need::Write(WritingTask { about: WritingSubject::Alone(text), .. })) = decide(&stage) else {
            panic!("five minutes went by");
        };
        assert!(text.contains("k3-23757") && text.contains("<result of=\"Bash(x)\">"));
        assert!(text.starts_with("<said by=\"the user, last\">\ngo\n</said>"), "what they are needed for: {text}");
        stage.layers.digest = false;
        assert!(matches!(decide(&stage), Decision::Commit(_)));
    }

    #[test]
    fn names_are_told_from_words() {
        let found: Vec<&str> =
            names("The parser in src/view.rs:88 reads k7-553, not tool_use or fooBar. End.").collect();
        assert_eq!(found, ["src/view.rs:88", "k7-553", "tool_use", "fooBar"]);
    }
}
