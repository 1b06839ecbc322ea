//! Collapse: a span of old messages gives way to a summary of it, and can be brought back.
//!
//! Off unless asked for; while it is on, compaction does not happen by itself. When the window is nearly full, the span
//! from the oldest message that still stands for itself to the newest reply is chosen, and a fork summarises it in the
//! background, two rounds ahead of when it will be wanted. Then its summary takes its place as soon as it is there and that
//! pays, and what came meanwhile stays; when the window is full it is waited for.
//! What is before the span stays as it is, earlier collapses too, until they fill too much themselves: then the next one
//! takes them in. The transcript is untouched. Where the provider refuses a request there is no time: what is staged goes
//! at once, named only where nobody has summarised it yet.

use std::collections::HashSet;
use std::time::Duration;

use transcript::commit::{Act, Commit, Reason};
use transcript::size::Size;
use transcript::view::{Cover, ItemState, View, ViewEntry};
use transcript::{Block, Id};

use crate::cache_economics::{Cache, PricedChange};
use crate::compact::{SUMMARY_TOKENS, summary_in};
use crate::extent::{CoveredItems, tokens_from};
use crate::layer::{
    Decision, Layer, LayerChange, LayerRole, Need, NeedAnswer, Occasion, Situation, SummaryAhead, WritingSubject,
    WritingTask,
};
use crate::layer_settings::Layers;
use crate::state::Summary;
use crate::summary_text::{HistorySource, framed};
use crate::template::fill;

const PROMPT: &str = include_str!("prompts/collapse.md");

/// Of the effective window, in percent: from here on a span gives way to its summary, if that is there.
const NEARLY_PERCENT: u64 = 90;
/// It is summarised in the background two rounds before, which a summary takes; and no earlier than so much before, in
/// percent.
const LEAD_ROUNDS: u64 = 2;
const LEAD_PERCENT: u64 = 10;
/// And from here on the request waits for it.
const FULL_PERCENT: u64 = 95;
/// Time to wait for a summary.
const PATIENCE: Duration = Duration::from_secs(120);
/// In a small window a summary has no more than this share of the threshold.
const SUMMARY_SHARE: u64 = 6;
/// Share of the window, one in this many, beyond which the next collapse takes the earlier ones in.
const EARLIER_SHARE: u64 = 4;
/// Text in place of a missing summary.
const NO_SUMMARY: &str = "[There is no summary of this part; History shows it.]";
/// Instructions to the summariser about summaries before the span, and about those in it.
const EARLIER_STAYS: &str = "Earlier summaries stay where they are: leave out what they say.";
const EARLIER_GOES: &str =
    "Earlier summaries go with it: carry over every finding in them that may still be needed, word for word.";

/// A span gives way to its summary.
#[derive(Debug)]
pub struct Collapse;

impl Layer for Collapse {
    fn name(&self) -> &'static str {
        "collapse"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Collapse
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.collapse
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        let Some(span) = CollapseSpan::of(view, now) else { return Decision::Nothing };
        let commit = |summary: Option<&str>, why: String| Decision::Commit(span.change(view, now, summary, why));
        match (span.summary, fullness(view, now)) {
            (Some(Summary::Written(text)), Fullness::Refused) => commit(Some(text), REFUSED.to_owned()),
            (Some(_), Fullness::Refused) => commit(None, REFUSED.to_owned()),
            (None, Fullness::Refused) | (_, Fullness::Room) => Decision::Nothing,
            (Some(_), Fullness::Soon) => Decision::Nothing,
            (Some(Summary::Written(text)), fullness) => {
                let sum = span.sum(view, now, text);
                match fullness {
                    Fullness::Full => commit(Some(text), format!("the window was nearly full; {sum}")),
                    _ if sum.pays() => commit(Some(text), sum.to_string()),
                    _ => Decision::Nothing,
                }
            }
            (_, Fullness::Full) => Decision::Need(Need::Write(span.write(view, now))),
            (None, Fullness::Soon | Fullness::Nearly) => {
                let (first, last) = (span.first.clone(), span.last.clone());
                Decision::Need(Need::Stage(SummaryAhead { first, last, write: span.write(view, now) }))
            }
            (Some(Summary::Awaited | Summary::Failed), Fullness::Nearly) => Decision::Nothing,
        }
    }

    fn answered(&self, view: &View, now: &Situation<'_>, answer: &NeedAnswer) -> Result<LayerChange, String> {
        let span = CollapseSpan::of(view, now).ok_or("there is nothing to collapse any more")?;
        let summary = match answer {
            NeedAnswer::Text(text) => Some(text.as_str()),
            _ => None, // it goes all the same; its ids stay
        };
        let sum = span.sum(view, now, summary.unwrap_or_default());
        Ok(span.change(view, now, summary, format!("the window was nearly full; {sum}")))
    }
}

