//! Text of a shell command that rules are matched against.
//!
//! There are two questions, each erring on its own safe side. For rules that allow: the simple commands it consists of,
//! each by itself, with nothing unknown in them. For rules that deny or ask: everything in it that could be run as a
//! command, without quotes and wrappers; it finds too much rather than too little, for a shell can spell any command in
//! endless ways. If something runs that cannot be named at all, that is reported.

use shell::{Field, Judgement, SimpleCommand};

/// Number of words behind a wrapper that may begin a command, if the text is not understood.
const GUESSES: usize = 8;

/// Words that may precede a command and run it.
const WRAPPERS: &str = "if then elif else while until do ! time { sudo env command builtin exec nohup nice xargs eval coproc doas setsid \
    timeout stdbuf ionice watch setpriv prlimit setarch linux32 linux64 i386 x86_64 uname26 ssh-agent gdb lldb strace ltrace chrt \
    taskset flock unshare nsenter chroot busybox shell";

/// Programs that run the texts they are given.
const INTERPRETERS: &str =
    "git sed gsed awk gawk mawk nawk gdb lldb perl python python3 ruby node php lua vim ex ed find make";

/// Options of git before its subcommand that take a value.
const GIT_VALUES: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// A parsed command.
#[derive(Debug)]
pub(super) struct JudgedCommand {
    pub(super) judgement: Judgement,
    /// Everything in it that could be run.
    candidates: Vec<String>,
}

impl JudgedCommand {
    pub(super) fn new(text: &str) -> Self {
        let judgement = shell::judge(text);
        let mut candidates = perhaps(text);
        for found in &judgement.found {
            candidates.extend(spellings(&found.words));
            candidates.extend(interpreted(&found.words));
        }
        Self { judgement, candidates }
    }

    /// Everything in it that could be run, as text.
    pub(super) fn candidates(&self) -> &[String] {
        &self.candidates
    }

    /// Reason why its effects are unknown, if they are.
    pub(super) fn opaque(&self) -> Option<&str> {
        let mut found = self.judgement.found.iter();
        found.find(|one| one.finding.opaque).map(|one| one.finding.reason.as_str())
    }

    /// The commands that it surely consists of.
    pub(super) fn parts(&self) -> impl Iterator<Item = &SimpleCommand> {
        self.judgement.found.iter().filter(|found| !found.guessed)
    }
}

/// The text that a rule must match to allow a part; `None` if no rule can, because it is unknown or something before it
/// changes its meaning.
pub(super) fn allowable(found: &SimpleCommand) -> Option<String> {
    let known = |field: &Field| !matches!(field, Field::Unknown(_));
    if matches!(found.words.first().and_then(Field::text), Some("<" | ">")) {
        return None; // a redirection is no command
    }
    if found.changed || found.preset || found.words.is_empty() || !found.words.iter().all(known) {
        return None;
    }
    match &found.text {
        Some(text) => Some(text.clone()),
        // Behind a wrapper there is no text of its own; words with blanks would run into one another.
        None => {
            let words = found.words.iter().map(Field::text).collect::<Option<Vec<_>>>()?;
            let plain = |word: &&str| {
                !word.is_empty() && !word.contains(|letter: char| letter.is_whitespace() || "'\"\\".contains(letter))
            };
            words.iter().all(plain).then(|| words.join(" "))
        }
    }
}

/// The spellings by which a rule may name a command: with its path and without, and git without the options before its
/// subcommand.
fn spellings(words: &[Field]) -> Vec<String> {
    let texts: Vec<&str> = words.iter().map(|field| field.text().unwrap_or("…")).collect();
    let Some((first, rest)) = texts.split_first() else { return Vec::new() };
    let name = first.rsplit('/').next().unwrap_or(first);
    let mut found = vec![texts.join(" ")];
    if name != *first {
        found.push(std::iter::once(name).chain(rest.iter().copied()).collect::<Vec<_>>().join(" "));
    }
    if name == "git" {
        let mut rest = rest;
        while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
            rest = &rest[if GIT_VALUES.contains(option) { 2 } else { 1 }.min(rest.len())..];
        }
        found.push(std::iter::once("git").chain(rest.iter().copied()).collect::<Vec<_>>().join(" "));
    }
    found
}

/// Commands that an interpreter may run from its texts: starting at every word in them.
fn interpreted(words: &[Field]) -> Vec<String> {
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let name = first.beginning().rsplit('/').next().unwrap_or_default();
    if !INTERPRETERS.split_whitespace().any(|known| known == name) {
        return Vec::new();
    }
    let texts = rest.iter().map(Field::beginning).filter(|text| text.contains([' ', '!', '(']));
    texts
        .flat_map(|text| {
            let text = text.replace(['!', '(', ')', '"', '\'', ';', '|'], " ");
            let words: Vec<&str> = text.split_whitespace().collect();
            (0..words.len().min(GUESSES)).map(|at| words[at..].join(" ")).collect::<Vec<_>>()
        })
        .collect()
}

