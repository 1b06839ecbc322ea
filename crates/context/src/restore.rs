//! After a compaction: the files the model was working with come back.
//!
//! The files that were read most recently are most likely needed next, and the model would read them again at once. So
//! the newest few are shown as they are now, each within its limit and all within theirs, unless they are still in
//! view.

use std::path::{Path, PathBuf};

use transcript::commit::{Act, Commit, Reason};
use transcript::tool_names;
use transcript::view::{ItemState, View};
use transcript::{Block, Injected, Purpose};

use crate::layer::{Decision, Layer, LayerChange, LayerRole, Need, NeedAnswer, Situation};
use crate::layer_settings::Layers;

/// Limit on one file, in tokens.
const FILE_TOKENS: u64 = 5_000;
/// Limit on all files together.
const ALL_TOKENS: u64 = 50_000;
/// Tokens of a file below which it is not worth showing.
const LEAST_TOKENS: u64 = 500;
/// In a small window, no more than this share of the threshold.
const SHARE: u64 = 6;
/// And no more than this share of the room that is left up to there, or the next compaction is due at once.
const SHARE_LEFT: u64 = 4;
/// Expected tokens of a file.
const USUAL_TOKENS: u64 = 2_000;

/// The files the model was working with come back.
#[derive(Debug)]
pub struct Restore;

impl Layer for Restore {
    fn name(&self) -> &'static str {
        "restore"
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.restored_files > 0
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        if !now.has_acted(LayerRole::Compaction) || now.layers.restored_files == 0 {
            return Decision::Nothing;
        }
        let files = candidates(view, now);
        if files.is_empty() {
            return Decision::Nothing;
        }
        Decision::Need(Need::Read { files, most: now.layers.restored_files })
    }

    fn answered(&self, view: &View, now: &Situation<'_>, answer: &NeedAnswer) -> Result<LayerChange, String> {
        let NeedAnswer::Files(files) = answer else { return Err("no file could be read".to_owned()) };
        let mut room = RestoreRoom::new(now.layers, view.tally().count());
        let tokens = |text: &str| view.tally().estimate(Block::text(text).size());
        let shown = files.iter().filter_map(|(path, text)| room.show(path, text, tokens));
        let blocks: Vec<Block> = shown.map(Block::text).collect();
        if blocks.is_empty() {
            return Err("there is no room for files".to_owned());
        }
        let reason = Reason { why: Some("what the model was working with".into()), ..Reason::default() };
        Ok(LayerChange::of(Commit { act: Act::Restore { blocks }, reason }))
    }
}

/// Files that were read or written, the newest first, each once, without those that are in view.
fn candidates(view: &View, now: &Situation<'_>) -> Vec<PathBuf> {
    let replies = view.visible().filter(|entry| entry.state() == ItemState::Reply);
    let whole = replies
        .flat_map(|entry| entry.calls())
        .filter(|call| call.tool == tool_names::READ && call.result.is_some_and(|result| result.is_same(call.shown)));
    let in_view: Vec<&str> = whole.map(|call| &**call.id).collect();
    let seen = || now.state.seen.iter().rev();
    let shown: Vec<&PathBuf> = seen()
        .filter(|(call, _)| call.as_deref().is_some_and(|call| in_view.contains(&call)))
        .map(|(_, path)| path)
        .collect();
    let mut files: Vec<PathBuf> = Vec::new();
    for (_, path) in seen() {
        if !shown.contains(&path) && !files.contains(path) {
            files.push(path.clone());
        }
    }
    files
}

/// Expected tokens of the files that come back after a compaction.
pub(crate) fn expected(view: &View, now: &Situation<'_>) -> u64 {
    let files = candidates(view, now).len().min(now.layers.restored_files) as u64;
    now.layers.part(ALL_TOKENS, SHARE).min(files * USUAL_TOKENS)
}

/// True if a file is among those that were restored.
pub fn shows(blocks: &[Block], path: &Path) -> bool {
    let heading = heading(path);
    blocks.iter().filter_map(Block::as_text).any(|text| text.contains(&heading))
}

fn heading(path: &Path) -> String {
    format!("You worked with {} before the summary.", path.display())
}

/// Room left for files.
#[derive(Debug, Clone, Copy)]
struct RestoreRoom {
    left: u64,
}

impl RestoreRoom {
    /// The whole room, with so many tokens in view.
    fn new(layers: &Layers, count: u64) -> Self {
        let left = layers.threshold().saturating_sub(count);
        Self { left: layers.part(ALL_TOKENS, SHARE).min(left / SHARE_LEFT) }
    }

