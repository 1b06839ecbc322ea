//! The modes: in which order they are offered, and what each means.

use tools::permission::Mode;

/// The order in which Shift-Tab goes through them. The last is offered only to those who started with it.
const CYCLE: [Mode; 4] = [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::BypassPermissions];

/// The mode after this one. The one that asks nothing comes only where it is offered.
pub(super) fn after(now: Mode, bypass_offered: bool) -> Mode {
    let offered = |mode: &Mode| *mode != Mode::BypassPermissions || bypass_offered;
    let mut ring = CYCLE.iter().copied().filter(offered).cycle().skip_while(|mode| *mode != now).skip(1);
    let next = if CYCLE.contains(&now) { ring.next() } else { None };
    next.unwrap_or_default()
}

/// What a mode means, in a few words.
pub(super) fn about(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "what could change something is asked about",
        Mode::AcceptEdits => "edits in the working directories are not asked about",
        Mode::Plan => "only looking, nothing is changed",
        Mode::BypassPermissions => "nothing is asked that no rule asks about",
    }
}