/// Reason for collapsing a span after the provider refused a request.
const REFUSED: &str = "the provider refused the request as too long";

/// Fill of the window.
enum Fullness {
    Room,
    /// Nearly full in two rounds.
    Soon,
    Nearly,
    Full,
    /// Full, according to the provider.
    Refused,
}

fn fullness(view: &View, now: &Situation<'_>) -> Fullness {
    let (count, window) = (view.tally().count(), &now.layers.window);
    // In a small window the room for a summary is more than a twentieth of it.
    let full = (window.effective * FULL_PERCENT / 100).min(window.blocking());
    let nearly = full * NEARLY_PERCENT / FULL_PERCENT;
    let round = view.visible().rev().find(|entry| entry.is_reply()).map_or(0, |entry| tokens_from(view, entry.index()));
    let lead = (LEAD_ROUNDS * round).min(full * LEAD_PERCENT / FULL_PERCENT);
    match now.occasion {
        Occasion::Refused { .. } => Fullness::Refused,
        Occasion::End | Occasion::UserRequest { .. } | Occasion::Provided { .. } => Fullness::Room,
        Occasion::Request if count >= full => Fullness::Full,
        Occasion::Request if count >= nearly => Fullness::Nearly,
        Occasion::Request if count + lead >= nearly => Fullness::Soon,
        Occasion::Request => Fullness::Room,
    }
}

/// A span that may be collapsed, and the state of its summary; none if it was not staged yet.
struct CollapseSpan<'a> {
    first: Id,
    last: Id,
    covered: CoveredItems,
    summary: Option<&'a Summary>,
}

impl<'a> CollapseSpan<'a> {
    /// The staged span, if it is still in view; otherwise the one that would be staged now.
    fn of(view: &View, now: &Situation<'a>) -> Option<Self> {
        if !now.layers.collapse {
            return None;
        }
        let newest = view.visible().rev().find(|entry| entry.state() == ItemState::Reply)?;
        // While the summary is written the newest reply is answered; what goes at once leaves it in view.
        let is_for_later = matches!(fullness(view, now), Fullness::Soon | Fullness::Nearly);
        let end = newest.index() + usize::from(is_for_later);
        let staged = now.state.staged.as_ref().filter(|staged| view.shows(&staged.last));
        let (first, last, summary) = match staged {
            Some(staged) if staged.last == *newest.line() && !is_for_later => {
                let (_, last) = chosen(view, now.layers, end)?;
                (staged.first.clone(), last, Some(&staged.summary))
            }
            Some(staged) => (staged.first.clone(), staged.last.clone(), Some(&staged.summary)),
            None => chosen(view, now.layers, end).map(|(first, last)| (first, last, None))?,
        };
        let covered = CoveredItems::span(view, first.clone(), last.clone())?;
        Some(Self { first, last, covered, summary })
    }

    fn write(&self, view: &View, now: &Situation<'_>) -> WritingTask {
        let earlier = if self.earlier(view, |inside| inside).is_empty() { EARLIER_STAYS } else { EARLIER_GOES };
        let values = [("most", most(now.layers).to_string()), ("earlier", earlier.to_owned())];
        let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // Up to the first reply behind it before which the tail of a request stood: so far it is in the cache.
        let end = self.covered.items.end;
        let cached = end.max(now.cached_from(view));
        let behind = view.visible().find(|entry| entry.index() >= cached && entry.is_reply());
        WritingTask {
            kind: "collapse",
            about: WritingSubject::Conversation { end: behind.map_or(end, |entry| entry.index()) },
            directive: fill(PROMPT, &values).trim_end().to_owned(),
            most_output: SUMMARY_TOKENS,
            patience: PATIENCE,
        }
    }