    /// Text to show of a file, if there is room: its current content, cut at a line's end.
    fn show(&mut self, path: &Path, text: &str, tokens: impl Fn(&str) -> u64) -> Option<String> {
        let most = FILE_TOKENS.min(self.left);
        let all = tokens(text);
        if all > most && most < LEAST_TOKENS {
            return None;
        }
        let kept = if all <= most {
            text
        } else {
            let bytes = (text.len() as u64).checked_mul(most)?.checked_div(all)? as usize;
            let end = text[..text.floor_char_boundary(bytes)].rfind('\n')?;
            &text[..end]
        };
        if kept.trim().is_empty() {
            return None;
        }
        self.left = self.left.saturating_sub(tokens(kept));
        let heading = heading(path);
        let lines = kept.lines().count();
        let note = match kept.len() == text.len() {
            true => String::new(),
            false => format!(" Its first {lines} lines; Read shows the rest."),
        };
        let text = format!("{heading} This is the file as it is now.{note}\n\n{kept}");
        Some(Injected::new(Purpose::File, &text).text().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer_settings::RESTORED_FILES;
    use crate::sample::{SampleParts, Session, layers, tokens};

    /// COMPACT-4: after a compaction the files seen last are asked for, each once, without those that are in view.
    #[test]
    fn the_newest_files_come_back_once() {
        let mut session = Session::default();
        session.say("go");
        let call = session.call("Read", 500);
        let mut stage = SampleParts::new(200_000);
        let seen = [("x", "/a"), ("y", "/b"), (call.as_str(), "/shown"), ("z", "/a"), ("w", "/c")];
        stage.state.seen = seen.map(|(call, path)| (Some(call.to_owned()), PathBuf::from(path))).into();
        assert_eq!(stage.with(|now| Restore.decide(session.log.view(), now)), Decision::Nothing, "nothing was covered");
        stage.done = vec![LayerRole::Compaction];
        let files = ["/c", "/a", "/b"].map(PathBuf::from).into();
        let need = Decision::Need(Need::Read { files, most: RESTORED_FILES });
        assert_eq!(stage.with(|now| Restore.decide(session.log.view(), now)), need);
        let read = NeedAnswer::Files(vec![("/c".into(), "text".into())]);
        let change = stage.with(|now| Restore.answered(session.log.view(), now, &read)).unwrap();
        let Act::Restore { blocks } = change.commit.act else { panic!("files come back") };
        assert!(shows(&blocks, Path::new("/c")) && !shows(&blocks, Path::new("/a")));
        stage.layers.restored_files = 0;
        assert_eq!(stage.with(|now| Restore.decide(session.log.view(), now)), Decision::Nothing);
    }

    /// COMPACT-4: at most 5,000 tokens a file and 50,000 together, less in a small window; cut at a line's end, with a
    /// note.
    #[test]
    fn files_are_shown_within_their_limits() {
        let mut room = RestoreRoom::new(&layers(1_000_000), 0);
        let text = "forty characters of some file or another\n".repeat(1_000);
        let shown: Vec<String> = (0..20).filter_map(|_| room.show(Path::new("/f"), &text, tokens)).collect();
        assert_eq!(shown.len(), 10);
        assert!(
            shown.iter().all(|one| tokens(one) <= 5_100 && one.contains("Its first 487 lines; Read")),
            "{}",
            shown[0]
        );
        let mut small = RestoreRoom::new(&layers(32_000), 0);
        assert!(tokens(&small.show(Path::new("/f"), &text, tokens).unwrap()) < 2_500);
        assert_eq!(small.show(Path::new("/g"), &text, tokens), None, "there is no room left");
    }

    /// COMPACT-4: files take no more than a quarter of the room that a compaction made, so that the next is not due at once.
    #[test]
    fn files_leave_room_for_the_work() {
        let layers = layers(100_000);
        let text = "forty characters of some file or another\n".repeat(1_000);
        let shown = |left: u64| {
            let mut room = RestoreRoom::new(&layers, layers.threshold() - left);
            (0..9).filter_map(|_| room.show(Path::new("/f"), &text, tokens)).map(|text| tokens(&text)).sum::<u64>()
        };
        assert!(shown(60_000) > 10_000, "{}", shown(60_000));
        assert!((1_500..2_200).contains(&shown(8_000)), "{}", shown(8_000));
        assert_eq!(shown(1_000), 0);
    }
}
