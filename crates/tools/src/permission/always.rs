//! Rules to offer as "always": they cover what a person means, and no more.
//!
//! For a command there is one rule for each part that is not allowed yet: its subcommand (`git commit:*`, `cargo
//! test:*`, `npm run build:*`) if the program has such, else exactly this command. Never anything that runs its
//! arguments (interpreters, shells, wrappers), never a guarded path, never everything; and only if the rules together
//! with the existing ones really allow the call. Edits get no rules: a session accepts them by its mode.

use std::path::{Component, Path};

use super::command::{JudgedCommand, allowable};
use super::mode::{Situation, decide};
use super::protected_paths::is_guarded_name;
use super::shell::is_harmless;
use super::{Places, Rule, Rules};
use crate::subject::{Access, Subject};
use shell::{Field, SimpleCommand};

/// Programs that run their arguments.
const RUNS_OTHERS: &str = "bash sh zsh dash ksh fish csh tcsh python python2 python3 perl ruby node nodejs deno php lua Rscript java \
    osascript pwsh tclsh awk gawk mawk sed ed ex vi vim nvim emacs env sudo doas su xargs eval exec source . command builtin \
    nohup nice timeout stdbuf time setsid watch strace ltrace parallel chroot unshare nsenter flock script expect ssh find fd \
    npx bunx uvx pipx busybox systemd-run at batch crontab gdb lldb tmux screen make ninja cmake";

/// Programs with subcommands, and those subcommands that run their arguments.
const SUBCOMMANDS: [(&str, &str); 21] = [
    ("git", "config submodule bisect filter-branch rebase difftool mergetool grep"),
    ("cargo", "run"),
    ("go", "run generate tool"),
    ("npm", "exec x explore"),
    ("pnpm", "exec dlx"),
    ("yarn", "exec dlx node"),
    ("bun", "x run exec"),
    ("pip", ""),
    ("pip3", ""),
    ("gem", "exec"),
    ("brew", ""),
    ("docker", "run exec compose"),
    ("podman", "run exec"),
    ("kubectl", "exec run debug"),
    ("terraform", "console"),
    ("gh", "api alias extension"),
    ("rustup", "run"),
    ("dotnet", "run exec script"),
    ("poetry", "run shell"),
    ("uv", "run tool x"),
    ("bundle", "exec"),
];

/// Programs with a subcommand before the one that matters: `npm run build`.
const RUNNERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// Longest command for which an exact rule is offered.
const LONGEST: usize = 200;

/// The rules that would allow a call from now on, as text and parsed; empty if "always" cannot be offered.
pub fn always(situation: &Situation<'_>, access: Access, tool: &str, subject: &Subject) -> Vec<(String, Rule)> {
    let texts = match (access, subject) {
        (Access::Changes, Subject::Command(text)) => commands(situation, tool, text),
        (Access::ReadOnly, Subject::Path { real, .. }) => folder(situation, real).map(|folder| vec![folder]),
        (Access::Network, Subject::Name(name)) => Some(vec![format!("{tool}({name})")]),
        // One tool of a server: more than that is everything.
        (_, Subject::Whole) if tool.strip_prefix("mcp__").is_some_and(|rest| rest.contains("__")) => {
            Some(vec![tool.to_owned()])
        }
        _ => None,
    };
    let places = Places {
        directory: situation.directory.to_owned(),
        settings: situation.directory.to_owned(),
        home: situation.home.map(Path::to_owned),
        file: None,
    };
    let mut offered: Vec<(String, Rule)> = Vec::new();
    for text in texts.unwrap_or_default() {
        let Ok(rule) = Rule::parse(&text, &places) else { return Vec::new() };
        if !offered.iter().any(|(known, _)| *known == text) {
            offered.push((text, rule));
        }
    }
    let mut rules: Rules = situation.rules.clone();
    rules.allow.extend(offered.iter().map(|(_, rule)| rule.clone()));
    let then = Situation { rules: &rules, ..*situation };
    if decide(&then, access, tool, subject).allows() { offered } else { Vec::new() }
}

/// A rule for each part of a command that needs one.
fn commands(situation: &Situation<'_>, tool: &str, text: &str) -> Option<Vec<String>> {
    let command = JudgedCommand::new(text);
    let allow: Vec<&Rule> = situation.rules.allow.iter().filter(|rule| rule.covers(tool)).collect();
    let mut rules = Vec::new();
    for part in command.parts() {
        let text = allowable(part);
        let allowed = text.as_ref().is_some_and(|text| allow.iter().any(|rule| rule.matches_part(text)));
        if allowed || is_harmless(part, situation) {
            continue;
        }
        rules.push(format!("{tool}({})", meant(part, &text?)?));
    }
    Some(rules)
}

/// The rule that a person means who always wants such a command.
fn meant(part: &SimpleCommand, text: &str) -> Option<String> {
    let words = part.words.iter().map(Field::text).collect::<Option<Vec<_>>>()?;
    let (name, rest) = words.split_first()?;
    let guarded = |word: &&str| {
        let pieces = word.split(['/', '=', '@', ':']);
        pieces.map(std::ffi::OsStr::new).any(is_guarded_name)
    };
    if runs_others(name) || words.iter().any(guarded) {
        return None;
    }
    if let Some((_, refused)) = SUBCOMMANDS.iter().find(|(known, _)| known == name) {
        let verb = rest.first().filter(|verb| is_plain(verb))?;
        if RUNNERS.contains(name) && *verb == "run" {
            let script = rest.get(1).filter(|script| is_plain(script))?;
            return prefix(&[name, verb, script], text);
        }
        if refused.split_whitespace().any(|refused| refused == *verb) {
            return None;
        }
        return prefix(&[name, verb], text);
    }
    // A `*` in a rule is not the shell's.
    let exact = text.len() <= LONGEST && !text.contains(['*', '\n']) && !text.ends_with(":*");
    exact.then(|| text.to_owned())
}

/// A prefix rule of these words, if the command begins with them as written.
fn prefix(words: &[&str], text: &str) -> Option<String> {
    let prefix = words.join(" ");
    let begins = text.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    begins.then(|| format!("{prefix}:*"))
}

fn is_plain(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_:.".contains(letter))
        && !word.ends_with(':')
}

/// Returns whether a program runs its arguments, by whatever path and version it is called.
pub fn runs_others(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    RUNS_OTHERS.split_whitespace().any(|known| known == name || known == bare)
}

/// The folder of a file outside, if a rule may name it: not the root, not the home or a folder above it.
fn folder(situation: &Situation<'_>, file: &Path) -> Option<String> {
    let folder = if file.is_dir() { file } else { file.parent()? };
    let deep = folder.components().filter(|part| matches!(part, Component::Normal(_))).count() >= 2;
    let above = |other: &Path| other.starts_with(folder);
    // What is hidden in the home holds keys more often than notes.
    let below = situation.home.and_then(|home| folder.strip_prefix(home).ok());
    let hidden = below.is_some_and(|below| below.iter().any(|part| part.to_string_lossy().starts_with('.')));
    let wide = situation.home.is_some_and(above) || situation.directories.iter().any(|directory| above(directory));
    (deep && !wide && !hidden).then(|| format!("Read(/{}/**)", folder.display()))
}
