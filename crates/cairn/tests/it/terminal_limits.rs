//! What a session may cost: a reply that is very long, and a session in which nothing happens.

use crate::skipped::{is_full, skipped};
use crate::stage::Stage;
use crate::terminal::Terminal;

/// Clock ticks of the processor that a process has used so far.
fn work(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<u64> = after_name.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect();
    fields.get(11).copied().unwrap_or_default() + fields.get(12).copied().unwrap_or_default()
}

/// A reply of 10 MB costs as much at its end as at its beginning: counted in bytes sent to the terminal for each
/// megabyte of it, and in what the processor did for them.
#[test]
fn a_very_long_reply_does_not_slow_down_as_it_grows() {
    const PARTS: usize = 10;
    let sentence = "Stone upon stone, the path is marked for those who come after. ";
    let megabyte = sentence.repeat(1_000_000 / sentence.len());
    let parts: String = (1..=PARTS).map(|part| format!("{{{{ megabyte }}}} milestone{part}x ")).collect();
    let script = format!("[vars]\nmegabyte = '{megabyte}'\n[[rule]]\nsay = '{parts}'\noutput_tokens = 100\n");
    let stage = Stage::new(&script);
    let mut terminal = Terminal::start(&stage);
    let process = terminal.process();
    terminal.say("go");
    let mut written = 0;
    // What was written and worked when each part of the reply had been seen.
    let mut marks = vec![(0, work(process))];
    for part in 1..=PARTS {
        terminal.skip_to(&format!("milestone{part}x"), |bytes| written += bytes.len());
        marks.push((written, work(process)));
    }
    let cost = |part: usize| (marks[part].0 - marks[part - 1].0, marks[part].1 - marks[part - 1].1);
    let (first, last) = (cost(1), cost(PARTS));
    assert!(last.0 < 2 * first.0, "bytes and ticks for the first and the last megabyte: {first:?} {last:?}");
    assert!(last.1 < 3 * first.1 + 20, "bytes and ticks for the first and the last megabyte: {first:?} {last:?}");
    assert!(first.0 < 3_000_000, "bytes for a megabyte: {}", first.0);
}

/// An idle session sleeps. Full only: it watches for a second.
#[test]
fn an_idle_session_does_not_wake_up() {
    if !is_full() {
        return skipped("./test full runs it");
    }
    let stage = Stage::new("[[rule]]\nsay = 'Hello.'");
    let mut terminal = Terminal::start(&stage);
    terminal.say("hi");
    terminal.rests("Hello.");
    let process = terminal.process();
    let switches = || {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
        let count = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:").map(str::trim));
            line.and_then(|number| number.parse::<u64>().ok()).unwrap_or_default()
        };
        tasks.map(count).sum::<u64>()
    };
    // The turn's last tasks settle first.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let before = switches();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let woken = switches().saturating_sub(before); // threads that ended take theirs along
    assert!(woken < 5, "woke up {woken} times in a second");
}
