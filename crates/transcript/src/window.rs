//! Size of a model's window, and how full it is.

use serde::{Deserialize, Serialize};

/// Window of an unknown model.
const DEFAULT_WINDOW: u64 = 200_000;
/// The large window.
const LARGE_WINDOW: u64 = 1_000_000;
/// Suffix of a model name that asks for the large window.
const LARGE_SUFFIX: &str = "[1m]";
/// The beta that grants the large window.
const LARGE_BETA: &str = "context-1m-2025-08-07";
/// Models whose window is large by default.
const LARGE_MODELS: [&str; 7] = ["opus-4-6", "opus-4-7", "opus-4-8", "opus-5", "sonnet-4-6", "sonnet-5", "fable-5"];
/// Models of the same maker whose window is the usual one.
const KNOWN_MODELS: [&str; 3] = ["claude-opus", "claude-sonnet", "claude-haiku"];

/// Room kept for the reply, at most.
const REPLY_ROOM: u64 = 20_000;
/// Room kept below the effective window so that compaction happens in time.
const COMPACT_ROOM: u64 = 13_000;
/// Distance of the warning below the threshold.
const WARNING_ROOM: u64 = 20_000;
/// Room kept below the effective window so that a summary still fits.
const BLOCKING_ROOM: u64 = 3_000;

/// Limit on each of these rooms in a small window, as a fraction of what it is taken from: out of 32,000 tokens the
/// fixed figures would leave nothing.
const SMALL_SHARE: u64 = 3;

/// The beta that a model needs for the large window that its name asks for; none if it has that by default, or is not
/// known to offer it.
pub fn beta_of(model: &str) -> Option<&'static str> {
    let has_it = LARGE_MODELS.iter().any(|large| model.contains(large));
    let may_have_it = KNOWN_MODELS.iter().any(|known| model.starts_with(known));
    (model.ends_with(LARGE_SUFFIX) && may_have_it && !has_it).then_some(LARGE_BETA)
}

/// Hints about the size of the window.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowHints<'a> {
    /// The model's name, `[1m]` included.
    pub model: &'a str,
    /// Betas of the request.
    pub betas: &'a [String],
    /// From the environment: for models not in the table.
    pub max_context_tokens: Option<u64>,
    /// From the environment: a cap on whatever was found.
    pub auto_compact_window: Option<u64>,
    /// From a provider entry in the settings.
    pub configured: Option<u64>,
    /// The model's own limit on output.
    pub max_output: u64,
}

/// A model's window and the limits derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Everything, input and output.
    pub size: u64,
    /// Without the room for a reply.
    pub effective: u64,
}

/// Switch for automatic compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoCompact {
    /// Compacts automatically.
    #[default]
    On,
    /// Compacts only on request.
    Off,
}

/// Fill of the window, against its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WindowFill {
    /// Tokens in use.
    pub used: u64,
    /// Number of tokens at which compaction is due.
    pub threshold: u64,
    /// Share of the threshold that is left, rounded.
    pub percent_left: u64,
    /// Close enough for a warning.
    pub above_warning: bool,
    /// Close enough for a warning in red.
    pub above_error: bool,
    /// Compaction is due.
    pub above_auto_compact: bool,
    /// Only a summary still fits.
    pub at_blocking_limit: bool,
}

impl Window {
    /// The window, from the first hint that knows it: the name's suffix, a provider entry, the table, the beta, the
    /// environment, then the usual size. A cap applies to all.
    pub fn of(hints: &WindowHints<'_>) -> Self {
        let large_by_itself = || LARGE_MODELS.iter().any(|large| hints.model.contains(large));
        let large_by_beta = || hints.betas.iter().any(|beta| beta == LARGE_BETA);
        let known = || KNOWN_MODELS.iter().any(|known| hints.model.starts_with(known));
        let size = match hints.configured {
            _ if hints.model.ends_with(LARGE_SUFFIX) => LARGE_WINDOW,
            Some(configured) => configured,
            None if large_by_itself() || large_by_beta() => LARGE_WINDOW,
            None if known() => DEFAULT_WINDOW,
            None => hints.max_context_tokens.unwrap_or(DEFAULT_WINDOW),
        };
        let size = hints.auto_compact_window.map_or(size, |cap| size.min(cap));
        Self { size, effective: size - hints.max_output.min(REPLY_ROOM).min(size / SMALL_SHARE) }
    }

    /// Number of tokens at which compaction is due.
    pub fn threshold(&self, auto: AutoCompact) -> u64 {
        match auto {
            AutoCompact::On => self.effective - COMPACT_ROOM.min(self.effective / SMALL_SHARE),
            AutoCompact::Off => self.effective,
        }
    }

    /// Number of tokens from which warnings show and the cheaper layers begin to work.
    pub fn warning(&self, auto: AutoCompact) -> u64 {
        let threshold = self.threshold(auto);
        threshold - WARNING_ROOM.min(threshold / SMALL_SHARE)
    }

