//! Judging shell commands by their text: a table, and laws.

use proptest::prelude::*;
use shell::{CommandEffect, judge};

use super::running::shellish;

/// Verdict, command and a part of the reason, with tabs between; `⏎` is a newline.
const TABLE: &str = include_str!("commands.txt");

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
            "read_only" => CommandEffect::ReadOnly,
            "confined" => CommandEffect::Confined,
            "writes" => CommandEffect::Writes,
            "unknown" => CommandEffect::Unknown,
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
                for command in [open.repeat(depth) + "echo" + &close.repeat(depth), open.repeat(depth)] {
                    let judged = judge(&command);
                    // A negation holds no command of its own.
                    let is_nested = depth > 32 && open != "! ";
                    assert!(
                        !is_nested || judged.verdict == CommandEffect::Unknown,
                        "{open}, {depth} times: {judged:?}"
                    );
                }
            }
        }
    });
    judged.unwrap().join().unwrap();
}
