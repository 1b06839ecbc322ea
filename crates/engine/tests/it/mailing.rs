//! Mailboxes: whatever is killed when, each message enters the recipient's log once.

use std::collections::HashSet;

use jiff::Timestamp;
use mail::mailbox::{LEAD, MailError, Mailbox, Message, names};
use proptest::prelude::*;
use serde_json::{Value, json};

fn message(from: &str, number: usize) -> Message {
    Message::new(format!("{from}-{number}"), from, format!("number {number}"), Timestamp::UNIX_EPOCH)
}

/// What happens in one step, and where it is cut short.
#[derive(Debug, Clone)]
enum Step {
    /// Somebody sends the next message, as often as it was killed before it knew that it had.
    Send { from: usize, times: usize },
    /// The recipient writes so many of what waits into its log, and is killed before it marks them, or not.
    Deliver { most: usize, marks: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let send = (0..3usize, 1..3usize).prop_map(|(from, times)| Step::Send { from, times });
    let deliver = (0..6usize, any::<bool>()).prop_map(|(most, marks)| Step::Deliver { most, marks });
    prop::collection::vec(prop_oneof![3 => send, 1 => deliver], 0..40)
}

fn deliver(mailbox: &Mailbox, log: &mut Vec<Message>, most: usize, marks: bool) {
    for message in mailbox.waiting().unwrap().into_iter().take(most) {
        if !log.iter().any(|known| known.id == message.id) {
            log.push(message);
        }
    }
    if marks {
        mailbox.delivered(&log.iter().map(|message| message.id.clone()).collect()).unwrap();
    }
}

proptest! {
    // Each step is a write that waits for the disk.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    /// MSG-1: killed at any step of either side, each id enters the recipient's log exactly once, in each sender's order;
    /// and the file holds what waits and a bounded number of others.
    #[test]
    fn every_message_is_delivered_once_whoever_is_killed(steps in steps()) {
        let root = tempfile::tempdir().unwrap();
        let mailbox = Mailbox::create(root.path(), "worker").unwrap();
        let senders = ["one", "two", LEAD];
        let (mut sent, mut log) = ([0usize; 3], Vec::new());
        for step in steps {
            match step {
                Step::Send { from, times } => {
                    let message = message(senders[from], sent[from]);
                    let theirs = Mailbox::of(root.path(), "worker").unwrap();
                    for _ in 0..times {
                        theirs.send(&message).unwrap();
                    }
                    sent[from] += 1;
                }
                Step::Deliver { most, marks } => deliver(&mailbox, &mut log, most, marks),
            }
            let file: Vec<Value> = serde_json::from_slice(&std::fs::read(root.path().join("worker.json")).unwrap()).unwrap();
            prop_assert!(file.iter().filter(|letter| letter["read"] == true).count() <= 50);
        }
        deliver(&mailbox, &mut log, usize::MAX, true);
        prop_assert!(mailbox.waiting().unwrap().is_empty());
        for (from, sent) in senders.iter().zip(sent) {
            let heard: Vec<&str> = log.iter().filter(|message| message.from == *from).map(|message| &*message.id).collect();
            let expected: Vec<String> = (0..sent).map(|number| format!("{from}-{number}")).collect();
            prop_assert_eq!(heard, expected);
        }
    }
}

/// MSG-1: who is to end hears of it first, then of what the lead says.
#[test]
fn an_end_is_heard_first_then_the_lead() {
    let root = tempfile::tempdir().unwrap();
    let mailbox = Mailbox::create(root.path(), "worker").unwrap();
    let mut end = message("other", 2);
    end.text = json!({"type": "shutdown_request", "requestId": "r"}).to_string();
    for message in [message("other", 1), message(LEAD, 1), end] {
        mailbox.send(&message).unwrap();
    }
    let ids: Vec<String> = mailbox.waiting().unwrap().into_iter().map(|message| message.id).collect();
    assert_eq!(ids, ["other-2", "team-lead-1", "other-1"]);
}

/// MSG-1: what another program wrote is read, marked, and otherwise left as it is.
#[test]
fn letters_of_others_are_read_and_keep_what_they_carry() {
    let root = tempfile::tempdir().unwrap();
    let theirs = json!([{"from": "a", "text": "hello", "timestamp": "2026-01-01T00:00:00.000Z", "read": false, "color": "blue"}]);
    std::fs::write(root.path().join("worker.json"), theirs.to_string()).unwrap();
    let mailbox = Mailbox::of(root.path(), "worker").unwrap();
    let waiting = mailbox.waiting().unwrap();
    assert_eq!((waiting.len(), waiting[0].text.as_str()), (1, "hello"));
    assert_eq!(mailbox.waiting().unwrap(), waiting, "its id is the same at every look");
    mailbox.delivered(&HashSet::from([waiting[0].id.clone()])).unwrap();
    assert!(mailbox.waiting().unwrap().is_empty());
    let file: Value = serde_json::from_slice(&std::fs::read(root.path().join("worker.json")).unwrap()).unwrap();
    assert_eq!(file[0]["color"], "blue");
}

/// MSG-1: what waits is bounded in bytes as well, so that a mailbox can always be read; what was delivered makes room again.
#[test]
fn a_mailbox_never_grows_beyond_what_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    let mailbox = Mailbox::create(root.path(), "worker").unwrap();
    let long = |number: usize| Message { text: "\u{1}".repeat(100_000), ..message("a", number) };
    let sent = (0..100).take_while(|&number| mailbox.send(&long(number)).is_ok()).count();
    assert!((2..100).contains(&sent), "{sent}");
    assert!(matches!(mailbox.send(&long(sent)), Err(MailError::Full(..))));
    let waiting = mailbox.waiting().unwrap();
    assert_eq!(waiting.len(), sent);
    mailbox.delivered(&waiting.into_iter().map(|message| message.id).collect()).unwrap();
    mailbox.send(&message("a", sent)).unwrap();
    assert_eq!(mailbox.waiting().unwrap().len(), 1);
}

