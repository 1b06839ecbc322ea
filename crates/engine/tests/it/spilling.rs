use engine::Event;

use crate::stage::{Stage, say};

const PRINTER: &str = r#"
    [[rule]]
    name = "told"
    when = { visible = "persisted-output|could not be kept" }
    say = "I saw the beginning."
    [[rule]]
    name = "print"
    call = [
        { tool = "Bash", input = { command = "for i in $(seq 1 60000); do echo line $i; done" } },
        { tool = "Bash", input = { command = "true" } },
    ]
"#;

fn results(stage: &Stage, request: usize) -> Vec<String> {
    let messages = stage.simulator.requests()[request]["messages"].clone();
    messages[2]["content"].as_array().unwrap().iter().map(|block| block["content"][0]["text"].to_string()).collect()
}

/// SPILL-1, SPILL-4: an oversized result goes to a file below the session, its preview is what the model sees on every
/// later request, also after a resume, and the log keeps what the tool returned.
#[tokio::test]
async fn a_spilled_result_keeps_its_preview() {
    let stage = Stage::new(PRINTER).await;
    let mut agent = stage.agent(None);
    assert_eq!(say(&mut agent, "go").await.text, "I saw the beginning.");
    let first = results(&stage, 1);
    assert!(first[0].len() < 3_000 && first[0].contains("line 1"), "{}", first[0]);
    assert!(first[0].contains("tool-results/toolu_"), "{}", first[0]);
    let folder = agent.session().path().with_extension("").join("tool-results");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    assert!(std::fs::read_to_string(file).unwrap().ends_with("line 60000"));
    let log = std::fs::read_to_string(agent.session().path()).unwrap();
    assert!(log.contains("line 59999") && log.contains("content-replacement"));
    let id = agent.session().id().to_owned();
    drop(agent);
    let mut agent = stage.agent(Some(&id));
    say(&mut agent, "and now?").await;
    assert_eq!(results(&stage, 2), first);
    assert_eq!(stage.simulator.report().totals.breaks, 0);
    let events = stage.events.lock().unwrap();
    assert!(events.iter().any(|event| matches!(event, Event::Spilled { results: 1, freed } if *freed > 100_000)));
}

/// LOG-12: a commit can be undone and done again; an undo that would not fit the window is refused, with the size, and
/// nothing is written.
#[tokio::test]
async fn an_undo_that_would_not_fit_is_refused() {
    let stage = Stage::new(PRINTER).await;
    let mut agent = stage.agent(None);
    say(&mut agent, "go").await;
    let session = agent.session_mut();
    let spill = session.newest_commit().unwrap();
    let lines = session.log().lines().len();
    let small = transcript::window::Window { size: 100_000, effective: 80_000 };
    let error = session.undo(&spill, &small).unwrap_err().to_string();
    assert!(error.contains("80000") && error.contains("tokens"), "{error}");
    assert_eq!(session.log().lines().len(), lines);
    let large = transcript::window::Window { size: 1_000_000, effective: 980_000 };
    let text = |session: &session::Session| session.log().view().messages()[2].blocks[0].result_text();
    let preview = text(session);
    session.undo(&spill, &large).unwrap();
    assert!(text(session).ends_with("line 60000"));
    assert!(session.undo(&spill, &large).is_err(), "it does not count any more");
    let undo = session.newest_commit().unwrap();
    session.undo(&undo, &large).unwrap();
    assert_eq!(text(session), preview);
}

/// SPILL-5: where the folder cannot be written, the result is cut in place and says so.
#[tokio::test]
async fn a_result_that_cannot_be_kept_is_cut() {
    let stage = Stage::new(PRINTER).await;
    let mut agent = stage.agent(None);
    let folder = agent.session().path().with_extension("");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tool-results"), "in the way").unwrap();
    assert_eq!(say(&mut agent, "go").await.text, "I saw the beginning.");
    let cut = &results(&stage, 1)[0];
    assert!(
        cut.len() < 12_000 && cut.contains("line 1") && cut.contains("line 60000") && cut.contains("could not be kept")
    );
}
