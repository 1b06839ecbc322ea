//! Layer 4: a summary takes the place of what was said.
//!
//! A fork of the conversation writes it. Notes come first ([`noted`](crate::compact_from_notes)), since they are there already; bare
//! ids come last ([`named`](crate::compact_names_only)). This module decides when, and has the request to the summariser and the
//! reading of its answer.

use std::time::Duration;

use transcript::Block;
use transcript::commit::{Act, Commit, Reason, Trigger};
use transcript::view::{View, ViewEntry};
use transcript::window::AutoCompact;

use crate::due::{is_due, pays};
use crate::extent::{CoveredItems, span_back, unanswered_from, young_from};
use crate::layer::{
    CompactionReach, Decision, Layer, LayerChange, LayerRole, Need, NeedAnswer, Occasion, Situation, WritingSubject,
    WritingTask,
};
use crate::layer_settings::Layers;
use crate::summary_text::{HistorySource, framed};
use crate::template::fill;

const PROMPT: &str = include_str!("prompts/summary.md");

/// Time to wait for a summary.
const PATIENCE: Duration = Duration::from_secs(300);
/// Limit on a summary's output, in tokens.
pub const SUMMARY_TOKENS: u64 = 20_000;
/// In a small window a summary has no more than this share of the threshold.
const SUMMARY_SHARE: u64 = 6;
/// Of a summary that is too long, this part of what stays is its beginning; the rest is its end, which has the newest.
const HEAD_PART: usize = 4;
/// After a refusal, this part of the window is left for the summariser's instructions and answer.
const SPARE_PART: u64 = 20;

/// A summary takes the place of what was said.
#[derive(Debug)]
pub struct Compact;

impl Layer for Compact {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Compaction
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.auto_compact == AutoCompact::On || layers.reactive
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        let Some(plan) = CompactionPlan::of(view, now) else { return Decision::Nothing };
        let instructions = match now.occasion {
            Occasion::UserRequest { instructions, .. } => instructions.as_deref(),
            _ => None,
        };
        Decision::Need(Need::Write(WritingTask {
            kind: "compact",
            // What stays need not be summarised; nor does it have to be sent.
            about: WritingSubject::Conversation { end: plan.covered.items.end },
            directive: prompt(instructions, summary_most(now.layers)),
            most_output: SUMMARY_TOKENS,
            patience: PATIENCE,
        }))
    }

    fn answered(&self, view: &View, now: &Situation<'_>, answer: &NeedAnswer) -> Result<LayerChange, String> {
        let text = match answer {
            NeedAnswer::Text(text) => text,
            NeedAnswer::Failed(why) => return Err(why.clone()),
            _ => return Err("the model wrote no summary".to_owned()),
        };
        let plan = CompactionPlan::of(view, now).ok_or("there is nothing to summarise")?;
        let tokens = |text: &str| view.tally().estimate(Block::text(text).size());
        let summary = summary_in(text, summary_most(now.layers), tokens).ok_or("the model wrote no summary")?;
        Ok(plan.change(HistorySource::Summary, &summary, view, now))
    }
}

/// A compaction: what it covers, and why it is made.
pub(crate) struct CompactionPlan {
    pub(crate) covered: CoveredItems,
    why: String,
}

impl CompactionPlan {
    /// The compaction that the occasion asks for.
    fn of(view: &View, now: &Situation<'_>) -> Option<Self> {
        if now.has_acted(LayerRole::Compaction) || now.has_acted(LayerRole::Collapse) {
            return None;
        }
        let before = |kept: Option<usize>| CoveredItems::before(view, kept.unwrap_or(view.len()));
        let covered = match now.occasion {
            Occasion::End | Occasion::Provided { .. } => None,
            Occasion::Request if is_due(view, now) => before(unanswered_from(view, now.layers)),
            Occasion::Request => pays(view, now).and_then(|_| before(young_from(view))),
            Occasion::UserRequest { reach: CompactionReach::Everything, .. } => before(None),
            Occasion::UserRequest { reach: CompactionReach::UpTo(line), .. } => before(Some(view.item_of(line)?)),
            Occasion::UserRequest { reach: CompactionReach::From(line), .. } => {
                let last = view.visible().rev().find(ViewEntry::is_original)?.line().clone();
                CoveredItems::span(view, line.clone(), last)
            }
            Occasion::Refused { over } => {
                let too_much = view.tally().count().saturating_sub(now.layers.warning()).max(*over);
                span_back(view, too_much, over + now.layers.window.size / SPARE_PART)
            }
        };
        Some(Self { covered: covered?, why: why(view, now) })
    }

    pub(crate) fn new(covered: CoveredItems, view: &View, now: &Situation<'_>) -> Self {
        Self { covered, why: why(view, now) }
    }

    pub(crate) fn because(covered: CoveredItems, why: &str) -> Self {
        Self { covered, why: why.to_owned() }
    }

    pub(crate) fn change(self, made: HistorySource, summary: &str, view: &View, now: &Situation<'_>) -> LayerChange {
        let trigger = match now.occasion {
            Occasion::UserRequest { .. } => Trigger::Manual,
            _ => Trigger::Auto,
        };
        let text = framed(made, summary, view, &self.covered.items, now.layers);
        let reason = Reason { freed: None, changes_from: self.covered.changes_from(view), why: Some(self.why) };
        let act = Act::Compact { extent: self.covered.extent, trigger, pre_tokens: view.tally().count() };
        LayerChange { commit: Commit { act, reason }, summary: Some(text) }
    }
}