    /// Summaries in view inside the span, or outside of it.
    fn earlier(&self, view: &View, whether: impl Fn(bool) -> bool) -> Vec<String> {
        let is_cover = |entry: &ViewEntry<'_>| matches!(entry.state(), ItemState::Covered(_));
        let covers =
            view.visible().filter(is_cover).filter(|entry| whether(self.covered.items.contains(&entry.index())));
        covers.flat_map(|entry| entry.shown().filter_map(|(_, block)| block.as_text()).collect::<Vec<_>>()).collect()
    }

    /// Text in place of the span. Lines that are already in a summary that stays are left out.
    fn text(&self, view: &View, layers: &Layers, summary: Option<&str>) -> String {
        let tokens = |text: &str| view.tally().estimate(Block::text(text).size());
        let summary = summary.and_then(|text| summary_in(text, most(layers), tokens)).unwrap_or_default();
        let earlier = self.earlier(view, |inside| !inside);
        let known: HashSet<&str> = earlier.iter().flat_map(|text| text.lines()).map(str::trim).collect();
        let is_new = |line: &&str| line.trim().is_empty() || !known.contains(line.trim());
        let new: Vec<&str> = summary.lines().filter(is_new).collect();
        let new = new.join("\n");
        let stands = if new.trim().is_empty() { NO_SUMMARY } else { new.trim() };
        framed(HistorySource::Summary, stands, view, &self.covered.items, layers)
    }

    /// Tokens in view that go.
    fn tokens(&self, view: &View) -> u64 {
        let inside = view.visible().filter(|entry| self.covered.items.contains(&entry.index()));
        view.tally().estimate(inside.map(|entry| entry.size()).sum())
    }

    fn sum(&self, view: &View, now: &Situation<'_>, summary: &str) -> PricedChange {
        let text = view.tally().estimate(Block::text(self.text(view, now.layers, Some(summary))).size());
        PricedChange {
            cleared: self.tokens(view).saturating_sub(text),
            suffix: text + tokens_from(view, self.covered.items.end),
            digest_cost: 0.0,
            rounds: now.state.pace.expected(),
            rates: now.rates(),
            cache: if now.is_cold() { Cache::Cold } else { Cache::Warm },
        }
    }

    fn change(&self, view: &View, now: &Situation<'_>, summary: Option<&str>, why: String) -> LayerChange {
        let (freed, changes_from) = (Some(self.tokens(view)), self.covered.changes_from(view));
        let reason = Reason { freed, changes_from, why: Some(why) };
        let summary = self.text(view, now.layers, summary);
        let (first, last) = (self.first.clone(), self.last.clone());
        LayerChange::of(Commit { act: Act::Collapse { first, last, summary }, reason })
    }
}

/// Limit of a summary, in tokens.
fn most(layers: &Layers) -> u64 {
    layers.part(SUMMARY_TOKENS, SUMMARY_SHARE)
}

