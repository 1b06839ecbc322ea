use std::path::Path;

use context::{LayerTiming, Layers};
use session::record;
use session::replay::{SUMMARY_TOKENS, replay};

use crate::skipped::skipped_on_this_machine;
use crate::stage::{Stage, say, window};
use crate::worker;

/// REACT-3: every recorded session of other agents plays through the layers at any window: calls keep their results, the
/// view keeps within the window, and nothing that was sent changes without a commit that says so.
/// (Runs where the recordings lie beside the project.)
#[test]
fn recorded_sessions_play_at_every_window() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/transcripts");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return skipped_on_this_machine(&format!("there are no recordings at {}", folder.display()));
    };
    let mut played = 0;
    for path in
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
    {
        for size in [32_000, 64_000, 100_000, 200_000] {
            for when in [LayerTiming::Window, LayerTiming::Economy] {
                let layers = Layers { window: window(size), when, ..Layers::default() };
                let replayed = replay(record::lines(&path).unwrap().0, &layers, SUMMARY_TOKENS);
                assert_eq!(replayed.broken, [""; 0], "{} at {size}", path.display());
                assert!(replayed.rounds.len() > 5, "{}", path.display());
                played += 1;
            }
        }
    }
    assert!(played >= 6 * 8);
}

/// REACT-3: a session of our own, played again with the settings it had, does what it did.
#[tokio::test]
async fn a_session_played_again_does_the_same() {
    let mut stage = Stage::new(&worker::script(40)).await;
    worker::equip(&stage.project(), 9_000);
    stage.layers.window = window(100_000);
    let mut agent = stage.agent(None);
    say(&mut agent, "Do all the steps.").await;
    let (lines, _) = record::lines(agent.session().path()).unwrap();
    let replayed = replay(lines, &stage.layers, SUMMARY_TOKENS);
    assert_eq!(replayed.broken, [""; 0]);
    assert_eq!(replayed.rounds.len(), 41);
    let layers: Vec<&str> = replayed.rounds.iter().flat_map(|round| &round.commits).map(|done| done.layer).collect();
    let events = stage.events.lock().unwrap();
    let cleared = events.iter().filter(|event| matches!(event, engine::Event::Cleared { .. })).count();
    assert!(cleared > 0 && layers.len().abs_diff(cleared) <= 1 && layers.iter().all(|layer| *layer == "clear"));
}

/// REACT-3: the usage in another program's session counts a prompt that nobody has here; it is left out, so that the first
/// clearing does not seem to free it.
#[test]
fn the_usage_of_a_prompt_that_is_not_recorded_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut lines = String::new();
    for n in 0..3 {
        let (parent, time) = (format!("a{}", n - 1), format!("2026-01-01T00:00:0{n}Z"));
        let parent = if n == 0 { serde_json::Value::Null } else { parent.into() };
        let said = serde_json::json!({"role": "user", "content": "hello"});
        let usage = serde_json::json!({"input_tokens": 60_000, "output_tokens": 5});
        let reply = serde_json::json!({"role": "assistant", "id": format!("m{n}"), "model": "m", "usage": usage,
            "content": [{"type": "text", "text": "hi"}]});
        for line in [
            serde_json::json!({"type": "user", "uuid": format!("u{n}"), "parentUuid": parent, "sessionId": "s",
                "timestamp": time, "message": said}),
            serde_json::json!({"type": "assistant", "uuid": format!("a{n}"), "parentUuid": format!("u{n}"),
                "sessionId": "s", "timestamp": time, "message": reply}),
        ] {
            lines.push_str(&format!("{line}\n"));
        }
    }
    std::fs::write(&file, lines).unwrap();
    let (lines, _) = session::record::lines(&file).unwrap();
    let replayed = session::replay::replay(lines, &context::Layers::default(), 1_000);
    let tokens: Vec<u64> = replayed.rounds.iter().map(|round| round.tokens).collect();
    assert!(tokens.len() == 3 && tokens.iter().all(|tokens| *tokens < 100), "{tokens:?}");
}
