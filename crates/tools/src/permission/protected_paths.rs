//! Guarded paths: files below the working directories that decide what an agent may do, or what other programs run.
//!
//! Edits of them are asked about even if edits are accepted, and no rule covers them in passing: it has to name them.
//! Names are compared as on a file system that ignores case, and some characters with it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The names, in lower case. Everything below a directory of such a name is guarded too.
pub const GUARDED: [&str; 8] = [".git", ".claude", ".cairn", ".husky", ".vscode", ".envrc", ".mcp.json", ".gitmodules"];

/// Returns whether a path is guarded: it is below a working directory, and a component of it there has one of the
/// names. A working directory that is itself inside a guarded one was chosen by the user.
pub fn guarded(path: &Path, directories: &[PathBuf]) -> bool {
    let below = directories.iter().filter_map(|directory| path.strip_prefix(directory).ok());
    below.flat_map(Path::components).any(|part| is_guarded_name(part.as_os_str()))
}

/// Returns whether a file or a directory of this name is guarded.
pub fn is_guarded_name(name: &OsStr) -> bool {
    let name = folded(&name.to_string_lossy());
    GUARDED.contains(&name.as_str())
}

/// A name as the most lenient file system sees it: no case, nothing invisible, no dots or blanks at the end, no stream
/// after a colon.
fn folded(name: &str) -> String {
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    let visible = name.chars().filter(|letter| !is_invisible(*letter));
    // Up and down again: some letters have the same capital and differ when small (`ſ` and `s`).
    visible.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || letter.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TRUST-6: a guarded name is recognised in any spelling that a file system may take for it.
    #[test]
    fn names_are_guarded_whatever_their_case() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".git.",
            ".git ",
            ".g\u{200c}it",
            ".claude",
            ".CLAUDE",
            ".cairn",
            ".husky",
            ".hus\u{212a}y",
            ".v\u{17f}code",
            ".VSCode",
            ".envrc",
            ".EnvRC",
            ".mcp.json",
            ".MCP.json",
            ".gitmodules",
            ".git::$INDEX_ALLOCATION",
        ] {
            assert!(is_guarded_name(OsStr::new(name)), "{name:?}");
        }
        for name in ["git", ".gitignore", ".github", "claude", "mcp.json", ".env", "", "..."] {
            assert!(!is_guarded_name(OsStr::new(name)), "{name:?}");
        }
    }
}
