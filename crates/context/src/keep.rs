//! Standing instructions stay in view, in the user's own words.
//!
//! A compaction or a collapsed span takes the user's messages out of view, and a summariser may drop or soften what
//! they forbade. So every [standing instruction](crate::standing_instructions) whose message is no longer in view is put back, word
//! for word. It holds until the user lifts it: in words, or by command. The room that is left goes to other words of the
//! user's, which may be instructions too.

use transcript::commit::{Act, Commit, Reason};
use transcript::view::{ItemState, View};
use transcript::{Block, Injected, Purpose};

use crate::layer::{Decision, Layer, LayerChange, Situation};
use crate::layer_settings::Layers;
use crate::standing_instructions::{self, StandingInstruction};

/// Limit on all of them together, in bytes: about 2,000 tokens.
const MOST_BYTES: usize = 7_000;

const HEADING: &str = "What the user said that holds until the user lifts it, word for word:";
const OTHER_HEADING: &str = "Other words of the user's, as typed; some of it may be done by now:";

/// Standing instructions stay in view.
#[derive(Debug)]
pub struct Keep;

impl Layer for Keep {
    fn name(&self) -> &'static str {
        "keep"
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.keep
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        // What was taken back by a rewind was never said.
        let is_behind = |one: &&StandingInstruction| view.item_of(&one.line).is_some() && !view.shows(&one.line);
        let (standing, other_words) = (&now.state.standing, &now.state.other_words);
        if !now.layers.keep || !standing.iter().chain(other_words).any(|one| is_behind(&one)) {
            return Decision::Nothing;
        }
        let standing = fitting(standing);
        let room = MOST_BYTES.saturating_sub(standing.iter().map(|one| one.size()).sum());
        let is_gone = |one: &&StandingInstruction| is_behind(one) && !now.state.words_in_summary.contains(&one.text);
        let other_words = standing_instructions::strongest(other_words.iter().filter(is_gone), room);

        let restated = restated(view);
        let listed = |heading: &str, all: Vec<&StandingInstruction>| {
            let texts: Vec<String> = all.into_iter().filter(is_behind).map(|one| format!("\n{}", one.text)).collect();
            // Most often all of them were put back at once.
            if restated.contains(&format!("{heading}{}\n", texts.concat())) {
                return None;
            }
            let texts: String = texts.into_iter().filter(|text| !restated.contains(&format!("{text}\n"))).collect();
            Some(format!("{heading}{texts}")).filter(|_| !texts.is_empty())
        };
        let lists = [listed(HEADING, standing), listed(OTHER_HEADING, other_words)];
        let text = lists.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        if text.is_empty() {
            return Decision::Nothing;
        }
        let text = Injected::new(Purpose::Standing, &text);
        let reason = Reason { why: Some("the user's standing instructions".into()), ..Reason::default() };
        Decision::Commit(LayerChange::of(Commit { act: Act::Restore { blocks: vec![text.block()] }, reason }))
    }
}

/// The instructions that fit, in the order they were given: first those that forbid, the newest first, then the others.
pub fn fitting(standing: &[StandingInstruction]) -> Vec<&StandingInstruction> {
    standing_instructions::strongest(standing, MOST_BYTES)
}

