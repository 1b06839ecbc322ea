//! `cairn login`: stores a key, so that no variable has to be set.

use std::io::IsTerminal;

use clap::Args;
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::exit::Code;
use crate::out::{show, show_part};
use crate::program_paths::ProgramPaths;
use crate::stored_key;

/// Store an Anthropic API key for later sessions.
///
/// The key is read from the terminal, where it is not shown, or from a pipe. It is kept in the config home, in a file that only
/// you can read. ANTHROPIC_API_KEY is used instead where it is set.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoginArgs {
    /// Remove the stored key.
    #[arg(long)]
    remove: bool,
}

const EXAMPLES: &str = "\
Examples:
  cairn login                  type or paste the key
  pass show anthropic | cairn login
  cairn login --remove         forget it";

/// Runs it.
pub(crate) fn run(args: &LoginArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let (home, file) = (place.home.path(), stored_key::file(place.home.path()));
    if args.remove {
        match files::remove(&file) {
            Ok(()) => show!("removed {}", place.short(&file)),
            Err(files::Error::NotFound { .. }) => show!("no key is stored"),
            Err(error) => return Err(error.into()),
        }
        return Ok(Code::Success);
    }
    let key = if std::io::stdin().is_terminal() { typed()? } else { std::io::read_to_string(std::io::stdin())? };
    let key = key.trim();
    anyhow::ensure!(!key.is_empty(), "no key was given; nothing was changed");
    let is_plain = key.chars().all(|c| c.is_ascii_graphic());
    anyhow::ensure!(
        is_plain,
        "that is not a key: it contains spaces or characters that keys do not have; nothing was changed"
    );
    stored_key::write(home, key)?;
    show!("stored in {}; only you can read it", place.short(&file));
    Ok(Code::Success)
}

/// Text typed or pasted until Enter, without being shown.
fn typed() -> anyhow::Result<String> {
    // First: what is typed ahead of the question is not shown either.
    crossterm::terminal::enable_raw_mode()?;
    show_part!("Anthropic API key (it is not shown): ");
    let key = typed_in_raw_mode();
    let cooked = crossterm::terminal::disable_raw_mode();
    show!();
    cooked?;
    key
}

fn typed_in_raw_mode() -> anyhow::Result<String> {
    let mut key = String::new();
    loop {
        match crossterm::event::read()? {
            Event::Paste(text) => key.push_str(&text),
            Event::Key(pressed) if pressed.kind != KeyEventKind::Release => match pressed.code {
                KeyCode::Enter => return Ok(key),
                // A newline that came before raw mode did.
                KeyCode::Char('j') if pressed.modifiers.contains(KeyModifiers::CONTROL) => return Ok(key),
                KeyCode::Esc => return Ok(String::new()),
                KeyCode::Char('c' | 'd') if pressed.modifiers.contains(KeyModifiers::CONTROL) => {
                    return Ok(String::new());
                }
                KeyCode::Char(c) => key.push(c),
                KeyCode::Backspace => drop(key.pop()),
                _ => {}
            },
            _ => {}
        }
    }
}
