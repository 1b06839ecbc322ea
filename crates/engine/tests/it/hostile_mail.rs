//! What somebody puts by hand where messages lie, and what comes through a socket: nothing hangs, nothing is touched, and the
//! rest is heard.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::{Agent, Event};
use jiff::Timestamp;
use mail::mailbox::{MailError, Mailbox, Message};
use mail::{Mail, MessageOrigin, socket};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use crate::stage::Stage;

const HEARS: &str = r#"
    [[rule]]
    when = { visible = "the good one" }
    say = "Heard."
    [[rule]]
    say = "Nothing."
"#;

/// An agent with a mailbox of its team, and one for others whose file is made by `put`.
fn agent_with(stage: &Stage, put: impl FnOnce(&Path)) -> (Agent, Mailbox, std::path::PathBuf) {
    let folder = stage.project().join("../inboxes");
    let mail = Mail::default();
    mail.open(Mailbox::create(&folder, "others").unwrap(), MessageOrigin::Elsewhere);
    mail.open(Mailbox::create(&folder, "me").unwrap(), MessageOrigin::Team);
    let hostile = folder.join("others.json");
    fs::remove_file(&hostile).unwrap();
    put(&hostile);
    (stage.agent(None).with_mail(mail), Mailbox::of(&folder, "me").unwrap(), hostile)
}

fn good() -> Message {
    Message::new("good", "scout", "the good one", Timestamp::UNIX_EPOCH)
}

/// MSG-1: whatever lies in the place of a mailbox, what came by another way is heard, nothing hangs, the user is told, and what
/// lies there stays as it is.
#[tokio::test]
async fn whatever_lies_in_a_mailboxs_place_only_that_is_not_read() {
    type Put = fn(&Path);
    let places: [(&str, Put); 9] = [
        ("no JSON", |path| fs::write(path, "[{").unwrap()),
        ("no array", |path| fs::write(path, "{\"from\": \"a\"}").unwrap()),
        ("no objects", |path| fs::write(path, "[1, \"x\", null]").unwrap()),
        ("no text", |path| fs::write(path, [0xff_u8, 0xfe, 0, 1]).unwrap()),
        ("deep", |path| fs::write(path, "[".repeat(1_000_000)).unwrap()),
        ("a gigabyte", |path| fs::File::create(path).unwrap().set_len(1 << 30).unwrap()),
        ("a pipe", |path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("a folder", |path| fs::create_dir(path).unwrap()),
        ("a link out", |path| {
            let outside = path.with_file_name("../outside.json");
            fs::write(&outside, "[{\"from\": \"a\", \"text\": \"from outside\"}]").unwrap();
            symlink(outside, path).unwrap();
        }),
    ];
    for (what, put) in places {
        let stage = Stage::new(HEARS).await;
        let (mut agent, mine, hostile) = agent_with(&stage, put);
        mine.send(&good()).unwrap();
        let before = fs::symlink_metadata(&hostile).unwrap();
        let turn = agent.turn(Vec::new(), &CancellationToken::new()).await;
        assert_eq!(turn.text, "Heard.", "{what}");
        let quiet = agent.turn(Vec::new(), &CancellationToken::new()).await;
        assert_eq!(quiet.rounds, 0, "{what}");
        agent.turn(Vec::new(), &CancellationToken::new()).await;
        let events = stage.events.lock().unwrap();
        let told = events
            .iter()
            .filter(|event| matches!(event, Event::Warning(why) if why.contains("messages could not be read")));
        assert_eq!(told.count(), 1, "{what}: once is enough");
        let after = fs::symlink_metadata(&hostile).unwrap();
        assert_eq!(before.file_type(), after.file_type(), "{what}");
        assert_eq!(before.len(), after.len(), "{what}");
        assert!(what != "a pipe" || after.file_type().is_fifo());
        let others = Mailbox::of(hostile.parent().unwrap(), "others");
        assert!(others.and_then(|there| there.send(&good())).is_err(), "{what}");
    }
}

/// MSG-1: a letter that was written by hand is as bounded as any: its id, its sender, its text, what is shown of it and what is
/// asked about it.
#[tokio::test]
async fn a_letter_that_was_written_by_hand_is_bounded() {
    let stage = Stage::new(HEARS).await;
    let (mut agent, mine, _) = agent_with(&stage, |path| fs::write(path, "[]").unwrap());
    let letter = json!([{
        "id": "../".repeat(300_000), "from": "\u{1b}]0;x\u{7}a".repeat(100_000), "timestamp": "t".repeat(100_000),
        "text": format!("\u{1b}[2J the good one {}", "\u{202e}x".repeat(1_000_000)), "summary": "s".repeat(100_000),
    }]);
    fs::write(mine.path(), letter.to_string()).unwrap();
    let turn = agent.turn(Vec::new(), &CancellationToken::new()).await;
    assert_eq!(turn.text, "Heard.");
    let log = fs::read_to_string(agent.session().path()).unwrap();
    let line = log.lines().find(|line| line.contains("agent-message")).unwrap();
    assert!(line.len() < 200_000 && !line.contains("\\u001b"), "{}", line.len());
    let line: Value = serde_json::from_str(line).unwrap();
    let id = line["cairn"]["message"].as_str().unwrap();
    assert!(id.len() <= 64 && id.chars().all(|one| one.is_ascii_alphanumeric()), "{id}");
    let events = stage.events.lock().unwrap();
    let shown = events.iter().find_map(|event| match event {
        Event::MessageArrived { from, text } => Some(from.len() + text.len()),
        _ => None,
    });
    assert!(shown.unwrap() < 100_000);
    assert!(mine.waiting().unwrap().is_empty(), "it is marked by the id that it was given");
}

async fn received(mut peer: UnixStream, ours: UnixStream, bytes: Vec<u8>) -> (usize, String) {
    let taken = AtomicUsize::new(0);
    let receive = socket::receive(ours, socket::Patience::default(), |_| {
        taken.fetch_add(1, Ordering::Relaxed);
        Ok::<(), MailError>(())
    });
    let write = async {
        let _ = peer.write_all(&bytes).await; // the other side may hang up
        let _ = peer.shutdown().await;
        let mut answer = String::new();
        let _ = (&mut peer).take(10_000).read_to_string(&mut answer).await;
        answer
    };
    let (_, answer) = tokio::join!(receive, write);
    (taken.load(Ordering::Relaxed), answer)
}

/// MSG-1: a peer that sends what is no message is told so once and hung up on, however much it has to say.
#[tokio::test]
async fn a_peer_that_sends_no_messages_is_hung_up_on() {
    for bytes in [b"x".repeat(50_000_000), b"[]\n".repeat(100_000), b"{\"id\": 1}\n{}\n".to_vec()] {
        let (peer, ours) = UnixStream::pair().unwrap();
        let (taken, answer) = received(peer, ours, bytes).await;
        assert_eq!(taken, 0);
        assert!(answer.lines().count() <= 1, "{answer}");
    }
    let letter = json!({"id": "1", "from": "a", "text": "hi", "timestamp": ""}).to_string() + "\n";
    let (peer, ours) = UnixStream::pair().unwrap();
    let (taken, answer) = received(peer, ours, letter.repeat(3).into_bytes()).await;
    assert_eq!((taken, answer.as_str()), (3, "{}\n{}\n{}\n"), "one that does is answered each time");
}