/// Everything in a text that could be run as a command, and the text itself, without parsing it.
fn perhaps(command: &str) -> Vec<String> {
    let command = command.replace("\\\n", "");
    let mut found = vec![command.trim().to_owned()];
    for piece in command.split(['\n', ';', '|', '&', '(', ')', '`', '{', '}', '<', '>']) {
        // Once with quoted text as further commands (`bash -c 'rm x'`), once with the quotes simply gone (`r"m" x`).
        let quoted = piece.split(['\'', '"']).map(str::to_owned);
        let bare = piece.replace(['\'', '"', '\\'], "");
        for candidate in quoted.chain([bare]) {
            found.extend(unwrapped(&candidate.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The command as it stands, and behind each of the leading wrappers, options or assignments.
fn unwrapped(candidate: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = candidate.trim().trim_start_matches('$').trim_start();
    let mut wrapped = false;
    while !rest.is_empty() && found.len() < 2 * GUESSES {
        found.push(rest.to_owned());
        // `/bin/rm` is `rm`.
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let name = word.rsplit_once('/').map_or(word, |(_, name)| name);
        if name != word && !name.is_empty() {
            found.push(format!("{name} {after}").trim_end().to_owned());
        }
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        });
        if WRAPPERS.split_whitespace().any(|known| known == name)
            || name.starts_with("ld-linux")
            || name.starts_with("ld.so")
        {
            wrapped = true;
        } else if !is_assignment && !wrapped {
            break;
        }
        // Behind a wrapper any word may be the command: its options can take values.
        rest = after.trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TOOL-2: a denied command is found behind whatever runs it.
    #[test]
    fn whatever_could_run_is_found() {
        for command in [
            "rm -rf x",
            "ls; rm -rf x",
            "ls\nrm -rf x",
            "echo $(rm -rf x)",
            "echo `rm -rf x`",
            "(rm -rf x)",
            "{ rm -rf x; }",
            "if true; then rm -rf x; fi",
            "X=1 rm -rf x",
            "sudo -u root rm -rf x",
            "/bin/rm -rf x",
            "bash -c 'rm -rf x'",
            "r\"m\" -rf x",
            "r\\m -rf x",
            "ls|xargs -n 1 rm -rf x",
            "env -i A=b rm -rf x",
            "cat <(rm -rf x)",
            "rm  -rf\tx",
            "rm \\\n-rf x",
            "! rm -rf x",
            "timeout 5 rm -rf x",
            "timeout -k 3 --signal=KILL 5 rm -rf x",
            "stdbuf -oL rm -rf x",
            "nice -n 5 rm -rf x",
            "find . -exec rm -rf x \\;",
            "find . -name y -execdir rm -rf x {} +",
            "eval 'rm -rf x'",
            "eval \"rm -rf\" x",
            "bash -ec \"timeout 5 rm -rf x\"",
            "echo \"${y:-$(rm -rf x)}\"",
            "cat <<E\n$(rm -rf x)\nE",
            "for i in 1; do nice rm -rf x; done",
            "{rm,-rf,x}",
            "$'\\x72m' -rf x",
            "a=rm; $a -rf x",
            "command rm -rf x",
            "ls | xargs -I{} rm -rf x {}",
        ] {
            let seen = JudgedCommand::new(command);
            assert!(
                seen.candidates().iter().any(|found| found.starts_with("rm -rf x")),
                "{command:?}: {:?}",
                seen.candidates()
            );
        }
        for (command, spelled) in [
            ("git -C . push", "git push"),
            ("git -c a.b=c --no-pager push origin", "git push origin"),
            ("env git --git-dir x push", "git push"),
        ] {
            assert!(JudgedCommand::new(command).candidates().iter().any(|found| found == spelled), "{command}");
        }
    }

    /// TOOL-2: the output is proportional to the command's length, however it is built.
    #[test]
    fn the_cost_is_linear_in_the_length() {
        for piece in [
            "sudo ",
            "sudo -u a ",
            "a;",
            "'a' ",
            "x=1 ",
            "$(",
            "((",
            "{ ",
            "\"",
            "a\n",
            "if ",
            "git -C ",
            "/a ",
            "`a` ",
            "${x:-",
        ] {
            let cost = |length: usize| {
                let command = piece.repeat(length / piece.len());
                JudgedCommand::new(&command).candidates().iter().map(String::len).sum::<usize>().max(1)
            };
            let (short, long) = (cost(20_000), cost(200_000));
            assert!(long <= 11 * short.max(20_000), "{piece:?}: {short} for 20 KB, {long} for 200 KB");
            assert!(long <= 40 * 200_000, "{piece:?}: {long}");
        }
    }

    /// SEC-2: a command that is too long or too deep is reported as not understood.
    #[test]
    fn what_is_too_long_or_too_deep_is_not_named() {
        for command in
            ["ls ".repeat(10_000), "$(".repeat(200) + &")".repeat(200), "( ".repeat(40) + "ls" + &" )".repeat(40)]
        {
            assert!(JudgedCommand::new(&command).opaque().is_some());
        }
        assert_eq!(JudgedCommand::new("ls && git status").opaque(), None);
        assert!(JudgedCommand::new("$x y").opaque().is_some());
    }
}
