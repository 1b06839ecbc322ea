//! Sizes of a dream's input, by the window of its model.

/// Limit on a reply, in tokens: several whole memories.
const OUTPUT: u64 = 32_000;
/// Tokens of the prompt and the tools.
const PROMPT: u64 = 5_000;
/// Least bytes per token in what is shown here.
const BYTES_PER_TOKEN: u64 = 3;
/// Limits on the first message and on reading after it, in bytes: some 60,000 and 100,000 tokens.
const FIRST_MESSAGE: usize = 180_000;
const READ: usize = 300_000;
/// Limit on one result, in bytes.
const EACH: usize = 12_000;

/// Limits on a dream's input, in bytes, and output, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DreamRoom {
    /// The first message.
    pub(super) first_message: usize,
    /// All reading after it.
    pub(super) read: usize,
    /// Reading in one call.
    pub(super) each: usize,
    /// A reply, in tokens.
    pub(super) output: u64,
}

impl DreamRoom {
    /// The limits in a window of so many tokens. The model's own output stays in it too, so a fifth is left.
    pub(super) fn in_window(window: u64) -> Self {
        let output = OUTPUT.min(window / 4);
        let bytes = window.saturating_sub(output + PROMPT).saturating_mul(BYTES_PER_TOKEN);
        let share = |percent: u64, most: usize| usize::try_from(bytes / 100 * percent).unwrap_or(most).min(most);
        let read = share(45, READ);
        Self { first_message: share(35, FIRST_MESSAGE), read, each: EACH.min(read / 4), output }
    }

    /// A percentage of the first message, for one part of it.
    pub(super) fn part(&self, percent: usize) -> usize {
        self.first_message / 100 * percent
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
            let tokens = (room.first_message + room.read) as u64 / BYTES_PER_TOKEN;
            assert!(tokens + room.output <= window, "{window}: {room:?}");
            assert!(room.each <= room.read && room.first_message <= FIRST_MESSAGE && room.read <= READ);
        }
        assert_eq!(
            DreamRoom::in_window(1_000_000),
            DreamRoom { first_message: FIRST_MESSAGE, read: READ, each: EACH, output: OUTPUT }
        );
    }
}
