//! Commands that certainly only read: plain words, a short list of programs, and the options that people use.
//!
//! These run unasked where the kernel cannot confine them, and beside commands that a rule allows. So the check must
//! hold by itself, for any spelling. It makes no assumption about the values of options: every word that begins with a
//! dash has to be an option from the list, wherever it is, and every other word may be a path and is resolved as
//! one by the caller. An option from the list is harmless whether the next word is its value or not.

use crate::field::Field;
use crate::finding::FilesRead;
use crate::wrap::WrappedCommand;

/// Words allowed besides options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    Any,
    None,
    /// One at most: a second would be written to.
    One,
    /// Only words that begin with a plus.
    Plus,
}

/// A program or a subcommand: its names, the files it reads, its operands, letters and long options.
struct PlainProgram(&'static str, FilesRead, Operands, &'static str, &'static [&'static str]);

use FilesRead::{Files, Names, Nothing, Trees};
use Operands::{Any, None as Zero, One, Plus};

const DIFF: &str = "stat shortstat numstat summary name-only name-status no-color color no-patch patch unified cached staged word-diff \
    ignore-all-space ignore-space-change ignore-blank-lines diff-filter no-renames find-renames minimal patience histogram \
    function-context check compact-summary exit-code quiet no-ext-diff no-textconv";

const LOG: &str = "oneline graph all decorate no-decorate since until after before author committer grep merges no-merges reverse follow \
    first-parent pretty format abbrev-commit date max-count skip branches tags remotes topo-order date-order left-right count no-walk";

#[rustfmt::skip]
const PROGRAMS: &[PlainProgram] = &[
    PlainProgram("cat tac rev", Files, Any, "AbeEnsTuv", &["number number-nonblank show-all squeeze-blank"]),
    PlainProgram("head tail", Files, Any, "cnqv", &["lines bytes quiet"]),
    PlainProgram("wc", Files, Any, "clmwL", &["lines words bytes chars"]),
    PlainProgram("nl", Files, Any, "ban", &[]),
    PlainProgram("cut", Files, Any, "bcdfs", &["delimiter fields bytes characters complement output-delimiter only-delimited"]),
    PlainProgram("sort", Files, Any, "bdfghiMnRrsuVkt", &["key field-separator reverse numeric-sort unique human-numeric-sort version-sort ignore-case"]),
    PlainProgram("uniq", Files, One, "cdiu", &["count repeated unique ignore-case"]),
    PlainProgram("comm", Files, Any, "123", &[]),
    PlainProgram("paste fold", Files, Any, "dsw", &["delimiters serial width"]),
    PlainProgram("tr", Nothing, Any, "cCdst", &["complement delete squeeze-repeats"]),
    PlainProgram("diff cmp", Files, Any, "abBiqsuwyU", &["unified brief side-by-side color ignore-all-space ignore-case"]),
    PlainProgram("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum", Files, Any, "b", &[]),
    PlainProgram("od hexdump", Files, Any, "cCvxAtN", &[]),
    PlainProgram("ls dir", Names, Any, "aAbBcCdfFghiklmnNopqQrRsStuUvxX1", &["all almost-all human-readable recursive reverse size directory color time-style group-directories-first full-time inode"]),
    PlainProgram("stat", Names, Any, "cf", &["format printf"]),
    PlainProgram("file", Files, Any, "bi", &["brief mime-type mime"]),
    PlainProgram("du", Names, Any, "abcdhkmsS", &["human-readable summarize max-depth all bytes total exclude apparent-size"]),
    PlainProgram("df", Nothing, Any, "hHiklPT", &["human-readable"]),
    PlainProgram("tree", Names, Any, "adfpsughDFirtcSLPI", &["dirsfirst noreport prune"]),
    PlainProgram("readlink realpath", Names, Any, "efmnqs", &["relative-to canonicalize"]),
    PlainProgram("grep egrep fgrep", Trees, Any, "EFGPivwxclLnoqsbHhABCmreaIy", &["ignore-case line-number recursive files-with-matches files-without-match count \
        only-matching no-filename with-filename max-count after-context before-context context extended-regexp fixed-strings perl-regexp word-regexp \
        invert-match quiet no-messages text regexp include exclude exclude-dir color"]),
    PlainProgram("rg", Trees, Any, "eivwxFSsclnNHIgtTABCmoUPuq", &["ignore-case line-number no-line-number files files-with-matches files-without-match count \
        count-matches only-matching type type-not glob iglob hidden no-ignore max-depth max-count context after-context before-context fixed-strings \
        word-regexp smart-case heading no-heading json stats sort color no-filename with-filename multiline invert-match regexp"]),
    PlainProgram("which whoami logname nproc arch groups users uptime true false : pwd id", Nothing, Any, "aunGgP", &[]),
    PlainProgram("uname", Nothing, Zero, "asnrvmpio", &["all"]),
    PlainProgram("hostname", Nothing, Zero, "s", &[]),
    PlainProgram("date", Nothing, Plus, "uRI", &["utc iso-8601 rfc-3339"]),
    PlainProgram("echo", Nothing, Any, "neE", &[]),
    PlainProgram("basename dirname seq sleep", Nothing, Any, "asw", &[]),
    PlainProgram("free", Nothing, Any, "bkmght", &[]),
    PlainProgram("type", Nothing, Any, "at", &[]),
    PlainProgram("cd", Names, One, "LP", &[]),
    PlainProgram("exit return break continue", Nothing, Any, "", &[]),
];

