use engine::run::TurnEnd;
use tokio_util::sync::CancellationToken;
use transcript::Block;
use transcript::line::{Body, TextSource};

use crate::stage::{Stage, say};

const LOOKING: &str = r#"
    [[rule]]
    name = "left out"
    when = { visible = "left out, too large" }
    say = "I see that it is left out."
"#;

/// REACT-1: a picture the provider finds too large is left out of the view, by a commit, and the request is sent again;
/// the user sees no error, and what was said before stays in the cache.
#[tokio::test]
async fn a_picture_that_is_too_large_is_left_out() {
    let stage = Stage::new(LOOKING).await;
    let mut agent = stage.agent(None);
    let base64 = "A".repeat(8_000_000);
    let said = vec![Block::text("What is this?"), Block::image("image/png", &base64)];
    let turn = agent.turn(said, &CancellationToken::new()).await;
    assert!(matches!(turn.end, TurnEnd::Ended(_)), "{:?}", turn.end);
    assert_eq!(turn.text, "I see that it is left out.");
    let log = std::fs::read_to_string(agent.session().path()).unwrap();
    assert!(log.contains(&base64), "the log keeps it");
    let request = stage.simulator.requests().pop().unwrap().to_string();
    assert!(request.contains("What is this?") && !request.contains("AAAAAAAA"));
}

/// REACT-1: a picture that a tool returned is left out in the same way.
#[tokio::test]
async fn a_picture_in_a_result_that_is_too_large_is_left_out() {
    let stage = Stage::new(LOOKING).await;
    let mut agent = stage.agent(None);
    let session = agent.session_mut();
    let call = Block::tool_use("toolu_1", "Read", &serde_json::json!({"file_path": "/large.png"}));
    let result = [Block::text("the picture:"), Block::image("image/png", &"A".repeat(8_000_000))];
    let result = Block::tool_result("toolu_1", &result, transcript::Outcome::Done);
    let said = |blocks| Body::User { blocks, source: TextSource::Direct };
    session.append(said(vec![Block::text("Look.")])).unwrap();
    let (id, model) = ("msg_1".into(), "m".to_owned());
    session.append(Body::Assistant { id, model, blocks: vec![call], usage: None, stop: None }).unwrap();
    session.append(said(vec![result])).unwrap();
    let turn = say(&mut agent, "What is it?").await;
    assert!(matches!(turn.end, TurnEnd::Ended(_)), "{:?}", turn.end);
    assert_eq!(turn.text, "I see that it is left out.");
    assert!(stage.simulator.requests().pop().unwrap().to_string().contains("the picture:"));
}
