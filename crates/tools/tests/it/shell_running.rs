//! What is judged to only look is run, with bash and the programs themselves as witnesses.

use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tools::shell::{Verdict, judge};

/// How many commands are tried. Most are not judged to only look, so most cost nothing.
const TRIED: u32 = 5_000;

/// The same commands every time: a hole that other ones would find is found by trying more, not by chance.
fn tried(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Pieces a shell acts on, with `pwn` as what must not be run.
pub(super) fn shellish() -> impl Strategy<Value = String> {
    #[rustfmt::skip]
    let plain = [
        " ", "echo ", "true ", ";echo ", "\necho ", "&&echo ", "|cat ", "pwn", " pwn", "\npwn", ";pwn ", "'", "\"",
        " '", " \"", "' ", "\" ", "\\", "\\'", "\\\"", "\\\\", " #", " #'", " #\"", "#", " 2>&1", " >/dev/null",
        " x=", "!", "*", "~", "[", "]", "\t", "a", "b", "$x", "${x}", "\"$x\"", "x=pwn ", "x=a;", "-c ", "echo $x",
        "{a,b}", "{", "}", "test -n ", "[ a = ", " ]", "[[ a == ", " ]]", "cat ", "printf %s ", "((", "))",
        "$((1+", "|", "&",
    ];
    #[rustfmt::skip]
    let sharp = [
        "$(", ")", "$(echo ", "`", "`echo ", "(", "( ", " )", "{ ", "; }", "<(", "<(echo ", "<<E\n", "\nE\n",
        "<<'E'\n", "<<-E\n", "\n\tE\n", "<<<", "${x:-", "${x:=", "${x%", "$'", "$'\\'", "$\"", "\\\n",
        "if true; then ", "; fi\n", "for i in a; do ", "; done\n", "while false; do ", "case a in a) ",
        ";; esac\n", "case a in (a) ", "f() { ", "function f { ", "time ", "! ", "coproc ", "eval ", "command ",
        "env ", "xargs ", "|xargs ", "bash -c '", "bash -c \"", "sh -c '", "timeout 1 ", "$x", "$((", "$(( x",
        "${ ", "${x[", "[[ -v ", "|&", "&>/dev/null", ">&2", "\r", "&& ", "|| ", "declare ", "read x\n", "<&0",
        "2>&1 ", "awk 'BEGIN{", "sed 's/a/", "select i in a; do ",
    ];
    let piece = prop_oneof![
        2 => proptest::sample::select(plain.to_vec()),
        1 => proptest::sample::select(sharp.to_vec()),
    ];
    proptest::collection::vec(piece, 1..10).prop_map(|pieces| format!("echo {}", pieces.concat()))
}

/// SEC-2: bash itself is the witness: what is judged to only look runs nothing else, whatever the quoting.
#[test]
fn nothing_that_is_judged_read_only_runs_another_command() {
    let directory = tempfile::tempdir().unwrap();
    let mut runner = tried(2 * TRIED);
    let judged = std::cell::Cell::new(0);
    let result = runner.run(&shellish(), |command| {
        if judge(&command).verdict != Verdict::ReadOnly || !command.contains("pwn") {
            return Ok(());
        }
        judged.set(judged.get() + 1);
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(format!("pwn() {{ : >pwned; }}; export -f pwn\n{command}")).current_dir(directory.path());
        bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        bash.status().unwrap();
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
        left.iter().for_each(|file| std::fs::remove_file(file.path()).unwrap());
        prop_assert!(left.is_empty(), "{:?} ran something else", command);
        Ok(())
    });
    result.unwrap();
    assert!(judged.get() > 100, "only {} commands reached bash", judged.get());
}

/// Arguments that make programs write, run or read something else, and those that do not, in any order.
fn with_arguments() -> impl Strategy<Value = String> {
    #[rustfmt::skip]
    let sed = [
        "s/a/b/", "s/a/b/w out", "s/a/id/e", "w out", "W out", "e touch out", "p", "1", "$", ",", "/x/", "\\%x%",
        "{", "}", ";", "\n", "!", " ", "n", "d", "a\\\n", "a text", "i\\", "c x", ":a", "ba", "r b.txt", "y/a/b/",
        "s/[/]/x/", "s/[]/]w out/x/", "s/[[:alpha:]/]/x/", "s/a\\/b/c/", "s,a,b,", "#", "q", "s/x/y/;", "g", "w",
        "e", "0~2", "s/a/[/w out/", "s/[^]/]//w out", "}w out", "s|a|b|w out", "sxaxbxw out",
    ];
    #[rustfmt::skip]
    let awk = [
        "{", "}", "print", " ", "$1", "> \"out\"", ">>\"out\"", "| \"sh\"", "\"touch out\" | getline",
        "system(\"touch out\")", "system (\"touch out\")", "\"", "/", "/x/", "(", ")", "if (1)", ";", "\n",
        "BEGIN", "END", "x++", "x", "1", "#", "~", "!", "a[1]", "printf(\"%s\", 1)", "printf", "for (",
        "while (0)", "return", "/[/]/", "/[]/]/", "\\", "\"a\\\"\"", "> $2", "-", "length", "else", ",", "getline",
        "close(\"x\")", "$(1)", "?", ":", "/a\\/b/", "/=/", "/= 2", "x /", "/ x", "in", "{print > \"out\"}",
        "{print}", "regex(", "/\"/", "/#/",
    ];
    let quoted = |name: &'static str, pieces: Vec<&'static str>, flags: Vec<&'static str>| {
        let script = proptest::collection::vec(proptest::sample::select(pieces), 1..7);
        (proptest::sample::select(flags), script)
            .prop_map(move |(flag, script)| format!("{name} {flag} '{}' a.txt", script.concat()))
    };
    #[rustfmt::skip]
    let words = [
        "-o", "-o out", "-oout", "--output=out", "-i", "-n", "-r", "-u", "-c", "-w", "-f", "-e", "-k1", "-t,",
        "--", "-", "a.txt", "b.txt", "out", "./out", "*", "?*", "-*", "./*", "-d", "-delete",
        "-exec touch out \\;", "-exec cat {} +", "-fprint out", "-print", "-name '*'", "-type f", "-maxdepth 1",
        "--in-place", "--files0-from=a.txt", "-T.", "--compress-program=touch", "-S 10", "-l", "-s", "-x", "-p",
        "{a,out}", "$x", "\"$x\"", "-I{} touch {}", "-0", "-n1", "touch", "cat", "sort", "x=-o;", "| xargs",
        "| sort", "| tee out", "> out", "> /dev/null", "2>&1", "< a.txt", "-R", "-b", "-A", "-v", "-z", "-D", "-C",
        "-L", "-h", "--color=never", "'s/a/b/'", "-k *", "-f *", "-s $x", "-name *", "-name $x", "-n *",
        "-exec uniq {} +", "-exec xxd {} +",
    ];
    #[rustfmt::skip]
    let programs = [
        "cat", "head", "tail -n1", "wc", "nl", "cut -f1", "paste", "sort", "uniq", "tr a b", "od", "ls", "stat",
        "du", "df", "readlink", "grep x", "find .", "find", "diff", "cmp a.txt", "comm", "join", "fold", "fmt",
        "tac", "rev", "shuf", "base64", "sha256sum", "date", "env", "xargs", "timeout 1", "nice", "sed -n p",
        "sed", "strings", "file", "xxd", "tree", "rg x", "jq .", "column", "expand", "basename", "dirname",
        "seq 1", "echo", "printf", "test", "pr", "hexdump", "iconv", "for f in *; do cat \"$f\"", "tar tf",
        "getconf", "numfmt", "ps", "id", "uname", "git status", "git log", "git diff --no-index a.txt",
        "git branch", "git config", "env -u", "xargs -n", "uniq -f", "sort -k", "find . -name", "rg -e", "tree -I",
    ];
    let plain = (
        proptest::sample::select(programs.to_vec()),
        proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..5),
    )
        .prop_map(|(program, words)| {
            let end = if program.starts_with("for") { "; done" } else { "" };
            format!("{program} {}{end}", words.join(" "))
        });
    prop_oneof![
        quoted("sed", sed.to_vec(), vec!["", "-n", "-E", "-e p -e", "-s"]),
        quoted("awk", awk.to_vec(), vec!["", "-F,", "-v x=1"]),
        plain,
    ]
}

