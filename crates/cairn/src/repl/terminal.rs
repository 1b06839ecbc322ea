//! The terminal in raw mode, and out of it again whatever happens.

use std::io::{Write, stdout};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Raw mode for as long as this lives.
#[derive(Debug)]
pub(crate) struct Raw;

impl Raw {
    /// Keys come one by one from now on, and pasted text as such.
    pub(crate) fn enter() -> std::io::Result<Self> {
        crossterm::terminal::enable_raw_mode()?;
        let mut out = stdout();
        let _ = write!(out, "\x1b[?2004h");
        out.flush()?;
        Ok(Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let mut out = stdout();
        let _ = write!(out, "\x1b[?2004l\x1b[?25h");
        let _ = out.flush();
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

/// Signals that ask the program to end: from `kill`, or from a window that was closed.
#[derive(Debug)]
pub(crate) struct Closing {
    terminate: Signal,
    hang_up: Signal,
}

impl Closing {
    /// Begins to listen.
    pub(crate) fn watch() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, hang_up: signal(SignalKind::hangup())? })
    }

    /// Returns when one has come.
    pub(crate) async fn wanted(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
