//! Telling a person who looks elsewhere that the session waits: by the bell, or as the terminal shows it.

use std::io::Write;

use settings::Channel;

use crate::styled_text::clean;
use crate::{env, out};

/// The escape sequence of a notification.
pub(super) fn escape(channel: Channel, text: &str) -> String {
    let text = clean(text);
    let iterm = format!("\x1b]9;{text}\x07");
    match channel {
        Channel::Auto | Channel::NotificationsDisabled => String::new(),
        Channel::TerminalBell => "\x07".to_owned(),
        Channel::Iterm2 => iterm,
        Channel::Iterm2WithBell => format!("{iterm}\x07"),
        Channel::Kitty => format!("\x1b]99;;{text}\x1b\\"),
        Channel::Ghostty => format!("\x1b]777;notify;Cairn;{text}\x07"),
    }
}

/// The terminal, if it is one that can show notifications.
fn known() -> Channel {
    match env::TERM_PROGRAM.get().as_deref() {
        Some("iTerm.app") => Channel::Iterm2,
        Some("ghostty") => Channel::Ghostty,
        _ if env::TERM.get().as_deref() == Some("xterm-kitty") => Channel::Kitty,
        _ => Channel::NotificationsDisabled,
    }
}

/// Tells it.
pub(super) fn tell(channel: Channel, text: &str) {
    let channel = if channel == Channel::Auto { known() } else { channel };
    let mut out = out::stdout();
    let _ = out.write_all(escape(channel, text).as_bytes()).and_then(|()| out.flush()); // nobody is there to be told
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HOOK-1: each way of telling is what its terminal understands, and no text can end it early.
    #[test]
    fn each_terminal_is_told_in_its_own_way() {
        let told = |channel| escape(channel, "a\x07\x1b]b");
        assert_eq!(told(Channel::TerminalBell), "\x07");
        assert_eq!(told(Channel::Iterm2), "\x1b]9;a]b\x07");
        assert_eq!(told(Channel::Iterm2WithBell), "\x1b]9;a]b\x07\x07");
        assert_eq!(told(Channel::Kitty), "\x1b]99;;a]b\x1b\\");
        assert_eq!(told(Channel::Ghostty), "\x1b]777;notify;Cairn;a]b\x07");
        assert_eq!(told(Channel::NotificationsDisabled), "");
    }
}
