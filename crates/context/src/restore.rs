//! After a compaction: the files the model was working with come back.
//!
//! What was read most recently is most likely needed next, and the model would read it again at once. So the newest few
//! files are shown as they are now, each within its limit and all within theirs, unless they are still in view.

use std::path::{Path, PathBuf};

use transcript::window::{AutoCompact, Window};

/// So many files come back, unless the settings say otherwise.
pub const FILES: usize = 5;
/// The most of one file, in tokens.
const FILE_TOKENS: u64 = 5_000;
/// The most of all together.
const ALL_TOKENS: u64 = 50_000;
/// Less of a file than this is not worth showing.
const LEAST_TOKENS: u64 = 500;
/// In a small window, no more than this share of the threshold.
const SHARE: u64 = 6;

/// Which files come back, the newest first: `read` has what was read, the newest first, and may name a file twice.
pub fn choose(
    read: impl IntoIterator<Item = PathBuf>,
    most: usize,
    is_left_out: impl Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let mut chosen: Vec<PathBuf> = Vec::new();
    for path in read {
        if chosen.len() == most {
            break;
        }
        if !chosen.contains(&path) && !is_left_out(&path) {
            chosen.push(path);
        }
    }
    chosen
}

/// How much room there is for files.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    left: u64,
}

impl Room {
    /// All of it.
    pub fn new(window: &Window) -> Self {
        Self { left: ALL_TOKENS.min(window.threshold(AutoCompact::On) / SHARE) }
    }

    /// What is shown of a file, if there is room: its text as it is now, cut at a line's end.
    pub fn show(&mut self, path: &Path, text: &str, tokens: impl Fn(&str) -> u64) -> Option<String> {
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
        let path = path.display();
        let lines = kept.lines().count();
        let note = match kept.len() == text.len() {
            true => String::new(),
            false => format!(" Its first {lines} lines; Read shows the rest."),
        };
        Some(format!(
            "<system-reminder>\nYou worked with {path} before the summary. This is the file as it is now.{note}\n\n\
             {kept}\n</system-reminder>"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> u64 {
        text.len() as u64 / 4
    }

    /// COMPACT-4: the five files read last, each once, without those that are left out.
    #[test]
    fn the_newest_files_come_back_once() {
        let read = ["a", "b", "a", "c", "plan", "d", "e", "f"].map(PathBuf::from);
        let chosen = choose(read.clone(), FILES, |path| path == Path::new("plan"));
        assert_eq!(chosen, ["a", "b", "c", "d", "e"].map(PathBuf::from));
        assert!(choose(read, 0, |_| false).is_empty());
    }

    /// COMPACT-4: at most 5,000 tokens a file and 50,000 together, less in a small window; cut at a line's end, with a
    /// note.
    #[test]
    fn files_are_shown_within_their_limits() {
        let mut room = Room::new(&Window { size: 1_000_000, effective: 980_000 });
        let text = "forty characters of some file or another\n".repeat(1_000);
        let shown: Vec<String> = (0..20).filter_map(|_| room.show(Path::new("/f"), &text, tokens)).collect();
        assert_eq!(shown.len(), 10);
        assert!(
            shown.iter().all(|one| tokens(one) <= 5_100 && one.contains("Its first 487 lines; Read")),
            "{}",
            shown[0]
        );
        let mut small = Room::new(&Window { size: 32_000, effective: 21_334 });
        assert!(tokens(&small.show(Path::new("/f"), &text, tokens).unwrap()) < 2_500);
        assert_eq!(small.show(Path::new("/g"), &text, tokens), None, "there is no room left");
    }
}
