//! How much may happen without asking: shown, named and changed, also while a turn runs. A change holds from the next
//! call on that is judged.

use clap::ValueEnum;
use settings::Bypass;
use tools::permission::Mode;

use super::conversation::Conversation;
use super::page::Part;
use super::status::mode_name;
use crate::args::PermissionMode;
use crate::span::Look;

/// The order in which Shift-Tab goes through them. The last is offered only to those who started with it.
const CYCLE: [Mode; 4] = [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::BypassPermissions];

impl Conversation {
    /// The next mode.
    pub(super) fn next_mode(&mut self) {
        let now = self.status.mode();
        let offered = |mode: &Mode| *mode != Mode::BypassPermissions || self.bypass_offered;
        let mut ring = CYCLE.iter().copied().filter(offered).cycle().skip_while(|mode| *mode != now).skip(1);
        let next = if CYCLE.contains(&now) { ring.next() } else { None };
        let next = next.unwrap_or_default();
        self.change_mode(next);
    }

    /// Changes the mode and says for a moment what that means.
    pub(super) fn change_mode(&mut self, mode: Mode) {
        self.set_mode(mode);
        self.hint = Some(format!("{}: {}", mode_name(mode), about(mode)));
    }

    /// Shows the mode, or changes it.
    pub(super) fn mode(&mut self, name: &str) {
        if name.is_empty() {
            let now = self.status.mode();
            self.page.note(&format!("the mode is {}: {}", mode_name(now), about(now)), Look::PLAIN);
            return;
        }
        match PermissionMode::from_str(name, true) {
            Ok(PermissionMode::BypassPermissions) if self.bypass == Bypass::Disabled => {
                self.hint = Some("bypassPermissions is disabled by the settings".into());
            }
            Ok(chosen) => {
                self.set_mode(chosen.into());
                self.page.note(&format!("the mode is {}", mode_name(chosen.into())), Look::PLAIN);
            }
            Err(_) => self.hint = Some("modes: default, acceptEdits, plan, bypassPermissions".into()),
        }
    }

    /// Shows the rules, or changes the mode.
    pub(super) fn permissions(&mut self, mode: &str) {
        if !mode.is_empty() {
            return self.mode(mode);
        }
        let Some(agent) = &mut self.agent else { return };
        let rules = agent.policy_mut().rules.clone();
        let mut entries = vec![("mode".to_owned(), mode_name(self.status.mode()).to_owned())];
        for (name, rules) in [("allow", &rules.allow), ("ask", &rules.ask), ("deny", &rules.deny)] {
            let mut texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
            if texts.is_empty() {
                texts.push("nothing".to_owned());
            }
            // One a row; the name stands before the first.
            let names = std::iter::once(name).chain(std::iter::repeat(""));
            entries.extend(names.zip(texts).map(|(name, text)| (name.to_owned(), text)));
        }
        self.page.begin(Part::Note);
        self.page.table(&entries, Look::DIM);
    }

    /// What is opened later begins in it too.
    fn set_mode(&mut self, mode: Mode) {
        self.status.mode.set(mode);
        self.args.permission_mode = Some(mode.into());
        self.args.dangerously_skip_permissions = false;
    }
}

/// What a mode means, in a few words.
fn about(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "what could change something is asked about",
        Mode::AcceptEdits => "edits in the working directories are not asked about",
        Mode::Plan => "only looking, nothing is changed",
        Mode::BypassPermissions => "nothing is asked that no rule asks about",
    }
}
