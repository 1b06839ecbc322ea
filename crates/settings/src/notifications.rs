//! Settings for the screen and for output outside the conversation: colours, keys, the custom status line, notifications and the
//! event log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::{SetValue, SettingsSource, keys};
use crate::effective_values::{BasePaths, EffectiveValues};
use crate::hook_definitions::settings::HooksOf;

/// Default time without input after which the user is notified, as in Claude Code.
const PATIENCE: Duration = Duration::from_secs(60);

/// Settings for output outside the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notifications {
    /// The custom status line.
    pub status_line: Option<StatusLine>,
    /// The way to notify the user.
    pub channel: Channel,
    /// The time without input after which that happens.
    pub patience: Duration,
    /// The event log.
    pub event_log: Option<PathBuf>,
    /// The background that colours are chosen for.
    pub theme: Theme,
    /// The keys of the prompt.
    pub editor_mode: EditorMode,
}

impl Default for Notifications {
    fn default() -> Self {
        Self {
            status_line: None,
            channel: Channel::default(),
            patience: PATIENCE,
            event_log: None,
            theme: Theme::default(),
            editor_mode: EditorMode::default(),
        }
    }
}

/// The background that colours are chosen for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// What the terminal says of itself; dark if it says nothing.
    #[default]
    Auto,
    /// Dark.
    Dark,
    /// Light.
    Light,
}

/// The keys of the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditorMode {
    /// Those of shells.
    #[default]
    Normal,
    /// Those of vim.
    Vim,
}

/// A status line that a command prints.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusLine {
    /// The shell command line.
    pub command: String,
    /// Spaces before the line.
    #[serde(default, deserialize_with = "whole")]
    pub padding: usize,
    /// Seconds after which the command runs again.
    pub refresh_interval: Option<u64>,
}

/// A number without its fraction.
fn whole<'de, D: serde::Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    f64::deserialize(from).map(|number| number as usize)
}

/// The way to notify the user, by Claude Code's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The terminal's own notification, if it is known to have one.
    #[default]
    Auto,
    /// The bell.
    TerminalBell,
    /// iTerm2's notification.
    Iterm2,
    /// iTerm2's notification and the bell.
    Iterm2WithBell,
    /// Kitty's notification.
    Kitty,
    /// Ghostty's notification.
    Ghostty,
    /// None.
    NotificationsDisabled,
}

impl Notifications {
    pub(super) fn of(counting: &EffectiveValues<'_>, whose: HooksOf, base_paths: &BasePaths<'_>) -> Self {
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
            event_log: counting.of(&keys::EVENT_LOG).find_map(|set| path(set, base_paths)),
            theme: counting.one(&keys::THEME).unwrap_or_default(),
            editor_mode: counting.one(&keys::EDITOR_MODE).unwrap_or_default(),
        }
    }
}

/// A path that starts at `~/`, at the settings file's directory, or at the root.
fn path(set: &SetValue, base_paths: &BasePaths<'_>) -> Option<PathBuf> {
    let text = set.value.as_str().filter(|text| !text.is_empty())?;
    let folder = set.origin.file.as_deref().and_then(Path::parent).unwrap_or(base_paths.directory);
    Some(match (text.strip_prefix("~/"), base_paths.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(text),
    })
}
