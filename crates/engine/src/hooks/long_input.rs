//! Tool inputs that are too long for an environment variable.
//!
//! The system limits the length of a variable, so `TOOL_INPUT` holds [`MARK`] in place of a long input; standard input
//! has all of it. A hook that judges a call by the variable would then judge nothing, and a call could be padded to get
//! past it. Such a hook counts as refusing. A hook that reads the variable is recognised by its text, and by that of
//! the scripts it names; scripts that those start are not examined.

use std::path::{Path, PathBuf};

use settings::hook_definitions::{HookEvent, Kind};

use super::run_hooks::HookContext;

/// Longest input in a variable: Linux allows 128 KiB for a variable with its name.
const LONGEST: usize = 100_000;
/// The variable.
const VARIABLE: &str = "TOOL_INPUT";
/// Placeholder for an input that is too long. It is not JSON.
const MARK: &str = "TOOL_INPUT is too long for a variable; read standard input";
/// Largest script that is examined, in bytes.
const SCRIPT_BYTES: u64 = 1_000_000;

/// Value of the variable.
pub(super) fn value(input: String) -> String {
    if input.len() <= LONGEST { input } else { MARK.to_owned() }
}

/// Reason to deny a call without running a hook of this kind; `None` if the hook can see the input.
pub(super) fn denial(kind: &Kind, hook_event: HookEvent, input: &str, context: &HookContext) -> Option<String> {
    let judges = matches!(hook_event, HookEvent::PreToolUse | HookEvent::PermissionRequest);
    let Kind::Command { command, args } = kind else { return None };
    if !judges || input.len() <= LONGEST {
        return None;
    }
    // Read in two ways, with what is quoted as part of a word and as a word.
    let unquoted = command.replace(['\'', '"'], "");
    let plain = unquoted.split(|letter: char| letter.is_whitespace() || ";|&()<>".contains(letter));
    let words = || plain.clone().chain(command.split(['\'', '"'])).chain(args.iter().flatten().map(String::as_str));
    let words = || words().filter(|word| !word.is_empty());
    let in_text = words().any(|word| word.contains(VARIABLE));
    let in_script = || words().any(|word| script(word, context).is_some_and(|path| names_variable(&path)));
    (in_text || in_script()).then(|| {
        format!(
            "the input has {} bytes, which is too long for {VARIABLE}, and this hook reads that; it can read its standard input instead",
            input.len()
        )
    })
}

/// The file that a word may name, with variables of hooks filled in.
fn script(word: &str, context: &HookContext) -> Option<PathBuf> {
    let project = context.project.to_string_lossy();
    let home = || context.variable.and_then(|read| read("HOME"));
    let word = word.replace("${CLAUDE_PROJECT_DIR}", &project).replace("$CLAUDE_PROJECT_DIR", &project);
    let below_home = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|start| word.strip_prefix(start));
    match below_home {
        Some(below) => Some(Path::new(&home()?).join(below)),
        None => Some(context.common.directory.join(word)),
    }
}

fn names_variable(path: &Path) -> bool {
    let variable = VARIABLE.as_bytes();
    files::read(path, SCRIPT_BYTES).is_ok_and(|file| file.bytes.windows(variable.len()).any(|part| part == variable))
}
