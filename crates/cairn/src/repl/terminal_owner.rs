//! Leaving the terminal to others for a while: the shell (Ctrl-Z), or an editor for the prompt (Ctrl-G) or a file (`/memory`).
//!
//! The terminal is as it was before the program while others have it, and nobody reads keys meanwhile. The agent works on
//! behind an editor; with a stopped program everything stops, but for commands that run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use crossterm::event::EventStream;
use rustix::process::{self, kill_current_process_group};
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Repl, terminal};
use crate::env;
use crate::shutdown::{ShutdownCause, ShutdownSignals};

/// The largest prompt that is read back from an editor.
const PROMPT_LIMIT: u64 = 1_000_000;
/// The largest file of which it is seen whether an editor has changed it.
const FILE_LIMIT: u64 = 10_000_000;
/// Time that a stop may take to reach us. If nobody could ever continue us, as without a shell, the system refuses to
/// stop us at all, and we go on after it.
const STOPS_WITHIN: Duration = Duration::from_millis(100);

/// The owner of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TerminalOwner {
    /// The shell we were started from.
    Shell,
    /// An editor for the prompt.
    Prompt,
    /// An editor for a file.
    File(PathBuf),
}

impl Repl {
    /// Leaves the terminal to somebody until they give it back. What ends the program meanwhile is returned.
    pub(super) async fn go_outside(
        &mut self,
        who: TerminalOwner,
        keys: &mut Option<EventStream>,
        raw: &mut Option<terminal::RawMode>,
        closing: &mut ShutdownSignals,
        continued: &mut Signal,
    ) -> anyhow::Result<Option<ShutdownCause>> {
        // Who reads keys, draws or keeps raw mode would be in the way.
        drop(keys.take());
        self.screen.clear()?;
        drop(raw.take());
        let closed = match who {
            TerminalOwner::Shell => {
                stop(continued).await?;
                None
            }
            TerminalOwner::Prompt => self.edit_prompt(closing).await,
            TerminalOwner::File(path) => self.edit_file(path, closing).await,
        };
        *raw = Some(terminal::RawMode::enter()?);
        *keys = Some(EventStream::new());
        Ok(closed)
    }

    async fn edit_prompt(&mut self, closing: &mut ShutdownSignals) -> Option<ShutdownCause> {
        let text = self.editor.whole();
        match unless_closed(edited_prompt(&text), closing).await {
            Err(closed) => return Some(closed),
            Ok(Ok(text)) => self.editor.set(&text),
            Ok(Err(error)) => self.talk.view.hint = Some(format!("{error:#}")),
        }
        None
    }

    async fn edit_file(&mut self, path: PathBuf, closing: &mut ShutdownSignals) -> Option<ShutdownCause> {
        let text = |path: &Path| files::read(path, FILE_LIMIT).ok().map(|file| file.bytes);
        let before = text(&path);
        match unless_closed(edit(&path), closing).await {
            Err(closed) => return Some(closed),
            Ok(Err(error)) => self.talk.view.hint = Some(format!("{error:#}")),
            Ok(Ok(())) if text(&path) == before => self.talk.view.hint = Some("nothing was changed".into()),
            Ok(Ok(())) => self.talk.was_edited(path),
        }
        None
    }
}

/// Waits for an editor, unless something ends the program meanwhile.
async fn unless_closed<T>(edited: impl Future<Output = T>, closing: &mut ShutdownSignals) -> Result<T, ShutdownCause> {
    tokio::pin!(edited);
    loop {
        tokio::select! {
            edited = &mut edited => return Ok(edited),
            closed = closing.wanted() => match closed {
                ShutdownCause::Interrupted => {} // the editor's own business
                closed => return Err(closed),
            },
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

/// The user's editor, where one is named.
pub(super) fn editor() -> Option<String> {
    env::VISUAL.get().or_else(|| env::EDITOR.get())
}

/// The prompt as it comes back from the user's editor.
async fn edited_prompt(text: &str) -> anyhow::Result<String> {
    let mut file = tempfile::Builder::new().prefix("cairn-prompt-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    edit(file.path()).await.context("the prompt stays as it was")?;
    let edited = files::read(file.path(), PROMPT_LIMIT)?;
    Ok(String::from_utf8_lossy(&edited.bytes).trim_end().to_owned())
}

/// Opens a file in the user's editor, and waits until it is closed.
async fn edit(path: &Path) -> anyhow::Result<()> {
    let Some(editor) = editor() else {
        anyhow::bail!("set {} or {} to the editor you want", env::VISUAL.name, env::EDITOR.name);
    };
    // By a shell: people put options into these variables.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).kill_on_drop(true);
    let status = command.status().await?;
    anyhow::ensure!(status.success(), "{editor} failed ({status})");
    Ok(())
}
