//! Judging shell commands by their text: a table, and laws.

use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tools::shell::{Verdict, judge};

/// Verdict, command and a part of the reason, with tabs between; `⏎` is a newline.
const TABLE: &str = include_str!("shell_commands.txt");

/// SEC-2: read only, writes or unknown, with the reason.
#[test]
fn commands_are_judged_as_the_table_says() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [verdict, command, reason] = fields[..] else { panic!("not three fields: {line}") };
        let judged = judge(&command.replace('⏎', "\n"));
        let expected = match verdict {
            "read_only" => Verdict::ReadOnly,
            "writes" => Verdict::Writes,
            "unknown" => Verdict::Unknown,
            other => panic!("no verdict: {other}"),
        };
        count += 1;
        if judged.verdict != expected || !judged.reason.contains(reason) {
            wrong.push(format!("{line}\n    is {:?}: {}", judged.verdict, judged.reason));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 400, "only {count} commands");
}

/// Pieces a shell acts on, with `pwn` as what must not be run.
fn shellish() -> impl Strategy<Value = String> {
    let plain = [
        " ",
        "echo ",
        "true ",
        ";echo ",
        "\necho ",
        "&&echo ",
        "|cat ",
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
        " x=",
        "!",
        "*",
        "~",
        "[",
        "]",
        "\t",
        "a",
        "b",
        "$x",
        "${x}",
        "\"$x\"",
        "x=pwn ",
        "x=a;",
        "-c ",
        "echo $x",
        "{a,b}",
        "{",
        "}",
        "test -n ",
        "[ a = ",
        " ]",
        "[[ a == ",
        " ]]",
        "cat ",
        "printf %s ",
        "((",
        "))",
        "$((1+",
        "|",
        "&",
    ];
    let sharp = [
        "$(",
        ")",
        "$(echo ",
        "`",
        "`echo ",
        "(",
        "( ",
        " )",
        "{ ",
        "; }",
        "<(",
        "<(echo ",
        "<<E\n",
        "\nE\n",
        "<<'E'\n",
        "<<-E\n",
        "\n\tE\n",
        "<<<",
        "${x:-",
        "${x:=",
        "${x%",
        "$'",
        "$'\\'",
        "$\"",
        "\\\n",
        "if true; then ",
        "; fi\n",
        "for i in a; do ",
        "; done\n",
        "while false; do ",
        "case a in a) ",
        ";; esac\n",
        "case a in (a) ",
        "f() { ",
        "function f { ",
        "time ",
        "! ",
        "coproc ",
        "eval ",
        "command ",
        "env ",
        "xargs ",
        "|xargs ",
        "bash -c '",
        "bash -c \"",
        "sh -c '",
        "timeout 1 ",
        "$x",
        "$((",
        "$(( x",
        "${ ",
        "${x[",
        "[[ -v ",
        "|&",
        "&>/dev/null",
        ">&2",
        "\r",
        "&& ",
        "|| ",
        "declare ",
        "read x\n",
        "<&0",
        "2>&1 ",
        "awk 'BEGIN{",
        "sed 's/a/",
        "select i in a; do ",
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
    let mut runner = TestRunner::new(Config { cases: 6_000, failure_persistence: None, ..Config::default() });
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// SEC-2: no text makes the judge panic, and the same text is judged the same.
    #[test]
    fn any_text_is_judged(command in prop_oneof![shellish(), any::<String>(), "[ -~]{0,60}"]) {
        let judged = judge(&command);
        prop_assert!(!judged.reason.is_empty());
        prop_assert_eq!(judged.verdict, judge(&command).verdict);
    }
}

/// SEC-2: nesting at the limit fits on a small stack and ends soon; beyond it nothing is taken apart.
#[test]
fn deep_nesting_is_bounded() {
    let judged = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(|| {
        for (open, close) in [
            ("$(", ")"),
            ("\"$(", ")\""),
            ("( ", " )"),
            ("{ ", "; }"),
            ("if true; then ", "; fi"),
            ("while false; do ", "; done"),
            ("for i in 1 2; do ", "; done"),
            ("echo ${x:-", "}"),
            ("case a in a) ", ";; esac"),
            ("echo $((", "))"),
            ("bash -c '", "'"),
            ("timeout 1 ", ""),
            ("eval ", ""),
            ("xargs ", ""),
            ("! ", ""),
            ("cat <(", ")"),
        ] {
            for depth in [1, 8, 31, 32, 33, 100, 2_000] {
                let _ = judge(&format!("{}echo{}", open.repeat(depth), close.repeat(depth)));
                let _ = judge(&open.repeat(depth));
            }
        }
    });
    judged.unwrap().join().unwrap();
}
