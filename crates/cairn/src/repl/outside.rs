//! Leaving the terminal to others for a while: the shell (Ctrl-Z), or an editor for the prompt (Ctrl-G).
//!
//! The terminal is as it was before the program while others have it, and nobody reads keys meanwhile. The agent works on
//! behind an editor; with a stopped program everything stops, but for commands that run.

use std::io::Write;
use std::time::Duration;

use crossterm::event::EventStream;
use rustix::process::{self, kill_current_process_group};
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Repl, terminal};
use crate::closing::{Closed, Closing};
use crate::env;

/// The largest prompt that is read back from an editor.
const PROMPT_LIMIT: u64 = 1_000_000;
/// How long a stop may take to reach us. Where nobody could ever continue us, as without a shell, the system refuses to
/// stop us at all, and we go on after it.
const STOPS_WITHIN: Duration = Duration::from_millis(100);

/// Who gets the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outside {
    /// The shell we were started from.
    Shell,
    /// An editor for the prompt.
    Editor,
}

impl Repl {
    /// Leaves the terminal to somebody until they give it back. What ends the program meanwhile is returned.
    pub(super) async fn go_outside(
        &mut self,
        who: Outside,
        keys: &mut Option<EventStream>,
        raw: &mut Option<terminal::Raw>,
        closing: &mut Closing,
        continued: &mut Signal,
    ) -> anyhow::Result<Option<Closed>> {
        // Who reads keys, draws or keeps raw mode would be in the way.
        drop(keys.take());
        self.screen.clear()?;
        drop(raw.take());
        let closed = match who {
            Outside::Shell => {
                stop(continued).await?;
                None
            }
            Outside::Editor => self.edit_outside(closing).await,
        };
        *raw = Some(terminal::Raw::enter()?);
        *keys = Some(EventStream::new());
        Ok(closed)
    }

    async fn edit_outside(&mut self, closing: &mut Closing) -> Option<Closed> {
        let text = self.editor.text().to_owned();
        let edited = edit(&text);
        tokio::pin!(edited);
        loop {
            tokio::select! {
                edited = &mut edited => {
                    match edited {
                        Ok(text) => self.editor.set(&text),
                        Err(error) => self.talk.hint = Some(format!("{error:#}")),
                    }
                    return None;
                }
                closed = closing.wanted() => match closed {
                    Closed::Interrupted => {} // the editor's own business
                    closed => return Some(closed),
                },
            }
        }
    }
}

/// Hears of it when the program goes on after a stop, whoever stopped it.
pub(super) fn continued() -> std::io::Result<Signal> {
    signal(SignalKind::from_raw(process::Signal::CONT.as_raw()))
}

/// Stops the program, as Ctrl-Z does for those that do not read keys one by one, until the shell continues it.
async fn stop(continued: &mut Signal) -> anyhow::Result<()> {
    kill_current_process_group(process::Signal::TSTP)?;
    let _ = tokio::time::timeout(STOPS_WITHIN, continued.recv()).await;
    Ok(())
}

/// A text as it comes back from the user's editor.
async fn edit(text: &str) -> anyhow::Result<String> {
    let Some(editor) = env::VISUAL.get().or_else(|| env::EDITOR.get()) else {
        anyhow::bail!("set {} or {} to write the prompt there", env::VISUAL.name, env::EDITOR.name);
    };
    let mut file = tempfile::Builder::new().prefix("cairn-prompt-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    // By a shell: people put options into these variables.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file.path()).kill_on_drop(true);
    let status = command.status().await?;
    anyhow::ensure!(status.success(), "{editor} failed ({status}); the prompt stays as it was");
    let edited = files::read(file.path(), PROMPT_LIMIT)?;
    Ok(String::from_utf8_lossy(&edited.bytes).trim_end().to_owned())
}
