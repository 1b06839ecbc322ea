//! Removes images and documents from view that are too large for the provider.

use transcript::Block;
use transcript::block::Kind;
use transcript::commit::{Act, Commit, Reason, Replacement};
use transcript::view::View;

/// Commits that remove too large images and documents from view: the one at a position in the request, or all.
pub(super) fn without_large(view: &View, place: Option<(usize, usize)>) -> Vec<Commit> {
    let wanted = place.and_then(|place| item_at(view, place));
    let mut commits = Vec::new();
    for entry in view.visible().filter(|entry| wanted.is_none_or(|wanted| entry.index() == wanted)) {
        if entry.size().media == 0 || !entry.is_original() {
            continue;
        }
        let replacements: Vec<_> = entry
            .calls()
            .filter(|call| call.shown.size().media > 0)
            .map(|call| Replacement { call: call.name(), replacement: named(&call.shown.result_content()) })
            .collect();
        let act = match replacements.is_empty() {
            true => Act::Strip { line: entry.line().clone(), text: named(entry.blocks()) },
            false => Act::Spill { replacements },
        };
        let why = Some("the provider finds a picture or document too large".into());
        let reason = Reason { freed: None, changes_from: Some(entry.line().clone()), why };
        commits.push(Commit { act, reason });
    }
    commits
}

/// The item that a block of the request belongs to.
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

/// The text of some blocks, with placeholders for images and documents.
fn named(blocks: &[Block]) -> String {
    let texts = blocks.iter().map(|block| match block.kind() {
        Kind::Image => "[image: left out, too large for the provider]".to_owned(),
        Kind::Document => "[document: left out, too large for the provider]".to_owned(),
        _ => block.as_text().unwrap_or_default(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