/// The span that would be collapsed now: from the oldest uncovered prompt or reply to the last reply before an item.
fn chosen(view: &View, layers: &Layers, end: usize) -> Option<(Id, Id)> {
    let is_earlier = |entry: &ViewEntry<'_>| entry.state() == ItemState::Covered(Cover::Collapse);
    let earlier: Size = view.visible().filter(is_earlier).map(|entry| entry.size()).sum();
    let takes_earlier = view.tally().estimate(earlier) > layers.window.effective / EARLIER_SHARE;
    let goes = |entry: &ViewEntry<'_>| {
        let stands =
            matches!(entry.state(), ItemState::UserText | ItemState::Reply) || takes_earlier && is_earlier(entry);
        stands && entry.index() < end
    };
    let first = view.visible().find(goes)?;
    let last = view.visible().rev().find(|entry| goes(entry) && entry.state() == ItemState::Reply)?;
    (first.index() < last.index()).then(|| (first.line().clone(), last.line().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::sample::{SampleParts, Session};
    use crate::state::StagedSpan;

    const STONES: &str = "<summary>Stones were counted.</summary>";

    fn full(session: &mut Session, stage_parts: &SampleParts, percent: u64) {
        while session.log.view().tally().count() * 100 < stage_parts.layers.window.effective * percent {
            session.call("Bash", 4_000);
        }
    }

    fn decide(session: &Session, stage_parts: &SampleParts) -> Decision {
        stage_parts.with(|now| Collapse.decide(session.log.view(), now))
    }

    /// The texts that stand for spans.
    fn texts(session: &Session) -> Vec<String> {
        let covers = session.log.view().visible().filter(|entry| entry.state() == ItemState::Covered(Cover::Collapse));
        covers.flat_map(|entry| entry.shown().filter_map(|(_, block)| block.as_text()).collect::<Vec<_>>()).collect()
    }

    fn staged(stage_parts: &mut SampleParts, stage: &SummaryAhead, summary: Summary) {
        stage_parts.state.staged = Some(StagedSpan { first: stage.first.clone(), last: stage.last.clone(), summary });
    }

    /// COLLAPSE-1, COLLAPSE-2: two rounds before 90 % of the effective window a span is staged; from there on its summary takes
    /// its place when it is there and that pays, with the words of the user and the ids of the rest. Off, nothing happens.
    #[test]
    fn a_span_is_staged_and_gives_way_to_its_summary() {
        let (mut session, mut stage_parts) = (Session::default(), SampleParts::new(100_000));
        session.say("never push to main");
        stage_parts.layers.collapse = true;
        let stage = loop {
            match decide(&session, &stage_parts) {
                Decision::Need(Need::Stage(stage)) => break stage,
                decision => assert_eq!(decision, Decision::Nothing),
            }
            session.call("Bash", 4_000);
        };
        let percent =
            |session: &Session| session.log.view().tally().count() * 100 / stage_parts.layers.window.effective;
        assert!(
            (NEARLY_PERCENT - 4..NEARLY_PERCENT).contains(&percent(&session)),
            "two rounds ahead: {}",
            percent(&session)
        );
        assert!(stage.write.directive.contains(EARLIER_STAYS));
        let mut off = stage_parts.clone();
        off.layers.collapse = false;
        assert_eq!(decide(&session, &off), Decision::Nothing, "it is off unless asked for");
        staged(&mut stage_parts, &stage, Summary::Written(STONES.into()));
        assert_eq!(decide(&session, &stage_parts), Decision::Nothing, "there is room");
        full(&mut session, &stage_parts, NEARLY_PERCENT);
        staged(&mut stage_parts, &stage, Summary::Awaited);
        assert_eq!(decide(&session, &stage_parts), Decision::Nothing, "nothing waits for it");
        staged(&mut stage_parts, &stage, Summary::Written(STONES.into()));
        let Decision::Commit(change) = decide(&session, &stage_parts) else { panic!("it pays") };
        assert!(change.commit.reason.why.as_deref().unwrap().contains("rounds saves"), "{change:?}");
        session.commit(change.commit.act);
        let text = &texts(&session)[0];
        assert!(text.contains("Stones were counted.") && text.contains("never push to main"), "{text}");
        assert!(session.log.view().tally().count() < stage_parts.layers.warning());
    }

    /// COLLAPSE-2: at 95 % the request waits for the summary of what is staged, and goes on without one where none comes:
    /// then ids stand there.
    #[test]
    fn when_it_is_full_the_summary_is_waited_for() {
        let (mut session, mut stage_parts) = (Session::default(), SampleParts::new(100_000));
        stage_parts.layers.collapse = true;
        session.say("go");
        full(&mut session, &stage_parts, NEARLY_PERCENT);
        let Decision::Need(Need::Stage(stage)) = decide(&session, &stage_parts) else { panic!("nearly full") };
        full(&mut session, &stage_parts, FULL_PERCENT);
        for known in [None, Some(Summary::Awaited), Some(Summary::Failed)] {
            stage_parts.state.staged = known.clone().map(|summary| StagedSpan {
                first: stage.first.clone(),
                last: stage.last.clone(),
                summary,
            });
            assert!(matches!(decide(&session, &stage_parts), Decision::Need(Need::Write(_))), "{known:?}");
        }
        let answered = |answer: NeedAnswer| {
            stage_parts.with(|now| Collapse.answered(session.log.view(), now, &answer)).unwrap().commit.act
        };
        let Act::Collapse { last, summary, .. } = answered(NeedAnswer::Text(STONES.into())) else {
            panic!("a collapse")
        };
        assert!(last == stage.last && summary.contains("Stones were counted."));
        let Act::Collapse { summary, .. } = answered(NeedAnswer::Failed("no".into())) else { panic!("a collapse") };
        assert!(summary.contains(NO_SUMMARY) && summary.contains("toolu_"), "{summary}");
    }

    /// COLLAPSE-1: an earlier collapse stays as it is, and what it says is not said twice; when they fill too much, the next
    /// one takes them in and is told to carry over what they say.
    #[test]
    fn a_later_collapse_may_cover_earlier_ones() {
        let (mut session, mut stage_parts) = (Session::default(), SampleParts::new(100_000));
        stage_parts.layers.collapse = true;
        session.say("go");
        let mut before = 0;
        for n in 0..30 {
            full(&mut session, &stage_parts, NEARLY_PERCENT);
            let Decision::Need(Need::Stage(stage)) = decide(&session, &stage_parts) else { panic!("nearly full") };
            let takes = stage.write.directive.contains(EARLIER_GOES);
            let long = format!("finding {n} of some length ").repeat(250);
            let text = format!("<summary>value {n} is {n}\nvalue {} is {}\n{long}</summary>", n - 1, n - 1);
            staged(&mut stage_parts, &stage, Summary::Written(text));
            let Decision::Commit(change) = decide(&session, &stage_parts) else { panic!("it pays") };
            session.commit(change.commit.act);
            stage_parts.state.staged = None;
            let texts = texts(&session);
            if takes {
                assert!(n > 2 && texts.len() == 1, "{n}: {}", texts.len());
                return;
            }
            assert_eq!(texts.len(), before + 1);
            let twice = texts.iter().filter(|text| text.contains(&format!("value {} is", n - 1))).count();
            assert!(twice <= 1, "what stands there already is not repeated");
            before = texts.len();
        }
        panic!("they fill too much by now");
    }

    /// COLLAPSE-2, COLLAPSE-3: where the provider refuses a request, what is staged goes at once, named only where it has
    /// no summary; with nothing staged it is compaction's. What was staged is forgotten with a compaction, or when the user
    /// goes back to before it.
    #[test]
    fn after_a_refusal_what_is_staged_goes() {
        let (mut session, mut stage_parts) = (Session::default(), SampleParts::new(100_000));
        stage_parts.layers.collapse = true;
        session.say("go");
        full(&mut session, &stage_parts, NEARLY_PERCENT);
        let Decision::Need(Need::Stage(stage)) = decide(&session, &stage_parts) else { panic!("nearly full") };
        stage_parts.occasion = Occasion::Refused { over: 10 };
        assert_eq!(decide(&session, &stage_parts), Decision::Nothing);
        for (summary, words) in
            [(Summary::Awaited, NO_SUMMARY), (Summary::Written(STONES.into()), "Stones were counted.")]
        {
            staged(&mut stage_parts, &stage, summary);
            let Decision::Commit(change) = decide(&session, &stage_parts) else { panic!("it is staged") };
            assert!(matches!(&change.commit.act, Act::Collapse { summary, .. } if summary.contains(words)));
        }
        let line = |fact: &Fact| {
            let body = transcript::line::Body::Meta(serde_json::value::to_raw_value(fact).unwrap());
            transcript::line::Line::new(Id::from("fact"), None, stage_parts.now, body)
        };
        let mut state = crate::state::State::default();
        let (first, last) = (stage.first.clone(), stage.last.clone());
        state.fold(&line(&Fact::Staged { first: first.clone(), last: last.clone() }));
        assert_eq!(state.staged.as_ref().map(|staged| &staged.summary), Some(&Summary::Awaited));
        state.fold(&line(&Fact::Summarised { first: last.clone(), last: last.clone(), summary: Some("other".into()) }));
        state.fold(&line(&Fact::Summarised { first, last: last.clone(), summary: Some("it".into()) }));
        assert_eq!(state.staged.as_ref().map(|staged| &staged.summary), Some(&Summary::Written("it".into())));
        session.commit(Act::Rewind { first: last.clone(), last });
        stage_parts.state = state;
        assert_eq!(decide(&session, &stage_parts), Decision::Nothing, "it was taken back");
    }
}