fn why(view: &View, now: &Situation<'_>) -> String {
    match now.occasion {
        Occasion::UserRequest { .. } => "the user asked for it".to_owned(),
        Occasion::Refused { .. } => "the provider refused the request as too long".to_owned(),
        _ if is_due(view, now) => "the window was full".to_owned(),
        _ => pays(view, now).unwrap_or_else(|| "the window was full".to_owned()),
    }
}

pub(crate) fn summary_most(layers: &Layers) -> u64 {
    layers.part(SUMMARY_TOKENS, SUMMARY_SHARE)
}

/// Prompt for the summariser.
pub fn prompt(instructions: Option<&str>, most: u64) -> String {
    let wished = instructions.map(str::trim).filter(|text| !text.is_empty());
    let wished = wished.map(|text| format!("\nThe user asks of this summary:\n{text}\n")).unwrap_or_default();
    fill(PROMPT, &[("instructions", &wished), ("most", &most.to_string())]).trim_end().to_owned()
}

/// The summary in the summariser's answer; none if there is none. A summary that was cut off counts. If it is too long,
/// its beginning and a larger part of its end stay.
pub fn summary_in(text: &str, most: u64, tokens: impl Fn(&str) -> u64) -> Option<String> {
    let text = text.trim_start();
    // The draft comes first; a tag that is quoted later is none.
    let after = match text.strip_prefix("<analysis>") {
        Some(draft) => draft.split_once("</analysis>").map(|(_, after)| after)?,
        None => text,
    };
    let inside = match after.split_once("<summary>") {
        Some((_, inside)) => inside.rsplit_once("</summary>").map_or(inside, |(inside, _)| inside),
        None => after,
    };
    let inside = inside.trim();
    if inside.is_empty() {
        return None;
    }
    let all = tokens(inside);
    if all <= most {
        return Some(inside.to_owned());
    }
    // A little less than may be, for the note.
    let bytes = (inside.len() as u64 * most / all.max(1) * 19 / 20) as usize;
    let head = inside.floor_char_boundary(bytes / HEAD_PART);
    let tail = inside.ceil_char_boundary(inside.len() - (bytes - bytes / HEAD_PART));
    Some(format!("{}\n[The summary was cut here.]\n{}", &inside[..head], &inside[tail..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SampleParts, Session, tokens};

    /// COMPACT-1, COMPACT-12, REACT-2: compaction is due above the threshold, where it is on and may be made: not in
    /// reactive-only mode, not with collapse on, not before there was a reply since the last, not after three in a row that failed.
    #[test]
    fn it_is_due_above_the_threshold() {
        let mut session = Session::default();
        session.say(&"word ".repeat(60_000));
        session.reply("yes");
        session.say("and");
        let mut stage = SampleParts::new(100_000);
        stage.layers.clear = false;
        let decides =
            |stage: &SampleParts| stage.with(|now| Compact.decide(session.log.view(), now) != Decision::Nothing);
        assert!(decides(&stage));
        let change = |change: fn(&mut SampleParts)| {
            let mut changed = stage.clone();
            change(&mut changed);
            decides(&changed)
        };
        assert!(!change(|stage| stage.layers.auto_compact = AutoCompact::Off));
        assert!(!change(|stage| stage.layers.reactive_only = true));
        assert!(!change(|stage| stage.layers.collapse = true));
        assert!(!change(|stage| stage.state.failures = 3) && change(|stage| stage.state.failures = 2));
        assert!(!change(|stage| stage.state.rounds_since = Some(0)));
        assert!(change(|stage| stage.state.rounds_since = Some(1)));
        assert!(!change(|stage| stage.layers.window.effective = 180_000));
        assert!(!change(|stage| stage.done = vec![LayerRole::Compaction]));
        assert!(change(
            |stage| stage.occasion = Occasion::UserRequest { instructions: None, reach: CompactionReach::Everything }
        ));
    }

    /// COMPACT-3: the analysis is dropped; a summary cut in the middle counts; one without words, or an analysis alone, is
    /// none; one that is too long is cut in its middle; tags that are quoted are none.
    #[test]
    fn the_summary_is_taken_out_of_what_was_written() {
        let summary = |text: &str| summary_in(text, 20_000, tokens);
        assert_eq!(summary("<analysis>a</analysis>\n<summary>\n s \n</summary> bye").as_deref(), Some("s"));
        assert_eq!(summary("<summary>cut in the").as_deref(), Some("cut in the"));
        assert_eq!(summary("just text").as_deref(), Some("just text"));
        let quoted = "<analysis>a</analysis><summary>first\nit said </analysis> there\nlast</summary>";
        assert_eq!(summary(quoted).as_deref(), Some("first\nit said </analysis> there\nlast"));
        for nothing in
            ["", " ", "<analysis>a</analysis>", "<analysis>never closed", "<analysis>a</analysis><summary> </summary>"]
        {
            assert_eq!(summary(nothing), None, "{nothing}");
        }
        let long = summary(&format!("<summary>first {}last</summary>", "word ".repeat(40_000))).unwrap();
        assert!(tokens(&long) <= 20_020 && long.starts_with("first") && long.ends_with("last"));
        assert!(long.contains("[The summary was cut here.]"));
    }

    #[test]
    fn every_prompt_renders() {
        assert!(!prompt(None, 9).contains("{{") && prompt(Some("keep the numbers"), 9).contains("keep the numbers"));
        let told =
            crate::notes_format::prompt(crate::notes_format::PROMPT, crate::notes_format::TEMPLATE, "/n.md", tokens);
        assert!(!told.contains("{{") && told.contains("# Worklog"));
    }
}