    /// The fill with a number of tokens in use.
    pub fn fill(&self, used: u64, auto: AutoCompact) -> WindowFill {
        let threshold = self.threshold(auto);
        let left = threshold.saturating_sub(used);
        let warning = self.warning(auto);
        WindowFill {
            used,
            threshold,
            percent_left: if threshold == 0 { 0 } else { (left * 200 + threshold) / (threshold * 2) },
            above_warning: used >= warning,
            above_error: used >= warning,
            above_auto_compact: auto == AutoCompact::On && used >= threshold,
            at_blocking_limit: used >= self.blocking(),
        }
    }

    /// Number of tokens from which only a summary still fits: above the threshold even in the smallest window.
    pub fn blocking(&self) -> u64 {
        self.effective - BLOCKING_ROOM.min(self.effective / SMALL_SHARE / 2)
    }
}

/// The model's name at the provider, without the suffix that asks for a large window.
pub fn provider_name(model: &str) -> &str {
    model.strip_suffix(LARGE_SUFFIX).unwrap_or(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(hints: WindowHints<'_>) -> u64 {
        Window::of(&WindowHints { max_output: 64_000, ..hints }).size
    }

    /// TOK-4: suffix, then table, then beta, then environment, then 200,000; a cap holds for whatever was found.
    #[test]
    fn the_window_comes_from_the_first_hint_that_knows() {
        let beta = [LARGE_BETA.to_owned()];
        let hints = WindowHints::default();
        assert_eq!(window(WindowHints { model: "local[1m]", ..hints }), 1_000_000);
        assert_eq!(window(WindowHints { model: "claude-opus-4-6", ..hints }), 1_000_000);
        assert_eq!(window(WindowHints { model: "claude-opus-4-5-20251101", ..hints }), 200_000);
        assert_eq!(window(WindowHints { model: "claude-sonnet-4-5", betas: &beta, ..hints }), 1_000_000);
        assert_eq!(window(WindowHints { model: "claude-haiku-4-5", max_context_tokens: Some(9), ..hints }), 200_000);
        assert_eq!(window(WindowHints { model: "other", max_context_tokens: Some(32_768), ..hints }), 32_768);
        assert_eq!(window(WindowHints { model: "other", configured: Some(8_192), ..hints }), 8_192);
        assert_eq!(window(WindowHints { model: "other", ..hints }), 200_000);
        assert_eq!(window(WindowHints { model: "x[1m]", auto_compact_window: Some(100_000), ..hints }), 100_000);
    }

    /// TOK-5: for 200K the effective window is 180,000 and compaction is due at 167,000.
    #[test]
    fn the_threshold_leaves_room_for_a_reply_and_a_summary() {
        let window =
            Window::of(&WindowHints { model: "claude-opus-4-5", max_output: 64_000, ..WindowHints::default() });
        assert_eq!((window.effective, window.threshold(AutoCompact::On)), (180_000, 167_000));
        assert_eq!(window.threshold(AutoCompact::Off), 180_000);
        let small = Window::of(&WindowHints { configured: Some(200_000), max_output: 4_096, ..WindowHints::default() });
        assert_eq!(small.effective, 195_904);
    }

    /// TOK-5: in a small window every room shrinks, so that there is always a threshold to work below; from 100K on the
    /// figures are the fixed ones.
    #[test]
    fn a_small_window_has_a_threshold_too() {
        let limits = |size| {
            let window =
                Window::of(&WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() });
            (window.effective, window.threshold(AutoCompact::On), window.warning(AutoCompact::On))
        };
        assert_eq!(limits(100_000), (80_000, 67_000, 47_000));
        assert_eq!(limits(64_000), (44_000, 31_000, 20_667));
        assert_eq!(limits(32_000), (21_334, 14_223, 9_482));
        assert_eq!(limits(4_096), (2_731, 1_821, 1_214));
    }

    /// TOK-6: the limit at which only a summary fits lies above the threshold and below the window, in every window.
    #[test]
    fn the_blocking_limit_lies_above_the_threshold_in_every_window() {
        for size in (1_000..40_000).step_by(500).chain([100_000, 200_000, 1_000_000]) {
            let hints = WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() };
            let window = Window::of(&hints);
            let threshold = window.threshold(AutoCompact::On);
            assert!(!window.fill(threshold, AutoCompact::On).at_blocking_limit, "{size}");
            assert!(window.fill(window.effective - 1, AutoCompact::On).at_blocking_limit, "{size}");
        }
    }

    /// TOK-6: percent left is against the threshold; warning and error 20,000 below it; blocking 3,000 below the
    /// effective window.
    #[test]
    fn the_fill_says_how_near_the_limits_are() {
        let window = Window { size: 200_000, effective: 180_000 };
        let fill = window.fill(83_500, AutoCompact::On);
        assert_eq!((fill.percent_left, fill.above_warning, fill.above_auto_compact), (50, false, false));
        let fill = window.fill(147_000, AutoCompact::On);
        assert_eq!((fill.percent_left, fill.above_warning, fill.above_error), (12, true, true));
        let fill = window.fill(167_000, AutoCompact::On);
        assert_eq!((fill.percent_left, fill.above_auto_compact, fill.at_blocking_limit), (0, true, false));
        assert!(window.fill(177_000, AutoCompact::On).at_blocking_limit);
        let off = window.fill(167_000, AutoCompact::Off);
        assert_eq!((off.threshold, off.above_auto_compact, off.percent_left), (180_000, false, 7));
    }
}
