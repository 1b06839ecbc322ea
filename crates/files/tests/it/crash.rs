//! The log in a process that dies, or whose disk is full.
//!
//! The writers are this test binary itself, started again with one test selected and an order in the environment.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use files::{Error, LineEnding, Lines, Log, Text};

/// What a child is to do: the name of the variable that tells it.
const ORDER: &str = "FILES_TEST_LOG";

/// How often a writer is killed.
const KILLS: u64 = 200;

fn child(test: &str, path: &Path, round: u64) -> Command {
    // A program that meets its file size limit is killed, unless it ignores the signal; what is ignored is inherited.
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "child"]).arg(std::env::current_exe().unwrap());
    command.args([&format!("it::crash::{test}"), "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ORDER, format!("{round} {}", path.display())).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn order() -> Option<(u64, String)> {
    let order = std::env::var(ORDER).ok()?;
    let (round, path) = order.split_once(' ').unwrap();
    Some((round.parse().unwrap(), path.to_owned()))
}

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

/// What a writer appends as its `n`th line: the whole line follows from its beginning.
fn line(round: u64, n: u64) -> Vec<u8> {
    let fill = Numbers(round * 1_000 + n).next(200_000);
    let letter = b'a' + u8::try_from((round + n) % 26).unwrap();
    let mut line = format!("{round}.{n}|").into_bytes();
    line.resize(line.len() + usize::try_from(fill).unwrap(), letter);
    line.extend_from_slice(b"|end");
    line
}

/// Appends until it is killed and says so after each durable line. Without an order it has nothing to do.
#[test]
fn writer() {
    let Some((round, path)) = order() else { return };
    let mut log = Log::open(path, "a writer about to be killed").unwrap();
    for n in 0.. {
        log.append(&line(round, n)).unwrap();
        println!("\nacknowledged {n}");
    }
}

/// LOG-7: no line that was acknowledged is lost, and none is glued to another, whenever the writer is killed.
#[test]
fn two_hundred_killed_writers_lose_nothing_they_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.jsonl");
    let mut numbers = Numbers(7);
    let mut acknowledged = HashSet::new();
    for round in 0..KILLS {
        let wanted = numbers.next(6);
        let mut writer = child("writer", &path, round).spawn().unwrap();
        let mut seen = 0;
        let mut said = BufReader::new(writer.stdout.take().unwrap()).lines();
        while seen <= wanted {
            let said = said.next().expect("it writes until it is killed").unwrap();
            if let Some(n) = said.strip_prefix("acknowledged ") {
                acknowledged.insert((round, n.parse::<u64>().unwrap()));
                seen += 1;
            }
        }
        writer.kill().unwrap();
        // What it had said before it died counts as well.
        for said in said.map_while(Result::ok) {
            if let Some(n) = said.strip_prefix("acknowledged ") {
                acknowledged.insert((round, n.parse::<u64>().unwrap()));
            }
        }
        writer.wait().unwrap();
    }

    let mut lines = Lines::open(&path).unwrap();
    while let Some(found) = lines.next().unwrap() {
        let Text::Whole(text) = found.text else { panic!("no line is that long") };
        let Some((round, n)) = text.split(|byte| *byte == b'|').next().and_then(id) else {
            assert!(text.len() < 20, "a line torn in its id is short");
            continue;
        };
        let whole = line(round, n);
        if text == whole && found.ending == LineEnding::Newline {
            acknowledged.remove(&(round, n));
        } else {
            assert!(whole.starts_with(text), "{round}.{n} is glued to something at {}", found.offset);
        }
    }
    assert!(acknowledged.is_empty(), "lost: {acknowledged:?}");
}

fn id(text: &[u8]) -> Option<(u64, u64)> {
    let (round, n) = std::str::from_utf8(text).ok()?.split_once('.')?;
    Some((round.parse().ok()?, n.parse().ok()?))
}

/// Meets its file size limit in the middle of a line, then goes on without it.
#[test]
fn writer_on_a_full_disk() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let Some((_, path)) = order() else { return };
    let mut log = Log::open(path, "a writer on a full disk").unwrap();
    log.append(b"fits\n").unwrap();
    let unlimited = getrlimit(Resource::Fsize);
    let mut small = getrlimit(Resource::Fsize);
    small.current = Some(10);
    setrlimit(Resource::Fsize, small).unwrap();
    assert!(matches!(log.append(b"does not fit\n").unwrap_err(), Error::Full { .. }));
    assert!(matches!(log.append(b"nor this\n").unwrap_err(), Error::Full { .. }));
    setrlimit(Resource::Fsize, unlimited).unwrap();
    log.append(b"fits again\n").unwrap();
    println!("\nsurvived");
}

/// LOG-7: a full disk acknowledges nothing, and once there is room again no half line is glued to a good one.
#[test]
fn a_full_disk_acknowledges_nothing_and_glues_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.jsonl");
    let output = child("writer_on_a_full_disk", &path, 0).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nsurvived"), "{output:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "fits\ndoes \nfits again\n");
}
