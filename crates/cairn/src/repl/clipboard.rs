//! The clipboard's picture, by the program that the desktop has for it. No program here reads a clipboard by itself.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use tokio::process::Command;

use crate::env;

/// The time that such a program may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// The largest picture that is taken.
const LARGEST: usize = 20_000_000;
/// Folder of pasted pictures in the session folder.
const PICTURES: &str = "pasted";

/// A command that prints the clipboard's picture.
fn reader() -> (&'static str, &'static [&'static str]) {
    if cfg!(target_os = "macos") {
        ("pngpaste", &["-"])
    } else if env::WAYLAND.get().is_some() {
        ("wl-paste", &["--type", "image/png"])
    } else {
        ("xclip", &["-selection", "clipboard", "-t", "image/png", "-o"])
    }
}

/// Writes the clipboard's picture to a file in the session folder.
pub(super) async fn picture(folder: &Path) -> anyhow::Result<PathBuf> {
    let (program, arguments) = reader();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output
        .with_context(|| format!("{program} does not answer"))?
        .with_context(|| format!("a picture is pasted by {program}, which cannot be started"))?;
    let bytes = output.stdout;
    let Some(ending) = ending(&bytes).filter(|_| bytes.len() <= LARGEST) else {
        anyhow::bail!("there is no picture in the clipboard");
    };
    let pictures = folder.join(PICTURES);
    files::create_directory(&pictures)?;
    let number = files::list(&pictures)?.len() + 1;
    let path = pictures.join(format!("{number}.{ending}"));
    files::create_new(&path, &bytes)?;
    Ok(path)
}

/// The ending of a picture's file, by its first bytes.
fn ending(bytes: &[u8]) -> Option<&'static str> {
    const BEGINNINGS: [(&[u8], &str); 3] = [(b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpg"), (b"GIF8", "gif")];
    BEGINNINGS.iter().find(|(begin, _)| bytes.starts_with(begin)).map(|(_, ending)| *ending)
}