/// The text that was put back and is in view, each line with its breaks.
fn restated(view: &View) -> String {
    let restored = view.visible().filter(|entry| entry.state() == ItemState::Restored);
    let has_heading = |block: &&Block| [HEADING, OTHER_HEADING].iter().any(|heading| block.json().contains(heading));
    let texts = restored
        .flat_map(|entry| entry.blocks().iter().filter(has_heading).filter_map(Block::as_text).collect::<Vec<_>>());
    texts.map(|text| text + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SampleParts, Session};
    use crate::standing_instructions::Strength;
    use crate::state::State;
    use crate::summary_text::{self, HistorySource};
    use transcript::commit::{Extent, Trigger};
    use transcript::line::{Body, TextSource};

    fn kept(session: &Session, stage: &mut SampleParts) -> Option<String> {
        let state = State::of(session.log.lines());
        (stage.state.standing, stage.state.other_words) = (state.standing, state.other_words);
        stage.state.words_in_summary = state.words_in_summary;
        stage.with(|now| match Keep.decide(session.log.view(), now) {
            Decision::Commit(LayerChange { commit: Commit { act: Act::Restore { blocks }, .. }, .. }) => {
                blocks[0].as_text()
            }
            Decision::Nothing => None,
            other => panic!("{other:?}"),
        })
    }

    fn compact(session: &mut Session) {
        let kept = session.log.lines().last().unwrap().id.clone().unwrap();
        session.commit(Act::Compact { extent: Extent::Before(kept), trigger: Trigger::Auto, pre_tokens: 0 });
        session.append(Body::User { blocks: vec![Block::text("so far")], source: TextSource::Summary });
    }

    /// KEEP-1: what the user forbade comes back word for word when its message leaves the view, once; and not while it is
    /// in view.
    #[test]
    fn what_was_forbidden_comes_back_once() {
        let mut session = Session::default();
        session.say("Mend it. Never push to main!");
        session.reply("I will.");
        session.say("and?");
        session.reply("done");
        let mut stage = SampleParts::new(100_000);
        assert_eq!(kept(&session, &mut stage), None);
        compact(&mut session);
        let text = kept(&session, &mut stage).unwrap();
        assert!(text.contains("\nNever push to main!\n") && !text.contains("and?"), "{text}");
        session.commit(Act::Restore { blocks: vec![Block::text(text)] });
        assert_eq!(kept(&session, &mut stage), None);
        session.reply("more");
        compact(&mut session);
        assert!(kept(&session, &mut stage).is_some(), "what was put back was covered too");
        stage.layers.keep = false;
        assert_eq!(kept(&session, &mut stage), None);
    }

    /// KEEP-1: other words of the user's come back behind what is certain, if the compaction has not left them word for
    /// word anyway.
    #[test]
    fn other_words_come_back_where_they_are_gone() {
        let mut session = Session::default();
        session.say("Never push to main!\nREADME.md is written\nby hand. Mend it now. Why?");
        session.reply("I will.");
        let mut stage = SampleParts::new(100_000);
        session.say("go on");
        session.reply("done");
        compact(&mut session);
        let text = kept(&session, &mut stage).unwrap();
        let listed = format!(
            "{HEADING}\nNever push to main!\n\n{OTHER_HEADING}\nREADME.md is written\nby hand.\nMend it now.\n"
        );
        assert!(text.contains(&listed) && !text.contains("Why"), "{text}");
        session.commit(Act::Restore { blocks: vec![Block::text(text)] });
        assert_eq!(kept(&session, &mut stage), None);

        let mut session = Session::default();
        session.say("README.md is written by hand.");
        session.reply("I see.");
        let before = session.log.lines().last().unwrap().id.clone().unwrap();
        let view = session.log.view();
        let left = summary_text::framed(HistorySource::Summary, "So far.", view, &(0..view.len()), &stage.layers);
        session.commit(Act::Compact { extent: Extent::Before(before), trigger: Trigger::Auto, pre_tokens: 0 });
        session.append(Body::User { blocks: vec![Block::text(left)], source: TextSource::Summary });
        assert_eq!(kept(&session, &mut stage), None);
        // A session that was killed before it wrote the next summary.
        session.reply("done");
        let newest = session.log.lines().last().unwrap().id.clone().unwrap();
        session.commit(Act::Compact { extent: Extent::Before(newest), trigger: Trigger::Auto, pre_tokens: 0 });
        assert!(kept(&session, &mut stage).unwrap().contains("README.md is written by hand."));
    }

    /// KEEP-1: other words get the room that certain ones leave, those with a sign of a rule first, then the newest; what is
    /// remembered of them is limited, however much is typed.
    #[test]
    fn other_words_get_the_room_that_is_left() {
        let mut session = Session::default();
        session.say("Never push to main.");
        session.say("README.md is written by hand.");
        session.reply("ok");
        for n in 0..2_000 {
            session.say(&format!("Mend part {n:04} of the parser, as was said."));
        }
        session.reply("ok");
        compact(&mut session);
        let mut stage = SampleParts::new(100_000);
        let text = kept(&session, &mut stage).unwrap();
        assert!(text.len() < MOST_BYTES + 400, "{}", text.len());
        for one in ["Never push to main.", "README.md is written by hand.", "Mend part 1999 "] {
            assert!(text.contains(one), "{one} is not in\n{text}");
        }
        assert!(!text.contains("Mend part 0000 "));
        let remembered: usize = stage.state.other_words.iter().map(StandingInstruction::size).sum();
        assert!(remembered <= standing_instructions::MOST_REMEMBERED, "{remembered}");
    }

    /// KEEP-1: where there is not room for all, those that forbid stay, the newest of them.
    #[test]
    fn there_is_a_limit_to_what_is_kept() {
        let one = |n: usize, strength| StandingInstruction {
            text: format!("Never do {n:090}."),
            strength,
            line: format!("l{n}").into(),
        };
        let all: Vec<StandingInstruction> = (0..100).map(|n| one(n, Strength::Forbids)).collect();
        let kept = fitting(&all);
        assert_eq!((kept.len(), kept.last()), (69, all.last().as_ref()));
        assert_eq!(fitting(&all[..3]).len(), 3);

        let mixed: Vec<StandingInstruction> =
            (0..100).map(|n| one(n, if n < 30 { Strength::Forbids } else { Strength::Requires })).collect();
        let kept: Vec<usize> =
            fitting(&mixed).iter().map(|one| mixed.iter().position(|o| o == *one).unwrap()).collect();
        assert_eq!(kept, (0..30).chain(61..100).collect::<Vec<_>>());
    }
}