#[rustfmt::skip]
const GIT: &[PlainProgram] = &[
    PlainProgram("status", Names, Any, "sbuz", &["short branch porcelain untracked-files ignored show-stash long"]),
    PlainProgram("log whatchanged", Names, Any, "n", &[LOG]),
    PlainProgram("log show whatchanged", Trees, Any, "npuwbMCSGLU", &[LOG, DIFF]),
    PlainProgram("diff", Trees, Any, "puwbMCSGURz", &[DIFF]),
    PlainProgram("blame", Trees, Any, "wLesln", &["date porcelain line-porcelain since"]),
    PlainProgram("grep", Trees, Any, "nilcEFGPwvhHeI", &["line-number ignore-case files-with-matches count extended-regexp fixed-strings word-regexp heading break max-depth"]),
    PlainProgram("rev-parse", Names, Any, "q", &["show-toplevel abbrev-ref short verify git-dir is-inside-work-tree show-prefix show-cdup symbolic-full-name"]),
    PlainProgram("ls-files", Names, Any, "cdmosz", &["cached others modified deleted exclude-standard stage full-name error-unmatch"]),
    PlainProgram("ls-tree", Names, Any, "rdtlz", &["name-only full-tree long"]),
    PlainProgram("cat-file", Trees, Any, "ptse", &[]),
    PlainProgram("describe", Names, Any, "", &["tags always long abbrev exact-match all"]),
    PlainProgram("shortlog", Names, Any, "sne", &["since until"]),
    PlainProgram("rev-list", Names, Any, "n", &["count all max-count since until"]),
    PlainProgram("merge-base", Names, Any, "", &["is-ancestor fork-point"]),
    PlainProgram("branch", Names, Zero, "avr", &["all remotes verbose show-current no-color"]),
    PlainProgram("tag", Names, Zero, "", &["no-color"]),
    PlainProgram("remote", Names, Zero, "v", &["verbose"]),
    PlainProgram("count-objects version", Names, Zero, "vH", &[]),
];

/// Subcommands of git that only list if this word follows.
const GIT_LISTS: &[(&str, &str)] = &[
    ("branch", "--list"),
    ("tag", "--list"),
    ("tag", "-l"),
    ("stash", "list"),
    ("worktree", "list"),
    ("config", "--get"),
];

/// Operators of `test` and `[`. Others evaluate their arguments.
const TESTS: &str =
    "-b -c -d -e -f -g -h -k -n -o -p -r -s -t -u -w -x -z -G -L -N -O -S -a -eq -ne -lt -le -gt -ge -nt -ot -ef";

/// Punctuation allowed in a cluster of letters, beside digits: `-d,`, `-t:`, `-k1,1`.
const SIGNS: &str = ",:;|=+._%@#";

/// Files read by a command that certainly only reads; none if it may do something else.
pub(crate) fn reads(name: &str, arguments: &[Field], wrapped: &WrappedCommand) -> Option<FilesRead> {
    let plain = |field: &Field| match field {
        Field::Plain(text) => Some(text.clone()),
        _ => None,
    };
    let words: Vec<String> = arguments.iter().map(plain).collect::<Option<_>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match wrapped {
        WrappedCommand::Runs { plainly, .. } => return plainly.then_some(Nothing),
        WrappedCommand::Script(_) => return (words.len() == 2 && words[0] == "-c").then_some(Nothing),
        WrappedCommand::No => {}
        WrappedCommand::Perhaps { .. } | WrappedCommand::Something(_) => return None,
    }
    match (name, words.as_slice()) {
        ("printf", [format, ..]) => is_plain_format(format).then_some(Nothing),
        ("command", ["-v", ..]) => words[1..].iter().all(|word| !word.starts_with('-')).then_some(Nothing),
        ("sed", ["-n", script, files @ ..]) => {
            let prints = script
                .strip_suffix('p')
                .is_some_and(|lines| lines.bytes().all(|byte| byte.is_ascii_digit() || b",$".contains(&byte)));
            (prints && files.iter().all(|file| !file.starts_with('-'))).then_some(Files)
        }
        ("find", words) => find(words),
        ("test" | "[", words) => {
            words.iter().all(|word| !is_option(word) || TESTS.split(' ').any(|known| known == *word)).then_some(Names)
        }
        ("ps", []) | ("ps", ["aux" | "-ef" | "-e" | "-A" | "ax"]) => Some(Nothing),
        ("set", _) => is_plain_set(arguments).then_some(Nothing),
        ("git", words) => git(words),
        ("which" | "type" | "echo" | "cd", [word, ..]) if *word == "-" => None,
        (name, words) => listed(PROGRAMS, name, words),
    }
}

