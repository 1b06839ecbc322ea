use crate::stage::{Stage, say};

const WORKER: &str = r#"
    [model]
    seed = 1
    [[rule]]
    name = "sum up"
    when = { visible = ["alpha", "beta"] }
    say = "Both are there."
    [[rule]]
    name = "read both"
    when = { missing = "alpha" }
    say = "I read both."
    call = [
        { tool = "Read", input = { file_path = "{{ project }}/a.txt" } },
        { tool = "Read", input = { file_path = "{{ project }}/b.txt" } },
        { tool = "Read", input = { file_path = "{{ project }}/missing.txt" } },
    ]
"#;

/// CACHE-2, LOG-13. Scenario: a turn with three parallel reads, one of which fails; then a second turn in a resumed
/// session. What was sent stays, results stand in the order of their calls, breakpoints at static system, system, the
/// previous tail and the tail.
#[tokio::test]
async fn two_turns_with_parallel_calls_and_a_resume() {
    let stage = Stage::new(WORKER).await;
    std::fs::write(stage.project().join("a.txt"), "alpha\n").unwrap();
    std::fs::write(stage.project().join("b.txt"), "beta\n").unwrap();
    let mut agent = stage.agent(None);
    say(&mut agent, "look").await;
    let id = agent.session().id().to_owned();
    drop(agent);
    let mut agent = stage.agent(Some(&id));
    let turn = say(&mut agent, "and again?").await;
    assert_eq!(turn.text, "Both are there.");
    insta::assert_snapshot!(stage.shape());
    let report = stage.simulator.report();
    assert_eq!((report.totals.breaks, report.totals.refused), (0, 0));
    let last = &report.requests[2];
    assert!(last.input.read > 0 && last.input.uncached == 0, "{last:?}");
}

/// CACHE-1: the next session of a project reads from the cache all that the last one left there but its own folder's name.
#[tokio::test]
async fn the_next_session_reads_the_last_ones_prologue() {
    let stage = Stage::new("[[rule]]\nsay = 'Hello.'").await;
    say(&mut stage.agent(None), "hello").await;
    say(&mut stage.another_agent(900), "hello").await;
    let report = stage.simulator.report();
    let [first, second] = report.requests.as_slice() else { panic!("{report:?}") };
    assert_eq!(first.input.read, 0);
    let anew = second.input.total() - second.input.read;
    assert!(anew < 100, "{anew} tokens are new, of {}", second.input.total());
}
