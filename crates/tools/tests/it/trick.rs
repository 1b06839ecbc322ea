//! Trying to trick a prefix rule, with bash itself as the judge.
//!
//! Commands are put together from pieces that a shell acts on. Whatever `Bash(true:*)` allows is given to a real bash in
//! which `pwn` leaves a file: if the directory is not empty afterwards, something other than `true` has run.

use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tools::Subject;
use tools::permission::{Places, Rule, RuleVerdict, Rules};

/// How many commands are tried. Most are refused outright, so most cost nothing.
const TRIED: u32 = 6_000;

fn commands() -> impl Strategy<Value = String> {
    // Those a careful reader may let pass, in many combinations…
    let plain = [
        " ",
        "true ",
        ";true ",
        "\ntrue ",
        "&&true ",
        "|true ",
        "pwn",
        " pwn",
        "\npwn",
        ";pwn ",
        "'",
        "\"",
        " '",
        " \"",
        "' ",
        "\" ",
        "\\",
        "\\'",
        "\\\"",
        "\\\\",
        " #",
        " #'",
        " #\"",
        "#",
        " 2>&1",
        " >/dev/null",
        " &>/dev/null",
        " x=",
        "!",
        "*",
        "~",
        "[",
        "]",
        "\t",
        "\u{a0}",
        "-c ",
    ];
    // …and those that should be refused wherever they stand.
    let sharp = [
        "&",
        "\\\n",
        "$",
        "$(",
        "${",
        "$'",
        "`",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        " >x",
        "<<E",
        "\nE\n",
        "\r",
        "2>&1",
        ">/dev/nullx",
    ];
    let piece = prop_oneof![
        20 => proptest::sample::select(plain.to_vec()),
        1 => proptest::sample::select(sharp.to_vec()),
    ];
    proptest::collection::vec(piece, 1..9).prop_map(|pieces| format!("true {}", pieces.concat()))
}

/// TOOL-2: what a prefix rule allows, runs nothing else.
#[test]
fn nothing_that_a_prefix_rule_allows_runs_another_command() {
    let places = Places { directory: "/".into(), settings: "/".into(), home: None, file: None };
    let allow = vec![Rule::parse("Bash(true:*)", &places).unwrap()];
    let rules = Rules { allow, ..Rules::default() };
    let directory = tempfile::tempdir().unwrap();
    let mut runner = TestRunner::new(Config { cases: TRIED, failure_persistence: None, ..Config::default() });
    let judged = std::cell::Cell::new(0);
    let result = runner.run(&commands(), |command| {
        if rules.decide("Bash", &Subject::Command(command.clone())) != RuleVerdict::Allow || !command.contains("pwn") {
            return Ok(());
        }
        judged.set(judged.get() + 1);
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(format!("PATH=/nowhere; pwn() {{ : >pwned; }}\n{command}")).current_dir(directory.path());
        bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        bash.status().unwrap();
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
        left.iter().for_each(|file| std::fs::remove_file(file.path()).unwrap());
        prop_assert!(left.is_empty(), "{:?} ran something else", command);
        Ok(())
    });
    result.unwrap();
    assert!(judged.get() > 50, "only {} commands reached the judge", judged.get());
}