/// MSG-1: a recipient that is not there is named, with those that are; a name is no path; a broken file is left alone.
#[test]
fn what_cannot_be_sent_is_said() {
    let root = tempfile::tempdir().unwrap();
    Mailbox::create(root.path(), "worker").unwrap();
    let error = Mailbox::of(root.path(), "walker").unwrap_err().to_string();
    assert_eq!(error, r#"there is no "walker" here; known are worker"#);
    for name in ["", "..", "a/b", "a.json", "ä", &"a".repeat(65)] {
        assert!(matches!(Mailbox::create(root.path(), name), Err(MailError::Name(_))), "{name}");
    }
    std::fs::write(root.path().join("torn.json"), "[{").unwrap();
    let torn = Mailbox::of(root.path(), "torn").unwrap();
    assert!(matches!(torn.send(&message("a", 1)), Err(MailError::Broken { .. })));
    assert_eq!(std::fs::read(root.path().join("torn.json")).unwrap(), b"[{");
    let mailbox = Mailbox::of(root.path(), "worker").unwrap();
    let mut long = message("a", 1);
    long.text = "x".repeat(200_000);
    assert!(matches!(mailbox.send(&long), Err(MailError::Long(200_000))));
    let full: Vec<Value> =
        (0..1_000).map(|number| json!({"from": "a", "text": "x", "id": number.to_string()})).collect();
    std::fs::write(root.path().join("worker.json"), serde_json::to_vec(&full).unwrap()).unwrap();
    assert!(matches!(mailbox.send(&message("a", 1_000)), Err(MailError::Full(1_000, _))));
    assert_eq!(names(root.path()).unwrap(), ["torn", "worker"]);
}

/// MSG-1: what an append reads and writes is what waits and a bounded number of what was delivered, however long the history
/// is: the file has the same number of bytes after sixty messages and after two hundred.
#[test]
fn an_append_costs_what_waits_and_not_the_history() {
    let root = tempfile::tempdir().unwrap();
    let mailbox = Mailbox::create(root.path(), "worker").unwrap();
    let message = |number: usize| Message {
        text: "x".repeat(500),
        ..Message::new(format!("a-{number:06}"), "a", "", Timestamp::UNIX_EPOCH)
    };
    let mut bytes = Vec::new();
    for number in 0..200 {
        mailbox.send(&message(number)).unwrap();
        bytes.push(std::fs::metadata(mailbox.path()).unwrap().len());
        mailbox.delivered(&HashSet::from([format!("a-{number:06}")])).unwrap();
    }
    assert_eq!(bytes[60], bytes[199], "one waits, fifty were delivered");
    assert!(bytes[199] < 51 * 1_000, "{}", bytes[199]);
    let kept = mailbox.all().unwrap();
    assert_eq!((kept.len(), kept.last().unwrap().0.id.as_str()), (50, "a-000199"), "the newest are kept");
}
