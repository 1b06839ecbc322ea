//! The modes: in which order they are offered, and what each means.

use tools::permission::Mode;

use crate::styled_text::Colour;

/// The mode to which Shift-Tab goes from this one. The one that asks nothing comes only where it is offered.
pub(super) fn after(now: Mode, bypass_offered: bool) -> Mode {
    let offered = |mode: &Mode| *mode != Mode::BypassPermissions || bypass_offered;
    let mut from_now = Mode::ALL.into_iter().filter(offered).skip_while(|mode| *mode != now);
    from_now.nth(1).unwrap_or_default()
}

/// The colour of a mode that is not the usual one.
pub(super) fn colour(mode: Mode) -> Colour {
    match mode {
        Mode::BypassPermissions => Colour::Red,
        Mode::AcceptEdits => Colour::Yellow,
        Mode::Plan | Mode::Default => Colour::Cyan,
    }
}

/// Warning about a session in which nothing is asked.
pub(super) const BYPASS_WARNING: &str = "bypassPermissions: commands and edits run without asking, also those that delete or \
                                         send something. Shift-Tab changes the mode.";

/// Description of a mode, in a few words.
pub(super) fn about(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "you are asked about calls that may make changes",
        Mode::AcceptEdits => "edits in the working directories run without asking",
        Mode::Plan => "only reading, nothing is changed",
        Mode::BypassPermissions => "you are asked only where a rule says so",
    }
}
