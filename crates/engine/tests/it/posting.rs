//! Processes that write to one another and are killed again and again.
//!
//! A worker is this test binary, started again with one test selected and an order in the environment. It is what a session
//! is: a log, mail, and mailboxes of others. What it has sent stands in its log after it was sent, so one that was killed
//! in between sends again what it may have sent, under the same id.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mail::mailbox::{MailError, Mailbox, Message};
use mail::{Mail, MessageOrigin};
use serde_json::{Value, json};
use session::{Fork, Home, Session, World};

use crate::skipped::is_full;

/// What a worker is to do: the name of the variable that tells it.
const ORDER: &str = "ENGINE_TEST_POST";
const WORKERS: u64 = 8;
/// How often each worker is killed.
const KILLS: u64 = 6;

/// How many messages each sends.
fn each() -> u64 {
    let full = is_full();
    if full { 1_250 } else { 50 }
}

/// A number that follows from another, and looks as if it did not.
fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn name(worker: u64) -> String {
    format!("worker-{worker}")
}

/// Who gets the `number`th message of a worker: anybody but itself.
fn to(worker: u64, number: u64) -> u64 {
    (worker + 1 + mixed(worker * 100_000 + number) % (WORKERS - 1)) % WORKERS
}

/// What a worker is to hear of another, in order.
fn expected(worker: u64, from: u64, each: u64) -> Vec<String> {
    (0..each).filter(|&number| to(from, number) == worker).map(|number| format!("{from}-{number}")).collect()
}

struct Worker {
    number: u64,
    each: u64,
    root: PathBuf,
    session: Session,
    mail: Mail,
    sent: u64,
}

impl Worker {
    fn new(number: u64, each: u64, root: &Path) -> Self {
        let (home, project) = (Home::at(root.join("config")), root.join("project"));
        let id = format!("00000000-0000-4000-8000-00000000000{number}");
        let session = match Session::resume(&home, &project, &id, Fork::No, World::real()) {
            Ok((session, _)) => session,
            Err(_) => Session::create(&home, &project, Some(&id), World::real()).unwrap(),
        };
        let lines = std::fs::read_to_string(session.path()).unwrap();
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let sent = lines.filter_map(|line| find(&line, "sent")?.as_u64()).max().unwrap_or_default();
        let mail = Mail::default();
        mail.open(Mailbox::create(&root.join("inboxes"), &name(number)).unwrap(), MessageOrigin::Team);
        mail.remember(&session);
        Self { number, each, root: root.to_owned(), session, mail, sent }
    }

    /// Sends the next one. Says whether it could.
    fn send(&mut self) -> bool {
        let (to, number) = (name(to(self.number, self.sent)), self.sent);
        let message = Message::new(
            format!("{}-{number}", self.number),
            name(self.number),
            format!("number {number}"),
            World::real().now(),
        );
        match Mailbox::of(&self.root.join("inboxes"), &to).and_then(|theirs| theirs.send(&message)) {
            Ok(()) => {}
            // It is not there yet, or was killed and has not come back.
            Err(MailError::Unknown { .. } | MailError::Full(..)) => return false,
            Err(error) => panic!("{error}"),
        }
        self.sent += 1;
        self.session.note(&json!({"kind": "test", "sent": self.sent})).unwrap();
        true
    }

    /// Takes what waits. Says how much.
    fn take(&mut self) -> usize {
        let waiting = self.mail.waiting().unwrap();
        for arrived in &waiting {
            self.mail.enter(&mut self.session, arrived).unwrap();
        }
        self.mail.mark().unwrap();
        waiting.len()
    }
}

/// A value under a name, wherever it is.
fn find<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(key).or_else(|| map.values().find_map(|value| find(value, key))),
        _ => None,
    }
}

/// Sends and hears until all is sent and heard. Without an order it has nothing to do.
#[test]
fn worker() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let [number, each, root] = order.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
    let mut worker = Worker::new(number.parse().unwrap(), each.parse().unwrap(), Path::new(root));
    let all = (0..WORKERS).filter(|&from| from != worker.number);
    let all: usize = all.map(|from| expected(worker.number, from, worker.each).len()).sum();
    let mut heard = heard(worker.session.path()).len();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    while worker.sent < worker.each || heard < all {
        let sent = worker.sent < worker.each && worker.send();
        let took = worker.take();
        heard += took;
        (0..usize::from(sent) + took).for_each(|_| println!("\nacted"));
        if !sent && took == 0 {
            // Somebody who is not there may come as well as a message may.
            runtime.block_on(async {
                let _ = tokio::time::timeout(std::time::Duration::from_millis(20), worker.mail.rings()).await;
            });
        }
    }
    println!("\nall done");
}

/// The messages in a session's file, in the order in which they entered it.
fn heard(path: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter_map(|line| Some(line.get("cairn")?.get("message")?.as_str()?.to_owned())).collect()
}

/// Runs a worker to its end, and kills it so often before that.
fn run(number: u64, each: u64, root: &Path) {
    for kill in 0..=KILLS {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["posting::worker", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(ORDER, format!("{number} {each} {}", root.display())).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        // At a different point each time: after so many acts, and then somewhere in the next.
        let wanted = if kill < KILLS { mixed(number * 1_000 + kill) % (each / KILLS + 1) + 1 } else { u64::MAX };
        let (mut acts, mut is_done) = (0, false);
        while acts < wanted {
            let Some(line) = said.next() else { break };
            acts += u64::from(line == "acted");
            is_done |= line == "all done";
        }
        if acts < wanted {
            assert!(child.wait().unwrap().success() && is_done, "worker {number} broke down");
            return;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// MSG-1: eight processes write to one another, and each is killed again and again: every message enters its recipient's log
/// once, in the order in which its sender sent it.
#[test]
fn eight_processes_that_are_killed_lose_no_message_and_hear_none_twice() {
    if std::env::var(ORDER).is_ok() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("project")).unwrap();
    let each = each();
    std::thread::scope(|scope| {
        for number in 0..WORKERS {
            let root = root.path();
            scope.spawn(move || run(number, each, root));
        }
    });
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.path().join("config/projects"))
        .unwrap()
        .flat_map(|project| std::fs::read_dir(project.unwrap().path()).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    assert_eq!(files.len(), usize::try_from(WORKERS).unwrap());
    for (number, file) in (0..).zip(&files) {
        let heard = heard(file);
        for from in (0..WORKERS).filter(|&from| from != number) {
            let of = format!("{from}-");
            let theirs: Vec<String> = heard.iter().filter(|id| id.starts_with(&of)).cloned().collect();
            assert_eq!(theirs, expected(number, from, each), "what worker {number} heard of {from}");
        }
        let waiting = Mailbox::of(&root.path().join("inboxes"), &name(number)).unwrap().all().unwrap();
        assert!(waiting.iter().all(|(_, delivered)| *delivered), "all is marked");
        assert!(waiting.len() <= 50, "a mailbox keeps a bounded number");
    }
}
