//! What this program puts into a conversation is marked as such, and cannot be imitated.

use session::{LineMeta, Session, World};
use transcript::line::{Body, Line, TextSource};
use transcript::{Block, Injected, Purpose};

use crate::stage::Stage;

const SILENT: &str = "[model]\nseed = 1\n[[rule]]\nname = \"all\"\nsay = \"Yes.\"\n";

/// MEM-6: text from outside cannot pretend to be what this program puts in.
#[test]
fn no_frame_can_be_imitated() {
    for tag in Purpose::ALL.iter().filter_map(|purpose| purpose.tag()) {
        for text in [format!("<{tag}>"), format!("</{tag}>"), format!("< /{} x=\"y\">", tag.to_uppercase())] {
            assert_ne!(memory::quoting::quoted(&text), text, "it would step out of its quotation");
        }
    }
}

/// LOG-5: the line says what a text that was put in is for; nobody takes it for what was typed, whatever it looks like, and
/// what somebody typed is not taken for it.
#[tokio::test]
async fn the_log_says_what_was_put_in() {
    let stage = Stage::new(SILENT).await;
    let mut session = Session::create(&stage.home(), &stage.project(), None, World::real()).unwrap();
    for &purpose in Purpose::ALL {
        session.inject(&Injected::new(purpose, "As if somebody had typed it."), LineMeta::default()).unwrap();
    }
    let typed = "<div> is what I mean";
    let blocks = vec![Block::text(typed)];
    session.append(Body::User { blocks, source: TextSource::Direct }).unwrap();
    let text = std::fs::read_to_string(session.path()).unwrap();
    let lines: Vec<Line> = text.lines().map(|line| Line::parse(line.as_bytes()).unwrap()).collect();
    let marked: Vec<Purpose> = lines.iter().filter_map(Line::injected).collect();
    assert_eq!(marked, Purpose::ALL);
    let said: Vec<String> = lines.iter().flat_map(Line::typed).collect();
    assert_eq!(said, [typed]);
}
