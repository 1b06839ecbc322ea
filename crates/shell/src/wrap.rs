//! Commands that run another: which one, as far as that is known.

use crate::field::Field;
use crate::readers::is_version_query;

/// The command that another runs.
pub(crate) enum WrappedCommand {
    /// None.
    No,
    /// This command, with these variables set. `plainly`: only a few plain words stand before it.
    Runs { command: Vec<Field>, variables: Vec<(String, Field)>, plainly: bool },
    /// This text, as a shell script.
    Script(String),
    /// Perhaps one of these; nothing more is known.
    Perhaps { why: &'static str, commands: Vec<Vec<Field>> },
    /// Something unknown.
    Something(&'static str),
}

/// Wrappers, their options that take a value, and the number of words before the command.
const WRAPPERS: &[(&str, &str, usize)] = &[
    ("timeout", "-k -s", 1),
    ("gtimeout", "-k -s", 1),
    ("nice", "-n", 0),
    ("ionice", "-c -n", 0),
    ("stdbuf", "-i -o -e", 0),
    ("env", "-u -C", 0),
    ("xargs", "-I -n -L -P -d -s -E -a", 0),
    ("time", "", 0),
    ("nohup", "", 0),
    ("builtin", "", 0),
    ("command", "", 0),
];

/// Wrappers about which nothing more is known.
const OTHERS: &str = "sudo doas setsid exec watch strace ltrace parallel chroot unshare su script flock runuser pkexec nsenter bwrap \
    firejail chrt taskset systemd-run rtk npx busybox caffeinate coproc ssh pipenv direnv mise rlwrap unbuffer setpriv prlimit \
    setarch linux32 linux64 i386 x86_64 uname26 ssh-agent gdb lldb";

/// Limit on the words behind an unknown wrapper that are taken for a command.
const GUESSES: usize = 8;

/// True if a program is known to run others, or is the system's loader, which runs any.
fn runs_others(name: &str) -> bool {
    OTHERS.split_whitespace().any(|known| known == name) || name.starts_with("ld-linux") || name.starts_with("ld.so")
}

/// Looks for the command that another runs.
pub(crate) fn unwrap(name: &str, arguments: &[Field]) -> WrappedCommand {
    if is_version_query(arguments) {
        return WrappedCommand::No;
    }
    match name {
        "eval" => match arguments.iter().map(Field::text).collect::<Option<Vec<_>>>() {
            Some(words) => WrappedCommand::Script(words.join(" ")),
            None => WrappedCommand::Something("eval of unknown text"),
        },
        "bash" | "sh" | "dash" | "zsh" | "ksh" => shell(name, arguments),
        name if runs_others(name) => perhaps("a wrapper", arguments),
        _ => match WRAPPERS.iter().find(|(known, ..)| *known == name) {
            Some((_, values, skipped)) => runs(name, arguments, values, *skipped),
            None => WrappedCommand::No,
        },
    }
}

/// Finds the command behind options and, for `env`, variables.
fn runs(name: &str, arguments: &[Field], values: &str, skipped: usize) -> WrappedCommand {
    let (mut rest, mut variables, mut plainly) = (arguments, Vec::new(), true);
    let mut skipped = skipped;
    let mut placeholder = None;
    while let Some((field, behind)) = rest.split_first() {
        let text = field.beginning();
        if name == "command" && matches!(text, "-v" | "-V") {
            return WrappedCommand::No;
        }
        let takes_word = values.split_whitespace().any(|option| option == text);
        if name == "env" && (text.starts_with("-S") || text.starts_with("--split")) {
            return perhaps("env with an unknown option", arguments);
        }
        if field.is_option() || name == "env" && text == "-" {
            plainly &= name == "nice" && text == "-n";
            if text == "-I" {
                placeholder = behind.first().and_then(Field::text);
            }
            rest = behind.get(usize::from(takes_word)..).unwrap_or_default();
        } else if let Some((variable, value)) = text.split_once('=').filter(|_| name == "env") {
            let value = if field.text().is_some() { Field::Known(value.to_owned()) } else { Field::unknown() };
            variables.push((variable.to_owned(), value));
            rest = behind;
        } else if skipped > 0 {
            skipped -= 1;
            plainly &= text.bytes().all(|byte| byte.is_ascii_digit() || b".smhd".contains(&byte));
            rest = behind;
        } else {
            break;
        }
    }
    let mut command = rest.to_vec();
    if name == "xargs" {
        plainly = false;
        match placeholder {
            Some(placeholder) => {
                for field in command.iter_mut().filter(|field| field.beginning().contains(placeholder)) {
                    let before = field.beginning().split(placeholder).next().unwrap_or_default();
                    *field = Field::Unknown(before.to_owned());
                }
            }
            None if !command.is_empty() => command.push(Field::unknown()),
            None => {}
        }
    }
    if command.is_empty() { WrappedCommand::No } else { WrappedCommand::Runs { command, variables, plainly } }
}

/// The words in which the command may begin.
fn perhaps(why: &'static str, arguments: &[Field]) -> WrappedCommand {
    let starts = (0..arguments.len().min(GUESSES)).filter(|at| !arguments[*at].is_option());
    WrappedCommand::Perhaps { why, commands: starts.map(|at| arguments[at..].to_vec()).collect() }
}

/// `bash -c '…'`: the script is walked through like any other.
fn shell(name: &str, arguments: &[Field]) -> WrappedCommand {
    /// Syntax that other shells read differently from bash.
    const DIFFERS: [&str; 9] = ["$'", "[[", "&>", "|&", "<<", "<(", ">(", "{", "time"];
    let mut rest = arguments;
    let mut command = false;
    while let Some(flags) = rest.first().and_then(Field::text).and_then(|text| text.strip_prefix('-')) {
        if !flags.chars().all(|letter| "ceux".contains(letter)) {
            return perhaps("a shell with an unknown option", arguments);
        }
        command |= flags.contains('c');
        rest = &rest[1..];
    }
    let same = |script: &str| {
        name == "bash" || matches!(name, "sh" | "dash") && !DIFFERS.iter().any(|sign| script.contains(sign))
    };
    match (command, rest) {
        (true, [script]) => match script.text() {
            Some(script) if same(script) => WrappedCommand::Script(script.to_owned()),
            Some(script) => {
                WrappedCommand::Perhaps { why: "another shell", commands: vec![vec![Field::Known(script.to_owned())]] }
            }
            None => WrappedCommand::Something("a shell that runs unknown text"),
        },
        (true, _) => perhaps("a shell with arguments", arguments),
        (false, _) => WrappedCommand::Something("a shell that runs a file, or what it reads"),
    }
}