/// Looks a program up: the first entry that has all the options.
fn listed(list: &[PlainProgram], name: &str, words: &[&str]) -> Option<FilesRead> {
    let mut entries = list.iter().filter(|PlainProgram(names, ..)| names.split(' ').any(|known| known == name));
    let known = entries.find(|PlainProgram(_, _, operands, letters, long)| {
        let long = |option: &str| long.iter().flat_map(|names| names.split_whitespace()).any(|known| known == option);
        let others = || words.iter().filter(|word| !is_option(word));
        let fits = match operands {
            Any => true,
            Zero => others().count() == 0,
            One => others().count() <= 1,
            Plus => others().all(|word| word.starts_with('+')),
        };
        fits && words.iter().filter(|word| is_option(word)).all(|word| is_listed(word, letters, long))
    })?;
    Some(known.1)
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word != "--"
}

/// True if an option is listed: a cluster of letters, perhaps with a number after them, or a long name.
fn is_listed(word: &str, letters: &str, long: impl Fn(&str) -> bool) -> bool {
    if let Some(option) = word.strip_prefix("--") {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        // What git makes of these in a format calls another program.
        return long(name) && !value.contains("%G") && !value.contains("%(");
    }
    let mut rest = word[1..].chars();
    rest.all(|letter| letter.is_ascii_digit() || letters.contains(letter) || SIGNS.contains(letter))
}

/// Files read by `find`, with tests of names, kinds, sizes and dates.
fn find(words: &[&str]) -> Option<FilesRead> {
    const KNOWN: &str = "-name -iname -path -ipath -wholename -type -maxdepth -mindepth -size -mtime -mmin -newer -empty -print -print0 \
        -prune -not -o -a -or -and -perm -user -depth -xdev";
    let sizes = |word: &str| word[1..].bytes().all(|byte| byte.is_ascii_digit());
    let known =
        |word: &&str| !word.starts_with('-') || sizes(word) || KNOWN.split_whitespace().any(|known| known == *word);
    words.iter().all(known).then_some(Names)
}

fn git(words: &[&str]) -> Option<FilesRead> {
    let rest = words.strip_prefix(&["--no-pager"]).unwrap_or(words);
    let rest = match rest {
        ["-C", directory, more @ ..] if !directory.starts_with('-') => more,
        rest => rest,
    };
    let [name, words @ ..] = rest else { return None };
    let signs = |word: &&str| word.contains("%G") || word.contains("%(");
    if words.iter().any(signs) {
        return None;
    }
    if let [word, more @ ..] = words
        && GIT_LISTS.contains(&(*name, *word))
    {
        return more.iter().all(|word| !word.starts_with('-')).then_some(Names);
    }
    listed(GIT, name, words)
}

/// True if a format of printf only prints: it sets no variable, and is no option.
pub(crate) fn is_plain_format(format: &str) -> bool {
    let mut rest = format;
    while let Some((_, behind)) = rest.split_once('%') {
        let sign = behind.trim_start_matches(|sign: char| sign.is_ascii_digit() || "-+ #.*'".contains(sign));
        let Some(letter) = sign.chars().next().filter(|letter| "sdiuxXofeEgGcbq%".contains(*letter)) else {
            return false;
        };
        rest = &sign[letter.len_utf8()..];
    }
    !format.starts_with('-')
}

/// True if `set` only makes the shell stricter or prints its commands.
pub(crate) fn is_plain_set(arguments: &[Field]) -> bool {
    arguments.iter().all(|field| match field.text() {
        Some("pipefail" | "errexit" | "nounset" | "xtrace") => true,
        Some(flags) => flags
            .strip_prefix(['-', '+'])
            .is_some_and(|letters| !letters.is_empty() && letters.chars().all(|letter| "euxo".contains(letter))),
        None => false,
    }) && !arguments.is_empty()
}
