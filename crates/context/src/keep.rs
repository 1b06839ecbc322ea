//! Standing instructions stay in view, in the user's own words.
//!
//! A compaction or a collapsed span takes the user's messages out of view, and a summariser may drop or soften what
//! they forbade. So every [standing instruction](crate::standing_instructions) whose message is no longer in view is put back, word
//! for word. It holds until the user lifts it: in words, or by command.

use std::cmp::Reverse;
use std::collections::HashSet;

use transcript::commit::{Act, Commit, Reason};
use transcript::view::{ItemState, View};
use transcript::{Block, Injected, Purpose};

use crate::layer::{Decision, Layer, LayerChange, Situation};
use crate::layer_settings::Layers;
use crate::standing_instructions::StandingInstruction;

/// Limit on all of them together, in bytes: about 2,000 tokens.
const MOST_BYTES: usize = 7_000;

const HEADING: &str = "What the user said that holds until the user lifts it, word for word:";

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
        if !now.layers.keep || !now.state.standing.iter().any(|one| is_behind(&one)) {
            return Decision::Nothing;
        }
        let restated = restated(view);
        let gone: Vec<&str> = fitting(&now.state.standing)
            .into_iter()
            .filter(is_behind)
            .map(|one| one.text.as_str())
            .filter(|text| !restated.contains(*text))
            .collect();
        if gone.is_empty() {
            return Decision::Nothing;
        }
        let text = Injected::new(Purpose::Standing, &format!("{HEADING}\n{}", gone.join("\n")));
        let reason = Reason { why: Some("the user's standing instructions".into()), ..Reason::default() };
        Decision::Commit(LayerChange::of(Commit { act: Act::Restore { blocks: vec![text.block()] }, reason }))
    }
}

/// The instructions that fit, in the order they were given: first those that forbid, the newest first, then the others.
pub fn fitting(standing: &[StandingInstruction]) -> Vec<&StandingInstruction> {
    let mut left = MOST_BYTES;
    let mut kept: Vec<usize> = (0..standing.len()).rev().collect();
    kept.sort_by_key(|&at| Reverse(standing[at].strength));
    kept.retain(|&at| {
        let rest = left.checked_sub(standing[at].text.len() + 1);
        left = rest.unwrap_or(0);
        rest.is_some()
    });
    kept.sort_unstable();
    kept.into_iter().map(|at| &standing[at]).collect()
}

/// Lines that were put back and are in view.
fn restated(view: &View) -> HashSet<String> {
    let restored = view.visible().filter(|entry| entry.state() == ItemState::Restored);
    let texts = restored.flat_map(|entry| entry.blocks().iter().filter_map(Block::as_text).collect::<Vec<_>>());
    texts
        .filter(|text| text.contains(HEADING))
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SampleParts, Session};
    use crate::standing_instructions::Strength;
    use crate::state::State;
    use transcript::commit::{Extent, Trigger};
    use transcript::line::{Body, TextSource};

    fn kept(session: &Session, stage: &mut SampleParts) -> Option<String> {
        stage.state.standing = State::of(session.log.lines()).standing;
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
        assert!(text.contains("\nNever push to main!\n") && !text.contains("Mend it."), "{text}");
        session.commit(Act::Restore { blocks: vec![Block::text(text)] });
        assert_eq!(kept(&session, &mut stage), None);
        session.reply("more");
        compact(&mut session);
        assert!(kept(&session, &mut stage).is_some(), "what was put back was covered too");
        stage.layers.keep = false;
        assert_eq!(kept(&session, &mut stage), None);
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
