//! Commands that run another: which one, as far as it can be told.

use super::field::{Count, Field, Source};
use super::options::{Options, Order, Others};

/// What a command runs.
pub(super) enum Wrapped {
    /// It runs no other.
    No,
    /// It runs this, and adds nothing to it: with these variables set.
    Runs { command: Vec<Field>, variables: Vec<(String, Field)> },
    /// It runs this text as a shell does.
    Script(String),
    /// It may run this, but more than that is not known; the words in which the command may begin.
    Perhaps { why: &'static str, commands: Vec<Vec<Field>> },
    /// It runs something, and what is not known.
    Something(&'static str),
}

const TIMEOUT: (&str, &str) = ("k:s:v", "kill-after= signal= foreground preserve-status verbose");
const NICE: (&str, &str) = ("n:#", "adjustment=");
const STDBUF: (&str, &str) = ("i:o:e:", "input= output= error=");
const IONICE: (&str, &str) = ("c:n:t", "class= classdata= ignore");
const ENV: (&str, &str) = ("i0u:v", "ignore-environment null unset= debug");
const NONE: (&str, &str) = ("", "");
const XARGS: (&str, &str) = (
    "0rtxn:L:P:I:d:s:E:",
    "null no-run-if-empty verbose exit max-args= max-lines= max-procs= replace= delimiter= max-chars=",
);

/// How many words behind a wrapper that is not understood are taken for a command.
const GUESSES: usize = 8;

/// Looks for the command that another runs. `input` is where its standard input comes from.
pub(super) fn unwrap(name: &str, arguments: &[Field], input: &Source) -> Wrapped {
    let read = |(short, long), skipped| {
        let given = Options { short, long, others: Others::Harmful, order: Order::First }.read(arguments);
        given.map(|given| given.operands.get(skipped..).unwrap_or_default().to_vec())
    };
    let plain = |list, skipped| match read(list, skipped) {
        Ok(command) if command.is_empty() => Wrapped::No,
        Ok(command) => Wrapped::Runs { command, variables: Vec::new() },
        Err(_) => perhaps("a wrapper with an option that is not known", arguments),
    };
    match name {
        "timeout" | "gtimeout" => plain(TIMEOUT, 1),
        "nice" => plain(NICE, 0),
        "stdbuf" => plain(STDBUF, 0),
        "ionice" => plain(IONICE, 0),
        "nohup" | "builtin" => plain(NONE, 0),
        "command" => match arguments.first().and_then(Field::text) {
            Some("-v" | "-V") => Wrapped::No,
            _ => plain(("p", ""), 0),
        },
        // As a word behind a wrapper; in front of a pipeline the grammar takes it away.
        "time" => plain(("p", ""), 0),
        "env" => env(read(ENV, 0), arguments),
        "xargs" => xargs(arguments, input),
        "eval" => match arguments.iter().map(Field::text).collect::<Option<Vec<_>>>() {
            Some(words) => Wrapped::Script(words.join(" ")),
            None => Wrapped::Something("eval of what is not known"),
        },
        "bash" | "sh" | "dash" | "zsh" | "ksh" => shell(name, arguments),
        "sudo" | "doas" | "setsid" | "exec" | "watch" | "strace" | "ltrace" | "parallel" | "chroot" | "unshare"
        | "su" | "script" | "flock" | "runuser" | "pkexec" | "nsenter" | "bwrap" | "firejail" | "chrt" | "taskset"
        | "systemd-run" | "rtk" | "npx" | "busybox" | "caffeinate" | "coproc" | "ssh" | "pipenv" | "direnv"
        | "mise" | "rlwrap" | "unbuffer" => perhaps("a wrapper", arguments),
        _ => Wrapped::No,
    }
}

/// The words in which the command may begin.
fn perhaps(why: &'static str, arguments: &[Field]) -> Wrapped {
    let starts = (0..arguments.len().min(GUESSES)).filter(|at| !arguments[*at].beginning().starts_with('-'));
    Wrapped::Perhaps { why, commands: starts.map(|at| arguments[at..].to_vec()).collect() }
}

fn env(read: Result<Vec<Field>, String>, arguments: &[Field]) -> Wrapped {
    let Ok(operands) = read else { return perhaps("env with an option that is not known", arguments) };
    let mut variables = Vec::new();
    for (at, field) in operands.iter().enumerate() {
        match field.beginning().split_once('=') {
            Some((name, value)) => {
                let value = match field {
                    Field::Known(_) => Field::Known(value.to_owned()),
                    _ => Field::unknown(Count::One, Source::Anywhere),
                };
                variables.push((name.to_owned(), value));
            }
            None if field.text() == Some("-") => {}
            None => return Wrapped::Runs { command: operands[at..].to_vec(), variables },
        }
    }
    Wrapped::No
}

fn xargs(arguments: &[Field], input: &Source) -> Wrapped {
    let options = Options { short: XARGS.0, long: XARGS.1, others: Others::Harmful, order: Order::First };
    let Ok(given) = options.read(arguments) else {
        return perhaps("xargs with an option that is not known", arguments);
    };
    let mut command = given.operands.clone();
    if command.is_empty() {
        command.push(Field::Known("echo".into()));
    }
    let placeholder = given.values(&["I", "replace"]).next();
    match placeholder.map(Field::text) {
        None => command.push(Field::unknown(Count::Any, input.clone())),
        Some(Some(placeholder)) if !placeholder.is_empty() => {
            for field in &mut command {
                let Some((before, after)) = field.text().and_then(|text| text.split_once(placeholder)) else {
                    continue;
                };
                let whole = before.is_empty() && after.is_empty();
                let source = if whole { input.clone() } else { Source::Anywhere };
                *field = Field::Unknown { prefix: before.to_owned(), count: Count::One, source };
            }
        }
        Some(_) => return perhaps("xargs with a placeholder that is not known", arguments),
    }
    Wrapped::Runs { command, variables: Vec::new() }
}

/// `bash -c '…'`: the script is looked at as any other.
fn shell(name: &str, arguments: &[Field]) -> Wrapped {
    /// What other shells read in another way than bash.
    const DIFFERS: [&str; 9] = ["$'", "[[", "&>", "|&", "<<", "<(", ">(", "{", "time"];
    let mut rest = arguments;
    let mut command = false;
    while let Some(flags) = rest.first().and_then(Field::text).and_then(|text| text.strip_prefix('-')) {
        if !flags.chars().all(|letter| "celuxo".contains(letter)) || flags.contains('o') || flags.contains('l') {
            return perhaps("a shell with an option that is not known", arguments);
        }
        command |= flags.contains('c');
        rest = &rest[1..];
    }
    match (command, rest) {
        (true, [script]) => match script.text() {
            Some(script)
                if name == "bash"
                    || matches!(name, "sh" | "dash") && !DIFFERS.iter().any(|sign| script.contains(sign)) =>
            {
                Wrapped::Script(script.to_owned())
            }
            Some(script) => {
                Wrapped::Perhaps { why: "another shell", commands: vec![vec![Field::Known(script.to_owned())]] }
            }
            None => Wrapped::Something("a shell that runs what is not known"),
        },
        (true, _) => perhaps("a shell with arguments", arguments),
        (false, _) => Wrapped::Something("a shell that runs a file, or what it reads"),
    }
}
