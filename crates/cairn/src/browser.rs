//! Opening a page in the user's browser.

use std::process::{Command, Stdio};

/// Opens a page; where there is no browser, its address stands on the screen.
pub(crate) fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened =
        Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = opened {
        std::thread::spawn(move || child.wait());
    }
}
