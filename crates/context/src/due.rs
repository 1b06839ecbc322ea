//! Automatic compaction: when the window requires it, or it is cheaper than carrying on.
//!
//! Old is what lies before the newest rounds and cannot be cleared. Carrying it through the expected rounds is weighed
//! against reading everything once more, the summary, and writing what then stands: the summary with the user's words
//! and the ids of the rest, the restored files, and the newest rounds.

use transcript::size::Size;
use transcript::view::{ItemState, View};
use transcript::window::AutoCompact;

use crate::clear;
use crate::extent::young_from;
use crate::layer::{LayerRole, Situation};
use crate::layer_settings::LayerTiming;
use crate::restore;
use crate::summary_text::{HistorySource, framed};

/// Number of compactions in a row that may fail, or free too little, before automatic ones stop.
pub const MOST_FAILURES: u32 = 3;
/// Rounds between a compaction for economy and the one before.
const ECONOMY_ROUNDS: u32 = 10;
/// Expected length of a summary, in tokens.
const USUAL_SUMMARY: u64 = 1_500;

/// True if an automatic compaction is allowed: it is on, the last ones did not fail, and there was a reply since.
pub fn may(now: &Situation<'_>) -> bool {
    let layers = now.layers;
    layers.auto_compact == AutoCompact::On
        && !layers.collapse
        && !(layers.reactive && layers.reactive_only)
        && now.state.failures < MOST_FAILURES
        && now.state.rounds_since != Some(0)
}

/// True if the window requires compaction, and it is allowed.
pub(crate) fn is_due(view: &View, now: &Situation<'_>) -> bool {
    may(now) && view.tally().count() > now.layers.due()
}

/// True if a compaction for economy may be considered.
fn may_save(now: &Situation<'_>) -> bool {
    // Right after clearing, the cache holds little of what a summary would have to read.
    may(now) && now.layers.when == LayerTiming::Economy && !now.has_acted(LayerRole::Clear)
}

/// The calculation by which a compaction is cheaper than carrying on; none if it is not.
pub(crate) fn pays(view: &View, now: &Situation<'_>) -> Option<String> {
    if !may_save(now) || now.state.rounds_since.is_some_and(|rounds| rounds < ECONOMY_ROUNDS) {
        return None;
    }
    let kept = young_from(view)?;
    let tally = view.tally();
    let (mut old, mut young) = (Size::default(), Size::default());
    for entry in view.visible() {
        if entry.index() >= kept {
            young += entry.size();
            continue;
        }
        old += entry.size();
        if entry.state() == ItemState::Reply {
            entry.calls().filter(clear::is_clearable).for_each(|call| old -= call.shown.size());
        }
    }
    let rates = now.rates();
    let (old, young) = (tally.estimate(old), tally.estimate(young));
    let rounds = now.state.pace.expected_of_long_turns();
    let most = old as f64 * rates.read * f64::from(rounds);
    let reads = tally.count() as f64 * rates.read;
    if most <= reads {
        return None; // without looking at the user's words
    }
    let frame = transcript::Block::text(framed(HistorySource::Summary, "", view, &(0..kept), now.layers));
    let stands = USUAL_SUMMARY + tally.estimate(frame.size()) + restore::expected(view, now);
    let saves = old.saturating_sub(stands) as f64 * rates.read * f64::from(rounds);
    let writes = (stands + young) as f64 * rates.write + USUAL_SUMMARY as f64 * rates.output;
    (saves > reads + writes).then(|| {
        format!(
            "{old} tokens × {:.2} × {rounds} rounds saves {saves:.0}; a summary and writing {} again costs {:.0}",
            rates.read,
            stands + young,
            reads + writes
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::layer::LayerRole;
    use crate::layer_settings::LayerTiming;
    use crate::sample::{SampleParts, Session};
    use transcript::Block;
    use transcript::commit::{Act, Extent, Trigger};
    use transcript::line::{Body, TextSource};

    /// COMPACT-14: a compaction pays when carrying what cannot be cleared costs more than a summary and writing the rest
    /// again; never within ten rounds of the last one, nor without three rounds that stay.
    #[test]
    fn a_compaction_for_economy_has_to_pay() {
        let mut stage = SampleParts::new(1_000_000);
        stage.layers.when = LayerTiming::Economy;
        let mut session = Session::default();
        session.say("go");
        let pays = |session: &Session, stage: &SampleParts| stage.with(|now| super::pays(session.log.view(), now));
        assert_eq!(pays(&session, &stage), None, "there is nothing that could stay");
        session.reply(&"word ".repeat(20_000));
        for _ in 0..4 {
            session.call("Bash", 3_000);
            stage.state.pace.round();
        }
        let sum = pays(&session, &stage).unwrap();
        assert!(sum.contains("× 8 rounds saves"), "{sum}");
        stage.done = vec![LayerRole::Clear];
        assert_eq!(pays(&session, &stage), None, "right after clearing the cache is cold");
        stage.done.clear();
        let kept = session.log.view().line_of(2).unwrap().clone();
        session.commit(Act::Compact { extent: Extent::Before(kept), trigger: Trigger::Auto, pre_tokens: 0 });
        session.append(Body::User { blocks: vec![Block::text("so far")], source: TextSource::Summary });
        session.reply(&"word ".repeat(60_000));
        for rounds in 0..12 {
            stage.state.rounds_since = Some(rounds);
            session.call("Bash", 100);
            assert_eq!(pays(&session, &stage).is_some(), rounds >= 10, "{rounds}");
        }
    }

    /// COMPACT-14: what the user said has to stay, so covering it saves nothing.
    #[test]
    fn the_users_own_words_are_not_saved() {
        let mut stage = SampleParts::new(1_000_000);
        stage.layers.when = LayerTiming::Economy;
        let mut session = Session::default();
        session.say(&"word ".repeat(6_000));
        (0..4).for_each(|_| drop(session.call("Bash", 3_000)));
        assert_eq!(stage.with(|now| super::pays(session.log.view(), now)), None);
    }
}
