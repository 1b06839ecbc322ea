//! Variables that may be set without changing what programs or the shell do.
//!
//! A list of those that may, by name or by shape; `PATH`, `IFS`, `LD_PRELOAD`, `GIT_*` and all others are not in it.

use crate::field::Field;

/// True if a variable that was not set here may be printed: the shell's own, and those of the environment that name
/// places. Any other may hold a key.
pub fn ordinary_name(name: &str) -> bool {
    const ORDINARY: &str = "HOME PWD OLDPWD USER LOGNAME SHELL SHLVL LANG LANGUAGE TERM HOSTNAME TMPDIR UID EUID PPID GROUPS RANDOM SRANDOM \
        SECONDS EPOCHSECONDS LINENO BASH BASH_VERSION BASHPID BASH_SUBSHELL COLUMNS LINES OSTYPE HOSTTYPE MACHTYPE IFS PIPESTATUS \
        FUNCNAME REPLY OPTIND OPTARG EDITOR VISUAL PAGER DISPLAY CI TZ";
    let of_shell = !name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let place =
        ["PATH", "_HOME", "_DIR", "_VERSION", "_ROOT"].iter().any(|end| name.ends_with(end)) || name.starts_with("LC_");
    of_shell || place || ORDINARY.split_whitespace().any(|known| known == name)
}

/// True if a name is certainly used by nothing but the command itself.
pub(crate) fn harmless_name(name: &str) -> bool {
    const CAPITALS: &str = "FILE FILES DIR DIRS NAME NAMES COUNT TOTAL BASE SRC DEST OUT ROOT REPO TARGET PATTERN QUERY BRANCH COMMIT SHA REV \
        RESULT OUTPUT LINE ITEM KEY VALUE START END MODULE PKG";
    let small = name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    let taken = name.ends_with("_proxy") || matches!(name, "histchars" | "auto_resume");
    let single = name.len() == 1 && name != "_";
    (small && !taken && name != "_") || single || CAPITALS.split_whitespace().any(|known| known == name)
}

/// True if a variable may be set for a program of the table.
pub(crate) fn harmless_variable(name: &str, value: &Field) -> bool {
    harmless_name(name) || plain_variable(name, value)
}

/// True if a variable may be set for any program.
pub(crate) fn plain_variable(name: &str, value: &Field) -> bool {
    let Some(text) = value.text() else { return false };
    let plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-@,:+".contains(letter));
    match name {
        "LANG"
        | "LC_ALL"
        | "LC_CTYPE"
        | "LC_COLLATE"
        | "LC_MESSAGES"
        | "LC_NUMERIC"
        | "LC_TIME"
        | "NO_COLOR"
        | "CLICOLOR"
        | "FORCE_COLOR"
        | "COLUMNS"
        | "TERM"
        | "GIT_TERMINAL_PROMPT"
        | "RUST_BACKTRACE"
        | "CI" => plain,
        // With anything else git writes down what it saw.
        "GIT_OPTIONAL_LOCKS" => text == "0",
        "TZ" => plain && !text.starts_with(':'),
        "PAGER" | "GIT_PAGER" | "MANPAGER" => matches!(text, "cat" | ""),
        _ => false,
    }
}
