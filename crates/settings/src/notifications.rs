//! How a session makes itself known beside the conversation: a line of the user's own, how the user is told of being
//! waited for, and where what happens is written down.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::{SetValue, SettingsSource, keys};
use crate::effective_values::{BasePaths, EffectiveValues};
use crate::hooks::settings::HooksOf;

/// After how long without a word the user is told of being waited for, as in Claude Code.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a session makes itself known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notifications {
    /// The user's own line.
    pub status_line: Option<StatusLine>,
    /// How the user is told of being waited for.
    pub channel: Channel,
    /// After how long without a word that is.
    pub patience: Duration,
    /// Where what happens is written down.
    pub event_log: Option<PathBuf>,
}

impl Default for Notifications {
    fn default() -> Self {
        Self { status_line: None, channel: Channel::default(), patience: PATIENCE, event_log: None }
    }
}

/// A line that a command writes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusLine {
    /// A line of shell.
    pub command: String,
    /// Blanks before it.
    #[serde(default, deserialize_with = "whole")]
    pub padding: usize,
    /// Run again after so many seconds.
    pub refresh_interval: Option<u64>,
}

/// A number without what is behind its point.
fn whole<'de, D: serde::Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    f64::deserialize(from).map(|number| number as usize)
}

/// How a person is told of being waited for, by Claude Code's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// As the terminal shows it, where it is one that is known to.
    #[default]
    Auto,
    /// By the bell.
    TerminalBell,
    /// As iTerm2 shows it.
    Iterm2,
    /// The same, and by the bell.
    Iterm2WithBell,
    /// As Kitty shows it.
    Kitty,
    /// As Ghostty shows it.
    Ghostty,
    /// Not at all.
    NotificationsDisabled,
}

impl Notifications {
    pub(super) fn of(counting: &EffectiveValues<'_>, whose: HooksOf, ground: &BasePaths<'_>) -> Self {
        // What keeps hooks from running keeps this from running.
        let runs = |source: SettingsSource| match whose {
            HooksOf::All => true,
            HooksOf::Managed => source == SettingsSource::Managed,
            HooksOf::Nobody => false,
        };
        let line = counting.of(&keys::STATUS_LINE).find(|set| runs(set.origin.source));
        Self {
            status_line: line.and_then(|set| serde_json::from_value(set.value.clone()).ok()),
            channel: counting.one(&keys::CHANNEL).unwrap_or_default(),
            patience: counting.one(&keys::IDLE).map_or(PATIENCE, Duration::from_millis),
            event_log: counting.of(&keys::EVENT_LOG).find_map(|set| path(set, ground)),
        }
    }
}

/// A path as one writes it: from the home directory, from the file it stands in, or from the root.
fn path(set: &SetValue, ground: &BasePaths<'_>) -> Option<PathBuf> {
    let text = set.value.as_str().filter(|text| !text.is_empty())?;
    let folder = set.origin.file.as_deref().and_then(Path::parent).unwrap_or(ground.directory);
    Some(match (text.strip_prefix("~/"), ground.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(text),
    })
}