/// What lies in a directory, with contents.
fn tree(directory: &std::path::Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(directory).unwrap().flatten();
    files
        .map(|file| (file.file_name().to_string_lossy().into_owned(), std::fs::read(file.path()).unwrap_or_default()))
        .collect()
}

/// SEC-2: the programs themselves are the witnesses: what is judged to only look leaves every file as it was, whatever
/// the options and scripts, and also where files are named like options.
#[test]
fn nothing_that_is_judged_read_only_changes_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let files = [
        ("a.txt", "a x\n1 2\n[/]\n"),
        ("b.txt", "touch out\n"),
        ("-o", "x\n"),
        ("-i", "a\n"),
        ("w", "x\n"),
        ("--output=out", "x\n"),
        ("-delete", "x\n"),
        ("1", "x\n"),
    ];
    let restore = || {
        for file in std::fs::read_dir(directory.path()).unwrap().flatten() {
            let _ = std::fs::remove_file(file.path());
            let _ = std::fs::remove_dir_all(file.path());
        }
        files.iter().for_each(|(name, text)| std::fs::write(directory.path().join(name), text).unwrap());
    };
    restore();
    let before = tree(directory.path());
    let mut runner = tried(TRIED);
    let judged = std::cell::Cell::new(0);
    let result = runner.run(&with_arguments(), |command| {
        if judge(&command).verdict != Verdict::ReadOnly {
            return Ok(());
        }
        judged.set(judged.get() + 1);
        let mut bash = Command::new("timeout");
        bash.args(["2", "bash", "-c", &command]).current_dir(directory.path()).env("x", "-oout");
        bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        bash.status().unwrap();
        let after = tree(directory.path());
        if after != before {
            restore();
        }
        prop_assert!(after == before, "{:?} changed {:?}", command, after.keys().collect::<Vec<_>>());
        Ok(())
    });
    result.unwrap();
    assert!(judged.get() > 200, "only {} commands were run", judged.get());
}
