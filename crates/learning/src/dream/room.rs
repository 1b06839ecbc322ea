//! How much a dream may be shown, by the window of its model.

/// The most a reply may be, in tokens: several whole memories.
const OUTPUT: u64 = 32_000;
/// What the prompt and the tools take, in tokens.
const PROMPT: u64 = 5_000;
/// Bytes that are a token at the least, of what is shown here.
const BYTES_PER_TOKEN: u64 = 3;
/// The most that is told at first, and that is read later, in bytes: some 60,000 and 100,000 tokens.
const TOLD: usize = 180_000;
const READ: usize = 300_000;
/// The most of one result, in bytes.
const EACH: usize = 12_000;

/// How much a dream may be shown, in bytes, and may answer, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DreamRoom {
    /// What it is told at first.
    pub(super) told: usize,
    /// What it may read after that.
    pub(super) read: usize,
    /// What it may read in one call.
    pub(super) each: usize,
    /// The most a reply may be, in tokens.
    pub(super) output: u64,
}

impl DreamRoom {
    /// The room in a window of so many tokens. What is written stays in it too, so a fifth is left.
    pub(super) fn in_window(window: u64) -> Self {
        let output = OUTPUT.min(window / 4);
        let bytes = window.saturating_sub(output + PROMPT).saturating_mul(BYTES_PER_TOKEN);
        let share = |percent: u64, most: usize| usize::try_from(bytes / 100 * percent).unwrap_or(most).min(most);
        let read = share(45, READ);
        Self { told: share(35, TOLD), read, each: EACH.min(read / 4), output }
    }

    /// The part of what is told at first that one kind of it may have, in percent.
    pub(super) fn part(&self, percent: usize) -> usize {
        self.told / 100 * percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DREAM-3: all that is shown fits into the window beside the prompt and a reply, in small windows too.
    #[test]
    fn what_is_shown_fits_into_the_window() {
        for window in [1, 8_192, 32_768, 65_536, 200_000, 1_000_000] {
            let room = DreamRoom::in_window(window);
            let tokens = (room.told + room.read) as u64 / BYTES_PER_TOKEN;
            assert!(tokens + room.output <= window, "{window}: {room:?}");
            assert!(room.each <= room.read && room.told <= TOLD && room.read <= READ);
        }
        assert_eq!(DreamRoom::in_window(1_000_000), DreamRoom { told: TOLD, read: READ, each: EACH, output: OUTPUT });
    }
}
