//! What is judged to only look is run, with bash and the programs themselves as witnesses.

use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use shell::{CommandEffect, judge};

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
        if judge(&command).verdict != CommandEffect::ReadOnly || !command.contains("pwn") {
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
