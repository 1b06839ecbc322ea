//! Pictures and documents that the provider finds too large leave the view.

use session::Error;
use transcript::block::Kind;
use transcript::commit::{Act, Commit, Reason, Replacement};
use transcript::line::Body;
use transcript::view::View;
use transcript::{Block, Id};

use super::Driver;
use crate::event::Event;

impl Driver {
    /// Leaves pictures and documents out of the view that the provider finds too large: the one at a place of the
    /// request, or all. Says whether something was left out.
    pub(super) fn leave_out_media(&mut self, place: Option<(usize, usize)>) -> Result<bool, Error> {
        let view = self.session.log().view();
        let wanted = place.and_then(|place| item_at(view, place));
        let mut acts: Vec<(Id, Act)> = Vec::new();
        for entry in view.visible().filter(|entry| wanted.is_none_or(|wanted| entry.index() == wanted)) {
            if entry.size().media == 0 || !entry.is_original() {
                continue;
            }
            let replacements: Vec<_> = entry
                .calls()
                .filter(|call| call.shown.size().media > 0)
                .map(|call| Replacement { call: call.name(), replacement: named(&call.shown.result_content()) })
                .collect();
            if replacements.is_empty() {
                let line = entry.line().clone();
                acts.push((line.clone(), Act::Strip { line, text: named(entry.blocks()) }));
            } else {
                acts.push((entry.line().clone(), Act::Spill { replacements }));
            }
        }
        let any = !acts.is_empty();
        for (line, act) in acts {
            let reason = Reason {
                freed: None,
                changes_from: Some(line),
                why: Some("the provider finds a picture or document too large".into()),
            };
            self.session.append(Body::Commit(Commit { act, reason }))?;
            self.declare("media");
        }
        if any {
            self.tell(Event::Warning("a picture or document was too large for the provider and is left out".into()));
        }
        Ok(any)
    }
}

/// The item a block of the request belongs to.
fn item_at(view: &View, (message, block): (usize, usize)) -> Option<usize> {
    let mut place = (0, 0);
    let mut role = None;
    for (item, speaker, _) in view.blocks() {
        match role.replace(speaker) {
            None => {}
            Some(last) if last == speaker => place.1 += 1,
            Some(_) => place = (place.0 + 1, 0),
        }
        if place == (message, block) {
            return Some(item);
        }
    }
    None
}

/// The text of some blocks, pictures and documents named.
fn named(blocks: &[Block]) -> String {
    let texts = blocks.iter().map(|block| match block.kind() {
        Kind::Image => "[image: left out, too large for the provider]".to_owned(),
        Kind::Document => "[document: left out, too large for the provider]".to_owned(),
        _ => block.as_text().unwrap_or_default(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
