//! A session is killed in the middle of every layer, and goes on.

use engine::Event;
use transcript::window::Window;

use crate::stage::{Stage, say, window};
use crate::worker;

/// LOG-7, COMPACT-12, NOTES-5: whatever line was the last to reach the disk, the session is resumed, the provider takes
/// its request, and the work goes on without an overflow.
#[tokio::test]
async fn a_session_killed_anywhere_goes_on() {
    let spilling = r#"
        [[rule]]
        name = "read"
        when = { missing = ["notes.txt", "about to leave"] }
        call = [{ tool = "Read", input = { file_path = "{{ project }}/notes.txt" } }, { tool = "Bash", input = { command = "seq 1 20000" } }]
    "#;
    let script = format!("[model]\nwindow = 32000\n{spilling}\n{}", worker::script(16));
    let mut stage = Stage::new(&script).await;
    std::fs::write(stage.project().join("notes.txt"), "some lines\n".repeat(40)).unwrap();
    worker::equip(&stage.project(), 4_000);
    stage.layers.window = Window { size: 32_000, ..window(32_000) };
    stage.layers.notes_share = None;
    stage.layers.clear = false;
    stage.layers.kept_when_idle = 1;
    let mut agent = stage.agent(None);
    say(&mut agent, "Do all the steps.").await;
    agent.settled().await.unwrap();
    stage.wait(7_200);
    say(&mut agent, "Is it done?").await;
    {
        let events = stage.events.lock().unwrap();
        let happened = |what: fn(&Event) -> bool| assert!(events.iter().any(what));
        happened(|event| matches!(event, Event::Spilled { .. }));
        happened(|event| matches!(event, Event::Cleared { .. }));
        happened(|event| matches!(event, Event::NotesUpdated { failed: None, .. }));
        happened(|event| matches!(event, Event::Compacted { .. }));
    }
    let (path, id) = (agent.session().path().to_owned(), agent.session().id().to_owned());
    drop(agent);
    let whole = std::fs::read(&path).unwrap();
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for (number, end) in ends.into_iter().enumerate() {
        // Every other time the line behind it is torn.
        let torn = if number % 2 == 0 { 0 } else { 40 };
        std::fs::write(&path, &whole[..(end + torn).min(whole.len())]).unwrap();
        let refused = stage.simulator.report().totals.refused;
        let mut agent = stage.agent(Some(&id));
        let turn = say(&mut agent, "Go on.").await;
        assert!(matches!(turn.end, engine::run::TurnEnd::Ended(_)), "after line {number}: {:?}", turn.end);
        agent.settled().await.unwrap();
        let report = stage.simulator.report();
        let errors: Vec<&String> = report.requests.iter().filter_map(|line| line.error.as_ref()).collect();
        assert_eq!(report.totals.refused, refused, "after line {number}: {errors:?}");
    }
}
