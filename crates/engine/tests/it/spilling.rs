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
